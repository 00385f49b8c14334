// Package gate admits calls. A call declares everything it will hold, and gets
// all of it in one step or waits holding nothing, in one line, first come first
// served.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// Options configure an [Admission]. Zero fields mean what they say in their comment.
type Options struct {
	MaxWait             time.Duration // time in line; zero is 10 s
	MaxWaiting          int           // calls in line; zero is 1000
	MaxWaitingPerCaller int           // calls of one caller in line; zero is 100
}

// Admission implements [bridge.Gate].
type Admission struct {
	opts Options

	mu       sync.Mutex
	used     map[bridge.Account]int // :: account -> slots in use, guarded by mu; no entry for none
	line     []*waiter              // guarded by mu
	perOwner map[bridge.Caller]int  // :: caller -> calls in line, guarded by mu
}

type waiter struct {
	caller  bridge.Caller
	demand  bridge.Demand
	granted chan struct{} // closed when the demand has been taken
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
	return &Admission{opts: o, used: make(map[bridge.Account]int), perOwner: make(map[bridge.Caller]int)}
}

// Admit implements [bridge.Gate].
func (a *Admission) Admit(ctx context.Context, c bridge.Caller, d bridge.Demand) (func(), error) {
	w, err := a.enter(c, d)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return a.grant(d), nil
	}
	wctx, cancel := context.WithTimeoutCause(ctx, a.opts.MaxWait, errWaited)
	defer cancel()
	select {
	case <-w.granted:
		return a.grant(d), nil
	case <-wctx.Done():
	}
	short, left := a.leave(w)
	if !left { // granted in the same moment: the grant has the last word
		return a.grant(d), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, overloaded(a.opts.MaxWait, short, fmt.Sprintf("The call was not admitted within %v, because %s had no free slot; try again later.", a.opts.MaxWait, strings.Join(short, " and ")))
}

// enter takes the demand if it may be taken now, and returns the call's place in line if not.
func (a *Admission) enter(c bridge.Caller, d bridge.Demand) (*waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range d {
		if n.Amount > n.Capacity {
			return nil, overloaded(0, []string{n.Account.Label()}, fmt.Sprintf("A call needs %d slots of %s, which has %d; raise the limit.", n.Amount, n.Account.Label(), n.Capacity))
		}
	}
	if len(a.line) == 0 && len(a.shortLocked(d)) == 0 {
		a.takeLocked(d)
		return nil, nil
	}
	if len(a.line) >= a.opts.MaxWaiting || a.perOwner[c] >= a.opts.MaxWaitingPerCaller {
		short := a.shortLocked(d)
		if len(short) == 0 {
			short = a.shortLocked(a.line[0].demand)
		}
		return nil, overloaded(a.opts.MaxWait, short, "Too many calls are waiting already; try again later.")
	}
	w := &waiter{caller: c, demand: d, granted: make(chan struct{})}
	a.line = append(a.line, w)
	a.perOwner[c]++
	return w, nil
}

// leave takes w out of the line and says which accounts it was waiting for, or
// reports that it was granted already.
func (a *Admission) leave(w *waiter) (short []string, left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.line, w)
	if i < 0 {
		return nil, false
	}
	if short = a.shortLocked(w.demand); len(short) == 0 {
		short = a.shortLocked(a.line[0].demand)
	}
	a.line = slices.Delete(a.line, i, i+1)
	a.forgetLocked(w)
	a.wakeLocked() // those behind may have waited for w alone
	return short, true
}

// grant returns the release of a demand that has been taken.
func (a *Admission) grant(d bridge.Demand) func() {
	// A caller that released twice would free someone else's slot.
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, n := range d {
			if a.used[n.Account] -= n.Amount; a.used[n.Account] == 0 {
				delete(a.used, n.Account)
			}
		}
		a.wakeLocked()
	})
}

// wakeLocked admits the head of the line for as long as its demand fits.
func (a *Admission) wakeLocked() {
	for len(a.line) > 0 && len(a.shortLocked(a.line[0].demand)) == 0 {
		w := a.line[0]
		a.line = slices.Delete(a.line, 0, 1)
		a.takeLocked(w.demand)
		a.forgetLocked(w)
		close(w.granted)
	}
}

func (a *Admission) takeLocked(d bridge.Demand) {
	for _, n := range d {
		a.used[n.Account] += n.Amount
	}
}

func (a *Admission) forgetLocked(w *waiter) {
	if a.perOwner[w.caller]--; a.perOwner[w.caller] == 0 {
		delete(a.perOwner, w.caller)
	}
}

// shortLocked returns the labels of the accounts that cannot give what d needs.
func (a *Admission) shortLocked(d bridge.Demand) []string {
	var short []string
	for _, n := range d {
		if a.used[n.Account]+n.Amount > n.Capacity {
			short = append(short, n.Account.Label())
		}
	}
	return short
}

func overloaded(retry time.Duration, short []string, msg string) *bridge.Error {
	return &bridge.Error{
		Kind: bridge.Overloaded, Op: "gate.Admit", Msg: msg, RetryAfter: retry,
		Members: map[string]any{"short": short},
	}
}
