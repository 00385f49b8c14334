// Package breaker keeps calls away from servers that keep failing, and finds out
// when they have recovered. Each endpoint has a circuit of its own.
package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// Options configure a [Breaker]. Zero fields mean what they say in their comment.
type Options struct {
	Failures    int           // failures in a row that open a circuit; zero is 5
	Cooldown    time.Duration // time from opening to the first probe; zero is 2 minutes
	MaxCooldown time.Duration // what doubling the cool-down stops at; zero is 10 minutes
}

// Breaker implements [bridge.Breaker].
type Breaker struct {
	opts Options

	mu       sync.Mutex
	circuits map[bridge.EndpointID]*circuit // :: endpoint -> state, guarded by mu; no entry for closed ones without failures
	gen      uint64                         // counts the openings of all circuits, guarded by mu
}

var _ bridge.Breaker = (*Breaker)(nil)

// A circuit is closed while until is zero, open until then, and half-open after it.
type circuit struct {
	failures int           // counted in a row since the last success
	broken   uint64        // the connection whose end was counted last
	until    time.Time     // when an open circuit lets a probe through
	cooldown time.Duration // of this opening
	probing  bool          // half-open, and the one probe is out
	reason   string        // why it opened, for callers
	gen      uint64        // of its last opening; a result from before is stale
}

// New returns a breaker with every circuit closed.
func New(o Options) *Breaker {
	o.Failures = cmp.Or(o.Failures, 5)
	o.Cooldown = cmp.Or(o.Cooldown, 2*time.Minute)
	o.MaxCooldown = cmp.Or(o.MaxCooldown, 10*time.Minute)
	return &Breaker{opts: o, circuits: make(map[bridge.EndpointID]*circuit)}
}

// Open implements [bridge.Breaker].
func (b *Breaker) Open(e bridge.EndpointID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuits[e].refuse(e)
}

// Allow implements [bridge.Breaker].
func (b *Breaker) Allow(e bridge.EndpointID) (func(error), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[e]
	if err := c.refuse(e); err != nil {
		return nil, err
	}
	if c != nil {
		c.probing = !c.until.IsZero()
	}
	gen := b.gen
	return func(err error) { b.record(e, gen, err) }, nil
}

// refuse returns why no call may pass now, or nil. A nil circuit is closed.
func (c *circuit) refuse(e bridge.EndpointID) error {
	if c == nil || c.until.IsZero() {
		return nil
	}
	left := time.Until(c.until)
	if left <= 0 && !c.probing {
		return nil
	}
	return &bridge.Error{
		Kind: bridge.Unavailable, Op: "breaker", RetryAfter: max(left, time.Second),
		Msg: fmt.Sprintf("Calls to %s fail fast for now, because the server failed: %s", e.Label, c.reason),
	}
}

// record learns how a call went that was allowed at generation gen. A result from
// before the circuit last opened says nothing about what came after.
func (b *Breaker) record(e bridge.EndpointID, gen uint64, err error) {
	fault, conn, reason := faultOf(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[e]
	if c == nil {
		if !fault {
			return // closed, and no failure to count: the way of nearly every call
		}
		c = &circuit{}
		b.circuits[e] = c
	}
	if c.gen > gen {
		return
	}
	c.probing = false
	switch {
	case fault:
		if conn != 0 && conn == c.broken {
			return // another call on the connection whose end was counted
		}
		c.broken = conn
		c.failures++
		if c.failures >= b.opts.Failures || !c.until.IsZero() || bridge.KindOf(err) == bridge.UpstreamAuth {
			b.openLocked(c, reason)
		}
	case bridge.Answered(err):
		delete(b.circuits, e)
	default:
		// Nobody waited for the answer, or nothing was sent: no news of the server's health.
	}
}

// ConnectFailed opens the endpoint's circuit at once: whoever cannot be connected
// to would cost every caller the whole handshake's time.
func (b *Breaker) ConnectFailed(e bridge.EndpointID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[e]
	if c == nil {
		c = &circuit{}
		b.circuits[e] = c
	}
	_, _, reason := faultOf(err)
	if left := time.Until(c.until); left > 0 && c.failures > 0 {
		c.reason = reason // a background attempt while it is open proves nothing new
		return
	}
	c.failures++
	b.openLocked(c, reason)
}

// Connected closes the endpoint's circuit: a connection was made.
func (b *Breaker) Connected(e bridge.EndpointID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuits[e]; c != nil && !c.until.IsZero() {
		delete(b.circuits, e)
	}
}

// Reset closes the endpoint's circuit, whatever it has seen.
func (b *Breaker) Reset(e bridge.EndpointID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.circuits, e)
}

// A State is what a circuit does with calls.
type State string

// The states of a circuit.
const (
	Closed   State = "closed"    // they pass
	Opened   State = "open"      // they fail fast
	HalfOpen State = "half-open" // one of them may try
)

// CircuitStats are how one circuit is at one moment.
type CircuitStats struct {
	State    State
	Failures int       // counted in a row
	Until    time.Time // when an open circuit lets a probe through; zero unless open
	Reason   string    // why it opened, for people; empty while closed
}

// Stats returns how the endpoint's circuit is.
func (b *Breaker) Stats(e bridge.EndpointID) CircuitStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[e]
	switch {
	case c == nil:
		return CircuitStats{State: Closed}
	case c.until.IsZero():
		return CircuitStats{State: Closed, Failures: c.failures}
	case time.Until(c.until) > 0:
		return CircuitStats{State: Opened, Failures: c.failures, Until: c.until, Reason: c.reason}
	default:
		return CircuitStats{State: HalfOpen, Failures: c.failures, Reason: c.reason}
	}
}

func (b *Breaker) openLocked(c *circuit, reason string) {
	c.cooldown = min(cmp.Or(2*c.cooldown, b.opts.Cooldown), b.opts.MaxCooldown)
	c.until = time.Now().Add(c.cooldown)
	c.probing = false
	c.reason = reason
	b.gen++
	c.gen = b.gen
}

// faultOf reports whether err says something bad about the server, what, and
// which connection broke, if one did.
func faultOf(err error) (fault bool, conn uint64, reason string) {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		return false, 0, "it failed"
	}
	return e.Fault, e.Conn, e.Msg
}
