package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/telemetry/otlptest"
)

const (
	aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	bTrace = "00-11111111111111111111111111111111-2222222222222222-01"
)

// sentMeta returns the traceparent and tracestate that a server's tool params saw, and demands that its arguments were untouched.
func sentMeta(t *testing.T, params, args string) (parent, state string) {
	t.Helper()
	var p struct {
		Meta struct{ Traceparent, Tracestate string } `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(params), &p); err != nil || !strings.HasSuffix(params, `"arguments":`+args+`}`) {
		t.Errorf("the server got %s: %v", params, err)
	}
	return p.Meta.Traceparent, p.Meta.Tracestate
}

// overMCP calls a tool as an MCP client without a session does.
func (p *process) overMCP(name, args, meta string, header ...string) response {
	p.t.Helper()
	body := `{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"` + name + `","arguments":` + args +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + meta + `}}}`
	return p.do("POST", "/mcp", body, append([]string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name}, header...)...)
}

// A caller's trace goes on to its server, whatever carries the call, also where nobody collects traces.
func TestTraceGoesOn(t *testing.T) {
	mcptest.NoLeaks(t)
	raw, modern := mcptest.Start(t, mcptest.HTTPRaw, mcptest.OK), mcptest.Start(t, mcptest.HTTPRaw, mcptest.Modern)
	p := start(t, map[string]server{"offers": mode(t, "offers"), "modern": mode(t, "modern"), "raw": {"url": raw.URL}, "rawmodern": {"url": modern.URL}}, nil)
	p.ready()
	const args = `{ "n":1.10,"big":9007199254740993}`
	for _, handle := range []string{"offers", "modern", "raw", "rawmodern"} {
		parent, state := sentMeta(t, text(t, p.call(handle, "params", args, 200, "Traceparent", aTrace, "Tracestate", `a="\`)), args)
		if parent != aTrace || state != `a="\` {
			t.Errorf("%s got %q, %q", handle, parent, state)
		}
		for _, none := range []string{"", "00-nonsense", strings.ToUpper(aTrace)} {
			if parent, state := sentMeta(t, text(t, p.call(handle, "params", args, 200, "Traceparent", none, "Tracestate", "a=1")), args); parent != "" || state != "" {
				t.Errorf("%s got %q, %q of the traceparent %q", handle, parent, state, none)
			}
		}
		res := p.overMCP(handle+"__params", args, `,"traceparent":"`+bTrace+`"`, "Traceparent", aTrace, "Tracestate", "a=1")
		if s := string(res.body); res.StatusCode != 200 || !strings.Contains(s, `\"traceparent\":\"`+bTrace) || strings.Contains(s, "a=1") {
			t.Errorf("over /mcp %s got %d %s", handle, res.StatusCode, s)
		}
	}
	p.do("POST", "/prompts/offers/exact", `{}`, "Traceparent", aTrace)
	p.read("offers", "test:exact", "Traceparent", aTrace)
	p.do("POST", "/complete/offers", `{"ref":{"type":"ref/prompt","name":"exact"},"argument":{"name":"a","value":"b"}}`, "Traceparent", aTrace)
	frames := text(t, p.call("offers", "frames", `{}`, 200))
	for _, method := range []string{"prompts/get", "resources/read", "completion/complete"} {
		if !strings.Contains(frames, `\"method\":\"`+method+`\",\"params\":{\"_meta\":{\"progressToken\":`) || strings.Count(frames, aTrace) != 4 {
			t.Errorf("%s went as\n%s", method, frames)
		}
	}
	log := p.log()
	for _, want := range []string{`"trace_id":"` + aTrace[3:35] + `"`, `"trace_id":"` + bTrace[3:35] + `"`} {
		if !strings.Contains(log, want) {
			t.Errorf("no line of the log has %s", want)
		}
	}
}

