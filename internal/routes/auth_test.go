package routes

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// callers takes the scopes of a request from its header Scopes: names with commas between, none at all for a stranger.
func callers(r *http.Request) (bridge.Caller, error) {
	switch s := r.Header.Get("Scopes"); s {
	case "":
		return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Msg: "Say who you are.", Err: identity.ErrNoCredential}
	case "wrong":
		return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Msg: "No.", Err: errors.New("no such key")}
	case "down":
		return bridge.Caller{}, &bridge.Error{Kind: bridge.Unavailable, Msg: "Later.", RetryAfter: time.Second}
	default:
		return bridge.Caller{ID: "key", Scopes: identity.ScopesOf(strings.Split(s, ","))}, nil
	}
}

func TestScopes(t *testing.T) {
	f := newFixture()
	f.opts.Caller = callers
	c := f.serve(t)
	for _, request := range [][2]string{
		{"POST", "/tools/demo/echo"},
		{"POST", "/tools/demo?tool=echo"},
		{"GET", "/tools"},
		{"GET", "/tools/demo"},
		{"GET", "/tools/demo/echo"},
		{"GET", "/openapi.json"},
		{"GET", "/openapi-3.0.yaml"},
		{"GET", "/tools/demo/openapi.json"},
		{"GET", "/artifacts"},
		{"GET", "/artifacts/mcp~abc"},
		{"GET", "/artifacts/mcp~abc/a"},
		{"DELETE", "/artifacts/mcp~abc"},
		{"GET", "/status"},
	} {
		name := request[0] + " " + request[1]
		if r := c.do(request[0], request[1], "", "Scopes: call"); r.status != 200 && !strings.HasPrefix(request[1], "/artifacts/") {
			t.Errorf("%s with the scope: %d %s", name, r.status, r.body)
		}
		r := c.do(request[0], request[1], "", "Scopes: metrics")
		if p := r.wantProblem(t, 403, bridge.Forbidden); !strings.Contains(p["detail"].(string), `"call"`) {
			t.Errorf("%s: detail %v", name, p["detail"])
		}
		if got, want := r.header.Get("WWW-Authenticate"), `Bearer realm="MCP Bridge", error="insufficient_scope", scope="call"`; got != want {
			t.Errorf("%s: WWW-Authenticate = %s, want %s", name, got, want)
		}
		r = c.do(request[0], request[1], "")
		r.wantProblem(t, 401, Unauthenticated)
		if got, want := r.header.Get("WWW-Authenticate"), `Bearer realm="MCP Bridge"`; got != want {
			t.Errorf("%s: WWW-Authenticate = %s, want %s", name, got, want)
		}
		r = c.do(request[0], request[1], "", "Scopes: wrong")
		r.wantProblem(t, 401, Unauthenticated)
		if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `Bearer realm="MCP Bridge", error="invalid_token", `) {
			t.Errorf("%s: WWW-Authenticate = %s", name, got)
		}
		r = c.do(request[0], request[1], "", "Scopes: down")
		r.wantProblem(t, 503, bridge.Unavailable)
		if r.header.Get("WWW-Authenticate") != "" || r.header.Get("Retry-After") != "1" {
			t.Errorf("%s: headers %v", name, r.header)
		}
	}
	if r := c.do("POST", "/tools/demo/echo", "", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Scopes: call"); r.status != 403 || r.header.Get("WWW-Authenticate") != "" {
		t.Errorf("another origin: %d, WWW-Authenticate %q: no credential would help there", r.status, r.header.Get("WWW-Authenticate"))
	}
}

// An admin sees the rows of servers that its own rule hides.
func TestStatusOfAdmins(t *testing.T) {
	f := newFixture()
	f.allows = func(handle, _ string) bool { return handle == "demo" }
	f.opts.Caller = callers
	demo := bridge.EndpointID{Label: "mcp:demo"}
	f.snap.Server("demo").Endpoint = demo
	f.opts.Status = func() Status {
		return Status{Endpoints: []EndpointStatus{{ID: demo, Name: "mcp:demo", Handles: []string{"demo"}}, {Name: "mcp:files", Handles: []string{"files"}}}, Gates: []GateStatus{}}
	}
	c := f.serve(t)
	for scopes, want := range map[string]int{"call": 1, "admin": 2, "call,admin": 2} {
		var st Status
		if err := json.Unmarshal([]byte(c.do("GET", "/status", "", "Scopes: "+scopes).body), &st); err != nil || len(st.Endpoints) != want {
			t.Errorf("%s: %d endpoints, want %d: %v", scopes, len(st.Endpoints), want, err)
		}
	}
}

