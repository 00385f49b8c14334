package mcp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
)

var errStopped = errors.New("the bridge is stopping")

// Apply makes the catalogue that of another configuration, in one step. A server that
// has not changed keeps its connections and processes. A new or changed one is connected
// first, aside, until it has answered or failed its first attempt; then all are swapped at once; then what
// is no longer served is detached in the background, after the calls under way on it. Servers of
// callers' own are connected again by their next call. If ctx ends before the swap, nothing has changed.
func (c *Catalogue) Apply(ctx context.Context, servers []ServerConfig, users map[bridge.Owner][]ServerConfig) (Changes, error) {
	if err := c.takeTurn(ctx); err != nil {
		return Changes{}, err
	}
	defer func() { <-c.turn }()
	next := newPlan(c.opts.Local, servers, users)

	var swapped atomic.Bool
	changed := func() {
		if swapped.Load() {
			c.publish()
		}
	}
	attached, fresh := make(map[string]*Attachment), []*Attachment(nil)
	have := c.shared()
	for handle, s := range next.shared() {
		if a := have[handle]; a != nil && a.key == s.key() {
			attached[handle] = a
			continue
		}
		attached[handle] = c.opts.Registry.Attach(*s, changed)
		fresh = append(fresh, attached[handle])
	}
	if err := c.settle(ctx, fresh); err != nil {
		for _, a := range fresh {
			a.Detach()
		}
		return Changes{}, err
	}

	c.vmu.Lock()
	c.mu.Lock()
	changes := c.plan.changes(next)
	c.plan, c.attached = next, attached
	swapped.Store(true)
	c.publishLocked()
	c.mu.Unlock()
	for handle, a := range have {
		if attached[handle] != a {
			c.retireLocked(a)
		}
	}
	for _, v := range c.views {
		v.reviseLocked(c, next)
	}
	c.vmu.Unlock()
	c.publish() // what has happened to the fresh ones just now
	return changes, nil
}

// takeTurn waits until Run has begun and nobody else changes the plan.
func (c *Catalogue) takeTurn(ctx context.Context) error {
	select {
	case <-c.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.life.Done():
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.life.Err() != nil {
		<-c.turn
		return errStopped
	}
	return nil
}

// shared returns what is attached for everybody.
func (c *Catalogue) shared() map[string]*Attachment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.attached)
}

// settle waits for the first attempts, but not for long. The error is that of ctx, or errStopped.
func (c *Catalogue) settle(ctx context.Context, fresh []*Attachment) error {
	wait, cancel := context.WithTimeout(ctx, cmp.Or(c.opts.SwapWait, time.Minute))
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	waitAll(wait, fresh)
	if c.life.Err() != nil {
		return errStopped
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// retireLocked detaches in the background, after the calls under way.
func (c *Catalogue) retireLocked(all ...*Attachment) {
	for _, a := range all {
		c.drains.Go(func() { // ended by the end of the calls, MaxTimeout, or stop
			ctx, cancel := context.WithTimeout(c.cut, a.target.MaxTimeout)
			defer cancel()
			a.retire(ctx)
		})
	}
}