// The collector gets the spans of each call as one trace, of which the server's is to be a part.
func TestTracesAreSent(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
	c := otlptest.New(t)
	raw := mcptest.Start(t, mcptest.HTTPRaw, mcptest.OK)
	p := start(t, map[string]server{"offers": mode(t, "offers"), "raw": {"url": raw.URL}},
		map[string]any{"telemetry": map[string]any{"otlp": c.URL}})
	p.ready()

	const secret = `{"word":"s3cret"}`
	parent, state := sentMeta(t, text(t, p.call("raw", "params", secret, 200, "Traceparent", aTrace, "Tracestate", "a=1", "Request-Id", "me")), secret)
	spans := c.Await(t, "POST /tools/{handle}/{tool}", "admission", "tools/call params", "store")
	request, call := otlptest.Find(spans, "POST /tools/{handle}/{tool}"), otlptest.Find(spans, "tools/call params")
	if want := "00-" + request.Trace + "-" + call.ID + "-01"; parent != want || state != "a=1" {
		t.Errorf("the server's part is %s, %s; want %s", parent, state, want)
	}
	if request.Trace != aTrace[3:35] || request.Parent != aTrace[36:52] || request.Kind != "SERVER" || request.Attrs["mcp_bridge.request.id"] != "me" || request.Attrs["http.response.status_code"] != "200" {
		t.Errorf("the request is %+v", request)
	}
	for _, name := range []string{"admission", "tools/call params", "store"} {
		if s := otlptest.Find(spans, name); s.Parent != request.ID || s.Trace != request.Trace {
			t.Errorf("%+v is not under the request", s)
		}
	}
	host, port, _ := strings.Cut(raw.Addr, ":")
	for key, want := range map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "params", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2025-11-25",
		"network.transport": "tcp", "server.address": host, "server.port": port, "mcp_bridge.server": "raw", "error.type": "",
	} {
		if got := call.Attrs[key]; got != want || call.Kind != "CLIENT" {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if call.Attrs["jsonrpc.request.id"] == "" || len(call.Attrs["mcp.session.id"]) != 16 {
		t.Errorf("the call is %v", call.Attrs)
	}

	// What fails says how, in a word.
	p.call("offers", "fail", `{"message":"s3cret"}`, 422)
	p.call("offers", "rpc_error", `{"code":-32050,"message":"broke"}`, 502)
	p.do("POST", "/prompts/offers/exact", `{}`)
	p.read("offers", "test:exact")
	spans = c.Await(t, "tools/call fail", "tools/call rpc_error", "prompts/get exact", "resources/read", "POST /prompts/{handle}/{prompt}", "GET /resources/{handle}/content")
	if s := otlptest.Find(spans, "tools/call fail"); !s.Failed || s.Attrs["error.type"] != "tool_error" || s.Text != "" || s.Attrs["network.transport"] != "pipe" {
		t.Errorf("a tool's failure is %+v", s)
	}
	if s := otlptest.Find(spans, "tools/call rpc_error"); !s.Failed || s.Attrs["error.type"] != "-32050" || s.Attrs["rpc.response.status_code"] != "-32050" || s.Text != "" {
		t.Errorf("an error of the protocol is %+v", s)
	}

	// A job goes on in the trace that it began in.
	p.call("offers", "echo", `{"message":"hi"}`, 202, "Prefer", "respond-async", "Traceparent", bTrace)
	if s := otlptest.Find(c.Await(t, "tools/call echo"), "tools/call echo"); s.Trace != bTrace[3:35] {
		t.Errorf("the job's call is %+v", s)
	}
	until(t, "the job's line names its trace", func() bool {
		for line := range strings.Lines(p.log()) {
			if strings.Contains(line, `"msg":"job ended"`) {
				return strings.Contains(line, `"trace_id":"`+bTrace[3:35]+`"`) && strings.Contains(line, `"request_id":`) && strings.Contains(line, `"bytes_in":16`)
			}
		}
		return false
	})

	// What comes by /mcp has a span of its own between the two, under what the message names.
	res := p.overMCP("offers__params", secret, `,"traceparent":"`+bTrace+`"`)
	spans = c.Await(t, "POST /mcp", "tools/call offers__params")
	carrier, message := otlptest.Find(spans, "POST /mcp"), otlptest.Find(spans, "tools/call offers__params")
	if message.Trace != bTrace[3:35] || message.Parent != bTrace[36:52] || message.Kind != "SERVER" || len(message.Links) != 1 || message.Links[0] != carrier.ID || message.Attrs["jsonrpc.request.id"] != "mine" {
		t.Errorf("the message's span is %+v, carried by %s", message, carrier.ID)
	}
	until(t, "the call of the message has come", func() bool {
		for _, s := range c.Spans() {
			if s.Name == "tools/call params" && s.Parent == message.ID && strings.Contains(string(res.body), s.ID) {
				return true
			}
		}
		return false
	})

	for _, s := range c.Spans() {
		if strings.Contains(fmt.Sprint(s), "s3cret") || strings.Contains(fmt.Sprint(s), "test:exact") {
			t.Errorf("a span tells what it should not: %+v", s)
		}
	}
	if h, path := c.Got(); h.Get("X-Key") != "s3cret" || path != "/v1/traces" {
		t.Errorf("a batch came to %s with %v", path, h)
	}
	until(t, "the metrics count spans", func() bool {
		m := string(p.get("/metrics").body)
		return strings.Contains(m, `mcp_bridge_trace_spans_total{result="lost"} 0`) && strings.Contains(m, `mcp_bridge_trace_spans_total{result="sent"} `) && !strings.Contains(m, `result="sent"} 0`)
	})
	p.stop(syscall.SIGTERM)
	if strings.Contains(p.log(), "s3cret") {
		t.Error("the log tells a secret")
	}
}

// The spans of the last calls are sent before the end, and a bridge behind a bridge goes on with the trace.
func TestLastSpans(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
	c := otlptest.New(t)
	telemetry := map[string]any{"otlp": c.URL}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]server{"ok": mode(t, "ok")}, "bridge": map[string]any{"telemetry": telemetry}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "published.json")
	write(t, path, string(config))
	p := start(t, map[string]server{"b": {"command": "bridge", "args": []string{"mcp", "--config", path}}}, map[string]any{"telemetry": telemetry})
	p.ready()
	p.call("b", "ok__echo", `{"message":"hi"}`, 200, "Traceparent", aTrace)
	if n := len(c.Spans()); n != 0 {
		t.Fatalf("%d spans have come already", n)
	}
	p.stop(syscall.SIGTERM)
	parent := aTrace[36:52]
	for _, want := range []struct{ name, kind, transport string }{
		{"POST /tools/{handle}/{tool}", "SERVER", ""}, {"tools/call ok__echo", "CLIENT", "pipe"}, {"tools/call ok__echo", "SERVER", "pipe"}, {"tools/call echo", "CLIENT", "pipe"},
	} {
		var found *otlptest.Span
		for _, s := range c.Spans() {
			if s.Name == want.name && s.Kind == want.kind {
				found = &s
			}
		}
		if found == nil || found.Parent != parent || found.Trace != aTrace[3:35] || found.Attrs["network.transport"] != want.transport {
			t.Fatalf("%s of kind %s is %+v, not under %s", want.name, want.kind, found, parent)
		}
		parent = found.ID
	}
}

