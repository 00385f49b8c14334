package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

// A fixture is a bridge whose ends are small fakes, published over real HTTP. Its
// fields may be changed before serve.
type fixture struct {
	t      testing.TB
	snap   atomic.Pointer[bridge.Snapshot]
	allows func(c bridge.Caller, handle, tool string) bool
	client func(context.Context, bridge.Request) (*bridge.Result, error)
	ref    string // of the artifact that every result becomes; "" keeps none
	fails  error  // of the gate
	attach func(handle string) (<-chan struct{}, error)
	opts   Options

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu

	server *Server
	url    string
}

func newFixture(t testing.TB, servers ...*bridge.Server) *fixture {
	if servers == nil {
		servers = []*bridge.Server{newServer("demo", newTool("demo", "add", ""), newTool("demo", "echo", "")), newServer("files", newTool("files", "read", ""))}
	}
	f := &fixture{
		t:      t,
		allows: func(bridge.Caller, string, string) bool { return true },
		client: func(context.Context, bridge.Request) (*bridge.Result, error) {
			return newResult(`{"content":[]}`), nil
		},
	}
	f.attach = func(string) (<-chan struct{}, error) { return nil, nil }
	f.snap.Store(bridge.NewSnapshot(1, true, servers))
	return f
}

// set replaces the catalogue, and says so.
func (f *fixture) set(ready bool, servers ...*bridge.Server) {
	f.snap.Store(bridge.NewSnapshot(f.snap.Load().Version+1, ready, servers))
	f.server.Changed()
}

func newServer(handle string, tools ...*bridge.Tool) *bridge.Server {
	s := &bridge.Server{Handle: handle, State: bridge.Ready}
	s.SetTools(tools)
	return s
}

// newTool returns a tool as its server could list it; an empty entry is a plain one.
func newTool(handle, name, entry string) *bridge.Tool {
	if entry == "" {
		b, err := json.Marshal(map[string]any{"name": name, "description": "Does " + name + ".", "inputSchema": json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			panic(err)
		}
		entry = string(b)
	}
	var parts struct{ InputSchema, OutputSchema json.RawMessage }
	if err := json.Unmarshal([]byte(entry), &parts); err != nil {
		panic(err)
	}
	if parts.InputSchema == nil {
		parts.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	t := &bridge.Tool{
		Handle: handle, Name: name, Raw: json.RawMessage(entry), Input: parts.InputSchema, Output: parts.OutputSchema,
		Target: &bridge.Target{Handle: handle, Endpoint: bridge.EndpointID{Label: "mcp:" + handle}},
	}
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

func (f *fixture) returns(text string) {
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return newResult(text), nil }
}

func (f *fixture) Snapshot(bridge.Caller) *bridge.Snapshot { return f.snap.Load() }

func (f *fixture) Attach(_ bridge.Caller, handle string, _ bool) (<-chan struct{}, error) {
	return f.attach(handle)
}

func (f *fixture) Allows(c bridge.Caller, handle, tool string) bool { return f.allows(c, handle, tool) }

func (f *fixture) Sees(c bridge.Caller, handle string) bool { return f.allows(c, handle, "") }

func (f *fixture) Spend(context.Context, bridge.Caller) (func(), error) { return func() {}, nil }

func (f *fixture) Open(bridge.EndpointID) error { return nil }

func (f *fixture) Allow(bridge.EndpointID) (func(error), error) { return func(error) {}, nil }

func (f *fixture) Client(context.Context, *bridge.Target) (bridge.Client, func(), error) {
	return fakeClient{f}, func() {}, nil
}

func (f *fixture) Admit(context.Context, bridge.Caller, bridge.Demand, time.Duration) (func(), error) {
	return func() {}, f.fails
}

func (f *fixture) Keep(context.Context, bridge.Caller, *bridge.Tool, *bridge.Result, *bridge.Timing) *bridge.Artifact {
	if f.ref == "" {
		return nil
	}
	return &bridge.Artifact{Ref: f.ref}
}

type fakeClient struct{ f *fixture }

func (fakeClient) Connected() bool { return true }

func (c fakeClient) Call(ctx context.Context, r bridge.Request, letGo func()) (*bridge.Result, error) {
	defer letGo()
	return c.f.client(ctx, r)
}

// Write takes the log.
func (f *fixture) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(b)
}

func (f *fixture) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// publish makes the server, which runs until the test's end.
func (f *fixture) publish() *fixture {
	f.t.Helper()
	o := f.opts
	o.Bridge = &bridge.Bridge{Catalogue: f, Policy: f, Budget: f, Breaker: f, Clients: f, Gate: f, Keeper: f, Nesting: 1000}
	o.Version, o.Log = "1.2.3", slog.New(slog.NewJSONHandler(f, nil))
	f.server = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.server.Run(ctx)
	}()
	f.t.Cleanup(func() {
		f.server.Close()
		cancel()
		<-done
	})
	return f
}

// serve publishes over HTTP. Who a request is from stands in its header User.
func (f *fixture) serve() *fixture {
	f.t.Helper()
	f.publish()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.server.ServeHTTP(w, r, bridge.Caller{User: r.Header.Get("User"), ID: r.Header.Get("Key")}, bridge.TraceOf(r.Header))
	}))
	f.t.Cleanup(func() { // before the server's own end
		f.server.EndStreams()
		srv.Close()
	})
	f.url = srv.URL
	return f
}

// A user adds who it is to each request.
type user string

// RoundTrip implements [http.RoundTripper].
func (u user) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User", string(u))
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a session of the SDK's client in that version of the protocol.
func (f *fixture) connect(version string, o *mcp.ClientOptions) *mcp.ClientSession {
	f.t.Helper()
	t := &mcp.StreamableClientTransport{Endpoint: f.url, HTTPClient: &http.Client{Transport: user("ann")}, MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(f.t.Context(), t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cs.Close() }) // some tests have ended it
	return cs
}

// versions are some of each era.
var versions = []string{"2026-07-28", "2025-11-25", "2024-11-05"}

// onEach runs a test in each era.
func onEach(t *testing.T, test func(t *testing.T, version string)) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) { test(t, v) })
	}
}

// A response is an answer that has been read.
type response struct {
	status int
	header http.Header
	body   string
}

// message is what the answer says, in whichever of the two forms.
func (r response) message() string {
	for line := range strings.Lines(r.body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimRight(data, "\n")
		}
	}
	return r.body
}

// do makes a request; header is pairs of names and values.
func (f *fixture) do(method, body string, header ...string) response {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User", "ann")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		f.t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, b.String()}
}

// begin opens a session by hand and returns its id.
func (f *fixture) begin(header ...string) string {
	f.t.Helper()
	r := f.do("POST", initialize, header...)
	id := r.header.Get(sessionHeader)
	if r.status != http.StatusOK || id == "" {
		f.t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	return id
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// callOf is a tools/call by hand.
func callOf(name, args string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`
}

// modernCall makes a tools/call without a session and returns the answer.
func (f *fixture) modernCall(name, args string, header ...string) response {
	f.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return f.do("POST", body, append([]string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name}, header...)...)
}
