package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// attemptLocked returns the attempt under way, or begins one.
func (p *Pool) attemptLocked(s *slot) *attempt {
	if s.attempt == nil {
		// The attempt belongs to all who wait for it, so it outlives the caller that began it; Close
		// ends it, and so does the endpoint's last detaching.
		ctx, cancel := context.WithCancel(p.ctx)
		s.attempt = &attempt{ctx: ctx, cancel: cancel, done: make(chan struct{})}
		p.work.Go(func() { p.connect(s, s.attempt) })
	}
	return s.attempt
}

// connect makes the attempt a on the slot s.
func (p *Pool) connect(s *slot, a *attempt) {
	defer a.cancel()
	id, name := s.id, nameOf(s.id)
	start := time.Now()
	conn, err := p.dial(a.ctx, s)
	var client *Client
	switch {
	case err == nil:
		client = &Client{conn: conn, name: name, id: p.ids.Add(1), gone: make(chan struct{})}
		p.opts.Circuit.Connected(id)
		p.opts.Log.LogAttrs(p.ctx, slog.LevelInfo, "connected", slog.String("server", name), slog.String("endpoint", s.printed),
			slog.String("peer", conn.Peer().Name), slog.String("protocol", conn.Peer().Protocol), slog.Duration("took", time.Since(start)))
	case p.ctx.Err() != nil:
		a.err = &bridge.Error{Kind: bridge.Unavailable, Op: "mcp.Client", Msg: "The bridge is stopping.", Err: err}
	case a.ctx.Err() != nil: // which says nothing of the server
		p.mu.Lock()
		a.err = p.goneErrorLocked(id)
		p.mu.Unlock()
	default:
		a.err = (&Client{name: name}).explain(err, nil)
		if e, ok := errors.AsType[*bridge.Error](a.err); ok && e.Kind != bridge.Overloaded { // our own limit says nothing of the server
			p.opts.Circuit.ConnectFailed(id, a.err)
			if open, ok := errors.AsType[*bridge.Error](p.opts.Circuit.Open(id)); ok {
				e.RetryAfter = open.RetryAfter
			}
		}
		p.opts.Log.LogAttrs(p.ctx, slog.LevelWarn, "cannot connect", slog.String("server", name), slog.String("endpoint", s.printed),
			slog.Any("err", err), slog.Duration("took", time.Since(start)))
	}
	p.mu.Lock()
	s.attempt = nil
	if client != nil {
		s.client = client
		s.used = time.Now()
		p.work.Go(func() { p.watch(s, client) })
		p.reapLaterLocked(s)
	}
	p.mu.Unlock()
	close(a.done)
	if client != nil {
		p.tell(s, listener.connected)
		p.closeIfDetached(s)
	}
}

// closeIfDetached closes a client that was made for an endpoint which went away meanwhile.
func (p *Pool) closeIfDetached(s *slot) {
	p.mu.Lock()
	attached := p.slots[s.id] == s
	p.mu.Unlock()
	if !attached {
		ctx, cancel := context.WithTimeout(context.Background(), p.opts.Drain)
		defer cancel()
		_ = p.drain(ctx, s) // what closing has to say is in the log
	}
}

// dial connects when a turn is free. An endpoint that stays silent gives up its
// turn, so that a few hanging servers do not keep all others waiting.
func (p *Pool) dial(ctx context.Context, s *slot) (rpc.Conn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	giveBack := sync.OnceFunc(func() { <-p.turns })
	defer giveBack()
	defer time.AfterFunc(connectSilence, giveBack).Stop()
	p.mu.Lock()
	endpoint, options := s.endpoint, s.options
	p.mu.Unlock()
	if !s.process {
		return endpoint.Connect(ctx, options)
	}
	if err := p.reserveProcess(); err != nil {
		return nil, err
	}
	conn, err := endpoint.Connect(ctx, options)
	if err != nil {
		p.freeProcess()
	}
	return conn, err
}

// reserveProcess makes room for one more process, by ending the one that has been idle for longest if need be.
func (p *Pool) reserveProcess() error {
	for {
		p.mu.Lock()
		if p.processes < p.opts.MaxProcesses {
			p.processes++
			p.mu.Unlock()
			return nil
		}
		victim := p.evictLocked()
		p.mu.Unlock()
		if victim == nil {
			return &bridge.Error{
				Kind: bridge.Overloaded, Op: "mcp.Client", RetryAfter: 5 * time.Second, Members: map[string]any{"short": []string{"mcp:processes"}},
				Msg: fmt.Sprintf("All %d processes of MCP servers that may run are in use; try again later, or raise pool.maxProcesses.", p.opts.MaxProcesses),
			}
		}
		_ = victim.conn.Close() // what closing has to say is in the log
		<-victim.gone
	}
}

func (p *Pool) freeProcess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes--
}

// evictLocked takes the client of the process that has been idle for longest, or returns nil if none is idle.
func (p *Pool) evictLocked() *Client {
	var longest *slot
	for _, s := range p.slots {
		if s.client != nil && s.users == 0 && s.process && (longest == nil || s.used.Before(longest.used)) {
			longest = s
		}
	}
	if longest == nil {
		return nil
	}
	c := longest.client
	longest.client = nil
	return c
}

// watch sees a client to its end: whatever ended it, nothing of it is left afterwards.
func (p *Pool) watch(s *slot, c *Client) {
	<-c.conn.Done()
	_ = c.conn.Close() // what closing has to say is in the log
	p.mu.Lock()
	if s.client == c {
		s.client = nil
	}
	if s.process {
		p.processes--
	}
	p.mu.Unlock()
	close(c.gone)
}

// reapLaterLocked sets the time at which the slot's client will have been idle for long enough.
func (p *Pool) reapLaterLocked(s *slot) {
	if s.idle <= 0 {
		return
	}
	left := s.idle - time.Since(s.used)
	if s.users > 0 {
		left = s.idle
	}
	if s.reaper == nil {
		s.reaper = time.AfterFunc(left, func() { p.reap(s) })
	} else {
		s.reaper.Reset(left)
	}
}

// reap closes the slot's client if it is idle, or comes back when it may be. A
// client that somebody has taken is never idle.
func (p *Pool) reap(s *slot) {
	p.mu.Lock()
	c := s.client
	if c == nil {
		p.mu.Unlock()
		return // the next client sets the time anew
	}
	if s.users > 0 || time.Since(s.used) < s.idle {
		p.reapLaterLocked(s)
		p.mu.Unlock()
		return
	}
	s.client = nil
	p.mu.Unlock()
	p.opts.Log.LogAttrs(p.ctx, slog.LevelInfo, "closed an idle client", slog.String("endpoint", s.printed))
	_ = c.conn.Close() // what closing has to say is in the log
}
