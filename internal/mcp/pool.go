package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A Circuit learns how connecting went.
type Circuit interface {
	ConnectFailed(e bridge.EndpointID, err error)
	Connected(e bridge.EndpointID)
}

// PoolOptions configure a [Pool]. Circuit must be set; zero fields mean what they say in their comment.
type PoolOptions struct {
	Connects int // connection attempts at a time; zero is 8
	Circuit  Circuit
	Log      *slog.Logger // nil discards
}

// A Pool keeps one shared client per endpoint. Connecting is single-flight per
// endpoint and holds up nobody else.
type Pool struct {
	opts  PoolOptions
	ctx   context.Context // of all attempts; ends with Close
	stop  context.CancelFunc
	turns chan struct{}  // one for each attempt under way that has not been silent for long
	work  sync.WaitGroup // attempts and the closing of clients

	mu     sync.Mutex
	closed bool
	slots  map[bridge.EndpointID]*slot // :: attached endpoint -> its client, guarded by mu
}

// A slot is the place of one endpoint's client.
type slot struct {
	endpoint Endpoint
	options  rpc.Options
	onClient func(*Client) // told of each new client; must not block

	client  *Client  // nil before the first connect
	attempt *attempt // nil when none is under way
}

// An attempt is one try to connect, which any number of callers wait for.
type attempt struct {
	done   chan struct{} // closed when client and err are set
	client *Client
	err    error
}

var _ bridge.Clients = (*Pool)(nil)

// connectSilence is how long an attempt may say nothing before it gives up its turn, though not its attempt.
const connectSilence = 5 * time.Second

// NewPool returns an empty pool.
func NewPool(o PoolOptions) *Pool {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	return &Pool{
		opts: o, ctx: ctx, stop: stop,
		turns: make(chan struct{}, cmp.Or(o.Connects, 8)),
		slots: make(map[bridge.EndpointID]*slot),
	}
}

// Attach makes an endpoint known. onClient is called with each new client of it and must not block.
func (p *Pool) Attach(e Endpoint, o rpc.Options, onClient func(*Client)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.slots[e.ID()]; !ok {
		p.slots[e.ID()] = &slot{endpoint: e, options: o, onClient: onClient}
	}
}

// Client implements [bridge.Clients].
func (p *Pool) Client(ctx context.Context, t *bridge.Target) (bridge.Client, error) {
	c, err := p.client(ctx, t.Endpoint)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// current returns the endpoint's client, dead or alive, or nil if there never was one.
func (p *Pool) current(id bridge.EndpointID) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[id]; s != nil {
		return s.client
	}
	return nil
}

func (p *Pool) client(ctx context.Context, id bridge.EndpointID) (*Client, error) {
	p.mu.Lock()
	s := p.slots[id]
	if s == nil || p.closed {
		p.mu.Unlock()
		return nil, &bridge.Error{Kind: bridge.Unavailable, Op: "mcp.Client", Msg: fmt.Sprintf("The server %s is no longer served here.", id.Label)}
	}
	if s.client != nil && s.client.Connected() {
		c := s.client
		p.mu.Unlock()
		return c, nil
	}
	a := s.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		s.attempt = a
		// The attempt belongs to all who wait for it, so it outlives the caller that began it; Close ends it.
		p.work.Go(func() { p.connect(s, a) })
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.client, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connect makes the attempt a on the slot s.
func (p *Pool) connect(s *slot, a *attempt) {
	id := s.endpoint.ID()
	start := time.Now()
	conn, err := p.dial(s)
	if err == nil {
		a.client = &Client{conn: conn, label: id.Label}
		p.opts.Circuit.Connected(id)
		p.opts.Log.LogAttrs(p.ctx, slog.LevelInfo, "connected", slog.String("endpoint", s.endpoint.String()),
			slog.String("server", conn.Peer().Name), slog.String("protocol", conn.Peer().Protocol), slog.Duration("took", time.Since(start)))
	} else {
		a.err = (&Client{label: id.Label}).explain(err, nil)
		if p.ctx.Err() == nil {
			p.opts.Circuit.ConnectFailed(id, a.err)
			p.opts.Log.LogAttrs(p.ctx, slog.LevelWarn, "cannot connect", slog.String("endpoint", s.endpoint.String()),
				slog.Any("err", err), slog.Duration("took", time.Since(start)))
		} else {
			a.err = &bridge.Error{Kind: bridge.Unavailable, Op: "mcp.Client", Msg: "The bridge is stopping.", Err: err}
		}
	}
	p.mu.Lock()
	s.attempt = nil
	if err == nil {
		s.client = a.client
	}
	p.mu.Unlock()
	close(a.done)
	if err == nil {
		s.onClient(a.client)
	}
}

// dial connects when a turn is free. An endpoint that stays silent gives up its
// turn, so that a few hanging servers do not keep all others waiting.
func (p *Pool) dial(s *slot) (rpc.Conn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
	giveBack := sync.OnceFunc(func() { <-p.turns })
	defer giveBack()
	defer time.AfterFunc(connectSilence, giveBack).Stop()
	return s.endpoint.Connect(p.ctx, s.options)
}

// Close ends all attempts and closes all clients, and waits until they are gone.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
	var errs []error
	var mu sync.Mutex
	var closing sync.WaitGroup
	for _, s := range p.slots { // no longer changes: nothing is attached or connected to a closed pool
		if s.client != nil {
			closing.Go(func() {
				if err := s.client.conn.Close(); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, fmt.Errorf("close %s: %w", s.endpoint, err))
				}
			})
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}