func TestMetricsScope(t *testing.T) {
	for _, tt := range []struct {
		loopback bool
		scopes   string
		want     int
	}{
		{false, "metrics", 200},
		{false, "call,admin", 403},
		{false, "", 401},
		{true, "", 200},
		{true, "call", 200},
		{true, "wrong", 401},
	} {
		o := Options{Loopback: tt.loopback, Caller: callers}
		s := newServer(o)
		s.register(huma.Operation{Method: http.MethodGet, Path: "/numbers", OperationID: "numbers", Hidden: true}, func(x *exchange, r *http.Request) error {
			if _, err := x.requires(r, bridge.ScopeMetrics); err != nil {
				return err
			}
			x.WriteHeader(http.StatusOK)
			return nil
		})
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://localhost/numbers", nil)
		r.Header.Set("Scopes", tt.scopes)
		if s.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("loopback %t, scopes %q: %d, want %d", tt.loopback, tt.scopes, w.Code, tt.want)
		}
	}
}

// Whoever guesses keys gets a line a second, whatever the number of guesses.
func TestStrangersAreLoggedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		h := New(Options{Loopback: true, Caller: callers, Log: slog.New(slog.NewJSONHandler(&log, nil))})
		guess := func(n int) {
			for range n {
				r := httptest.NewRequest(http.MethodPost, "http://localhost/tools/demo/echo", nil)
				r.Header.Set("Scopes", "wrong")
				r.RemoteAddr = "192.0.2.1:1234"
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		guess(1000)
		time.Sleep(500 * time.Millisecond)
		guess(1000)
		time.Sleep(time.Second)
		guess(500)
		time.Sleep(10 * time.Second)
		guess(1)
		synctest.Wait()
		var got []string
		for line := range strings.Lines(log.String()) {
			var l struct {
				Msg, Remote, Error string
				Count              int
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(l.Count))
			if l.Remote != "192.0.2.1:1234" || !strings.Contains(l.Error, "no such key") {
				t.Errorf("line %s", line)
			}
		}
		if s := strings.Join(got, " "); s != "1 1999 500 1" {
			t.Errorf("counts in the log: %s, want 1 1999 500 1", s)
		}
	})
}

func TestUserInLog(t *testing.T) {
	f := newFixture()
	name := "eve\n{\"msg\":\"call\"}/../_service_\u202e"
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{ID: "https://id.example", User: name, Scopes: bridge.ScopeCall}, nil
	}
	f.serve(t).do("POST", "/tools/demo/echo", "").wantOK(t, `{"content":[]}`)
	lines := f.logLines(t)
	if len(lines) != 1 || lines[0]["user"] != name || lines[0]["caller"] != "https://id.example" {
		t.Errorf("log %v", lines)
	}
}

func TestRateFields(t *testing.T) {
	f := newFixture()
	allowance, has := identity.Allowance{Burst: 20, Full: 12 * time.Second, Left: 3, Reset: 10*time.Second + 1}, true
	f.opts.Allowance = func(bridge.Caller) (identity.Allowance, bool) { return allowance, has }
	c := f.serve(t)
	want := func(status int, limit, policy string) {
		t.Helper()
		r := c.do("POST", "/tools/demo/echo", "")
		if r.status != status || r.header.Get("RateLimit") != limit || r.header.Get("RateLimit-Policy") != policy {
			t.Errorf("%d, RateLimit %s, RateLimit-Policy %s; want %d, %s, %s", r.status, r.header.Get("RateLimit"), r.header.Get("RateLimit-Policy"), status, limit, policy)
		}
	}
	want(200, `"calls";r=3;t=11`, `"calls";q=20;w=12`)
	f.fails["budget"] = &bridge.Error{Kind: bridge.RateLimited, RetryAfter: time.Second}
	allowance = identity.Allowance{Burst: 1, Full: time.Millisecond, Reset: time.Microsecond}
	want(429, `"calls";r=0;t=1`, `"calls";q=1;w=1`)
	delete(f.fails, "budget")
	has = false
	want(200, "", "")
	has = true
	if r := c.do("GET", "/tools", ""); r.header.Get("RateLimit") != "" {
		t.Error("a list, which costs nothing, has the fields of a rate")
	}
}
