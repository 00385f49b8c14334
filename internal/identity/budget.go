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
	mu     sync.Mutex
	purses map[account]*purse // :: caller with bounds -> what it has left, guarded by mu
	swept  time.Time          // when full purses were last thrown away, guarded by mu
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

// Spend implements [bridge.Budget].
func (b *Budget) Spend(_ context.Context, c bridge.Caller) (func(), error) {
	if c.Rule == nil || c.Rule.PerSecond <= 0 && c.Rule.Concurrent <= 0 {
		return func() {}, nil
	}
	l := c.Rule.Limits
	burst := float64(cmp.Or(l.Burst, 1))
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.sweepLocked(now)
	key := account{c.ID, c.Owner()}
	p := b.purses[key]
	if p == nil {
		p = &purse{tokens: burst, at: now}
		b.purses[key] = p
	}
	p.limits = l
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
	for key, p := range b.purses {
		l := p.limits
		full := l.PerSecond <= 0 || p.tokens+l.PerSecond*now.Sub(p.at).Seconds() >= float64(cmp.Or(l.Burst, 1))
		if p.running == 0 && full {
			delete(b.purses, key)
		}
	}
}

func limited(retry time.Duration, msg string) error {
	return &bridge.Error{Kind: bridge.RateLimited, Op: "identity.Spend", Msg: msg, RetryAfter: retry}
}
