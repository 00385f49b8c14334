package bridge

import "time"

// A Caller is who makes a call, and what it may do. The zero Caller is the
// anonymous one, without a scope and without bounds.
type Caller struct {
	ID     string // of the key or token, for logs and for what is counted for each
	User   string
	Tenant string

	Scopes Scopes
	Rule   *Rule // nil allows everything
	// Headers are those of the request that the configuration names, by canonical name:
	// for servers of the caller's own, and to be passed on. They may be secret.
	Headers map[string][]string
}

// An Owner is whom artifacts, jobs and servers of one's own belong to: a user of a
// tenant, whichever key or token it came with.
type Owner struct{ User, Tenant string }

// Owner returns whom the caller's things belong to.
func (c *Caller) Owner() Owner { return Owner{c.User, c.Tenant} }

// Scopes are what a caller may do at all, as a set of bits.
type Scopes uint8

// The scopes.
const (
	ScopeCall    Scopes = 1 << iota // see and call tools, as far as the rule goes
	ScopeAdmin                      // change the configuration, see all of /status
	ScopeMetrics                    // read /metrics

	AllScopes = ScopeCall | ScopeAdmin | ScopeMetrics
)

// Has reports whether all of the wanted scopes are there.
func (s Scopes) Has(want Scopes) bool { return s&want == want }

// A Rule is what a caller may see and call, and how much of it. The zero Rule
// allows everything but the built-in server, without bounds.
type Rule struct {
	Allow []string // globs on handle/tool; nil allows all, empty but not nil nothing
	Deny  []string // globs on handle/tool, stronger than Allow
	Limits
	Timeout time.Duration // of one call, at most; zero is the server's
}

// Limits bound the calls of one caller. Zero fields are no bound.
type Limits struct {
	PerSecond  float64 // calls in time
	Burst      int     // calls at once after a pause; zero is one
	Concurrent int     // calls at a time
}
