package routes

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

const aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A call is part of its caller's trace, and of none if that is no trace.
func TestTraceOfCaller(t *testing.T) {
	f := newFixture()
	var got bridge.Trace
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		got = r.Trace
		return newResult(`{"content":[]}`), nil
	}
	f.opts.MCPO = true
	c := f.serve(t)
	for _, tt := range []struct {
		path   string
		header []string
		want   bridge.Trace
	}{
		{"/tools/demo/echo", nil, bridge.Trace{}},
		{"/tools/demo/echo", []string{"Traceparent: " + aTrace, "Tracestate: a=1"}, bridge.Trace{Parent: aTrace, State: "a=1"}},
		{"/tools/demo/echo", []string{"Traceparent: " + aTrace + "-more", "Tracestate: a=1"}, bridge.Trace{}},
		{"/mcpo/demo/echo", []string{"Traceparent: " + aTrace}, bridge.Trace{Parent: aTrace}},
	} {
		got = bridge.Trace{Parent: "none was sent"}
		if res := c.do("POST", tt.path, `{}`, tt.header...); res.status != 200 || got != tt.want {
			t.Errorf("%s with %q has the trace %v, want %v: %d %s", tt.path, tt.header, got, tt.want, res.status, res.body)
		}
	}
	lines := f.logLines(t)
	if lines[0]["trace_id"] != nil || lines[1]["trace_id"] != aTrace[3:35] || lines[2]["trace_id"] != nil || lines[3]["trace_id"] != aTrace[3:35] {
		t.Errorf("the log is %v", lines)
	}
}

// Each request whose route has a span begins one and ends it, with what its caller gets to see.
func TestTrace(t *testing.T) {
	f := newFixture()
	var mu sync.Mutex
	var told []string
	tell := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, a...))
	}
	f.opts.Trace = func(in bridge.Trace, method, route string, began time.Time) (bridge.Trace, func(int, bridge.Kind, string)) {
		if began.IsZero() || time.Since(began) > time.Minute {
			t.Errorf("it began at %v", began)
		}
		tell("%s %s under %q", method, route, in.Parent)
		return bridge.Trace{Parent: aTrace, State: "ours"}, func(status int, code bridge.Kind, id string) { tell("%d %s %s", status, code, id) }
	}
	f.opts.MCPO = true
	f.opts.MCP = func(w http.ResponseWriter, _ *http.Request, _ bridge.Caller, tr bridge.Trace) {
		tell("mcp under %s", tr.State)
		w.WriteHeader(http.StatusAccepted)
	}
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Trace.State != "ours" {
			t.Errorf("the server is sent %v", r.Trace)
		}
		if r.Tool.Name == "break" {
			panic("broken")
		}
		return newResult(`{"content":[]}`), nil
	}
	c := f.serve(t)
	id := "Request-Id: me"
	c.do("POST", "/tools/demo/echo", `{}`, id, "Traceparent: "+aTrace)
	c.do("POST", "/tools/demo?tool=none", `{}`, id)
	c.do("POST", "/mcpo/demo/a/b", `{}`, id)
	c.do("POST", "/mcp", `{}`, id)
	c.do("GET", "/tools", ``, id)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/", "/nothing"} {
		c.do("GET", path, ``, id)
	}
	c.do("GET", "/tools", ``, id, "Host: evil.example")
	want := []string{
		`POST /tools/{handle}/{tool} under "` + aTrace + `"`, "200  me",
		`POST /tools/{handle} under ""`, "404 not-found me",
		`POST /mcpo/{handle}/* under ""`, "404 not-found me",
		`POST /mcp under ""`, "mcp under ours", "202  me",
		`GET /tools under ""`, "200  me",
	}
	mu.Lock()
	defer mu.Unlock()
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}
