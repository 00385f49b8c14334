package routes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// A tape is a reader of a stream who takes everything at once, and when each piece came.
type tape struct {
	header http.Header
	began  time.Time

	mu     sync.Mutex
	status int
	text   bytes.Buffer
	pieces []piece
}

type piece struct {
	at   time.Duration
	text string
}

func newTape() *tape { return &tape{header: http.Header{}, began: time.Now()} }

func (t *tape) Header() http.Header { return t.header }

func (t *tape) WriteHeader(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
}

func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

// FlushError ends a piece.
func (t *tape) FlushError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.text.String(); strings.HasSuffix(s, "\n\n") {
		t.pieces = append(t.pieces, piece{time.Since(t.began), s})
		t.text.Reset()
	}
	return nil
}

// of returns the data of the events of a type, in order.
func (t *tape) of(typ string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, p := range t.pieces {
		if rest, ok := strings.CutPrefix(p.text, "event: "+typ+"\ndata: "); ok {
			all = append(all, strings.TrimSuffix(rest, "\n\n"))
		}
	}
	return all
}

func (t *tape) times(prefix string) []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []time.Duration
	for _, p := range t.pieces {
		if strings.HasPrefix(p.text, prefix) {
			all = append(all, p.at)
		}
	}
	return all
}

// last returns the newest snapshot on the tape.
func (t *tape) last(tb testing.TB) consoleSnapshot {
	tb.Helper()
	all := t.of("snapshot")
	if len(all) == 0 {
		tb.Fatalf("no snapshot: status %d", t.status)
	}
	var s consoleSnapshot
	if err := json.Unmarshal([]byte(all[len(all)-1]), &s); err != nil {
		tb.Fatal(err)
	}
	return s
}

// A looking is somebody who looks at the console of a handler.
type looking struct {
	*tape
	leave func()        // goes away, and waits for the handler's end
	ended chan struct{} // closed then
}

// watch looks with a key. In a bubble, everything is on the tape after synctest.Wait.
func watch(t *testing.T, h http.Handler, key string) *looking {
	ctx, cancel := context.WithCancel(t.Context())
	l := &looking{tape: newTape(), ended: make(chan struct{})}
	l.leave = func() { cancel(); <-l.ended }
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/console/events", nil)
	r.Header.Set("X-API-Key", key)
	go func() { // ends when somebody leaves, or is made to
		defer close(l.ended)
		h.ServeHTTP(l.tape, r)
	}()
	return l
}

// A door lets in those whose keys it knows.
type door struct {
	mu   sync.Mutex
	keys map[string]bridge.Caller // guarded by mu
}

func (d *door) set(key string, c bridge.Caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[key] = c
}

func (d *door) take(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, key)
}

func (d *door) caller(r *http.Request) (bridge.Caller, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.keys[r.Header.Get("X-API-Key")]; ok {
		return c, nil
	}
	return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Msg: "No key is that."}
}

func newDoor() *door {
	only := func(globs ...string) *bridge.Rule { return &bridge.Rule{Allow: globs} }
	return &door{keys: map[string]bridge.Caller{
		"ada":   {ID: "ada", User: "ada", Scopes: bridge.ScopeCall, Rule: only("demo/*")},
		"bob":   {ID: "bob", User: "bob", Scopes: bridge.ScopeCall, Rule: only("demo/echo", "files/*")},
		"root":  {ID: "root", User: "root", Scopes: bridge.ScopeAdmin},
		"blind": {ID: "blind", User: "blind", Scopes: bridge.ScopeMetrics},
	}}
}

// ruled makes the fixture's policy that of real rules.
type ruled struct{ identity.Rules }

func newConsoleFixture(d *door) (*fixture, http.Handler) {
	f := newFixture()
	f.opts.Caller = d.caller
	o := f.opts
	o.Bridge = f.bridge()
	o.Bridge.Policy = ruled{}
	demo, files := bridge.EndpointID{Sum: [32]byte{1}, Label: "mcp:demo"}, bridge.EndpointID{Sum: [32]byte{2}, Label: "mcp:files"}
	for _, s := range f.snap.Servers {
		s.Endpoint = map[string]bridge.EndpointID{"demo": demo, "files": files}[s.Handle]
	}
	if o.Status == nil {
		o.Status = func() Status {
			return Status{
				Ready: true, MaxProcesses: 9,
				Endpoints: []EndpointStatus{
					{ID: demo, Name: "mcp:demo", Handles: []string{"demo"}, Connection: "connected", Circuit: CircuitStatus{State: "closed"}},
					{ID: files, Name: "mcp:files", Handles: []string{"files"}, Connection: "none", Circuit: CircuitStatus{State: "open", Failures: 5, Reason: "it is on fire"}},
				},
				Gates:     []GateStatus{{ID: demo, Name: "mcp:demo"}, {ID: files, Name: "mcp:files", InUse: 2, Capacity: 3, Waiting: 1}, {Name: "mcp:stdio"}},
				Artifacts: &ArtifactStatus{Store: "memory", Kept: 17},
				Config:    &ConfigStatus{Stale: true, Errors: []string{"line 3"}},
			}
		}
	}
	f.opts = o
	return f, New(o)
}

func call(h http.Handler, key, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", key)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (s consoleSnapshot) names() (servers, circuits, gates, calls []string) {
	for _, x := range s.Servers {
		servers = append(servers, fmt.Sprintf("%s %d", x.Handle, x.Tools))
	}
	for _, x := range s.Circuits {
		circuits = append(circuits, x.Name+" "+x.State)
	}
	for _, x := range s.Gates {
		gates = append(gates, x.Name)
	}
	for _, x := range s.Calls {
		calls = append(calls, strings.TrimSpace(fmt.Sprintf("%s/%s %d %s", x.Handle, x.Name, x.Status, x.Code)))
	}
	return servers, circuits, gates, calls
}
