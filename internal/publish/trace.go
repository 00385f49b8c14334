package publish

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// A Message is a call of a client, as its trace has it.
type Message struct {
	Method  string // "tools/call"
	Name    string // of the tool or prompt, as published; else ""
	ID      string // of the request, as JSON; empty if it came in a batch, or over pipes
	Version string // of the protocol
	Session string // a digest of the session's id, by which nobody gets into the session; empty without one
	Pipe    bool   // over pipes, and not over HTTP

	// Under is the trace that the message names, or else the one of the request that brought it; Beside
	// is the latter, if there are both.
	Under, Beside bridge.Trace
}

// trace makes the call a part of the client's trace. End is to be told how it went.
func (p *peer) trace(a asked, method, name string, c *bridge.Call) (end func(error)) {
	rq := p.request(a.req)
	c.ID = rq.id
	parent, _ := a.meta["traceparent"].(string)
	state, _ := a.meta["tracestate"].(string)
	m := Message{
		Method: method, Name: name, ID: string(rq.message), Version: a.version, Pipe: rq.ctx == nil,
		Under: bridge.ParseTrace(parent, state), Beside: rq.trace,
	}
	if m.Under == (bridge.Trace{}) {
		m.Under, m.Beside = m.Beside, bridge.Trace{}
	}
	c.Trace = m.Under
	if p.s.opts.Trace == nil {
		return func(error) {}
	}
	if id := sessionID(a.session); id != "" {
		sum := sha256.Sum256([]byte(id))
		m.Session = hex.EncodeToString(sum[:8])
	}
	trace, done := p.s.opts.Trace(m)
	c.Trace = trace
	return func(err error) { done(c, kindOf(err)) }
}

func sessionID(s *mcp.ServerSession) string {
	if s == nil {
		return ""
	}
	return s.ID()
}
