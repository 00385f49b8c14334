package rpc

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrDeadline is the cause of a context that a [Clock] ended.
var ErrDeadline = errors.New("the call's time was up")

// A Clock ends a request in time: after idle without progress, and after total
// whatever happens.
type Clock struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	idle  time.Duration
	timer *time.Timer // nil when unbounded, or stopped for good
	held  int         // how often the idle time is held
	total *time.Timer // nil when unbounded
}

// NewClock returns a context that ends when the clock is up, with [ErrDeadline]
// as its cause. Stop must be called. Zero durations are unbounded.
func NewClock(ctx context.Context, idle, total time.Duration) (context.Context, *Clock) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Clock{cancel: cancel, idle: idle}
	up := func() { cancel(ErrDeadline) }
	if idle > 0 && (total <= 0 || idle < total) {
		c.timer = time.AfterFunc(idle, up)
	}
	if total > 0 {
		c.total = time.AfterFunc(total, up)
	}
	return ctx, c
}

// Progress starts the idle time anew.
func (c *Clock) Progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A timer that has fired, or was stopped, has ended the request already.
	if c.timer != nil && c.held == 0 && c.timer.Stop() {
		c.timer.Reset(c.idle)
	}
}

// Hold stops the idle time until the returned function is called, which starts it anew: while
// the server waits for somebody, it is not silent. The total time goes on.
func (c *Clock) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil || c.held == 0 && !c.timer.Stop() {
		return func() {}
	}
	c.held++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held--; c.held == 0 && c.timer != nil {
			c.timer.Reset(c.idle)
		}
	})
}

// Stop ends the clock and its context.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.total != nil {
		c.total.Stop()
	}
	c.cancel(context.Canceled)
}
