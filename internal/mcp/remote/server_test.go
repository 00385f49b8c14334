package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// A server speaks raw MCP as a test wants it: a handler per JSON-RPC method, or
// per HTTP method other than POST.
type server struct {
	*httptest.Server

	mu    sync.Mutex
	on    map[string]handler
	log   []seen
	shown chan struct{} // closed and replaced with each request
}

type handler func(w http.ResponseWriter, r *http.Request, m *seen)

// seen is one request that the server got.
type seen struct {
	http, method string // "POST", "tools/call"
	id           string
	header       http.Header
	body         []byte
	params       json.RawMessage
}

// name is the HTTP method, or that of JSON-RPC for a POST.
func (m *seen) name() string {
	if m.method != "" {
		return m.method
	}
	return m.http
}

func newServer(t *testing.T, on map[string]handler) *server {
	t.Helper()
	s := &server{on: on, shown: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		m := &seen{http: r.Method, header: r.Header.Clone(), body: body}
		if len(body) > 0 {
			var f struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params json.RawMessage `json:"params"`
			}
			if err := json.Unmarshal(body, &f); err != nil {
				t.Errorf("the frame %q is not JSON: %v", body, err)
			}
			m.id, m.method, m.params = string(f.ID), f.Method, f.Params
			if m.method == "" {
				m.method = "response"
			}
		}
		s.mu.Lock()
		s.log = append(s.log, *m)
		h := s.on[m.name()]
		close(s.shown)
		s.shown = make(chan struct{})
		s.mu.Unlock()
		if h == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		h(w, r, m)
	}))
	t.Cleanup(s.close)
	return s
}

// close ends what hangs as well.
func (s *server) close() {
	s.CloseClientConnections()
	s.Close()
}

func (s *server) set(name string, h handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[name] = h
}

// got returns the requests of that name so far; all if it is empty.
func (s *server) got(name string) []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(m seen) bool { return name != "" && m.name() != name })
}

// await waits until n requests of that name have come.
func (s *server) await(t *testing.T, name string, n int) []seen {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		s.mu.Lock()
		shown := s.shown
		s.mu.Unlock()
		if got := s.got(name); len(got) >= n {
			return got
		}
		select {
		case <-shown:
		case <-timeout:
			t.Fatalf("%d requests %s came, want %d", len(s.got(name)), name, n)
		}
	}
}

// answerJSON answers with a result as one JSON text.
func answerJSON(result string) handler {
	return func(w http.ResponseWriter, _ *http.Request, m *seen) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.id, result)
	}
}

// answerRaw answers with a status, a content type and a body in which %ID% stands for the request's id.
func answerRaw(status int, contentType, body string) handler {
	return func(w http.ResponseWriter, _ *http.Request, m *seen) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "%ID%", m.id))
	}
}

// events answers with a stream of the given text.
func events(text string) handler { return answerRaw(200, "text/event-stream", text) }

// stream begins an answer by events.
func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
}

func say(w http.ResponseWriter, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

func status(code int) handler { return answerRaw(code, "", "") }

func hang(_ http.ResponseWriter, r *http.Request, _ *seen) { <-r.Context().Done() }

const capabilities = `{"tools":{"listChanged":true},"prompts":{},"resources":{}}`

func initialize(version, session string) handler {
	return func(w http.ResponseWriter, r *http.Request, m *seen) {
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		answerJSON(`{"protocolVersion":"`+version+`","capabilities":`+capabilities+`,"serverInfo":{"name":"raw","title":"Raw","version":"1"},"instructions":"be nice"}`)(w, r, m)
	}
}

// sessionServer speaks the last version with sessions; h is what it does on tools/call.
func sessionServer(t *testing.T, h handler) *server {
	return newServer(t, map[string]handler{
		"initialize":                initialize(v20251125, "s1"),
		"notifications/initialized": status(202),
		"notifications/cancelled":   status(202),
		"DELETE":                    status(200),
		"tools/call":                h,
	})
}

const discovered = `{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"instructions":"be nice",` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"raw","title":"Raw","version":"1"}}}`

// modernServer speaks 2026-07-28; h is what it does on tools/call.
func modernServer(t *testing.T, h handler) *server {
	return newServer(t, map[string]handler{
		"server/discover": answerJSON(discovered),
		"tools/call":      h,
	})
}

// dial connects and closes at the end of the test.
func dial(t *testing.T, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// pinned are options that send no discover.
func pinned(s *server) Options { return Options{URL: s.URL + "/mcp", Protocol: v20251125} }

// call makes a tools/call with its arguments.
func call1(t *testing.T, c *Conn, args string) (string, error) {
	t.Helper()
	res, err := c.Do(t.Context(), request1(args))
	return string(res), err
}

func request1(args string) *rpc.Request {
	return &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(args), Name: "echo", Total: 20 * time.Second}
}

// failed checks the reason of a failure and returns it.
func failed(t *testing.T, err error, want rpc.Reason) rpc.Failure {
	t.Helper()
	f, ok := errors.AsType[*rpc.Failure](err)
	if !ok {
		t.Fatalf("error is %T %v, want a failure: %s", err, err, want)
	}
	if f.Reason != want {
		t.Fatalf("failure is %q (%v), want %q", f.Reason, f, want)
	}
	return *f
}

// leakFree fails the test when goroutines that run code of this package, or
// connections of a client, are left at its end.
func leakFree(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for range 100 {
			buf := make([]byte, 1<<20)
			buf = buf[:runtime.Stack(buf, true)]
			left = ""
			for g := range bytes.SplitSeq(buf, []byte("\n\n")) {
				if bytes.Contains(g, []byte("remote.(*")) && !bytes.Contains(g, []byte("_test.go")) ||
					bytes.Contains(g, []byte("http.(*persistConn)")) || bytes.Contains(g, []byte("mcp.callSubscriptionsListen")) {
					left += string(g) + "\n\n"
				}
			}
			if left == "" {
				return
			}
			time.Sleep(20 * time.Millisecond) // goroutines end a moment after what they wait for
		}
		t.Errorf("goroutines are left:\n%s", left)
	})
}

// logged collects what is logged.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
