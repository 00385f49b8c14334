package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A ServerConfig is one server of the configuration.
type ServerConfig struct {
	Handle             string
	Title, Description string // empty: the handle, and none
	Disabled           bool

	Endpoint Endpoint    // nil only if Disabled
	RPC      rpc.Options // the handshake's and answers' bounds, and what we call ourselves

	Allow, Deny []string // globs on tool names; a nil Allow allows all
	Exclude     []string // exact tool names

	Timeout, MaxTimeout time.Duration // see [bridge.Target]
	ParseText, Strict   bool

	NoReconnect    bool          // do not come back in the background
	ReconnectDelay time.Duration // zero is 5 s
}

// CatalogueOptions configure a [Catalogue]. Pool and Compiler must be set.
type CatalogueOptions struct {
	Servers    []ServerConfig
	Pool       *Pool
	Compiler   bridge.Compiler
	Lists      ListLimits
	ReadyGrace time.Duration // how long a silent server keeps the catalogue from being ready; zero is 10 s
	Log        *slog.Logger  // nil discards
}

// A Catalogue connects the shared servers and keeps what they offer. Each server
// has one goroutine, its connector's, which alone changes its entry.
type Catalogue struct {
	opts       CatalogueOptions
	connectors []*connector
	snapshot   atomic.Pointer[bridge.Snapshot]
	changes    chan struct{}
	settled    chan struct{} // closed when no first attempt is under way

	mu        sync.Mutex
	servers   map[string]*bridge.Server // :: handle -> its newest entry, guarded by mu
	waiting   map[string]bool           // :: handle whose first attempt is under way, guarded by mu
	graceOver bool                      // guarded by mu
	version   uint64                    // guarded by mu
}

var _ bridge.Catalogue = (*Catalogue)(nil)

// NewCatalogue returns a catalogue in which every server is still connecting. Run connects them.
func NewCatalogue(o CatalogueOptions) *Catalogue {
	o.Lists.Pages = cmp.Or(o.Lists.Pages, 1000)
	o.Lists.Tools = cmp.Or(o.Lists.Tools, 10000)
	o.Lists.Timeout = cmp.Or(o.Lists.Timeout, 20*time.Second)
	o.ReadyGrace = cmp.Or(o.ReadyGrace, 10*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &Catalogue{opts: o, changes: make(chan struct{}, 1), settled: make(chan struct{}), servers: make(map[string]*bridge.Server), waiting: make(map[string]bool)}
	for _, s := range o.Servers {
		entry := &bridge.Server{
			Handle: s.Handle, Title: cmp.Or(s.Title, s.Handle), Description: s.Description,
			State: bridge.Connecting, Since: time.Now(),
		}
		if s.Disabled {
			entry.State = bridge.Disabled
		} else {
			c.connectors = append(c.connectors, newConnector(c, s))
			c.waiting[s.Handle] = true
		}
		c.servers[s.Handle] = entry
	}
	if len(c.waiting) == 0 {
		close(c.settled)
	}
	c.publishLocked() // nobody else knows c yet
	return c
}

// Settle waits until every server has answered or failed its first attempt.
func (c *Catalogue) Settle(ctx context.Context) error {
	select {
	case <-c.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Snapshot implements [bridge.Catalogue].
func (c *Catalogue) Snapshot(bridge.Caller) *bridge.Snapshot { return c.snapshot.Load() }

// Changes gets a value after the snapshot has changed; several changes may be one value.
func (c *Catalogue) Changes() <-chan struct{} { return c.changes }

// Run connects all servers at once and keeps their entries true until ctx ends.
func (c *Catalogue) Run(ctx context.Context) {
	grace := time.AfterFunc(c.opts.ReadyGrace, c.stopWaiting)
	defer grace.Stop()
	var wg sync.WaitGroup
	for _, k := range c.connectors {
		wg.Go(func() { k.run(ctx) })
	}
	wg.Wait()
}

// stopWaiting makes the catalogue ready, whatever is still missing.
func (c *Catalogue) stopWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graceOver = true
	if len(c.waiting) > 0 {
		c.publishLocked()
	}
}

// update replaces a server's entry by a changed copy of it.
func (c *Catalogue) update(handle string, change func(*bridge.Server)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.servers[handle]
	entry := old.Copy()
	change(entry)
	if entry.State != old.State {
		entry.Since = time.Now()
	}
	c.servers[handle] = entry
	last := len(c.waiting) == 1 && c.waiting[handle]
	delete(c.waiting, handle)
	c.publishLocked()
	if last { // whoever waited for this looks at the snapshot next
		close(c.settled)
	}
}

// publishLocked makes a snapshot of all entries the current one.
func (c *Catalogue) publishLocked() {
	c.version++
	servers := make([]*bridge.Server, 0, len(c.servers))
	for _, s := range c.servers {
		servers = append(servers, s)
	}
	c.snapshot.Store(bridge.NewSnapshot(c.version, len(c.waiting) == 0 || c.graceOver, servers))
	select {
	case c.changes <- struct{}{}:
	default: // whoever listens has yet to look, and will see this one too
	}
}

// keeps returns which tools the configuration lets through, by name.
func (s *ServerConfig) keeps() func(name string) bool {
	match := func(globs []string, name string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return matchGlob(g, name) })
	}
	return func(name string) bool {
		return (s.Allow == nil || match(s.Allow, name)) && !match(s.Deny, name) && !slices.Contains(s.Exclude, name)
	}
}
