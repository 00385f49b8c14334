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
	Local      []*bridge.Server // written in Go, always there; each wins over one of Servers with its handle
	Registry   *Registry
	ReadyGrace time.Duration // how long a silent server keeps the catalogue from being ready; zero is 10 s
}

// A Catalogue attaches the shared servers and keeps what they offer as an
// immutable snapshot.
type Catalogue struct {
	opts     CatalogueOptions
	snapshot atomic.Pointer[bridge.Snapshot]
	changes  chan struct{}
	settled  chan struct{} // closed when every server has answered or failed once

	mu       sync.Mutex
	attached []*Attachment // guarded by mu
	ready    bool          // settled, or waited for long enough; guarded by mu
	version  uint64        // guarded by mu
}

var _ bridge.Catalogue = (*Catalogue)(nil)

// NewCatalogue returns a catalogue in which every server is still connecting. Run connects them.
func NewCatalogue(o CatalogueOptions) *Catalogue {
	c := &Catalogue{opts: o, changes: make(chan struct{}, 1), settled: make(chan struct{})}
	c.ready = !slices.ContainsFunc(o.Servers, func(s ServerConfig) bool { return !s.Disabled })
	if c.ready {
		close(c.settled)
	}
	c.publish()
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

// Attach implements [bridge.Catalogue].
func (c *Catalogue) Attach(bridge.Caller, string, bool) (<-chan struct{}, error) { return nil, nil }

// Changes gets a value after the snapshot has changed; several changes may be one value.
func (c *Catalogue) Changes() <-chan struct{} { return c.changes }

// Run connects all servers at once and keeps their entries true until ctx ends.
func (c *Catalogue) Run(ctx context.Context) {
	grace := time.AfterFunc(cmp.Or(c.opts.ReadyGrace, 10*time.Second), c.stopWaiting)
	defer grace.Stop()
	c.mu.Lock()
	for _, s := range c.opts.Servers {
		if !s.Disabled {
			c.attached = append(c.attached, c.opts.Registry.Attach(s, c.publish))
		}
	}
	attached := slices.Clone(c.attached)
	c.mu.Unlock()
	c.publish() // what was attached while mu was held had to wait
	if waitAll(ctx, attached) && len(attached) > 0 {
		c.stopWaiting()
		close(c.settled) // whoever waited for this looks at the snapshot next
	}
	<-ctx.Done()
	var wg sync.WaitGroup
	for _, a := range attached {
		wg.Go(a.Detach)
	}
	wg.Wait()
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
	defer c.mu.Unlock()
	c.version++
	servers := make([]*bridge.Server, 0, len(c.opts.Servers))
	for _, a := range c.attached {
		servers = append(servers, a.Server())
	}
	servers = slices.DeleteFunc(servers, func(e *bridge.Server) bool { return c.isLocal(e.Handle) })
	servers = append(servers, c.opts.Local...)
	old := c.snapshot.Load()
	for _, s := range c.opts.Servers {
		switch {
		case slices.ContainsFunc(servers, func(e *bridge.Server) bool { return e.Handle == s.Handle }):
		case old != nil:
			servers = append(servers, old.Server(s.Handle)) // disabled, or not attached yet
		case s.Disabled:
			servers = append(servers, s.entry(bridge.Disabled))
		default:
			servers = append(servers, s.entry(bridge.Connecting))
		}
	}
	c.snapshot.Store(bridge.NewSnapshot(c.version, c.ready, servers))
	select {
	case c.changes <- struct{}{}:
	default: // whoever listens has yet to look, and will see this one too
	}
}

func (c *Catalogue) isLocal(handle string) bool {
	return slices.ContainsFunc(c.opts.Local, func(s *bridge.Server) bool { return s.Handle == handle })
}

// keeps returns which tools the configuration lets through, by name.
func (s *ServerConfig) keeps() func(name string) bool {
	return func(name string) bool {
		return (s.Allow == nil || bridge.MatchAny(s.Allow, name)) && !bridge.MatchAny(s.Deny, name) && !slices.Contains(s.Exclude, name)
	}
}
