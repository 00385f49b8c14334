package config

import "time"

// Scope is what a caller may do at all.
type Scope string

// The scopes.
const (
	ScopeCall    Scope = "call"
	ScopeAdmin   Scope = "admin"
	ScopeMetrics Scope = "metrics"
)

// Auth says who callers are. The zero Auth takes everybody as anonymous, which
// is for loopback only; see [CheckExposure].
type Auth struct {
	Keys      []Key
	JWT       []JWT
	Anonymous *Policy // for callers without a credential; nil: as without Auth at all, none beside keys or JWT
}

// Enabled reports whether callers can show who they are.
func (a *Auth) Enabled() bool { return len(a.Keys) > 0 || len(a.JWT) > 0 }

// Policy is what a caller may do.
type Policy struct {
	Allow      []string      // globs on handle/tool; nil: not given; empty but not nil: nothing
	Deny       []string      // globs on handle/tool, stronger than Allow
	Rate       Rate          // of calls; zero: unlimited
	Burst      int           // 0: the count of Rate
	Concurrent int           // calls at a time; 0: unlimited
	Timeout    time.Duration // of one call; 0: the server's
}

// Key is an API key of a caller. A caller that is changing its key has two.
type Key struct {
	ID     string // unique; for logs
	Hash   string // "sha256:" and 64 lower-case hexadecimal digits
	User   string // the ID unless given
	Tenant string
	Scopes []Scope // call, unless given
	Policy
}

// JWT is an issuer of tokens to trust.
type JWT struct {
	Issuer   string
	Audience []string // one of them must be in the token; never empty
	User     string   // name of the claim; "sub" unless given
	Tenant   string   // name of the claim, or empty
	Scopes   string   // name of the claim, or empty: such callers may call
	Policy
}
