package gate

import (
	"cmp"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// Stats are how an admission is at one moment.
type Stats struct {
	Waiting  int // calls in line
	Accounts []AccountStats
}

// AccountStats are how one account is at one moment.
type AccountStats struct {
	Account  bridge.Account
	InUse    int       // slots; of a rate, what is missing from its burst
	Capacity int       // slots, or the burst of a rate
	Waiting  int       // calls in line that need it
	Last     time.Time // when a call last gave back what it held; zero if none has
}

// Stats returns a consistent snapshot, by label and kind.
func (a *Admission) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	waiting := make(map[*account]int)
	for w := range a.line.all() {
		for i := range w.grant.demand {
			waiting[w.grant.accounts[i]]++
		}
	}
	s := Stats{Waiting: a.line.len(), Accounts: make([]AccountStats, 0, len(a.accounts))}
	for k, acc := range a.accounts {
		st := AccountStats{Account: k, Waiting: waiting[acc], Last: acc.last}
		switch m := acc.meter.(type) {
		case *CountingGate:
			st.Capacity = m.capacity
		case *TokenBucket:
			st.Capacity = int(m.burst)
		}
		st.InUse = st.Capacity - acc.left(now)
		s.Accounts = append(s.Accounts, st)
	}
	slices.SortFunc(s.Accounts, func(x, y AccountStats) int {
		return cmp.Or(cmp.Compare(x.Account.Label(), y.Account.Label()), cmp.Compare(x.Account.Kind, y.Account.Kind))
	})
	return s
}

// Forget closes the accounts of an endpoint that is no longer served. Those that
// are still in use stay until Forget is called again.
func (a *Admission) Forget(e bridge.EndpointID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, acc := range a.accounts {
		if k.Endpoint == e && (k.Kind == bridge.EndpointSlots || k.Kind == bridge.EndpointRate) && acc.users == 0 {
			delete(a.accounts, k)
		}
	}
}
