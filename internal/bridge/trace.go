package bridge

import (
	"context"
	"strings"
	"time"

	"mcpbridge/internal/raw"
)

// A Trace is where a call belongs in a trace that others began: the traceparent and the
// tracestate of W3C Trace Context. The zero Trace is none.
type Trace struct {
	Parent string // "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; nothing else is in it
	State  string // printable ASCII; may be empty
}

const (
	parentChars = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	stateChars  = 1024 // of a tracestate that is passed on; twice what must be
)

// ParseTrace returns the trace that a traceparent and tracestate name. A traceparent that is
// none is as if there were nothing, and so is a tracestate that cannot be passed on. One of a later version
// counts as far as the present one goes (section 3.2.4 of the recommendation).
func ParseTrace(parent, state string) Trace {
	if len(parent) < parentChars || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return Trace{}
	}
	version, trace, span, flags := parent[:2], parent[3:35], parent[36:52], parent[53:parentChars]
	if !isHex(version) || !isHex(trace) || !isHex(span) || !isHex(flags) || version == "ff" || strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return Trace{}
	}
	if len(parent) > parentChars && (version == "00" || parent[parentChars] != '-') {
		return Trace{}
	}
	if len(state) > stateChars || strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		state = ""
	}
	if version != "00" {
		parent = "00" + parent[2:parentChars]
	}
	return Trace{parent, state}
}

// TraceOf returns the trace that the headers of a request name, by their canonical names.
func TraceOf(h map[string][]string) Trace {
	parent := h["Traceparent"]
	if len(parent) != 1 {
		return Trace{}
	}
	return ParseTrace(parent[0], strings.Join(h["Tracestate"], ","))
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == "" // lower case alone is right
}

// ID returns the trace's own id, in hex; empty for none.
func (t Trace) ID() string {
	if t.Parent == "" {
		return ""
	}
	return t.Parent[3:35]
}

// Meta returns the members of a request's _meta that pass the trace on, on one line and
// without braces; nil for none.
func (t Trace) Meta() []byte {
	if t.Parent == "" {
		return nil
	}
	b := append(append([]byte(`"traceparent":"`), t.Parent...), '"')
	if t.State != "" {
		b = raw.AppendQuote(append(b, `,"tracestate":`...), t.State)
	}
	return b
}

// A Tracer records the steps of calls.
type Tracer interface {
	// Step is told of a step of a call under the trace that began then and has ended now.
	Step(t Trace, name string, began time.Time, err error)
	// Request is told of a request that is about to be made of a server, and returns the trace under
	// which the server's own spans belong. End is told how it went; what r.Wire holds by then is how it was made.
	Request(t Trace, r Request) (sent Trace, end func(res *Result, err error))
}

// A Wire says how a request was made of a server.
type Wire struct {
	ID       string // of the request
	Protocol string // the version in use
	Session  string // a digest of the session's id; empty without one
	Pipe     bool   // over pipes, and not over HTTP
	Host     string // of the server's URL, if that is no secret
	Port     int
}

// step tells the tracer, if there is one.
func (b *Bridge) step(c *Call, name string, began time.Time, err error) {
	if b.Tracer != nil {
		b.Tracer.Step(c.Trace, name, began, err)
	}
}

// send makes a request of a client, as a part of the call's trace.
func (b *Bridge) send(ctx context.Context, c *Call, client Client, r Request, letGo func()) (*Result, error) {
	r.Trace = c.Trace
	if b.Tracer == nil {
		return client.Call(ctx, r, letGo)
	}
	r.Wire = new(Wire)
	sent, end := b.Tracer.Request(c.Trace, r)
	r.Trace = sent
	res, err := client.Call(ctx, r, letGo)
	end(res, err)
	return res, err
}
