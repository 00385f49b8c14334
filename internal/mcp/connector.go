package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
)

const (
	maxReconnectDelay = 5 * time.Minute
	changeDelay       = 100 * time.Millisecond // a burst of list changes is one refresh
	pingTimeout       = 20 * time.Second
)

// A Connector keeps the catalogue's entry of one attached server true. It has one
// goroutine, which alone changes the entry.
type Connector struct {
	registry *Registry
	config   ServerConfig
	key      connectorKey
	target   *bridge.Target
	keep     func(tool string) bool

	entry   atomic.Pointer[bridge.Server]
	settled chan struct{} // closed when the first attempt has ended
	settle  func()        // closes it
	wake    chan struct{} // a list has changed, or there is a new client
	retry   chan struct{} // somebody would call the server if it could be connected
	changed atomic.Bool   // a list has changed since it was last read

	refs   int // guarded by the registry's mu
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	observers map[*Attachment]func() // guarded by mu

	client   *Client   // whose lists are in the entry; owned by run
	failures int       // refreshes that failed in a row; owned by run
	next     time.Time // when an attempt in the background is due, after a failure; zero is never; owned by run
}

var _ listener = (*Connector)(nil)

func newConnector(r *Registry, s ServerConfig, key connectorKey) *Connector {
	k := &Connector{
		registry: r, config: s, key: key, keep: s.keeps(),
		settled: make(chan struct{}), wake: make(chan struct{}, 1), retry: make(chan struct{}, 1),
		observers: make(map[*Attachment]func()),
	}
	k.settle = sync.OnceFunc(func() { close(k.settled) })
	k.entry.Store(s.entry(bridge.Connecting))
	return k
}

// setTarget makes the target of the calls, whose accounts are those of the endpoint as it is attached.
func (k *Connector) setTarget(id bridge.EndpointID) {
	s := &k.config
	demand := slices.Clone(s.Endpoint.Demand())
	for i := range demand {
		if demand[i].Account.Endpoint.Sum == id.Sum {
			demand[i].Account.Endpoint = id
		}
	}
	k.target = &bridge.Target{
		Handle: s.Handle, Endpoint: id, Demand: demand,
		Timeout: cmp.Or(s.Timeout, 20*time.Second), MaxTimeout: cmp.Or(s.MaxTimeout, 10*time.Minute),
		ParseText: s.ParseText, Strict: s.Strict, Asks: s.Asks, Forward: s.Forward,
	}
	e := k.entry.Load() // nobody else has it yet
	e.Endpoint, e.Target = id, k.target
}

// entry returns the entry of a server of which nothing is known yet.
func (s *ServerConfig) entry(state bridge.State) *bridge.Server {
	return &bridge.Server{Handle: s.Handle, Title: cmp.Or(s.Title, s.Handle), Description: s.Description, State: state, Since: time.Now()}
}

// Server returns the server's entry as it is now.
func (k *Connector) Server() *bridge.Server { return k.entry.Load() }

// Settled is closed when the server has answered or failed its first attempt.
func (k *Connector) Settled() <-chan struct{} { return k.settled }

// unsettled returns Settled while the first attempt is under way, and nil afterwards.
func (k *Connector) unsettled() <-chan struct{} {
	select {
	case <-k.settled:
		return nil
	default:
		return k.settled
	}
}

// nudge makes a server that could not be connected be tried again now and not at the end
// of its back-off, unless its circuit is open. It does not wait for that.
func (k *Connector) nudge() {
	if s := k.entry.Load().State; s != bridge.Failed && s != bridge.NeedsAuth {
		return
	}
	if k.registry.opts.Pool.opts.Circuit.Open(k.target.Endpoint) != nil {
		return
	}
	select {
	case k.retry <- struct{}{}:
	default: // it will be tried anyway
	}
}

// observe sets, or with nil takes away, what is called after each change for one reference.
func (k *Connector) observe(a *Attachment, changed func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changed == nil {
		delete(k.observers, a)
	} else {
		k.observers[a] = changed
	}
}

