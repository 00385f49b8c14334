package publish

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

const (
	inMeta   = "00-11111111111111111111111111111111-2222222222222222-01"
	inHeader = "00-33333333333333333333333333333333-4444444444444444-00"
)

// tracedCall is a tools/call of demo__add with this in its _meta.
func tracedCall(meta string) string {
	return `{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"demo__add","arguments":{},"_meta":{` + meta + `}}}`
}

// A call is part of the trace that its message names, or else of that of its request.
func TestTraceOfClient(t *testing.T) {
	f := newFixture(t)
	var got bridge.Trace
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		got = r.Trace
		return newResult(`{"content":[]}`), nil
	}
	f.serve()
	id := f.begin("Traceparent", inHeader) // which is that of the session's begin alone
	for _, tt := range []struct {
		meta   string
		header []string
		want   bridge.Trace
	}{
		{``, nil, bridge.Trace{}},
		{``, []string{"Traceparent", inHeader, "Tracestate", "a=1"}, bridge.Trace{Parent: inHeader, State: "a=1"}},
		{`"traceparent":"` + inMeta + `","tracestate":"b=2"`, nil, bridge.Trace{Parent: inMeta, State: "b=2"}},
		{`"traceparent":"` + inMeta + `"`, []string{"Traceparent", inHeader, "Tracestate", "a=1"}, bridge.Trace{Parent: inMeta}},
		{`"traceparent":"00-x"`, []string{"Traceparent", inHeader}, bridge.Trace{Parent: inHeader}},
		{`"traceparent":7,"tracestate":{}`, []string{"Traceparent", "nonsense"}, bridge.Trace{}},
	} {
		got = bridge.Trace{Parent: "none was sent"}
		res := f.do("POST", tracedCall(tt.meta), append(tt.header, sessionHeader, id)...)
		if res.status != 200 || got != tt.want {
			t.Errorf("with %s and %q the call has the trace %v, want %v: %s", tt.meta, tt.header, got, tt.want, res.body)
		}
	}
	got = bridge.Trace{}
	if f.modernCall("demo__add", "{}", "Traceparent", inHeader); got.Parent != inHeader {
		t.Errorf("without a session the call has the trace %v", got)
	}
	if log := f.logged(); !strings.Contains(log, `"trace_id":"11111111111111111111111111111111"`) || !strings.Contains(log, `"trace_id":"33333333333333333333333333333333"`) {
		t.Errorf("the log does not name the traces:\n%s", log)
	}
}

// A tracer learns of each call once, whatever carries it, and its trace is the call's.
func TestTracer(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	var messages []Message
	var ends []string
	f.opts.Trace = func(m Message) (bridge.Trace, func(*bridge.Call, bridge.Kind)) {
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, m)
		return bridge.Trace{Parent: inMeta, State: "ours"}, func(c *bridge.Call, code bridge.Kind) {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, c.Handle+" "+string(code))
		}
	}
	var called []string
	f.opts.Called = func(c *bridge.Call, _ string, code bridge.Kind, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, c.Handle+" "+string(code))
		if c.Trace.State != "ours" || took <= 0 {
			t.Errorf("the call was part of %v and took %v", c.Trace, took)
		}
	}
	s := newServer("demo", newTool("demo", "add", ""))
	s.Target = s.Tools[0].Target
	s.Prompts = []*bridge.Prompt{{Name: "p", Raw: json.RawMessage(`{"name":"p"}`)}}
	f.snap.Store(bridge.NewSnapshot(1, true, []*bridge.Server{s}))
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Trace.State != "ours" {
			t.Errorf("the server is sent %v", r.Trace)
		}
		if r.Method == bridge.CallTool {
			return newResult(`{"content":[{"type":"text","text":"no"}],"isError":true}`), nil
		}
		return r.Method.Parse([]byte(`{"messages":[],"contents":[]}`))
	}
	f.serve()
	id := f.begin()
	in := []string{sessionHeader, id, "Traceparent", inHeader}
	f.do("POST", tracedCall(`"traceparent":"`+inMeta+`"`), in...)
	f.do("POST", callOf("no__such", "{}"), in...)
	f.do("POST", `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"demo__p"}}`, sessionHeader, id)
	f.do("POST", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"bridge:demo:secret:1"}}`, sessionHeader, id)
	f.modernCall("demo__add", "{}")
	f.answers(callOf("demo__add", "{}"))

	mu.Lock()
	defer mu.Unlock()
	session := messages[0].Session
	if len(session) != 16 || strings.Contains(id, session) {
		t.Errorf("the session is named %q, of %q", session, id)
	}
	both, header := bridge.Trace{Parent: inMeta}, bridge.Trace{Parent: inHeader}
	want := []Message{
		{Method: "tools/call", Name: "demo__add", ID: `"a-1"`, Version: "2025-11-25", Session: session, Under: both, Beside: header},
		{Method: "tools/call", Name: "no__such", ID: "1", Version: "2025-11-25", Session: session, Under: header},
		{Method: "prompts/get", Name: "demo__p", ID: "2", Version: "2025-11-25", Session: session},
		{Method: "resources/read", ID: "3", Version: "2025-11-25", Session: session},
		{Method: "tools/call", Name: "demo__add", ID: "1", Version: "2026-07-28"},
		{Method: "tools/call", Name: "demo__add", Version: "2025-11-25", Pipe: true},
	}
	if d := cmp.Diff(want, messages); d != "" {
		t.Error(d)
	}
	outcomes := []string{"demo tool-error", " not-found", "demo ", "demo ", "demo tool-error", "demo tool-error"}
	if d := cmp.Diff(outcomes, ends); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(outcomes, called); d != "" {
		t.Error(d)
	}
	if log := f.logged(); strings.Count(log, `"msg":"mcp call"`) != 6 || !strings.Contains(log, `"bytes_in":2,"bytes_out":56`) || strings.Contains(log, "secret:1") {
		t.Errorf("the log is\n%s", log)
	}
}
