package gate

import (
	"math"
	"time"
)

// A CountingGate has a number of slots. A slot that was taken is given back.
type CountingGate struct {
	capacity, used int
}

func (g *CountingGate) left(time.Time) int { return g.capacity - g.used }
func (g *CountingGate) take(n int)         { g.used += n }
func (g *CountingGate) giveBack(n int)     { g.used -= n }

// when is never known for slots: a release brings the news.
func (g *CountingGate) when(int, time.Time) time.Time { return time.Time{} }

// A TokenBucket has a rate and a burst. What was taken is spent for good; the
// level is read from the clock, so nothing runs to refill it.
type TokenBucket struct {
	rate  float64 // tokens a second
	burst float64 // the most it holds
	level float64 // at the time at; what was taken then is off
	at    time.Time
}

func (b *TokenBucket) fill(now time.Time) {
	if now.After(b.at) {
		b.level = min(b.burst, b.level+b.rate*now.Sub(b.at).Seconds())
		b.at = now
	}
}

// slack absorbs the rounding of a level that was filled in many small steps.
const slack = 1e-6

func (b *TokenBucket) left(now time.Time) int {
	b.fill(now)
	return int(math.Floor(b.level + slack))
}

func (b *TokenBucket) take(n int)   { b.level -= float64(n) }
func (b *TokenBucket) giveBack(int) {}

// when returns the time at which n tokens will be there if nobody takes any.
func (b *TokenBucket) when(n int, now time.Time) time.Time {
	b.fill(now)
	missing := float64(n) - b.level
	if missing <= slack {
		return now
	}
	// Rounded up, so that the tokens are there when the time has come.
	return now.Add(time.Duration(math.Ceil(missing / b.rate * float64(time.Second))))
}

// An account is a gate or a bucket, and when it was last used.
type account struct {
	meter
	metered bool      // a TokenBucket
	last    time.Time // when a grant last came back
	users   int       // grants out and waiters in line; the account can be forgotten at none
}

type meter interface {
	left(now time.Time) int
	take(n int)
	giveBack(n int)
	when(n int, now time.Time) time.Time
}
