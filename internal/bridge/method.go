package bridge

import (
	"fmt"
	"net/url"
	"slices"

	"mcpbridge/internal/raw"
)

// A Method is what a call asks of a server, in MCP's words. All go the same way.
type Method string

// The methods.
const (
	CallTool     Method = "" // tools/call
	ReadResource Method = "resources/read"
	GetPrompt    Method = "prompts/get"
	Complete     Method = "completion/complete"
)

// keeps reports whether what the method brings is kept: a completion is of the moment, a prompt small.
func (m Method) keeps() bool { return m == CallTool || m == ReadResource }

// member is the member that a result of the method must have, and its kind.
func (m Method) member() (string, raw.Kind) {
	switch m {
	case ReadResource:
		return "contents", raw.Array
	case GetPrompt:
		return "messages", raw.Array
	default:
		return "completion", raw.Object
	}
}

// Parse makes a result of what a server answered. The bytes must be valid JSON; the result keeps them. Of any
// method but CallTool the data is all of it. An error says how they are no such result.
func (m Method) Parse(b []byte) (*Result, error) {
	if m == CallTool {
		return ParseResult(b)
	}
	name, kind := m.member()
	if raw.KindOf(raw.Get(b, name)) != kind {
		return nil, fmt.Errorf("the result has no usable %q", name)
	}
	return &Result{Raw: b, data: [][]byte{b}}, nil
}

// of returns what the call names on a server, in the form of a tool whose arguments are
// the method's params; or nil if the server has no such thing, or is not attached yet.
func (c *Call) of(s *Server) *Tool {
	if c.Method == CallTool {
		return s.Tool(c.Tool)
	}
	if s.Target == nil {
		return nil
	}
	// All of these only read, so that they can be repeated.
	t := &Tool{Handle: s.Handle, Name: c.Tool, Annotations: Annotations{ReadOnly: new(true)}, Target: s.Target}
	switch c.Method {
	case GetPrompt:
		p := s.Prompt(c.Tool)
		if p == nil {
			return nil
		}
		t.Params = slices.Concat([]byte(`"name":`), raw.Get(p.Raw, "name"), []byte(`,"arguments":`))
		t.Arguments = p
	case ReadResource:
		// It need not be listed: most that a template makes are not.
		t.Params = raw.AppendQuote([]byte(`"uri":`), c.Tool)
		t.Arguments = nothing{}
	case Complete:
		t.Arguments = completion{}
	}
	return t
}

// Subject is what a log may say of what is called, under which name. The URI of a resource
// may hold what arguments do, so that of it only the method is said.
func (c *Call) Subject() (key, value string) {
	switch c.Method {
	case CallTool:
		return "tool", FirstChars(c.Tool, 200)
	case GetPrompt:
		return "prompt", FirstChars(c.Tool, 200)
	default:
		return "method", string(c.Method)
	}
}

// noSuch says that a server lacks what the call names.
func (c *Call) noSuch(s *Server) *Error {
	e := &Error{Kind: NotFound, Op: "bridge.find"}
	handle, name := url.PathEscape(c.Handle), FirstChars(c.Tool, 200)
	switch c.Method {
	case CallTool:
		e.Msg = fmt.Sprintf("The server %q has no tool %q; GET /tools/%s, or bridge tools, lists those that it has.", c.Handle, c.Tool, handle)
	case GetPrompt:
		e.Msg = fmt.Sprintf("The server %q has no prompt %q; GET /prompts/%s lists those that it has.", c.Handle, name, handle)
		if s.PromptsError != "" {
			e.Kind, e.Msg = UpstreamError, fmt.Sprintf("The prompts of the server %q are not known: %s", c.Handle, s.PromptsError)
		}
	case ReadResource:
		e.Msg = fmt.Sprintf("The server %q has no resource %q; GET /resources/%s lists those that it has.", c.Handle, name, handle)
	case Complete:
		e.Msg = fmt.Sprintf("The server %q has no prompt or resource %q; GET /prompts/%s and GET /resources/%s list those that it has.", c.Handle, name, handle, handle)
	}
	return e
}
