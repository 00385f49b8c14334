package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

// exact is a result that every decoder spoils: digits, key order, blocks nobody knows.
const exact = `{"z":1,"content":[{"type":"text","text":"hi <&> \ud800"},{"type":"weird","v":1e400}],"structuredContent":{"b":9007199254740993,"a":1.10}, "_meta":{"q":1}}`

// odd are arguments that every encoder spoils.
const odd = `{"z":9007199254740993, "y":1.10,"x":1e400,"h":"<&>` + "\u2028" + `\ud800"}`

func TestSessionExactBytes(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, answerJSON(exact))
	c := dial(t, pinned(s))
	got, err := call1(t, c, odd)
	if err != nil || got != exact {
		t.Fatalf("Do = %s, %v, want %s", got, err, exact)
	}
	m := s.got("tools/call")[0]
	if want := `{"jsonrpc":"2.0","id":` + m.id + `,"method":"tools/call","params":{"name":"echo","arguments":` + odd + `}}`; string(m.body) != want {
		t.Errorf("the frame is %s, want %s", m.body, want)
	}
	for name, want := range map[string]string{
		"Mcp-Session-Id": "s1", "Mcp-Protocol-Version": v20251125, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Method": "", "User-Agent": "mcp-bridge/dev",
	} {
		if got := m.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	want := &rpc.Peer{
		Name: "raw", Title: "Raw", Version: "1", Protocol: v20251125, Instructions: "be nice",
		Capabilities: rpc.Capabilities{Tools: true, Resources: true, Prompts: true},
	}
	if diff := cmp.Diff(want, c.Peer()); diff != "" {
		t.Errorf("Peer (-want +got):\n%s", diff)
	}
	if got := s.got("server/discover"); len(got) > 0 {
		t.Error("a pinned version of the eras of sessions was probed")
	}
	if got := s.got("initialize")[0].header; got.Get("Mcp-Protocol-Version") != "" || got.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize came with headers of a session: %v", got)
	}
}

func TestModernExactBytes(t *testing.T) {
	leakFree(t)
	s := modernServer(t, answerJSON(exact))
	c := dial(t, Options{URL: s.URL, Options: rpc.Options{ClientName: "me \"x\"", ClientVersion: "2"}})
	got, err := call1(t, c, odd)
	if err != nil || got != exact {
		t.Fatalf("Do = %s, %v, want %s", got, err, exact)
	}
	m := s.got("tools/call")[0]
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"me \"x\"","version":"2"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if want := `{"jsonrpc":"2.0","id":` + m.id + `,"method":"tools/call","params":{` + meta + `,"name":"echo","arguments":` + odd + `}}`; string(m.body) != want {
		t.Errorf("the frame is %s, want %s", m.body, want)
	}
	for name, want := range map[string]string{
		"Mcp-Session-Id": "", "Mcp-Protocol-Version": v20260728, "Mcp-Method": "tools/call", "Mcp-Name": "echo",
	} {
		if got := m.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if p := c.Peer(); !p.Modern() || p.Title != "Raw" || !p.Capabilities.Tools || p.Capabilities.Prompts || p.Instructions != "be nice" {
		t.Errorf("Peer = %+v", p)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, m := range s.got("") {
		names = append(names, m.name())
	}
	if diff := cmp.Diff([]string{"server/discover", "tools/call"}, names); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestListsAndOtherMethods(t *testing.T) {
	s := sessionServer(t, nil)
	s.set("tools/list", answerJSON(`{"tools":[{"name":5}]}`))
	s.set("ping", answerRaw(200, "application/json", `{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32601,"message":"what?","data":{"n":1.10}}}`))
	c := dial(t, pinned(s))
	got, err := c.Do(t.Context(), &rpc.Request{Method: "tools/list", Params: []byte(`"cursor":"x"`), Progress: func(jsonRaw) {}})
	if err != nil || string(got) != `{"tools":[{"name":5}]}` {
		t.Errorf("tools/list = %s, %v", got, err)
	}
	m := s.got("tools/list")[0]
	if want := `{"_meta":{"progressToken":` + m.id + `},"cursor":"x"}`; string(m.params) != want {
		t.Errorf("params are %s, want %s", m.params, want)
	}
	_, err = c.Do(t.Context(), &rpc.Request{Method: "ping"})
	want := &rpc.Error{Code: -32601, Message: "what?", Data: jsonRaw(`{"n":1.10}`)}
	if diff := cmp.Diff(want, err); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if m := s.got("ping")[0]; string(m.params) != "{}" {
		t.Errorf("params of ping are %s", m.params)
	}
}

func TestURLAsGiven(t *testing.T) {
	for _, path := range []string{"/mcp", "/mcp/", "", "/a%2Fb/?key=v%20w"} {
		s := sessionServer(t, answerJSON(`{}`))
		var uris []string
		h := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			uris = append(uris, r.RequestURI)
			s.mu.Unlock()
			h.ServeHTTP(w, r)
		})
		c, err := Dial(t.Context(), Options{URL: s.URL + path, Protocol: v20251125})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call1(t, c, `{}`); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		s.mu.Lock()
		for _, got := range uris {
			if want := path; got != want && (want != "" || got != "/") {
				t.Errorf("URL %q was asked as %q", path, got)
			}
		}
		s.mu.Unlock()
	}
}

func TestBadOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"no URL", Options{}, "not one of http"},
		{"scheme", Options{URL: "ftp://h/x"}, "not one of http"},
		{"unreadable", Options{URL: "http://user:secretpassword@h:port/x"}, "cannot be parsed"},
		{"protocol", Options{URL: "http://h", Protocol: "2020-01-01"}, `unknown protocol "2020-01-01"`},
		{"header name", Options{URL: "http://h", Headers: http.Header{"A B": {"secretvalue"}}}, `"A B" is no name`},
		{"header value", Options{URL: "http://h", Headers: http.Header{"A": {"secret\nvalue"}}}, "the value of header A"},
		{"proxy", Options{URL: "http://h", Proxy: "ftp://me:secretpassword@h"}, "URL of the proxy"},
		{"CA", Options{URL: "https://h", TLS: TLS{CA: "/nowhere/at/all"}}, "read the certificates"},
		{"no CA", Options{URL: "https://h", TLS: TLS{CA: "remote_test.go"}}, "holds no PEM"},
		{"half a pair", Options{URL: "https://h", TLS: TLS{Cert: "x"}}, "needs both"},
		{"no pair", Options{URL: "https://h", TLS: TLS{Cert: "remote_test.go", Key: "remote_test.go"}}, "load the client"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Dial(t.Context(), test.o)
			f := failed(t, err, rpc.Start)
			if !strings.Contains(f.Msg, test.want) || strings.Contains(f.Error(), "secret") {
				t.Errorf("error is %q, want it to say %q and no secret", f.Msg, test.want)
			}
		})
	}
}

