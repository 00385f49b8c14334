package routes

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

// A fixture is a bridge whose ends are small fakes: one catalogue and one client
// that every tool shares. Its fields may be changed before serve.
type fixture struct {
	snap   *bridge.Snapshot
	allows func(handle, tool string) bool
	client func(context.Context, bridge.Request) (*bridge.Result, error)
	fails  map[string]error // :: step -> what it fails with
	keep   *bridge.Artifact // that every result becomes; nil asks opts.Artifacts
	opts   Options
	log    logBuffer
}

// newFixture returns a fixture with two servers of a few tools, of which each call returns an empty result.
func newFixture(servers ...*bridge.Server) *fixture {
	if servers == nil {
		servers = []*bridge.Server{
			newToolServer("demo", "add", "echo"),
			newToolServer("files", "read"),
		}
	}
	return &fixture{
		snap:   bridge.NewSnapshot(1, true, servers),
		allows: func(string, string) bool { return true },
		client: func(context.Context, bridge.Request) (*bridge.Result, error) { return newResult(`{"content":[]}`), nil },
		fails:  map[string]error{},
		opts:   Options{Loopback: true},
	}
}

func newToolServer(handle string, names ...string) *bridge.Server {
	s := &bridge.Server{
		Handle: handle, Title: handle, State: bridge.Ready,
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Listed: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		Name: "a-server", Version: "1.2.3", Protocol: "2025-11-25",
	}
	for _, n := range names {
		s.Tools = append(s.Tools, newTool(handle, n, `{"type":"object"}`))
	}
	return s
}

func newTool(handle, name, input string) *bridge.Tool {
	t := &bridge.Tool{
		Handle: handle, Name: name, Description: "Does " + name + ".",
		Input: json.RawMessage(input), SchemaHash: "hash-of-" + name,
		Target: &bridge.Target{Handle: handle, Endpoint: bridge.EndpointID{Label: "mcp:" + handle}},
	}
	t.Raw, _ = json.Marshal(map[string]any{"name": name, "description": t.Description, "inputSchema": t.Input})
	if err := openapi.NewSchemas(slog.New(slog.DiscardHandler)).Compile(t); err != nil {
		panic(err)
	}
	return t
}

// newResult parses what a server could send. It panics on anything else.
func newResult(text string) *bridge.Result {
	r, err := bridge.ParseResult([]byte(text))
	if err != nil {
		panic(err)
	}
	return r
}

// returns makes every call return this result.
func (f *fixture) returns(text string) *fixture {
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return newResult(text), nil }
	return f
}

func (f *fixture) bridge() *bridge.Bridge {
	return &bridge.Bridge{Catalogue: f, Policy: f, Budget: f, Breaker: f, Clients: f, Gate: f, Keeper: f, Nesting: 1000}
}

func (f *fixture) Snapshot(bridge.Caller) *bridge.Snapshot { return f.snap }

func (f *fixture) Attach(bridge.Caller, string, bool) (<-chan struct{}, error) { return nil, nil }

func (f *fixture) Allows(_ bridge.Caller, handle, tool string) bool { return f.allows(handle, tool) }

func (f *fixture) Sees(_ bridge.Caller, handle string) bool { return f.allows(handle, "") }

func (f *fixture) Spend(context.Context, bridge.Caller) (func(), error) {
	return func() {}, f.fails["budget"]
}

func (f *fixture) Open(bridge.EndpointID) error { return f.fails["breaker"] }

func (f *fixture) Allow(bridge.EndpointID) (func(error), error) { return func(error) {}, nil }

func (f *fixture) Client(context.Context, *bridge.Target) (bridge.Client, func(), error) {
	return fakeClient{f}, func() {}, f.fails["connect"]
}

func (f *fixture) Admit(context.Context, bridge.Caller, bridge.Demand, time.Duration) (func(), error) {
	return func() {}, f.fails["gate"]
}

func (f *fixture) Keep(ctx context.Context, c bridge.Caller, t *bridge.Tool, r *bridge.Result, timing *bridge.Timing) *bridge.Artifact {
	if f.keep == nil && f.opts.Artifacts != nil {
		return f.opts.Artifacts.Keep(ctx, c, t, r, timing)
	}
	return f.keep
}

type fakeClient struct{ f *fixture }

func (fakeClient) Connected() bool { return true }

func (c fakeClient) Call(ctx context.Context, r bridge.Request, letGo func()) (*bridge.Result, error) {
	defer letGo()
	return c.f.client(ctx, r)
}

// handler returns the handler of the fixture's bridge.
func (f *fixture) handler() http.Handler {
	o := f.opts
	o.Bridge = f.bridge()
	if o.Documents == nil {
		o.Documents = openapi.New(openapi.Options{})
	}
	o.Log = slog.New(slog.NewJSONHandler(&f.log, nil))
	return New(o)
}

// serve starts a server on loopback that ends with the test.
func (f *fixture) serve(t *testing.T) *client {
	t.Helper()
	srv := httptest.NewServer(f.handler())
	t.Cleanup(srv.Close)
	return &client{t: t, url: srv.URL, http: srv.Client(), addr: srv.Listener.Addr().String()}
}

// logLines returns what was logged, one map for each line.
func (f *fixture) logLines(t *testing.T) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(f.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		lines = append(lines, m)
	}
	return lines
}

// A logBuffer may be written and read at the same time.
type logBuffer struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	discard bool // keep nothing, for benchmarks
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.discard {
		return len(p), nil
	}
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A client makes requests to one server, and never follows a redirect.
type client struct {
	t    *testing.T
	url  string
	addr string
	http *http.Client
}

// A response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   string
}

// do makes a request. Each header is "Name: value"; a body without Content-Type is JSON.
func (c *client) do(method, path, body string, headers ...string) response {
	c.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, rd)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return c.send(req)
}

func (c *client) send(req *http.Request) response {
	c.t.Helper()
	cl := *c.http
	cl.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := cl.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, string(b)}
}

// problem decodes an answer that must be a problem.
func (r response) problem(t *testing.T) map[string]any {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatalf("body %q is no problem: %v", r.body, err)
	}
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q, want application/problem+json", got)
	}
	if got := int(p["status"].(float64)); got != r.status {
		t.Errorf("the problem's status is %d, the answer's %d", got, r.status)
	}
	if p["type"] != "/problems/"+p["code"].(string) {
		t.Errorf("type = %v, code = %v", p["type"], p["code"])
	}
	if p["request_id"] != r.header.Get("Request-Id") || p["request_id"] == "" {
		t.Errorf("request_id = %v, Request-Id = %q", p["request_id"], r.header.Get("Request-Id"))
	}
	if p["title"] == "" || p["detail"] == "" {
		t.Errorf("title or detail is empty: %s", r.body)
	}
	return p
}

// wantProblem fails the test unless the answer is the problem with this status and code.
func (r response) wantProblem(t *testing.T, status int, code bridge.Kind) map[string]any {
	t.Helper()
	if r.status != status {
		t.Fatalf("status = %d, want %d; body %s", r.status, status, r.body)
	}
	p := r.problem(t)
	if p["code"] != string(code) {
		t.Errorf("code = %v, want %s", p["code"], code)
	}
	return p
}

// wantOK fails the test unless the answer is 200 with this body.
func (r response) wantOK(t *testing.T, body string) {
	t.Helper()
	if r.status != http.StatusOK || r.body != body {
		t.Fatalf("answer = %d %s, want 200 %s", r.status, r.body, body)
	}
}
