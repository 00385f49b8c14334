package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A Circuit learns how connecting went.
type Circuit interface {
	Open(e bridge.EndpointID) error
	ConnectFailed(e bridge.EndpointID, err error)
	Connected(e bridge.EndpointID)
}

// PoolOptions configure a [Pool]. Circuit must be set; zero fields mean what they say in their comment.
type PoolOptions struct {
	Connects     int           // connection attempts at a time; zero is 8
	MaxProcesses int           // processes at a time, starting ones included; zero is 64
	Drain        time.Duration // how long calls under way are waited for when their endpoint goes; zero is 5 s
	Circuit      Circuit
	Log          *slog.Logger // nil discards
}

// A Pool keeps one shared client per endpoint. Connecting is single-flight per
// endpoint and holds up nobody else.
type Pool struct {
	opts  PoolOptions
	ctx   context.Context // of all attempts; ends with Close
	stop  context.CancelFunc
	ids   atomic.Uint64  // the connections made so far
	turns chan struct{}  // one for each attempt under way that has not been silent for long
	work  sync.WaitGroup // attempts, and what waits for the end of clients

	mu        sync.Mutex
	closed    bool
	slots     map[bridge.EndpointID]*slot // :: attached endpoint -> its client, guarded by mu
	processes int                         // alive or starting, guarded by mu
}

// A slot is the place of one endpoint's client. All but the first fields are guarded by the pool's mu.
type slot struct {
	id      bridge.EndpointID
	printed string // the endpoint for people
	process bool

	endpoint Endpoint      // as it was attached last, as are options and idle
	options  rpc.Options   // of the next connection
	idle     time.Duration // without a call after which the client is closed; zero is never

	listeners map[listener]int // :: connector -> how often it is attached
	client    *Client          // alive as far as is known; nil if there is none
	attempt   *attempt         // nil when none is under way
	users     int              // who hold the client or wait for an attempt's; it is not reaped meanwhile
	used      time.Time        // when a call last gave the client back, or when it was made
	reaper    *time.Timer      // nil until needed
	unused    chan struct{}    // closed when the last user has gone; nil when nobody waits for that
}

// An attempt is one try to connect, which any number of callers wait for.
type attempt struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when err is set
	err    error
}

// A listener is told what happens to an endpoint's client. It must not block.
type listener interface {
	handle() string
	connected()
	listChanged()
}

var _ bridge.Clients = (*Pool)(nil)

// connectSilence is how long an attempt may say nothing before it gives up its turn, though not its attempt.
const connectSilence = 5 * time.Second

// NewPool returns an empty pool.
func NewPool(o PoolOptions) *Pool {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxProcesses = cmp.Or(o.MaxProcesses, 64)
	o.Drain = cmp.Or(o.Drain, 5*time.Second)
	ctx, stop := context.WithCancel(context.Background())
	return &Pool{
		opts: o, ctx: ctx, stop: stop,
		turns: make(chan struct{}, cmp.Or(o.Connects, 8)),
		slots: make(map[bridge.EndpointID]*slot),
	}
}

// attach makes an endpoint known, or one more user of it; what the last one says of how
// to connect and of idleness counts for all. It returns the id of the endpoint, whose
// label is the first one's.
func (p *Pool) attach(e Endpoint, o rpc.Options, idle time.Duration, l listener) bridge.EndpointID {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.canonicalLocked(e.ID())
	s := p.slots[id]
	if s == nil {
		s = &slot{id: id, printed: e.String(), process: e.Process(), listeners: make(map[listener]int)}
		p.slots[id] = s
	}
	o.ListChanged = func(string) { p.tell(s, listener.listChanged) }
	s.endpoint, s.options, s.idle = e, o, idle
	if s.client != nil {
		p.reapLaterLocked(s)
	}
	s.listeners[l]++
	return id
}

// canonicalLocked returns the id under which an endpoint is attached already, if it is: the
// label is no part of its identity.
func (p *Pool) canonicalLocked(id bridge.EndpointID) bridge.EndpointID {
	for have := range p.slots {
		if have.Sum == id.Sum {
			return have
		}
	}
	return id
}

// detach takes back one attach. When it was the last one, the endpoint is forgotten and
// its client closed, after the calls under way or when ctx ends; detach reports that.
func (p *Pool) detach(ctx context.Context, id bridge.EndpointID, l listener) (last bool) {
	p.mu.Lock()
	s := p.slots[id]
	if s == nil || s.listeners[l] == 0 {
		p.mu.Unlock()
		return false
	}
	if s.listeners[l]--; s.listeners[l] == 0 {
		delete(s.listeners, l)
	}
	last = len(s.listeners) == 0
	if last {
		delete(p.slots, id)
		if s.attempt != nil {
			s.attempt.cancel() // it would only make a process that nobody wants
		}
	}
	p.mu.Unlock()
	if last {
		_ = p.drain(ctx, s) // what closing has to say is in the log
	}
	return last
}

