package identity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// Budget implements [bridge.Budget]: each caller has a rate and a concurrency of
// its own, which are asked at once and never waited for.
type Budget struct {
	rates rates // shared with other bridges; nil if they are not

	mu     sync.Mutex
	purses map[account]*purse // :: caller with bounds -> what it has left, guarded by mu
	swept  time.Time          // when full purses were last thrown away, guarded by mu
}

// rates are rates that several bridges share. An account's own purse is never fuller
// than what is shared: it can stand in at any time, and refuse without asking.
type rates interface {
	// take takes one from the account if there is one. It returns what is left, which
	// may be a part of one; ok is false when nobody knows.
	take(ctx context.Context, a account, l bridge.Limits) (left float64, taken, ok bool)
	Close() error
}

// An account is a key or token, of one user.
type account struct {
	id    string
	owner bridge.Owner
}

// A purse is what one caller has left.
type purse struct {
	limits  bridge.Limits // as the caller had them last
	tokens  float64
	at      time.Time // when tokens was right
	running int
}

var _ bridge.Budget = (*Budget)(nil)

// sweepEvery is how often the purses of callers that stay away are thrown away.
const sweepEvery = time.Minute

// NewBudget returns a budget of which nothing is spent.
func NewBudget() *Budget { return &Budget{purses: make(map[account]*purse)} }

// Close ends what the budget shares with others, if there is a budget. Spend must not be called any more.
func (b *Budget) Close() error {
	if b == nil || b.rates == nil {
		return nil
	}
	return b.rates.Close()
}

// Spend implements [bridge.Budget].
func (b *Budget) Spend(ctx context.Context, c bridge.Caller) (func(), error) {
	if !bounded(c) {
		return func() {}, nil
	}
	l, key := c.Rule.Limits, account{c.ID, c.Owner()}
	p, err := b.take(key, l)
	if err != nil {
		return nil, err
	}
	release := sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		p.running--
	})
	if b.rates == nil || l.PerSecond <= 0 {
		return release, nil
	}
	left, taken, ok := b.rates.take(ctx, key, l)
	if !ok {
		return release, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if taken {
		p.tokens = min(p.tokens, left)
		return release, nil
	}
	p.running--
	p.tokens = min(p.tokens+1, left)
	return nil, overRate(l, max(p.wait(), time.Millisecond))
}

func bounded(c bridge.Caller) bool {
	return c.Rule != nil && (c.Rule.PerSecond > 0 || c.Rule.Concurrent > 0)
}

// take takes a call out of the account's own purse.
func (b *Budget) take(key account, l bridge.Limits) (*purse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.purseLocked(key, l)
	if l.Concurrent > 0 && p.running >= l.Concurrent {
		return nil, limited(time.Second, fmt.Sprintf("You have %d calls running, which is as many as you may have at a time; wait for one of them to end.", p.running))
	}
	if l.PerSecond > 0 {
		if wait := p.wait(); wait > 0 {
			return nil, overRate(l, wait)
		}
		p.tokens--
	}
	p.running++
	return p, nil
}

// purseLocked returns the account's purse, filled up to now.
func (b *Budget) purseLocked(key account, l bridge.Limits) *purse {
	now := time.Now()
	b.sweepLocked(now)
	p := b.purses[key]
	if p == nil {
		p = &purse{tokens: float64(cmp.Or(l.Burst, 1)), at: now}
		b.purses[key] = p
	}
	p.limits = l
	p.tokens = min(float64(cmp.Or(l.Burst, 1)), p.tokens+l.PerSecond*now.Sub(p.at).Seconds())
	p.at = now
	return p
}

// wait is how long it takes until there is a token, or zero if there is one.
func (p *purse) wait() time.Duration {
	// A hair less than one is one: the level is filled in many small steps.
	if missing := 1 - p.tokens; missing > 1e-9 {
		return time.Duration(math.Ceil(missing / p.limits.PerSecond * float64(time.Second)))
	}
	return 0
}

// sweepLocked throws away purses that are as good as new.
func (b *Budget) sweepLocked(now time.Time) {
	if now.Sub(b.swept) < sweepEvery {
		return
	}
	b.swept = now
	for key, p := range b.purses {
		l := p.limits
		full := l.PerSecond <= 0 || p.tokens+l.PerSecond*now.Sub(p.at).Seconds() >= float64(cmp.Or(l.Burst, 1))
		if p.running == 0 && full {
			delete(b.purses, key)
		}
	}
}

// An Allowance is what a caller has of its rate.
type Allowance struct {
	Burst int           // calls at once after a pause
	Full  time.Duration // in which an empty allowance fills up
	Left  int           // calls that could be made now
	Reset time.Duration // until there is another call if there is none, else until it is full
}

// Allowance returns what the caller has left of its rate, or false if it has none to keep to.
func (b *Budget) Allowance(c bridge.Caller) (Allowance, bool) {
	if c.Rule == nil || c.Rule.PerSecond <= 0 {
		return Allowance{}, false
	}
	l := c.Rule.Limits
	burst := cmp.Or(l.Burst, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.purseLocked(account{c.ID, c.Owner()}, l)
	in := func(tokens float64) time.Duration {
		return time.Duration(max(0, tokens) / l.PerSecond * float64(time.Second))
	}
	a := Allowance{Burst: burst, Full: in(float64(burst)), Left: int(max(0, p.tokens+1e-9)), Reset: in(float64(burst) - p.tokens)}
	if a.Left == 0 {
		a.Reset = p.wait()
	}
	return a, true
}

func overRate(l bridge.Limits, wait time.Duration) error {
	rate := fmt.Sprintf("%.3g calls a second", l.PerSecond)
	if l.PerSecond < 1 {
		rate = fmt.Sprintf("one call in %v", time.Duration(float64(time.Second)/l.PerSecond).Round(time.Millisecond))
	}
	return limited(wait, fmt.Sprintf("You are over your rate of %s; the next one is free in %v.", rate, wait.Round(time.Millisecond)))
}

func limited(retry time.Duration, msg string) error {
	return &bridge.Error{Kind: bridge.RateLimited, Op: "identity.Spend", Msg: msg, RetryAfter: retry}
}
