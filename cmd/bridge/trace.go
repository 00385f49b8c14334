package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/publish"
	"mcpbridge/internal/raw"
	"mcpbridge/internal/telemetry"
)

// checkTracing refuses a collector that cannot be.
func checkTracing(b *config.Bridge) error {
	if b.Telemetry.OTLP == "" {
		return nil
	}
	if err := telemetry.CheckCollector(b.Telemetry.OTLP); err != nil {
		return fmt.Errorf("bridge.telemetry.otlp: %w%w", err, errConfig)
	}
	return nil
}

// newTracing returns what sends spans to the configured collector, or nil if there is none.
func newTracing(ctx context.Context, b *config.Bridge, log *slog.Logger) (*telemetry.Tracing, error) {
	if b.Telemetry.OTLP == "" {
		return nil, nil //nolint:nilnil // as the comment says
	}
	t, err := telemetry.NewTracing(ctx, telemetry.TracingOptions{URL: b.Telemetry.OTLP, Version: version, Log: log})
	if err != nil {
		return nil, fmt.Errorf("bridge.telemetry.otlp: %w%w", err, errConfig)
	}
	return t, nil
}

const (
	longFlush  = 5 * time.Second // that the last spans may take, if there is still so much of the grace
	shortFlush = time.Second     // that they may take in any case
)

// flush sends the last spans, before the end of the grace if there is one.
func flush(ctx context.Context, t *telemetry.Tracing, grace time.Time) error {
	wait := longFlush
	if !grace.IsZero() {
		wait = max(shortFlush, min(longFlush, time.Until(grace)))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	return t.Close(ctx)
}

// trace has the app's calls recorded, unless t is nil. It must be called before publish and handler.
func (a *app) trace(t *telemetry.Tracing) {
	if t != nil {
		a.tracing, a.bridge.Tracer = t, tracer{t}
	}
}

// A tracer makes spans of what the parts of the bridge tell it.
type tracer struct{ t *telemetry.Tracing }

var _ bridge.Tracer = tracer{}

// Step implements [bridge.Tracer].
func (r tracer) Step(t bridge.Trace, name string, began time.Time, err error) {
	code := bridge.Kind("")
	if err != nil {
		code = bridge.KindOf(err)
	}
	r.t.Step(telemetry.Trace(t), name, began, failure(code))
}

// Request implements [bridge.Tracer].
func (r tracer) Request(t bridge.Trace, q bridge.Request) (bridge.Trace, func(*bridge.Result, error)) {
	m := telemetry.Message{Method: cmp.Or(string(q.Method), "tools/call"), Server: q.Tool.Handle}
	switch q.Method {
	case bridge.CallTool:
		m.Tool = q.Tool.Name
	case bridge.GetPrompt:
		m.Prompt = q.Tool.Name
	}
	span := r.t.BeginCall(telemetry.Trace(t), m.Method)
	return bridge.Trace(span.Trace()), func(res *bridge.Result, err error) {
		w := q.Wire
		m.ID, m.Protocol, m.Session, m.Pipe, m.Host, m.Port = w.ID, w.Protocol, w.Session, w.Pipe, w.Host, w.Port
		m.Local = w.ID == ""
		switch {
		case err != nil:
			m.Failed = failure(bridge.KindOf(err))
			if answer, ok := errors.AsType[*rpc.Error](err); ok {
				m.Code = strconv.FormatInt(answer.Code, 10)
				m.Failed = m.Code
			}
		case res.IsError:
			m.Failed = failure(bridge.ToolError)
		}
		span.EndMessage(m)
	}
}

// request begins the span of an HTTP request.
func (r tracer) request(in bridge.Trace, method, route string, began time.Time) (bridge.Trace, func(int, bridge.Kind, string)) {
	span := r.t.BeginRequest(telemetry.Trace(in), method, route, began)
	return bridge.Trace(span.Trace()), func(status int, code bridge.Kind, id string) { span.EndRequest(status, string(code), id) }
}

// message begins the span of a call of an MCP client.
func (r tracer) message(m publish.Message) (bridge.Trace, func(*bridge.Call, bridge.Kind)) {
	span := r.t.BeginServing(telemetry.Trace(m.Under), telemetry.Trace(m.Beside), m.Method, time.Now())
	return bridge.Trace(span.Trace()), func(c *bridge.Call, code bridge.Kind) {
		id := m.ID
		if raw.KindOf([]byte(id)) == raw.String {
			id = raw.Unquote([]byte(id))
		}
		s := telemetry.Message{Method: m.Method, Server: c.Handle, ID: id, Protocol: m.Version, Session: m.Session, Pipe: m.Pipe, Failed: failure(code)}
		switch {
		case c.Handle == "": // a name that is none may be any text
		case c.Method == bridge.CallTool:
			s.Tool = m.Name
		case c.Method == bridge.GetPrompt:
			s.Prompt = m.Name
		}
		span.EndMessage(s)
	}
}

// failure is the kind of a failure as spans have it, empty for none.
func failure(code bridge.Kind) string {
	if code == bridge.ToolError {
		return "tool_error" // the conventions' word for it
	}
	return string(code)
}
