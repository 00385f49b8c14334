package bridge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// A Tool is one tool of one server, as the server lists it, with everything that
// can be known before a call. It is never changed once it is in a [Snapshot].
type Tool struct {
	Handle      string // the server's name in the bridge, never its own idea of it
	Name        string // exactly as listed; any text
	Title       string // may be empty
	Description string // may be empty
	Annotations Annotations

	Raw    json.RawMessage // the whole entry of the server's list, as sent
	Input  json.RawMessage // the schema of its arguments as sent; {"type":"object"} if there was none
	Output json.RawMessage // the schema of its structured result as sent; nil if there was none

	SchemaHash string // SHA-256 of Input and Output in hex
	Params     []byte // the members of a call's params up to its arguments, written once

	// Arguments checks a call's arguments, and Result a structured result. Each is
	// nil when there is nothing to check: Unchecked then says why, if a schema was there.
	Arguments Checker
	Result    Checker
	Unchecked string

	// Published is what documents show for Input and Output: whatever the Compiler made of them.
	Published any

	Target *Target
}

// Annotations are a server's hints about a tool; nil where it gave none.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// HashSchemas returns what SchemaHash is for these schemas.
func HashSchemas(input, output json.RawMessage) string {
	h := sha256.New()
	h.Write(input)
	h.Write([]byte{0})
	h.Write(output)
	return hex.EncodeToString(h.Sum(nil))
}

// A Checker checks JSON against one compiled schema. It returns the bytes to go
// on with, which differ from doc only where design allows an edit, or an
// [*Error] of kind InvalidArguments whose Members hold "errors" and "count".
type Checker interface {
	Check(doc []byte) ([]byte, error)
}

// A Compiler makes a tool callable: it fills Arguments, Result, Unchecked and
// Published from Input and Output. An error says why the tool cannot be offered.
type Compiler interface {
	Compile(t *Tool) error
}

// An EndpointID tells endpoints apart: two are equal only if they connect the
// same way as the same identity. Label names the endpoint in accounts and logs.
type EndpointID struct {
	Sum   [32]byte // digest of the endpoint's identity
	Label string   // "mcp:<name>"; never a secret
}

// A Target is where calls of a server go, and what they need and may take.
type Target struct {
	Handle   string
	Endpoint EndpointID
	Demand   Demand // what one call holds while it runs

	Timeout    time.Duration // time without progress after which a call is given up
	MaxTimeout time.Duration // the most a call may take in all
	ParseText  bool          // a lone text block of JSON is the result's data
	Asks       bool          // the server may ask the caller something before it answers
	Strict     bool          // a result that breaks its output schema is an error
	Forward    []string      // canonical names of the caller's headers that go along with each call
	Transient  bool          // results are not kept as artifacts, since they are parts of some
}

// A State says how a server is.
type State string

// The states of a server.
const (
	Connecting State = "connecting" // its first attempt is under way
	Ready      State = "ready"      // connected, lists read
	Idle       State = "idle"       // no connection now; the next call makes one
	Degraded   State = "degraded"   // the last refresh failed; the last good list is served
	Failed     State = "failed"     // could not be started or reached; tried again in the background
	NeedsAuth  State = "needs-auth" // refuses our credentials
	Disabled   State = "disabled"   // switched off in the configuration
	// NeedsCaller is a server that callers do not share, for one who lacks what it is connected with.
	NeedsCaller State = "needs-caller"
)

// A Server is one entry of the catalogue. It is never changed once it is in a [Snapshot].
type Server struct {
	Handle      string
	Title       string     // from the configuration, else the handle
	Description string     // from the configuration
	Endpoint    EndpointID // zero while it is not attached
	Target      *Target    // of all its calls; nil while it is not attached, and where there are only tools
	State       State
	LastError   string // why it is not ready, for people; no secrets
	Since       time.Time
	Next        time.Time // when it is tried again in the background; zero if nothing is wrong, or only a call does
	Listed      time.Time // when its lists were last read; zero if never

	Name, Version string // what the server calls itself
	Protocol      string // the protocol version in use
	Instructions  string

	Tools   []*Tool   // in the order of its list; see SetTools
	Skipped []Skipped // tools that cannot be offered

	Resources, Templates []*Resource // in the order of their lists
	Prompts              []*Prompt
	SkippedResources     []Skipped // also templates
	SkippedPrompts       []Skipped
	ResourcesError       string // why a list could not be read, for people; the last good one is there then
	PromptsError         string

	byName map[string]*Tool
}

// Skipped is a tool, or another entry of a list, that was left out of the catalogue, and why.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// unattached reports whether nobody has begun to connect a server that its caller has apart.
func (s *Server) unattached() bool { return s.State == Idle && s.Listed.IsZero() }

// Copy returns a copy that may be changed until it is put into a snapshot.
func (s *Server) Copy() *Server {
	c := *s
	return &c
}

// SetTools gives the server its tools, in the order of its list.
func (s *Server) SetTools(tools []*Tool) {
	s.Tools = tools
	s.byName = make(map[string]*Tool, len(tools))
	for _, t := range tools {
		s.byName[t.Name] = t
	}
}

// Tool returns the tool called name, or nil.
func (s *Server) Tool(name string) *Tool { return s.byName[name] }

// A Snapshot is the whole catalogue at one moment. It is immutable.
type Snapshot struct {
	Version uint64    // grows by one with each change
	Ready   bool      // every server has answered or failed its first attempt
	Servers []*Server // by handle

	byHandle map[string]*Server
}

// NewSnapshot returns a snapshot of servers, which must not be changed any more.
func NewSnapshot(version uint64, ready bool, servers []*Server) *Snapshot {
	s := &Snapshot{Version: version, Ready: ready, Servers: slices.Clone(servers), byHandle: make(map[string]*Server, len(servers))}
	slices.SortFunc(s.Servers, func(a, b *Server) int { return cmp.Compare(a.Handle, b.Handle) })
	for i, srv := range s.Servers {
		if srv.byName == nil && len(srv.Tools) > 0 { // made by hand, and perhaps in another snapshot too
			srv = srv.Copy()
			srv.SetTools(srv.Tools)
			s.Servers[i] = srv
		}
		s.byHandle[srv.Handle] = srv
	}
	return s
}

// Server returns the server called handle, or nil.
func (s *Snapshot) Server(handle string) *Server { return s.byHandle[handle] }

// Tools yields all tools, by handle and then in their server's order.
func (s *Snapshot) Tools() iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for _, srv := range s.Servers {
			for _, t := range srv.Tools {
				if !yield(t) {
					return
				}
			}
		}
	}
}
