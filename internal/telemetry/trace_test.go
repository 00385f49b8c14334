package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/telemetry/otlptest"
)

// A logBuffer is written by the goroutines of the SDK.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newTracing(t *testing.T, url string) (*Tracing, *logBuffer) {
	t.Helper()
	log := new(logBuffer)
	tr, err := NewTracing(t.Context(), TracingOptions{URL: url, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = tr.Close(ctx)
	})
	return tr, log
}

func closeTracing(t *testing.T, tr *Tracing) {
	t.Helper()
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

const (
	callers   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// The spans of a call are those of one trace, each under the one that it is a part of.
func TestSpans(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
	t.Setenv("OTEL_SERVICE_NAME", "ours")
	c := otlptest.New(t)
	tr, log := newTracing(t, c.URL)
	began := time.Now().Add(-time.Second)
	req := tr.BeginRequest(Trace{callers, "rojo=1"}, "POST", "/tools/{handle}/{tool}", began)
	tr.Step(req.Trace(), "admission", began, "")
	tr.Step(req.Trace(), "store", began, "store-unavailable")
	call := tr.BeginCall(req.Trace(), "tools/call")
	sent := call.Trace()
	call.EndMessage(Message{
		Method: "tools/call", Tool: "ec\xffho", Server: "files", ID: "7", Protocol: "2025-11-25", Session: "abc",
		Host: "mcp.example.com", Port: 443, Code: "-32000", Failed: "-32000",
	})
	req.EndRequest(502, "upstream-error", "id-1")
	closeTracing(t, tr)

	spans := c.Await(t, "POST /tools/{handle}/{tool}", "admission", "store", "tools/call echo")
	of := func(name string) *otlptest.Span { return otlptest.Find(spans, name) }
	root := of("POST /tools/{handle}/{tool}")
	if root.Trace != callers[3:35] || root.Parent != callers[36:52] || root.Kind != "SERVER" || !root.Failed || root.State != "rojo=1" || root.Duration < time.Second {
		t.Errorf("the request's span is %+v", root)
	}
	for name, kind := range map[string]string{"admission": "INTERNAL", "store": "INTERNAL", "tools/call echo": "CLIENT"} {
		if s := of(name); s.Parent != root.ID || s.Trace != root.Trace || s.Kind != kind || s.Text != "" {
			t.Errorf("the span of %s is %+v, under %s", name, s, root.ID)
		}
	}
	if want := "00-" + root.Trace + "-" + of("tools/call echo").ID + "-01"; sent.Parent != want || sent.State != "rojo=1" {
		t.Errorf("the server is sent %v, want %s", sent, want)
	}
	if of("admission").Failed || !of("store").Failed || of("store").Attrs["error.type"] != "store-unavailable" {
		t.Errorf("admission %+v, store %+v", of("admission"), of("store"))
	}
	want := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool", "mcp_bridge.server": "files",
		"jsonrpc.request.id": "7", "mcp.protocol.version": "2025-11-25", "mcp.session.id": "abc", "network.transport": "tcp", "network.protocol.name": "http",
		"server.address": "mcp.example.com", "server.port": "443", "rpc.response.status_code": "-32000", "error.type": "-32000",
	}
	if d := cmp.Diff(want, of("tools/call echo").Attrs); d != "" {
		t.Error(d)
	}
	want = map[string]string{
		"http.request.method": "POST", "http.route": "/tools/{handle}/{tool}", "http.response.status_code": "502",
		"mcp_bridge.problem": "upstream-error", "mcp_bridge.request.id": "id-1", "error.type": "upstream-error",
	}
	if d := cmp.Diff(want, root.Attrs); d != "" {
		t.Error(d)
	}
	if root.Resource["service.name"] != "ours" || root.Resource["service.version"] != "1.2.3" {
		t.Errorf("the resource is %v", root.Resource)
	}
	if h, path := c.Got(); h.Get("X-Key") != "s3cret" || path != "/v1/traces" {
		t.Errorf("got %s with %v", path, h)
	}
	if sent, lost := tr.Spans(); sent != 4 || lost != 0 || log.String() != "" {
		t.Errorf("%d sent, %d lost, logged %q", sent, lost, log)
	}
}

// The trace that a message names goes before that of what carried it, which is linked.
func TestServing(t *testing.T) {
	c := otlptest.New(t)
	tr, _ := newTracing(t, c.URL)
	carried := tr.BeginRequest(Trace{}, "POST", "/mcp", time.Now())
	tr.BeginServing(Trace{Parent: callers}, carried.Trace(), "prompts/get", time.Now()).EndMessage(Message{Method: "prompts/get", Prompt: "explain", Pipe: true})
	tr.BeginServing(carried.Trace(), Trace{}, "resources/read", time.Now()).EndMessage(Message{Method: "resources/read", Local: true, Failed: "not-found"})
	carried.EndRequest(404, "not-found", "x")
	tr.BeginRequest(Trace{}, "BREW", "/mcp", time.Now()).EndRequest(500, "", "x")
	tr.BeginRequest(Trace{}, "GET", "/cut", time.Now()).EndRequest(0, "", "x")
	closeTracing(t, tr)
	spans := c.Await(t, "POST /mcp", "prompts/get explain", "resources/read", "_OTHER /mcp", "GET /cut")
	http, prompt, read := otlptest.Find(spans, "POST /mcp"), otlptest.Find(spans, "prompts/get explain"), otlptest.Find(spans, "resources/read")
	if prompt.Parent != callers[36:52] || prompt.Kind != "SERVER" || cmp.Diff(prompt.Links, []string{http.ID}) != "" || prompt.Attrs["network.transport"] != "pipe" || prompt.Attrs["gen_ai.operation.name"] != "" {
		t.Errorf("the prompt's span is %+v", prompt)
	}
	if read.Parent != http.ID || read.Links != nil || read.Attrs["network.transport"] != "" || !read.Failed {
		t.Errorf("the read's span is %+v, under %s", read, http.ID)
	}
	if http.Failed || http.Parent != "" || http.Attrs["mcp_bridge.problem"] != "not-found" {
		t.Errorf("the span of what carried them is %+v: what a caller gets wrong is no failure of ours", http)
	}
	if s := otlptest.Find(spans, "GET /cut"); !s.Failed || cmp.Diff(map[string]string{"http.request.method": "GET", "http.route": "/cut", "mcp_bridge.request.id": "x", "error.type": "aborted"}, s.Attrs) != "" {
		t.Errorf("%+v", s)
	}
	if s := otlptest.Find(spans, "_OTHER /mcp"); !s.Failed || s.Attrs["error.type"] != "500" {
		t.Errorf("%+v", s)
	}
}

// A trace that its caller does not sample is not recorded, but goes on.
func TestSampling(t *testing.T) {
	for name, c := range map[string]struct {
		sampler, parent string
		sampled         bool
	}{
		"nobody said anything":        {"", "", true},
		"the caller samples":          {"", callers, true},
		"the caller does not sample":  {"", unsampled, false},
		"the environment says never":  {"always_off", callers, false},
		"the environment says always": {"always_on", unsampled, true},
		"no traceparent at all":       {"", "00-x", true},
		"nor this":                    {"", strings.Repeat("z", 55), true},
		"nor that":                    {"", callers[:36] + "zzzzzzzzzzzzzzzz-01", true},
		"nor the flags":               {"", callers[:53] + "zz", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			coll := otlptest.New(t)
			tr, _ := newTracing(t, coll.URL+"/v1/traces")
			s := tr.BeginCall(Trace{Parent: c.parent, State: "not a state"}, "tools/call")
			at := s.Trace()
			s.EndMessage(Message{Method: "tools/call"})
			closeTracing(t, tr)
			if n := len(coll.Spans()); n == 1 != c.sampled {
				t.Errorf("%d spans", n)
			}
			if strings.HasSuffix(at.Parent, "-01") != c.sampled || len(at.Parent) != len(callers) || at.State != "" {
				t.Errorf("it goes on as %v", at)
			}
			if len(c.parent) == len(callers) && !strings.Contains(c.parent, "z") && at.Parent[:35] != callers[:35] {
				t.Errorf("%v is another trace than %s", at, c.parent)
			}
		})
	}
}

