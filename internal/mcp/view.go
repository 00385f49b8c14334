package mcp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
)

// A view is the catalogue of callers with servers of their own: those of one owner
// whose requests have the same headers, as far as servers take any.
type view struct {
	caller  bridge.Caller // user, tenant and the headers that servers take; nothing else of it counts
	used    atomic.Int64  // when somebody last looked, in nanoseconds
	changes atomic.Uint64 // of attached and of its entries
	merged  atomic.Pointer[merged]

	attached map[string]*Attachment // :: handle -> server of the caller's own, guarded by the catalogue's vmu
	waits    time.Time              // until when they may keep the view from being ready, guarded by vmu
}

// A merged is what a view was made of, and the result.
type merged struct {
	base     *shared
	changes  uint64
	waits    time.Time
	snapshot *bridge.Snapshot
}

// viewOf returns the caller's view, a new one if there is none.
func (c *Catalogue) viewOf(p *plan, who *bridge.Caller) *view {
	key := p.key(who)
	c.vmu.RLock()
	v := c.views[key]
	c.vmu.RUnlock()
	if v == nil {
		c.vmu.Lock()
		v = c.viewLocked(p, key, who)
		c.vmu.Unlock()
	}
	v.used.Store(time.Now().UnixNano())
	return v
}

func (c *Catalogue) viewLocked(p *plan, key viewKey, who *bridge.Caller) *view {
	if v := c.views[key]; v != nil {
		return v
	}
	c.makeRoomLocked(key.owner)
	v := &view{
		caller:   bridge.Caller{User: who.User, Tenant: who.Tenant, Headers: p.taken(who)},
		attached: make(map[string]*Attachment),
	}
	v.used.Store(time.Now().UnixNano())
	c.views[key] = v
	return v
}

// makeRoomLocked drops a view if there are as many as may be, or if half of those are one
// owner's, whose headers can be anything: the longest unused of those without a connection, if there are any.
func (c *Catalogue) makeRoomLocked(owner bridge.Owner) {
	mine := 0
	for key := range c.views {
		if key.owner == owner {
			mine++
		}
	}
	all := len(c.views) >= c.opts.Views
	if !all && mine < max(1, c.opts.Views/2) {
		return
	}
	var victim *viewKey
	less := func(a, b *view) bool {
		if (len(a.attached) == 0) != (len(b.attached) == 0) {
			return len(a.attached) == 0
		}
		return a.used.Load() < b.used.Load()
	}
	for key, v := range c.views {
		if (all && mine < c.opts.Views/2 || key.owner == owner) && (victim == nil || less(v, c.views[*victim])) {
			victim = &key
		}
	}
	if victim != nil {
		c.dropLocked(*victim)
	}
}

func (c *Catalogue) dropLocked(key viewKey) {
	c.retireLocked(c.views[key].clear()...)
	delete(c.views, key)
}

// clear takes what is attached out of the view.
func (v *view) clear() []*Attachment {
	all := slices.Collect(maps.Values(v.attached))
	clear(v.attached)
	v.changes.Add(1)
	return all
}

// snapshot returns the view on top of what everybody shares. It is made anew only after a change.
func (v *view) snapshot(c *Catalogue, base *shared) *bridge.Snapshot {
	m := v.merged.Load()
	if m != nil && m.base == base && m.changes == v.changes.Load() && (m.snapshot.Ready || !base.snapshot.Ready || time.Now().Before(m.waits)) {
		return m.snapshot
	}
	m = &merged{base: base, changes: v.changes.Load()} // read first: a change from here on makes another one
	servers := make(map[string]*bridge.Server, len(base.snapshot.Servers))
	for _, s := range base.snapshot.Servers {
		servers[s.Handle] = s
	}
	ready := true
	c.vmu.RLock()
	m.waits = v.waits
	entry := func(s *ServerConfig, owner *bridge.Owner) {
		a := v.attached[s.Handle]
		if a == nil {
			servers[s.Handle] = s.unattached(&v.caller, owner)
			return
		}
		servers[s.Handle] = a.Server()
		ready = ready && servers[s.Handle].State != bridge.Connecting
	}
	for _, s := range base.plan.apart {
		entry(s, nil)
	}
	owner := v.caller.Owner()
	for _, s := range base.plan.users[owner] {
		entry(s, &owner)
	}
	c.vmu.RUnlock()
	ready = base.snapshot.Ready && (ready || !time.Now().Before(m.waits))
	m.snapshot = bridge.NewSnapshot(c.version.Add(1), ready, slices.Collect(maps.Values(servers)))
	v.merged.Store(m)
	return m.snapshot
}

// Attach implements [bridge.Catalogue].
func (c *Catalogue) Attach(who bridge.Caller, handle string, headers bool) (<-chan struct{}, error) {
	c.vmu.Lock()
	defer c.vmu.Unlock()
	p := c.current.Load().plan
	s, owner := p.of(&who, handle)
	switch {
	case s == nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		if a := c.attached[handle]; a != nil {
			a.nudge()
		}
		return nil, nil
	case s.Disabled, s.Own != nil && len(s.Own.Headers) > 0 && !headers:
		return nil, nil
	}
	resolved, err := s.resolve(&who, owner)
	if err != nil {
		return nil, err
	}
	if !c.running {
		select {
		case <-c.started:
			return nil, &bridge.Error{Kind: bridge.NotReady, Op: "mcp.Attach", RetryAfter: time.Second, Msg: "The bridge is stopping; try again in a moment."}
		default:
			return c.started, nil // Run is about to begin
		}
	}
	v := c.viewLocked(p, p.key(&who), &who)
	a := v.attached[handle]
	if a == nil {
		a = c.opts.Registry.Attach(resolved, func() { v.changes.Add(1) })
		v.attached[handle] = a
		v.waits = time.Now().Add(cmp.Or(c.opts.ReadyGrace, 10*time.Second))
		v.changes.Add(1)
	}
	a.nudge()
	return a.unsettled(), nil
}

// reviseLocked detaches what another plan has no more, or has otherwise.
func (v *view) reviseLocked(c *Catalogue, next *plan) {
	for handle, a := range v.attached {
		if s, owner := next.of(&v.caller, handle); s != nil && !s.Disabled {
			if r, err := s.resolve(&v.caller, owner); err == nil && r.key() == a.key {
				continue
			}
		}
		delete(v.attached, handle)
		c.retireLocked(a)
	}
	v.changes.Add(1)
}

// sweep drops the views that nobody has used for long, until ctx ends.
func (c *Catalogue) sweep(ctx context.Context) {
	tick := time.NewTicker(max(c.opts.OwnIdle/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.vmu.Lock()
		for key, v := range c.views {
			if time.Since(time.Unix(0, v.used.Load())) >= c.opts.OwnIdle {
				c.dropLocked(key)
			}
		}
		c.vmu.Unlock()
	}
}