// tell tells all listeners of a slot.
func (p *Pool) tell(s *slot, what func(listener)) {
	p.mu.Lock()
	all := make([]listener, 0, len(s.listeners))
	for l := range s.listeners {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		what(l)
	}
}

// Client implements [bridge.Clients].
func (p *Pool) Client(ctx context.Context, t *bridge.Target) (bridge.Client, func(), error) {
	c, s, err := p.take(ctx, t.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	return c, sync.OnceFunc(func() { p.put(s, true) }), nil
}

// take returns a live client, connecting if needed. The client is not reaped or
// evicted until put gives it back.
func (p *Pool) take(ctx context.Context, id bridge.EndpointID) (*Client, *slot, error) {
	p.mu.Lock()
	s := p.slots[id]
	if s == nil {
		defer p.mu.Unlock()
		return nil, nil, p.goneErrorLocked(id)
	}
	s.users++ // whoever waits for a client holds it from its first moment on
	p.mu.Unlock()
	c, err := p.live(ctx, id, s)
	if err != nil {
		p.put(s, false)
		return nil, nil, err
	}
	return c, s, nil
}

// live returns the slot's client, which it waits for if need be.
func (p *Pool) live(ctx context.Context, id bridge.EndpointID, s *slot) (*Client, error) {
	for connected := false; ; connected = true {
		p.mu.Lock()
		switch {
		case p.closed || p.slots[id] != s:
			defer p.mu.Unlock()
			return nil, p.goneErrorLocked(id)
		case s.client != nil && s.client.Connected():
			c := s.client
			p.mu.Unlock()
			return c, nil
		case connected:
			// It has died since it was connected. Trying again at once would be a loop.
			p.mu.Unlock()
			err := &bridge.Error{
				Kind: bridge.Unavailable, Op: "mcp.Client", RetryAfter: time.Second, Fault: true,
				Msg: fmt.Sprintf("The server %q ended right after it was connected.", nameOf(id)),
			}
			p.opts.Circuit.ConnectFailed(id, err)
			return nil, err
		}
		a := p.attemptLocked(s)
		p.mu.Unlock()
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// goneErrorLocked is for calls that found their tool just before its server was replaced.
func (p *Pool) goneErrorLocked(id bridge.EndpointID) error {
	return &bridge.Error{Kind: bridge.Unavailable, Op: "mcp.Client", Gone: !p.closed, Msg: fmt.Sprintf("The server %q is no longer served here.", nameOf(id))}
}

// has reports whether the endpoint is attached.
func (p *Pool) has(id bridge.EndpointID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[p.canonicalLocked(id)] != nil
}

// nameOf is an endpoint's name for people.
func nameOf(id bridge.EndpointID) string { return strings.TrimPrefix(id.Label, "mcp:") }

// put gives back what take gave. Only calls keep a client from being idle.
func (p *Pool) put(s *slot, call bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call {
		s.used = time.Now()
	}
	if s.users--; s.users == 0 && s.unused != nil {
		close(s.unused)
		s.unused = nil
	}
}

// current returns the endpoint's client, or nil if there is none now.
func (p *Pool) current(id bridge.EndpointID) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[id]; s != nil {
		return s.client
	}
	return nil
}

// Close ends all attempts, closes all clients after the calls under way, and waits until they are gone.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	slots := p.slots
	p.slots = map[bridge.EndpointID]*slot{}
	p.mu.Unlock()
	p.stop()
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Drain)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var closing sync.WaitGroup
	for _, s := range slots {
		closing.Go(func() {
			if err := p.drain(ctx, s); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	closing.Wait()
	p.work.Wait()
	return errors.Join(errs...)
}

// drain waits until nobody uses the client of a slot that is no longer in the
// pool, or until ctx ends, and closes it.
func (p *Pool) drain(ctx context.Context, s *slot) error {
	p.mu.Lock()
	if s.reaper != nil {
		s.reaper.Stop()
	}
	wait := s.unused
	if s.users > 0 && wait == nil {
		wait = make(chan struct{})
		s.unused = wait
	}
	p.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	c := s.client
	s.client = nil
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.printed, err)
	}
	return nil
}