// One line tells that a collector is away, and one that it is back.
func TestOutage(t *testing.T) {
	c := otlptest.New(t)
	tr, log := newTracing(t, c.URL)
	send := func() {
		t.Helper()
		tr.Step(Trace{}, "step", time.Now(), "")
		if err := tr.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.Answer(http.StatusForbidden)
	send()
	send()
	first := log.String()
	if strings.Count(first, "\n") != 1 || !strings.Contains(first, "traces cannot be sent") || !strings.Contains(first, "403 Forbidden") || strings.Contains(first, "not now") {
		t.Errorf("logged %q", first)
	}
	c.Answer(http.StatusOK)
	send()
	send()
	if second := strings.TrimPrefix(log.String(), first); strings.Count(second, "\n") != 1 || !strings.Contains(second, "sent again") || !strings.Contains(second, "lost=2") {
		t.Errorf("logged %q", second)
	}
	if sent, lost := tr.Spans(); sent != 2 || lost != 2 {
		t.Errorf("%d sent, %d lost", sent, lost)
	}
}

// A collector that is not there costs spans, nothing else; nor do more spans than the queue has room for.
func TestNoCollector(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	tr, log := newTracing(t, "http://"+ln.Addr().String())
	for range 5000 {
		tr.Step(Trace{}, "step", time.Now(), "")
	}
	closeTracing(t, tr)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("%d lines logged: %s", n, log)
	}
	if sent, lost := tr.Spans(); sent != 0 || lost == 0 {
		t.Errorf("%d sent, %d lost", sent, lost)
	}
}

// A collector that takes batches and never answers does not hold up the end.
func TestHangingCollector(t *testing.T) {
	entered, left := make(chan struct{}, 10), make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	defer srv.Close()
	tr, log := newTracing(t, srv.URL)
	tr.Step(Trace{}, "step", time.Now(), "")
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error)
	go func() { closed <- tr.Close(ctx) }()
	<-entered
	cancel() // the grace is over
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-left // the request is cut, not left to itself
	tr.Step(Trace{}, "late", time.Now(), "")
	if err := tr.Close(t.Context()); err != nil { // once more is harmless
		t.Error(err)
	}
	if strings.Contains(log.String(), "panic") {
		t.Error(log)
	}
	if err := (*Tracing)(nil).Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What cannot be is said at once; what the environment holds is not repeated.
func TestBadSettings(t *testing.T) {
	for _, url := range []string{"http://h/?key=s3cret", "http://%zz", "/only/a/path"} {
		_, err := NewTracing(t.Context(), TracingOptions{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "zz") {
			t.Errorf("%s: %v", url, err)
		}
	}
	t.Run("attributes", func(t *testing.T) {
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "nothing")
		if _, err := NewTracing(t.Context(), TracingOptions{URL: "http://h", Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Error("it is taken")
		}
	})
	t.Run("headers", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "s3cret")
		t.Setenv("OTEL_TRACES_SAMPLER", "s3cret")
		tr, log := newTracing(t, otlptest.New(t).URL)
		closeTracing(t, tr)
		if got := log.String(); !strings.Contains(got, "parse headers") || !strings.Contains(got, "OTEL_…") || strings.Contains(got, "s3cret") {
			t.Errorf("logged %q", got)
		}
	})
}