// update replaces the entry by a changed copy of it.
func (k *Connector) update(change func(*bridge.Server)) {
	old := k.entry.Load()
	entry := old.Copy()
	change(entry)
	if entry.State != old.State {
		entry.Since = time.Now()
	}
	k.entry.Store(entry)
	k.mu.Lock()
	all := make([]func(), 0, len(k.observers))
	for _, f := range k.observers {
		all = append(all, f)
	}
	k.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// handle implements listener.
func (k *Connector) handle() string { return k.config.Handle }

// connected implements listener.
func (k *Connector) connected() {
	select {
	case k.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

// listChanged implements listener.
func (k *Connector) listChanged() {
	k.changed.Store(true)
	k.connected()
}

// run connects, reads the lists, and then waits for what makes that necessary again.
func (k *Connector) run(ctx context.Context) {
	err := k.refresh(ctx)
	k.settle()
	for ctx.Err() == nil {
		err = k.wait(ctx, err)
	}
}

// wait waits for the next thing to happen after a refresh that ended with err,
// sees to it, and returns how that ended.
func (k *Connector) wait(ctx context.Context, err error) error {
	var retry, heartbeat <-chan time.Time
	var died <-chan struct{}
	switch {
	case err != nil && !k.next.IsZero():
		timer := time.NewTimer(time.Until(k.next))
		defer timer.Stop()
		retry = timer.C
	case err == nil && k.client != nil:
		died = k.client.conn.Done()
		if k.beats() {
			timer := time.NewTimer(k.config.Heartbeat)
			defer timer.Stop()
			heartbeat = timer.C
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case <-retry:
		return k.refresh(ctx)
	case <-k.retry:
		return k.refresh(ctx)
	case <-died:
		return k.lost()
	case <-heartbeat:
		k.ping(ctx)
		return nil
	case <-k.wake:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(changeDelay):
	}
	select {
	case <-k.wake:
	default:
	}
	switch c := k.registry.opts.Pool.current(k.target.Endpoint); {
	case c != nil && c.Connected():
		return k.refresh(ctx)
	case k.client != nil:
		return k.lost()
	default:
		return err
	}
}

// plan decides when the server is tried again in the background, and returns that.
func (k *Connector) plan() time.Time {
	k.next = time.Time{}
	if !k.config.NoReconnect {
		k.next = time.Now().Add(k.backoff())
	}
	return k.next
}

// backoff returns how long to wait before the next attempt: twice as long after
// each failure, with jitter, so that servers that went down together do not
// come back together.
func (k *Connector) backoff() time.Duration {
	d := cmp.Or(k.config.ReconnectDelay, 5*time.Second)
	for range min(k.failures-1, 10) {
		d = min(2*d, maxReconnectDelay)
	}
	return d + rand.N(d/4+1)
}

// beats reports whether the client is to be pinged: a process is known to live,
// and the stateless protocol has no ping.
func (k *Connector) beats() bool {
	return k.config.Heartbeat > 0 && !k.config.Endpoint.Process() && !k.client.conn.Peer().Modern()
}

// ping closes a client that does not answer. Any answer will do, also that there is no such method.
func (k *Connector) ping(ctx context.Context) {
	_, err := k.client.conn.Do(ctx, &rpc.Request{Method: "ping", Idle: pingTimeout, Total: pingTimeout})
	if _, answered := errors.AsType[*rpc.Error](err); err == nil || answered || ctx.Err() != nil {
		return
	}
	k.registry.opts.Log.LogAttrs(ctx, slog.LevelWarn, "heartbeat failed", slog.String("handle", k.config.Handle), slog.Any("err", err))
	_ = k.client.conn.Close() // what closing has to say is in the log; the next wait finds it dead
}

// lost notes that the client has died. One that may be closed for being idle is made again
// by the next call; any other one of a remote server is looked for in the background.
func (k *Connector) lost() error {
	reason := cmp.Or(k.client.conn.Err(), errEnded)
	k.client = nil
	k.registry.opts.Log.LogAttrs(context.Background(), slog.LevelInfo, "connection ended",
		slog.String("handle", k.config.Handle), slog.Any("reason", reason))
	if k.config.Endpoint.Process() || k.config.Idle > 0 {
		k.update(func(s *bridge.Server) { s.State = bridge.Idle })
		return nil
	}
	k.update(func(s *bridge.Server) { s.State, s.Next = bridge.Idle, k.plan() })
	return reason
}

var errEnded = errors.New("the connection ended")

// refresh connects if needed and reads the lists if they are not those of this client.
func (k *Connector) refresh(ctx context.Context) error {
	pool := k.registry.opts.Pool
	client, slot, err := pool.take(ctx, k.target.Endpoint)
	if err == nil {
		defer pool.put(slot, false)
		if client == k.client && !k.changed.Load() {
			return nil // it was woken by its own connecting
		}
	}
	var tools []*bridge.Tool
	var skipped []bridge.Skipped
	var rest *reading
	if err == nil {
		k.changed.Store(false) // a change from here on is another refresh
		rest = readOthers(ctx, client.conn, k.registry.opts.Lists)
		defer rest.stop()
		tools, skipped, err = k.tools(ctx, client)
	}
	if ctx.Err() != nil {
		return nil // stopping is no news of the server
	}
	if err != nil {
		k.changed.Store(true)
		k.failures++
		k.failed(err)
		return err
	}
	k.client = client
	k.failures = 0
	explain := func(err error) error { return client.explain(err, nil) }
	lists, whole := rest.within(ctx, othersGrace)
	k.update(func(s *bridge.Server) {
		peer := client.conn.Peer()
		s.Name, s.Version, s.Protocol, s.Instructions = peer.Name, peer.Version, peer.Protocol, peer.Instructions
		s.State, s.LastError, s.Listed, s.Next = bridge.Ready, "", time.Now(), time.Time{}
		s.SetTools(tools)
		s.Skipped = skipped
		lists.put(s, explain)
	})
	for _, t := range skipped {
		k.registry.opts.Log.LogAttrs(ctx, slog.LevelWarn, "tool left out",
			slog.String("handle", k.config.Handle), slog.String("tool", t.Name), slog.String("reason", t.Reason))
	}
	if !whole {
		k.settle()
		<-rest.done
		if ctx.Err() == nil {
			k.update(func(s *bridge.Server) { rest.others.put(s, explain) })
		}
	}
	k.note(ctx, k.entry.Load())
	return nil
}

// note logs what is missing of the lists beside the tools.
func (k *Connector) note(ctx context.Context, s *bridge.Server) {
	for _, l := range [...]struct {
		list, err string
		skipped   []bridge.Skipped
	}{{"resources", s.ResourcesError, s.SkippedResources}, {"prompts", s.PromptsError, s.SkippedPrompts}} {
		if l.err != "" || l.skipped != nil {
			k.registry.opts.Log.LogAttrs(ctx, slog.LevelWarn, "a list is not whole",
				slog.String("handle", k.config.Handle), slog.String("list", l.list), slog.String("error", l.err), slog.Int("left_out", len(l.skipped)))
		}
	}
}

// tools reads the list of tools. A server that offers none is healthy.
func (k *Connector) tools(ctx context.Context, c *Client) ([]*bridge.Tool, []bridge.Skipped, error) {
	if !c.conn.Peer().Capabilities.Tools {
		return nil, nil, nil
	}
	opts := k.registry.opts
	entries, err := list(ctx, c.conn, "tools/list", "tools", opts.Lists)
	if err != nil {
		return nil, nil, c.explain(err, nil)
	}
	var compiler bridge.Compiler = compiled{opts.Compiler, k.entry.Load()}
	if c.conn.Peer().Modern() && !k.config.Endpoint.Process() {
		compiler = paramHeaders{compiler}
	}
	tools, skipped := decodeTools(entries, k.target, k.keep, compiler)
	return tools, skipped, nil
}

// compiled takes over what was made of the schemas that a server had before: when one of
// 2,000 tools changes, compiling all of them would take most of the time until documents show it.
type compiled struct {
	bridge.Compiler
	before *bridge.Server
}

func (c compiled) Compile(t *bridge.Tool) error {
	old := c.before.Tool(t.Name)
	if old == nil || old.SchemaHash != t.SchemaHash {
		return c.Compiler.Compile(t)
	}
	t.Arguments, t.Result, t.Unchecked, t.Published = old.Arguments, old.Result, old.Unchecked, old.Published
	return nil
}

// paramHeaders leaves out the tools whose schema asks for headers that cannot be
// sent, as the modern HTTP transport demands of clients.
type paramHeaders struct{ bridge.Compiler }

func (p paramHeaders) Compile(t *bridge.Tool) error {
	if err := remote.CheckParamHeaders(t.Input); err != nil {
		return err
	}
	return p.Compiler.Compile(t)
}

// failed notes an attempt that failed. The last good lists stay.
func (k *Connector) failed(err error) {
	k.update(func(s *bridge.Server) {
		s.LastError, s.Next = messageOf(err), k.plan()
		switch {
		case bridge.KindOf(err) == bridge.UpstreamAuth:
			s.State = bridge.NeedsAuth
		case s.Listed.IsZero():
			s.State = bridge.Failed
		default:
			s.State = bridge.Degraded
		}
	})
}

// messageOf returns the part of err that people may see.
func messageOf(err error) string {
	if f, ok := errors.AsType[*rpc.Failure](err); ok {
		return f.Msg
	}
	if e, ok := errors.AsType[*bridge.Error](err); ok {
		return e.Msg
	}
	return "an internal error; the log has it"
}
