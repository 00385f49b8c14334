package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A ServerConfig is one server of the configuration.
type ServerConfig struct {
	Handle             string
	Title, Description string // empty: the handle, and none
	Disabled           bool

	Endpoint Endpoint    // nil if Disabled, or if Own is set
	Own      *Own        // of a server that callers do not share; nil otherwise
	RPC      rpc.Options // the handshake's and answers' bounds, and what we call ourselves

	Allow, Deny []string // globs on tool names; a nil Allow allows all
	Exclude     []string // exact tool names

	Timeout, MaxTimeout time.Duration // see [bridge.Target]
	ParseText, Strict   bool
	Asks                bool     // it may ask callers something; RPC offers that to it
	Forward             []string // see [bridge.Target]

	Idle           time.Duration // without a call after which its client is closed; zero is never
	NoReconnect    bool          // do not come back in the background
	ReconnectDelay time.Duration // zero is 5 s
	Heartbeat      time.Duration // between pings of a remote server; zero is none
}

// RegistryOptions configure a [Registry]. Pool and Compiler must be set.
type RegistryOptions struct {
	Pool     *Pool
	Compiler bridge.Compiler
	Lists    ListLimits
	Forget   func(bridge.EndpointID) // told of each endpoint that is no longer attached; nil is nobody
	Log      *slog.Logger            // nil discards
}

// A Registry keeps the connectors: one for each handle, endpoint and settings, so that
// one handle can be attached to several endpoints at once, one for each tenant, say,
// or to what a changed configuration makes of one. Attach and Detach count references, per connector here and per endpoint in the pool.
type Registry struct {
	opts RegistryOptions

	mu         sync.Mutex
	connectors map[connectorKey]*Connector // guarded by mu
}

// A connectorKey is a struct, so that no handle can be mistaken for part of an endpoint.
type connectorKey struct {
	handle   string
	endpoint [32]byte // of its id; the label is no part of its identity
	settings [32]byte
}

// key tells the connectors of configured servers apart. The server has an endpoint.
func (s *ServerConfig) key() connectorKey {
	return connectorKey{s.Handle, s.Endpoint.ID().Sum, s.settings()}
}

// NewRegistry returns an empty registry.
func NewRegistry(o RegistryOptions) *Registry {
	o.Lists.Pages = cmp.Or(o.Lists.Pages, 1000)
	o.Lists.Tools = cmp.Or(o.Lists.Tools, 10000)
	o.Lists.Timeout = cmp.Or(o.Lists.Timeout, 20*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Registry{opts: o, connectors: make(map[connectorKey]*Connector)}
}

// An Attachment is one reference to a connector.
type Attachment struct {
	*Connector
	registry *Registry
	once     sync.Once
}

// Attach returns a reference to the connector of a server, which is started if there was none; changed is called after each change of its entry and must not block.
func (r *Registry) Attach(c ServerConfig, changed func()) *Attachment {
	key := c.key()
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.connectors[key]
	fresh := k == nil
	if fresh {
		k = newConnector(r, c, key)
		r.connectors[key] = k
		k.setTarget(r.opts.Pool.attach(c.Endpoint, c.RPC, c.Idle, k))
	}
	k.refs++
	a := &Attachment{Connector: k, registry: r}
	k.observe(a, changed)
	if fresh {
		k.start() // only now: nothing that happens to it is missed
	}
	return a
}

// Detach gives back what Attach returned; a second time it does nothing. The last
// reference ends the connector, and the last connector of an endpoint closes its
// client, after the calls under way, which get as long as the pool's Drain.
func (a *Attachment) Detach() {
	ctx, cancel := context.WithTimeout(context.Background(), a.registry.opts.Pool.opts.Drain)
	defer cancel()
	a.retire(ctx)
}

// retire is Detach, with the calls under way waited for until ctx ends.
func (a *Attachment) retire(ctx context.Context) {
	a.once.Do(func() {
		r, k := a.registry, a.Connector
		k.observe(a, nil)
		r.mu.Lock()
		k.refs--
		last := k.refs == 0
		if last {
			delete(r.connectors, k.key)
		}
		r.mu.Unlock()
		if !last {
			return
		}
		k.stop() // no lock is held: this waits for what is under way
		id := k.target.Endpoint
		if r.opts.Pool.detach(ctx, id, k) && r.opts.Forget != nil && !r.opts.Pool.has(id) {
			r.opts.Forget(id)
		}
	})
}

// start runs the connector until stop.
func (k *Connector) start() {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.work.Go(func() { k.run(ctx) })
}

func (k *Connector) stop() {
	k.cancel()
	k.work.Wait()
}
