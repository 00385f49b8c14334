package gate

import (
	"time"

	"mcpbridge/internal/bridge"
)

// A grant is a demand with its accounts. It holds nothing until it is taken.
type grant struct {
	admission *Admission
	demand    bridge.Demand
	accounts  [maxNeeds]*account // of the demand's needs, in their order
	released  bool               // guarded by admission.mu
}

// maxNeeds is the most accounts that a demand may name: slots and rate of an
// endpoint, and its pool's slots.
const maxNeeds = 4

// grantLocked finds or opens the accounts of a demand, and keeps them open.
func (a *Admission) grantLocked(d bridge.Demand) *grant {
	g := &grant{admission: a, demand: d}
	for i := range d {
		n := &d[i]
		acc := a.accounts[n.Account]
		if acc == nil {
			acc = &account{}
			if n.Account.Kind == bridge.EndpointRate {
				acc.metered = true
				acc.meter = &TokenBucket{rate: n.Rate, burst: float64(n.Capacity), level: float64(n.Capacity), at: time.Now()}
			} else {
				acc.meter = &CountingGate{capacity: n.Capacity}
			}
			a.accounts[n.Account] = acc
		}
		if acc.configure(n) {
			a.changed = true
		}
		acc.users++
		g.accounts[i] = acc
	}
	return g
}

// configure takes over what the need says of its account, which a reload may have changed, and reports whether it has.
func (acc *account) configure(n *bridge.Need) (changed bool) {
	switch m := acc.meter.(type) {
	case *CountingGate:
		changed = m.capacity != n.Capacity
		m.capacity = n.Capacity
	case *TokenBucket:
		changed = m.rate != n.Rate || m.burst != float64(n.Capacity)
		m.rate, m.burst = n.Rate, float64(n.Capacity)
	}
	return changed
}

// dropLocked closes the accounts of a grant that was not taken.
func (a *Admission) dropLocked(g *grant) {
	for i := range g.demand {
		g.accounts[i].users--
	}
}

func (g *grant) take() {
	for i := range g.demand {
		g.accounts[i].take(g.demand[i].Amount)
	}
}

// release gives back what the grant holds. Only the first call counts: a second
// one would free someone else's slot.
func (g *grant) release() {
	a := g.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.released {
		return
	}
	g.released = true
	now := time.Now()
	missed := a.missedLocked(g, now)
	for i := range g.demand {
		g.accounts[i].giveBack(g.demand[i].Amount)
		g.accounts[i].last = now
	}
	a.dropLocked(g)
	if missed {
		a.wakeLocked(now)
	}
}

// missedLocked reports whether somebody in line may wait for what g holds. Nobody does if each
// account has as much left as anybody needs: walking past thousands who wait for another server
// would cost each call more than all else that the bridge does for it (BenchmarkReleaseWithLine).
func (a *Admission) missedLocked(g *grant, now time.Time) bool {
	head := a.line.head()
	if head == nil {
		return false
	}
	for i := range g.demand {
		// What was spent of a rate does not come back.
		if acc := g.accounts[i]; !acc.metered && available(acc, head, now) < a.most {
			return true
		}
	}
	return a.changed
}

// fits reports whether g can be taken now without delaying the head of the line;
// a nil head is nobody, or g's own place.
func fits(g *grant, head *waiter, now time.Time) bool {
	for i := range g.demand {
		if g.demand[i].Amount > available(g.accounts[i], head, now) {
			return false
		}
	}
	return true
}

// shortOf returns the labels of the accounts that keep g from being taken.
func shortOf(g *grant, head *waiter, now time.Time) []string {
	short := []string{}
	for i := range g.demand {
		if g.demand[i].Amount > available(g.accounts[i], head, now) {
			short = append(short, g.demand[i].Account.Label())
		}
	}
	return short
}

// available returns what acc has for somebody behind head: what is left after the
// head's amount is set aside, and nothing at all of a rate that the head is short of.
func available(acc *account, head *waiter, now time.Time) int {
	left, aside := acc.left(now), reserved(acc, head)
	if acc.metered && left < aside {
		return 0
	}
	return left - aside
}

// metered reports whether g needs something of a rate.
func (g *grant) metered() bool {
	for i := range g.demand {
		if g.accounts[i].metered {
			return true
		}
	}
	return false
}

// filled returns when all buckets will have filled enough for g behind head, or zero if
// they have, or never will while head is there.
func (g *grant) filled(head *waiter, now time.Time) time.Time {
	var last time.Time
	for i := range g.demand {
		amount := g.demand[i].Amount + reserved(g.accounts[i], head)
		if amount > g.demand[i].Capacity {
			return time.Time{}
		}
		if t := g.accounts[i].when(amount, now); t.After(now) && t.After(last) {
			last = t
		}
	}
	return last
}

// reserved returns what is set aside of acc for head.
func reserved(acc *account, head *waiter) int {
	if head != nil {
		for i := range head.grant.demand {
			if head.grant.accounts[i] == acc {
				return head.grant.demand[i].Amount
			}
		}
	}
	return 0
}