// A collector that never answers holds up neither calls nor the end.
func TestHangingCollectorHoldsUpNothing(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "600000")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	hanging := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case hanging <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer srv.Close()
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"telemetry": map[string]any{"otlp": srv.URL}, "shutdownGrace": "3s"})
	p.ready()
	p.call("ok", "echo", `{"message":"hi"}`, 200)
	<-hanging
	for range 50 { // more than the queue holds
		p.call("ok", "echo", `{"message":"hi"}`, 200)
	}
	p.stop(syscall.SIGTERM) // within a minute, where the collector has ten
	if log := p.log(); strings.Count(log, "traces cannot be sent") > 1 {
		t.Errorf("the outage is told more than once:\n%s", log)
	}
}

// Calls over /mcp are counted and logged, once.
func TestCallsOverMCPAreCounted(t *testing.T) {
	mcptest.NoLeaks(t)
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	p.overMCP("ok__echo", `{"message":"hi"}`, "", "Request-Id", "first")
	p.overMCP("ok__fail", `{"message":"no"}`, "")
	p.overMCP("s3cret__such", `{}`, "")
	m := string(p.get("/metrics").body)
	for _, want := range []string{
		`mcp_bridge_calls_total{code="",server="ok"} 1`, `mcp_bridge_calls_total{code="tool-error",server="ok"} 1`,
		`mcp_bridge_calls_total{code="not-found",server=""} 1`, `mcp_bridge_call_duration_seconds_count{server="ok"} 2`,
	} {
		if !strings.Contains(m, want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, m)
		}
	}
	if strings.Contains(m, "s3cret") {
		t.Error("the metrics have what a caller wrote")
	}
	lines := 0
	for line := range strings.Lines(p.log()) {
		if strings.Contains(line, `"request_id":"first"`) {
			lines++
			if !strings.Contains(line, `"handle":"ok","tool":"echo"`) || !strings.Contains(line, `"bytes_in":16`) || strings.Contains(line, `"hi"`) {
				t.Errorf("the line is %s", line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d lines tell of one call", lines)
	}
}
