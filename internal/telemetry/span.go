package telemetry

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// A Trace is where a span belongs: a traceparent and a tracestate, as W3C Trace Context has
// them. The zero Trace is none.
type Trace struct{ Parent, State string }

// parent returns a context under which spans of the trace begin. What is no traceparent begins a trace of its own.
func (t Trace) parent() context.Context {
	return trace.ContextWithSpanContext(context.Background(), t.context())
}

// context is the trace as the SDK has it; invalid if it is none.
func (t Trace) context() trace.SpanContext {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(t.Parent) != length {
		return trace.SpanContext{}
	}
	id, err := trace.TraceIDFromHex(t.Parent[3:35])
	if err != nil {
		return trace.SpanContext{}
	}
	span, err := trace.SpanIDFromHex(t.Parent[36:52])
	if err != nil {
		return trace.SpanContext{}
	}
	flags, err := strconv.ParseUint(t.Parent[53:], 16, 8)
	if err != nil {
		return trace.SpanContext{}
	}
	state, err := trace.ParseTraceState(t.State)
	if err != nil {
		state = trace.TraceState{} // the rest is good without it
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags), TraceState: state})
}

// A Span is a piece of work that is under way.
type Span struct{ span trace.Span }

func (t *Tracing) begin(ctx context.Context, kind trace.SpanKind, name string, began time.Time, o ...trace.SpanStartOption) *Span {
	o = append(o, trace.WithSpanKind(kind), trace.WithTimestamp(began))
	_, span := t.tracer.Start(ctx, name, o...)
	return &Span{span}
}

// Trace returns where the spans of what the span consists of belong.
func (s *Span) Trace() Trace {
	c := s.span.SpanContext()
	return Trace{"00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String(), c.TraceState().String()}
}

// end ends the span. Failed is the kind of failure, empty for none.
func (s *Span) end(failed string, attrs []attribute.KeyValue) {
	if failed != "" {
		s.span.SetStatus(codes.Error, "") // in words it might quote arguments
		attrs = append(attrs, attribute.String("error.type", failed))
	}
	s.span.SetAttributes(attrs...)
	s.span.End()
}

// Step records a step of a call that began then and has ended now.
func (t *Tracing) Step(under Trace, name string, began time.Time, failed string) {
	t.begin(under.parent(), trace.SpanKindInternal, name, began).end(failed, nil)
}

// BeginRequest begins the span of an HTTP request that came under the trace.
func (t *Tracing) BeginRequest(under Trace, method, route string, began time.Time) *Span {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		method = "_OTHER" // the conventions' word for it
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), under.context())
	return t.begin(ctx, trace.SpanKindServer, method+" "+route, began,
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
}

// EndRequest ends it: with the status, zero if there was no answer, the code of the problem, if there was one, and the id that the log has.
func (s *Span) EndRequest(status int, code, id string) {
	attrs := []attribute.KeyValue{attribute.String("mcp_bridge.request.id", clip(id, maxText))}
	if code != "" {
		attrs = append(attrs, attribute.String("mcp_bridge.problem", code))
	}
	failed := ""
	switch {
	case status == 0: // the connection was cut before there was an answer
		failed = cmp.Or(code, "aborted")
	case status >= 500: // what a caller gets wrong is no failure of ours, say the conventions
		failed = cmp.Or(code, strconv.Itoa(status))
	}
	if status != 0 {
		attrs = append(attrs, attribute.Int("http.response.status_code", status))
	}
	s.end(failed, attrs)
}

// A Message is a request of MCP, as its span has it. Empty fields are not known.
type Message struct {
	Method       string // "tools/call"
	Tool, Prompt string
	Server       string // its name in the bridge
	ID           string // of the request
	Protocol     string // the version in use
	Session      string // a digest of the session's id: with the id itself others might get into it
	Pipe         bool   // it went over pipes, and otherwise over HTTP
	Local        bool   // it went nowhere, but to the bridge itself
	Host         string // of the server; not if that is secret
	Port         int
	Code         string // of the error that was answered
	Failed       string // the kind of failure
}

// BeginServing begins the span of a request that an MCP client has made of us. Under is the trace that
// the message named, or else that of what carried it; beside is the latter, if there are both.
func (t *Tracing) BeginServing(under, beside Trace, method string, began time.Time) *Span {
	var o []trace.SpanStartOption
	ctx := under.parent()
	if c := beside.context(); c.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(context.Background(), under.context())
		o = append(o, trace.WithLinks(trace.Link{SpanContext: c}))
	}
	return t.begin(ctx, trace.SpanKindServer, method, began, o...)
}

// BeginCall begins the span of a request that we make of a server.
func (t *Tracing) BeginCall(under Trace, method string) *Span {
	return t.begin(under.parent(), trace.SpanKindClient, method, time.Now())
}

// EndMessage ends the span of a request.
func (s *Span) EndMessage(m Message) {
	if !s.span.IsRecording() {
		s.span.End()
		return
	}
	name := m.Method
	attrs := make([]attribute.KeyValue, 1, 16)
	attrs[0] = attribute.String("mcp.method.name", m.Method)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, attribute.String(key, clip(value, maxText)))
		}
	}
	text("gen_ai.tool.name", m.Tool)
	text("gen_ai.prompt.name", m.Prompt)
	if target := m.Tool + m.Prompt; target != "" { // there is but one
		name += " " + clip(target, maxText)
	}
	if m.Method == "tools/call" {
		text("gen_ai.operation.name", "execute_tool")
	}
	text("mcp_bridge.server", m.Server)
	text("jsonrpc.request.id", m.ID)
	text("mcp.protocol.version", m.Protocol)
	text("mcp.session.id", m.Session)
	switch {
	case m.Local:
	case m.Pipe:
		text("network.transport", "pipe")
	default:
		text("network.transport", "tcp")
		text("network.protocol.name", "http")
	}
	if m.Host != "" {
		text("server.address", m.Host)
		attrs = append(attrs, attribute.Int("server.port", m.Port))
	}
	text("rpc.response.status_code", m.Code)
	s.span.SetName(name)
	s.end(m.Failed, attrs)
}

// maxText is how many bytes a span has of a name that comes from elsewhere.
const maxText = 200

// clip returns at most n bytes of s, as valid UTF-8, without which a whole batch could not be encoded.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