func TestCloseIsBoundedAndDeletes(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, hang)
	s.set("DELETE", hang)
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) { stream(w); hang(w, r, m) })
	c := dial(t, pinned(s))
	s.await(t, "GET", 1)
	errs := make(chan error, 1)
	let := make(chan struct{})
	go func() {
		r := request1(`{}`)
		r.LetGo = func() { close(let) }
		_, err := c.Do(t.Context(), r)
		errs <- err
	}()
	s.await(t, "tools/call", 1)
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > deleteWait+2*time.Second {
		t.Errorf("Close took %s", d)
	}
	failed(t, <-errs, rpc.Lost)
	<-let
	<-c.Done()
	if c.Err() == nil {
		t.Error("Err is nil after Close")
	}
	m := s.got("DELETE")
	if len(m) != 1 || m[0].header.Get("Mcp-Session-Id") != "s1" {
		t.Errorf("DELETE = %v", m)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_, err := call1(t, c, `{}`)
	failed(t, err, rpc.NotSent)
}

func TestDialIsCancelled(t *testing.T) {
	leakFree(t)
	s := newServer(t, map[string]handler{"server/discover": hang, "initialize": hang})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s.await(t, "server/discover", 1)
		cancel()
	}()
	if _, err := Dial(ctx, Options{URL: s.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's own", err)
	}
}

func TestHandshakeIsBounded(t *testing.T) {
	leakFree(t)
	for _, protocol := range []string{Auto, v20260728, v20251125, SSE} {
		s := newServer(t, map[string]handler{"server/discover": hang, "initialize": hang, "GET": hang})
		_, err := Dial(t.Context(), Options{URL: s.URL, Protocol: protocol, Options: rpc.Options{Handshake: 200*time.Millisecond + 1}})
		f := failed(t, err, rpc.Handshake)
		if !strings.Contains(f.Msg, "within 200ms") {
			t.Errorf("%s: %v", protocol, f.Msg)
		}
		s.close()
	}
}

func TestConnectionSurvivesDialContext(t *testing.T) {
	for name, c := range conns(t, answerJSON(`{"ok":true}`)) {
		t.Run(name, func(t *testing.T) {
			if got, err := call1(t, c, `{}`); err != nil || got != `{"ok":true}` {
				t.Errorf("Do = %s, %v", got, err)
			}
		})
	}
}
