package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp"
)

// Of a request, the headers that servers are connected with or get passed on come in, and no other.
func TestCallerHeaders(t *testing.T) {
	cfg := readConfig(t, map[string]server{
		"a":   {"url": "http://127.0.0.1:1/mcp", "forwardHeaders": []string{"x-user-id", "X-Trace"}},
		"b":   {"url": "http://127.0.0.1:1/mcp", "sharing": "user", "headers": map[string]string{"X-Key": "${caller.header.x-token}"}},
		"c":   {"command": "x", "sharing": "user", "env": map[string]string{"A": "${caller.header.X-Trace}"}},
		"off": {"command": "x", "sharing": "user", "env": map[string]string{"A": "${caller.header.X-Off}"}, "disabled": true},
	})
	names := headerNames(cfg.Servers, nil)
	if diff := cmp.Diff([]string{"X-Token", "X-Trace", "X-User-Id"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var h callerHeaders
	identify := h.with(func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{User: "u", Headers: map[string][]string{"X-Old": {"x"}}}, nil
	})
	r := httptest.NewRequest("GET", "/", nil)
	for _, kv := range [][2]string{{"x-token", "1"}, {"X-Trace", "2"}, {"X-Trace", "3"}, {"X-Off", "4"}, {"Authorization", "Bearer 5"}, {"Cookie", "6"}} {
		r.Header.Add(kv[0], kv[1])
	}
	want := func(want map[string][]string) {
		t.Helper()
		c, err := identify(r)
		if diff := cmp.Diff(bridge.Caller{User: "u", Headers: want}, c); diff != "" || err != nil {
			t.Errorf("%v; caller (-want +got):\n%s", err, diff)
		}
	}
	want(nil)
	h.set(names)
	want(map[string][]string{"X-Token": {"1"}, "X-Trace": {"2", "3"}})
	h.set(nil)
	want(nil)

	refused := h.with(func(*http.Request) (bridge.Caller, error) { return bridge.Caller{}, http.ErrNoCookie })
	if _, err := refused(r); !errors.Is(err, http.ErrNoCookie) {
		t.Errorf("err = %v, want what identify says", err)
	}
}

// No header in which a caller shows who it is, or that belongs to one connection, can be passed on.
func TestCredentialsAreNeverTaken(t *testing.T) {
	for _, name := range []string{"Authorization", "cookie", "X-API-Key", "Proxy-Authorization", "Connection", "Transfer-Encoding", "Upgrade"} {
		for what, s := range map[string]string{
			"forwardHeaders": `{"url":"http://127.0.0.1:1/mcp","forwardHeaders":["` + name + `"]}`,
			"headers":        `{"url":"http://127.0.0.1:1/mcp","sharing":"user","headers":{"X-A":"${caller.header.` + name + `}"}}`,
			"env":            `{"command":"x","sharing":"user","env":{"A":"${caller.header.` + name + `}"}}`,
		} {
			if _, _, err := config.Read(strings.NewReader(`{"mcpServers":{"s":`+s+`}}`), "test.json", nil); err == nil {
				t.Errorf("%s takes %s", what, name)
			}
		}
	}
}

// A server's own makes the endpoint of a caller, and refuses values that could be more than one word.
func TestOwnEndpoints(t *testing.T) {
	own := func(s server) *mcp.Own {
		t.Helper()
		a, err := newApp(readConfig(t, nil), slog.New(slog.DiscardHandler), artifacts.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		list, err := a.servers(readConfig(t, map[string]server{"s": s}).Servers)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Own
	}
	process := func(env string) server {
		return server{"command": "x", "sharing": "user", "env": map[string]string{"A": env}}
	}
	user, text := own(process("${caller.user}")), own(process("$${caller.user}"))
	if user.Template == text.Template || user.Template != own(process("${caller.user}")).Template {
		t.Error("templates are not told apart by what they refer to")
	}
	if tenant := own(server{"command": "x", "sharing": "tenant"}); !tenant.ByTenant || user.ByTenant {
		t.Error("sharing: tenant and sharing: user are not told apart")
	}
	remote := own(server{"url": "http://127.0.0.1:1/mcp", "sharing": "user", "headers": map[string]string{"X-A": "Bearer ${caller.header.X-Token}"}})
	cwd := own(server{"command": "x", "sharing": "user", "cwd": "/data/${caller.user}"})
	if diff := cmp.Diff([]string{"X-Token"}, remote.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	withToken := func(token ...string) bridge.Caller {
		return bridge.Caller{User: "u", Headers: map[string][]string{"X-Token": token}}
	}
	endpoint := func(o *mcp.Own, c bridge.Caller) mcp.Endpoint {
		t.Helper()
		e, err := o.For(c)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, o := range []*mcp.Own{user, cwd} {
		if endpoint(o, bridge.Caller{User: "1"}).ID() == endpoint(o, bridge.Caller{User: "1_2"}).ID() {
			t.Error("user 1 is taken for 1_2")
		}
	}
	if s := endpoint(remote, withToken("any thing: ü")).String(); strings.Contains(s, "thing") {
		t.Errorf("the header's value is printed: %s", s)
	}

	for _, tt := range []struct {
		own    *mcp.Own
		caller bridge.Caller
		says   string
	}{
		{user, bridge.Caller{}, "a user"},
		{user, bridge.Caller{User: "a b"}, "A-Z a-z 0-9"},
		{user, bridge.Caller{User: "a\nb"}, "control characters"},
		{user, bridge.Caller{User: "ü"}, "A-Z a-z 0-9"},
		{user, bridge.Caller{User: strings.Repeat("x", 65)}, "64"},
		{cwd, bridge.Caller{User: ".."}, "dots alone"},
		{cwd, bridge.Caller{User: "."}, "dots alone"},
		{cwd, bridge.Caller{User: "../x"}, "A-Z a-z 0-9"},
		{remote, bridge.Caller{User: "u"}, "the header X-Token"},
		{remote, withToken(""), "the header X-Token"},
		{remote, withToken("a", "b"), "more than once"},
		{remote, withToken("a\r\nX-B: c"), "control characters"},
	} {
		_, err := tt.own.For(tt.caller)
		if bridge.KindOf(err) != bridge.Forbidden || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: err = %v, want forbidden that says %q", tt.caller, err, tt.says)
		}
		if v := tt.caller.User; err != nil && len(v) > 2 && strings.Contains(err.Error(), v) {
			t.Errorf("the error shows the value: %v", err)
		}
	}
	for _, ok := range []string{"a", "A.b_c-d@example.com", "..a", strings.Repeat("x", 64)} {
		endpoint(cwd, bridge.Caller{User: ok})
	}
}
