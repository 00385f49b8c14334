// Package mcp is the client side of MCP. A [Catalogue] attaches the configured
// servers through a [Registry], whose connectors keep what each server offers; calls
// and connectors share one [Client] per endpoint, from the [Pool]. What carries the
// frames is in the packages stdio and remote.
package mcp

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
)

// CatalogueOptions configure a [Catalogue]. Registry must be set.
type CatalogueOptions struct {
	Servers    []ServerConfig
	Users      map[bridge.Owner][]ServerConfig // of single users, who alone see them; each wins over one of Servers or Local with its handle
	Local      []*bridge.Server                // written in Go, always there; each wins over one of Servers with its handle
	Registry   *Registry
	ReadyGrace time.Duration // how long a silent server keeps the catalogue from being ready; zero is 10 s
	SwapWait   time.Duration // how long a changed catalogue waits for silent servers; zero is a minute
	OwnIdle    time.Duration // after which the connections of a caller who neither looks nor calls are closed; zero is 5 minutes
	Views      int           // callers whose own connections are kept; zero is 4096
}

// A Catalogue attaches the configured servers and keeps what they offer as an
// immutable snapshot: one for everybody and, where callers have servers of their own, one
// for each of them.
type Catalogue struct {
	opts    CatalogueOptions
	current atomic.Pointer[shared]
	version atomic.Uint64
	changes chan struct{}
	settled chan struct{}  // closed when every server has answered or failed once
	started chan struct{}  // closed when Run has begun
	turn    chan struct{}  // holds whose turn it is to change the plan
	drains  sync.WaitGroup // what is detached in the background; added to under vmu

	life context.Context // ends when Run is to end
	end  context.CancelFunc
	cut  context.Context // ends when no call on what was detached is waited for any more
	snip context.CancelFunc

	vmu     sync.RWMutex // taken before mu
	views   map[viewKey]*view
	running bool // from the beginning to the end of Run; guarded by vmu

	mu       sync.Mutex
	plan     *plan                  // guarded by mu
	attached map[string]*Attachment // :: handle -> what everybody shares, guarded by mu
	ready    bool                   // settled, or waited for long enough; guarded by mu
}

// A shared is a plan, and what it has for those who have nothing of their own.
type shared struct {
	plan     *plan
	snapshot *bridge.Snapshot
}

var _ bridge.Catalogue = (*Catalogue)(nil)

// NewCatalogue returns a catalogue in which every server is still connecting. Run connects them.
func NewCatalogue(o CatalogueOptions) *Catalogue {
	o.OwnIdle = cmp.Or(o.OwnIdle, 5*time.Minute)
	o.Views = cmp.Or(o.Views, 4096)
	c := &Catalogue{
		opts: o, changes: make(chan struct{}, 1), settled: make(chan struct{}), started: make(chan struct{}), turn: make(chan struct{}, 1),
		views: make(map[viewKey]*view), plan: newPlan(o.Local, o.Servers, o.Users), attached: make(map[string]*Attachment),
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.cut, c.snip = context.WithCancel(context.Background())
	c.ready = len(c.plan.shared()) == 0
	if c.ready {
		close(c.settled)
	}
	c.publish()
	return c
}

// Settle waits until every server that everybody shares has answered or failed its first attempt.
func (c *Catalogue) Settle(ctx context.Context) error {
	select {
	case <-c.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Snapshot implements [bridge.Catalogue].
func (c *Catalogue) Snapshot(who bridge.Caller) *bridge.Snapshot {
	s := c.current.Load()
	if !s.plan.differs(&who) {
		return s.snapshot
	}
	return c.viewOf(s.plan, &who).snapshot(c, s)
}

// Changes gets a value after the snapshot that everybody shares has changed; several changes may be one value.
func (c *Catalogue) Changes() <-chan struct{} { return c.changes }

// Run connects all servers at once and keeps their entries true until ctx ends.
func (c *Catalogue) Run(ctx context.Context) {
	grace := time.AfterFunc(cmp.Or(c.opts.ReadyGrace, 10*time.Second), c.stopWaiting)
	defer grace.Stop()
	c.mu.Lock()
	for handle, s := range c.plan.shared() {
		c.attached[handle] = c.opts.Registry.Attach(*s, c.publish)
	}
	attached := c.attachedLocked()
	c.mu.Unlock()
	c.vmu.Lock()
	c.running = true
	c.vmu.Unlock()
	close(c.started)
	c.publish() // what was attached while mu was held had to wait
	if len(attached) > 0 && waitAll(ctx, attached) {
		c.stopWaiting()
		close(c.settled) // whoever waited for this looks at the snapshot next
	}
	c.sweep(ctx)
	c.stop()
}

// stop detaches everything. Calls under way get as long as the pool's Drain.
func (c *Catalogue) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Registry.opts.Pool.opts.Drain)
	defer cancel()
	defer context.AfterFunc(ctx, c.snip)()
	c.end()
	c.turn <- struct{}{} // for good: an Apply under way has ended, and there will be no other
	c.vmu.Lock()
	c.running = false
	var all []*Attachment
	for key, v := range c.views {
		all = append(all, v.clear()...)
		delete(c.views, key)
	}
	c.vmu.Unlock()
	c.mu.Lock()
	all = append(all, c.attachedLocked()...)
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() { a.retire(ctx) })
	}
	wg.Wait()
	c.drains.Wait()
}

func (c *Catalogue) attachedLocked() []*Attachment {
	all := make([]*Attachment, 0, len(c.attached))
	for _, a := range c.attached {
		all = append(all, a)
	}
	return all
}

// waitAll waits until all are settled and reports whether they are.
func waitAll(ctx context.Context, attached []*Attachment) bool {
	for _, a := range attached {
		select {
		case <-a.Settled():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// stopWaiting makes the catalogue ready, whatever is still missing.
func (c *Catalogue) stopWaiting() {
	c.mu.Lock()
	c.ready = true
	c.mu.Unlock()
	c.publish()
}

// publish makes a snapshot of all entries the current one.
func (c *Catalogue) publish() {
	c.mu.Lock()
	c.publishLocked()
	c.mu.Unlock()
	select {
	case c.changes <- struct{}{}:
	default: // whoever listens has yet to look, and will see this one too
	}
}

func (c *Catalogue) publishLocked() {
	servers := make([]*bridge.Server, 0, len(c.plan.static)+len(c.plan.local))
	for _, s := range c.plan.local {
		servers = append(servers, s)
	}
	for handle, s := range c.plan.static {
		if a := c.attached[handle]; a != nil {
			s = a.Server()
		}
		servers = append(servers, s)
	}
	c.current.Store(&shared{c.plan, bridge.NewSnapshot(c.version.Add(1), c.ready, servers)})
}

// keeps returns which tools the configuration lets through, by name.
func (s *ServerConfig) keeps() func(name string) bool {
	return func(name string) bool {
		return (s.Allow == nil || bridge.MatchAny(s.Allow, name)) && !bridge.MatchAny(s.Deny, name) && !slices.Contains(s.Exclude, name)
	}
}
