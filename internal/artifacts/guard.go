package artifacts

import (
	"sync"
	"time"
)

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// A guard keeps calls from waiting for a store that is known to be down: after a failure it lets
// nobody through for a while, then one at a time until that succeeds. The time is
// computed; nothing runs in the background.
type guard struct {
	mu       sync.Mutex
	failures int       // in a row; guarded by mu
	until    time.Time // nobody gets through before; guarded by mu
	probing  bool      // somebody is finding out; guarded by mu
}

// allow reports whether to try. If so, done must be called with how it went.
func (g *guard) allow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures == 0 {
		return true
	}
	if g.probing || time.Now().Before(g.until) {
		return false
	}
	g.probing = true
	return true
}

// An outcome is what an attempt says about the store.
type outcome uint8

const (
	worked outcome = iota
	broke
	unknown // the caller went away first, or so
)

func (g *guard) done(o outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	switch o {
	case worked:
		g.failures, g.probing = 0, false
	case broke:
		// Many that fail together have failed once.
		if g.failures == 0 || g.probing && !now.Before(g.until) {
			g.failures++
			g.until = now.Add(min(firstPause<<min(g.failures-1, 10), lastPause))
		}
		g.probing = false
	case unknown:
		g.probing = false
	}
}

func (g *guard) down() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures > 0
}
