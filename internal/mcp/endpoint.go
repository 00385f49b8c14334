package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
)

// An Endpoint is how to connect to one MCP server, as one identity.
type Endpoint interface {
	// ID tells the endpoint apart from every other one.
	ID() bridge.EndpointID
	// String names the endpoint for people and logs; what may be secret is hashed.
	String() string
	// Demand is what one call holds while it runs.
	Demand() bridge.Demand
	// Process reports whether a connection is a process of ours.
	Process() bool
	// Connect makes a connection and does the handshake. Its error is a [*rpc.Failure] or the context's.
	Connect(ctx context.Context, o rpc.Options) (rpc.Conn, error)
}

// An Arg is one argument of a command. Secret ones, which came out of a
// variable or a file, are hashed wherever the endpoint is printed.
type Arg struct {
	Text   string
	Secret bool
}

func (a Arg) printed() string {
	if a.Secret {
		return "#" + digest(12, a.Text)
	}
	return a.Text
}

// Limits bound the calls of all endpoints of one transport. Zero fields are the defaults of the seeds' pools.
type Limits struct {
	StdioCalls          int // calls running on all subprocesses; zero is 20
	StdioCallsPerServer int // calls running on one subprocess; zero is 10
	HTTPCalls           int // calls running on all remote servers; zero is 64
}

// identity is what makes two endpoints the same. It is a struct so that no
// combination of parts can be mistaken for another one.
type identity struct {
	Transport string
	Command   string
	Args      []string
	Dir       string
	Env       map[string]string // encoded by sorted key
	URL       string
	Headers   map[string][]string
	As        remote.Credential // zero for nobody
	Protocol  string
	TLS       string
	Proxy     string
}

func (i identity) id(name string) bridge.EndpointID {
	return bridge.EndpointID{Sum: exactly(i), Label: "mcp:" + name}
}

// exactly returns a digest of v, which holds texts, and lists, maps and structs of them, but no
// pointers, to the last byte. JSON would not do: it takes all bytes that are no UTF-8 for the same,
// and a caller's header may have any.
func exactly(v any) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "%q", v)) }

// digest returns the first n hex digits of the hash of v.
func digest(n int, v any) string {
	sum := exactly(v)
	return hex.EncodeToString(sum[:])[:n]
}

// printedCommand is the command line, then a digest of the environment and directory if there is either.
func printedCommand(command Arg, args []Arg, env map[string]string, dir string) string {
	var b strings.Builder
	b.WriteString(command.printed())
	for _, a := range args {
		b.WriteString(" " + a.printed())
	}
	if len(env) > 0 || dir != "" {
		b.WriteString(" #env:" + digest(12, []any{env, dir}))
	}
	return b.String()
}

// printedURL is the URL without user and query, then who it is connected to as, and digests of what is secret.
func printedURL(u Arg, as *remote.Credential, headers map[string][]string) string {
	s := "#" + digest(12, u.Text)
	if p, err := url.Parse(u.Text); err == nil && !u.Secret {
		s = p.Scheme + "://" + p.Host + p.EscapedPath()
		if p.RawQuery != "" || p.User != nil {
			s += " #url:" + digest(12, u.Text)
		}
	}
	if as != nil {
		s += " #as:" + printedClient(as)
	}
	if len(headers) > 0 {
		s += " #headers:" + digest(16, headers)
	}
	return s
}

func printedClient(c *remote.Credential) string {
	if c.HideID {
		return digest(12, c.ClientID)
	}
	return url.PathEscape(c.ClientID) // one word
}

// environ returns base with env set over it, in the form that a process takes.
func environ(base []string, env map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(base), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, set := env[k]
		return set
	})
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// A Rate bounds the calls of one endpoint in time. The zero Rate is no bound.
type Rate struct {
	PerSecond float64
	Burst     int // calls at once after a pause; at least 1
}

// demand is one slot of the endpoint's own gate, if it has one, one call of its
// rate, if it has one, and one slot of its transport's gate.
func demand(id bridge.EndpointID, own int, r Rate, kind bridge.AccountKind, all int) bridge.Demand {
	var d bridge.Demand
	if own > 0 {
		d = append(d, bridge.Need{Account: bridge.Account{Kind: bridge.EndpointSlots, Endpoint: id}, Amount: 1, Capacity: own})
	}
	if r.PerSecond > 0 {
		d = append(d, bridge.Need{Account: bridge.Account{Kind: bridge.EndpointRate, Endpoint: id}, Amount: 1, Capacity: max(r.Burst, 1), Rate: r.PerSecond})
	}
	return append(d, bridge.Need{Account: bridge.Account{Kind: kind}, Amount: 1, Capacity: all})
}

func (l Limits) orDefaults() Limits {
	l.StdioCalls = cmp.Or(l.StdioCalls, 20)
	l.StdioCallsPerServer = cmp.Or(l.StdioCallsPerServer, 10)
	l.HTTPCalls = cmp.Or(l.HTTPCalls, 64)
	return l
}
