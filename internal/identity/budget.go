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

// Limits bound the calls of one caller. Zero fields are no bound.
type Limits struct {
	PerSecond  float64 // calls in time
	Burst      int     // calls at once after a pause; zero is one
	Concurrent int     // calls at a time
}

// Budget implements [bridge.Budget]: each caller has a rate and a concurrency of
// its own, which are asked at once and never waited for.
type Budget struct {
	limits func(bridge.Caller) Limits

	mu     sync.Mutex
	purses map[bridge.Caller]*purse // :: caller with bounds -> what it has left, guarded by mu
	swept  time.Time                // when full purses were last thrown away, guarded by mu
}

// A purse is what one caller has left.
type purse struct {
	tokens  float64
	at      time.Time // when tokens was right
	running int
}

var _ bridge.Budget = (*Budget)(nil)

// sweepEvery is how often the purses of callers that stay away are thrown away.
const sweepEvery = time.Minute

// NewBudget returns the budget of callers with these limits.
func NewBudget(limits func(bridge.Caller) Limits) *Budget {
	return &Budget{limits: limits, purses: make(map[bridge.Caller]*purse)}
}

// Spend implements [bridge.Budget].
func (b *Budget) Spend(_ context.Context, c bridge.Caller) (func(), error) {
	l := b.limits(c)
	if l.PerSecond <= 0 && l.Concurrent <= 0 {
		return func() {}, nil
	}
	burst := float64(cmp.Or(l.Burst, 1))
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.sweepLocked(now)
	p := b.purses[c]
	if p == nil {
		p = &purse{tokens: burst, at: now}
		b.purses[c] = p
	}
	p.tokens = min(burst, p.tokens+l.PerSecond*now.Sub(p.at).Seconds())
	p.at = now
	if l.Concurrent > 0 && p.running >= l.Concurrent {
		return nil, limited(time.Second, fmt.Sprintf("You have %d calls running, which is as many as you may have at a time; wait for one of them to end.", p.running))
	}
	if l.PerSecond > 0 {
		// A hair less than one is one: the level is filled in many small steps.
		if missing := 1 - p.tokens; missing > 1e-9 {
			wait := time.Duration(math.Ceil(missing / l.PerSecond * float64(time.Second)))
			return nil, limited(wait, fmt.Sprintf("You are over your rate of %g calls a second; the next one is free in %v.", l.PerSecond, wait.Round(time.Millisecond)))
		}
		p.tokens--
	}
	p.running++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		p.running--
	}), nil
}

// sweepLocked throws away purses that are as good as new.
func (b *Budget) sweepLocked(now time.Time) {
	if now.Sub(b.swept) < sweepEvery {
		return
	}
	b.swept = now
	for c, p := range b.purses {
		l := b.limits(c)
		full := l.PerSecond <= 0 || p.tokens+l.PerSecond*now.Sub(p.at).Seconds() >= float64(cmp.Or(l.Burst, 1))
		if p.running == 0 && full {
			delete(b.purses, c)
		}
	}
}

func limited(retry time.Duration, msg string) error {
	return &bridge.Error{Kind: bridge.RateLimited, Op: "identity.Spend", Msg: msg, RetryAfter: retry}
}
