// Package gate admits calls. A call declares everything it will hold, and gets
// all of it in one step or waits holding nothing, in one line, first come first
// served. The head of the line is protected: a later call may pass only if, on
// every account, it fits in what is left after the head's amounts are set aside
// (EASY backfilling). So nobody starves, and nobody waits behind a scarce
// endpoint that it does not need.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// Options configure an [Admission]. Zero fields mean what they say in their comment.
type Options struct {
	MaxWait             time.Duration // time in line; zero is 10 s
	MaxWaiting          int           // calls in line; zero is 1000, below zero nobody waits
	MaxWaitingPerCaller int           // calls of one caller in line; zero is 100
}

// Admission implements [bridge.Gate].
type Admission struct {
	opts Options

	mu        sync.Mutex
	accounts  map[bridge.Account]*account // guarded by mu
	line      line                        // guarded by mu
	perCaller map[bridge.Owner]int        // :: caller -> its calls in line, guarded by mu
	metered   int                         // calls in line that need something of a rate, guarded by mu
	most      int                         // that anybody in line has needed of one account, guarded by mu
	changed   bool                        // an account was configured anew since the line was last walked, guarded by mu
	alarm     *time.Timer                 // wakes the line when a bucket will have filled; nil until needed, guarded by mu
	alarmAt   time.Time                   // when it rings; zero if it is not set, guarded by mu
	closed    bool                        // guarded by mu
}

var (
	_ bridge.Gate = (*Admission)(nil)

	errWaited = errors.New("waited too long in line")
)

// New returns an admission with nothing in use.
func New(o Options) *Admission {
	o.MaxWait = cmp.Or(o.MaxWait, 10*time.Second)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1000)
	o.MaxWaitingPerCaller = cmp.Or(o.MaxWaitingPerCaller, 100)
	return &Admission{opts: o, accounts: make(map[bridge.Account]*account), perCaller: make(map[bridge.Owner]int)}
}

// Admit implements [bridge.Gate].
func (a *Admission) Admit(ctx context.Context, c bridge.Caller, d bridge.Demand, wait time.Duration) (func(), error) {
	g, w, err := a.enter(c, d)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return g.release, nil
	}
	wait = cmp.Or(wait, a.opts.MaxWait)
	wctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()
	select {
	case <-w.granted:
	case <-wctx.Done():
		if short, left := a.leave(w); left {
			return nil, gaveUp(ctx, short, wait)
		}
		// It was granted in the same moment: that has the last word.
	}
	if !w.admitted {
		return nil, closed()
	}
	return w.grant.release, nil
}

// gaveUp says why a call left the line without a grant.
func gaveUp(ctx context.Context, short []string, wait time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return overloaded(wait, short, fmt.Sprintf("The call was not admitted within %v, because %s was full; try again later.", wait, strings.Join(short, " and ")))
}

// enter takes the demand if it may be taken now, and returns the call's place in line if not.
func (a *Admission) enter(c bridge.Caller, d bridge.Demand) (*grant, *waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, closed()
	}
	for _, n := range d {
		if n.Amount > n.Capacity {
			return nil, nil, overloaded(0, []string{n.Account.Label()}, fmt.Sprintf("A call needs %d of %s, which has %d in all; raise its limit.", n.Amount, n.Account.Label(), n.Capacity))
		}
	}
	now := time.Now()
	g := a.grantLocked(d)
	if head := a.line.head(); head != nil && fits(head.grant, nil, now) {
		a.wakeLocked(now) // a bucket has filled, and its alarm is still to come
	}
	if head := a.line.head(); fits(g, head, now) {
		g.take()
		return g, nil, nil
	}
	if a.line.len() >= a.opts.MaxWaiting || a.perCaller[c.Owner()] >= a.opts.MaxWaitingPerCaller {
		short := shortOf(g, a.line.head(), now)
		a.dropLocked(g)
		return nil, nil, overloaded(a.opts.MaxWait, short, fmt.Sprintf("Too many calls are waiting already, and %s is full; try again later.", strings.Join(short, " and ")))
	}
	w := &waiter{caller: c.Owner(), grant: g, granted: make(chan struct{})}
	a.line.push(w)
	for i := range d {
		a.most = max(a.most, d[i].Amount)
	}
	a.perCaller[c.Owner()]++
	if g.metered() {
		a.metered++
		a.ringAtLocked(g.filled(a.line.ahead(w), now), now)
	}
	return nil, w, nil
}

// leave takes w out of the line and says which accounts it was waiting for, or
// reports that it is not in line any more.
func (a *Admission) leave(w *waiter) (short []string, left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.gone {
		return nil, false
	}
	now := time.Now()
	short = shortOf(w.grant, a.line.ahead(w), now)
	a.removeLocked(w)
	a.dropLocked(w.grant)
	a.wakeLocked(now) // those behind may have waited for w alone
	return short, true
}

// removeLocked takes w out of the line.
func (a *Admission) removeLocked(w *waiter) {
	a.line.remove(w)
	if w.grant.metered() {
		a.metered--
	}
	if a.perCaller[w.caller]--; a.perCaller[w.caller] == 0 {
		delete(a.perCaller, w.caller)
	}
}

// wakeLocked admits everybody in line who may go now, from the head on.
func (a *Admission) wakeLocked(now time.Time) {
	a.changed = false
	for w := range a.line.all() {
		if fits(w.grant, a.line.ahead(w), now) {
			a.removeLocked(w)
			w.grant.take()
			w.admitted = true
			close(w.granted)
		}
	}
	a.alarmLocked(now)
}

// alarmLocked sets the alarm for the next time at which a bucket will have
// filled enough for somebody in line. It looks only after everybody had a turn:
// what one takes is missing to those ahead of it, too.
func (a *Admission) alarmLocked(now time.Time) {
	if a.alarm != nil {
		a.alarm.Stop()
		a.alarmAt = time.Time{}
	}
	if a.metered == 0 {
		return
	}
	for w := range a.line.all() {
		a.ringAtLocked(w.grant.filled(a.line.ahead(w), now), now)
	}
}

// ringAtLocked sets the alarm to t if that is earlier than what it is set to. A zero t is never.
func (a *Admission) ringAtLocked(t, now time.Time) {
	if t.IsZero() || !a.alarmAt.IsZero() && !t.Before(a.alarmAt) {
		return
	}
	a.alarmAt = t
	if a.alarm == nil {
		a.alarm = time.AfterFunc(t.Sub(now), a.ring)
	} else {
		a.alarm.Reset(t.Sub(now))
	}
}

func (a *Admission) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wakeLocked(time.Now())
}

// Close refuses everybody in line and all calls to come. Grants that are out stay good.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for w := range a.line.all() {
		a.removeLocked(w)
		a.dropLocked(w.grant)
		close(w.granted)
	}
	a.alarmLocked(time.Now())
}

func closed() error {
	return &bridge.Error{Kind: bridge.Overloaded, Op: "gate.Admit", Msg: "The bridge is stopping.", Members: map[string]any{"short": []string{}}}
}

func overloaded(retry time.Duration, short []string, msg string) error {
	return &bridge.Error{Kind: bridge.Overloaded, Op: "gate.Admit", Msg: msg, RetryAfter: retry, Members: map[string]any{"short": short}}
}
