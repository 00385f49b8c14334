package config

import (
	"maps"
	"slices"
	"time"
)

// Transport says how a server is reached.
type Transport string

// The transports. The words that select them in a file are many; see the
// package's tests.
const (
	Stdio Transport = "stdio" // a process of ours, over its stdin and stdout
	HTTP  Transport = "http"  // Streamable HTTP
	SSE   Transport = "sse"   // the deprecated HTTP+SSE
)

// Sharing says who shares one client, and one process, of a server.
type Sharing string

// The ways of sharing.
const (
	Shared    Sharing = "shared" // all callers
	PerTenant Sharing = "tenant" // the callers of one tenant
	PerUser   Sharing = "user"   // nobody: each user has its own
)

// CheckResults says what happens to a result that breaks the tool's own output schema.
type CheckResults string

// The ways of checking results.
const (
	CheckLog    CheckResults = "log"    // it is answered, logged and counted
	CheckStrict CheckResults = "strict" // the call fails
)

// Server is one entry of mcpServers. Settings that have a default in the bridge
// section (its timeouts, for example) are filled in from there.
type Server struct {
	Handle   string // the key in the file; the name in paths
	Line     int    // of the key in the file; 0 without a file
	Disabled bool   // to be shown, never started; its references may be unset

	Name        string // label of its accounts; the handle unless given
	Title       string
	Description string

	Transport Transport

	// For Stdio. The command is one program, never split into words.
	Command Value
	Args    []Value
	Env     map[string]Value // :: name -> value, always secret
	Cwd     Value            // absolute, or empty for the bridge's own directory

	// For HTTP and SSE.
	URL            Value            // http or https, without user information
	Headers        map[string]Value // :: canonical name -> value, always secret
	ForwardHeaders []string         // canonical names, taken from each call's caller
	Credential     *Credential      // nil for none; never with SSE
	TLS            TLS
	Proxy          Value  // a URL; "none" for no proxy at all; empty for the environment's
	Protocol       string // "auto" or a protocol version

	Tools Tools

	Timeout          time.Duration // of one call
	StartTimeout     time.Duration
	HandshakeTimeout time.Duration
	IdleTimeout      time.Duration // 0: never closed for being idle
	MaxConcurrent    int           // calls at a time; 0: no bound of its own (HTTP and SSE only)
	Rate             Rate          // of calls; zero: unlimited
	AutoReconnect    bool
	ReconnectDelay   time.Duration
	Heartbeat        time.Duration // between pings; 0: none

	Sharing      Sharing
	ParseText    bool
	CheckResults CheckResults
	Elicitation  bool
}

// Tools selects the tools of one server. A glob is in the syntax of
// [path.Match], except that a star also matches slashes: the name of a tool is
// one name, whatever it looks like.
type Tools struct {
	Allow    []string // globs; nil: every tool; empty but not nil: none
	Deny     []string // globs, stronger than Allow
	Disabled []string // exact names, stronger than Allow
}

// Credential is the identity the bridge connects to a server as: OAuth client
// credentials, with a secret or with a key that signs assertions. Exactly one
// of ClientSecret and PrivateKey is set.
type Credential struct {
	ClientID     Value
	ClientSecret Value
	PrivateKey   Value    // PEM
	KeyID        string   // the key's kid, or empty
	Algorithm    string   // as RS256; empty: the usual one for the kind of key
	Scopes       []string // to ask for; nil: what the server advertises
	Issuer       string   // the authorization server to insist on; empty: the one discovered
}

// TLS holds the paths of files (absolute, unless there is no configuration
// file) and the name to expect of the server; all may be empty.
type TLS struct {
	CA         string // PEM certificates to trust, in place of the system's
	Cert, Key  string // PEM; both or none
	ServerName string
}

// CallerRefs returns what the server needs of the caller before it can be
// connected, each once: "user", "tenant", or "header." and a header's name.
func (s *Server) CallerRefs() []string {
	var refs []string
	add := func(v Value) {
		for _, ref := range v.Caller() {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	add(s.Cwd)
	for _, m := range []map[string]Value{s.Env, s.Headers} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			add(m[key])
		}
	}
	return refs
}
