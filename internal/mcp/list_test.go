package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// paged answers page by page: the cursor of each page is its number.
func paged(next func(page int) string) *fakeServer {
	return &fakeServer{name: "s", do: func(_ context.Context, r *rpc.Request) (string, error) {
		page := 0
		if len(r.Params) > 0 {
			if _, err := fmt.Sscanf(string(r.Params), `"cursor":"p%d"`, &page); err != nil {
				return "", fmt.Errorf("params %s: %w", r.Params, err)
			}
		}
		return fmt.Sprintf(`{"tools":[{"name":"t%d"}]%s}`, page, next(page)), nil
	}}
}

func TestListPages(t *testing.T) {
	tests := []struct {
		name    string
		next    func(page int) string
		entries int
		err     string
	}{
		{"one", func(int) string { return "" }, 1, ""},
		{"null cursor", func(int) string { return `,"nextCursor":null` }, 1, ""},
		{"empty cursor", func(int) string { return `,"nextCursor":""` }, 1, ""},
		{"five", func(p int) string {
			if p == 4 {
				return ""
			}
			return fmt.Sprintf(`,"nextCursor":"p%d"`, p+1)
		}, 5, ""},
		{"a loop", func(p int) string { return fmt.Sprintf(`,"nextCursor":"p%d"`, (p+1)%3) }, 0, "goes in circles"},
		{"no end", func(p int) string { return fmt.Sprintf(`,"nextCursor":"p%d"`, p+1) }, 0, "more than 8 pages"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := &fakeConn{server: paged(tt.next)}
			entries, err := list(t.Context(), conn, "tools/list", "tools", ListLimits{Pages: 8, Tools: 100})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("err = %v, want %q", err, tt.err)
			}
			if len(entries) != tt.entries {
				t.Errorf("%d entries, want %d", len(entries), tt.entries)
			}
		})
	}
	many := &fakeConn{server: &fakeServer{do: tools(`{},{},{},{}`)}}
	if _, err := list(t.Context(), many, "tools/list", "tools", ListLimits{Pages: 8, Tools: 3}); err == nil || !strings.Contains(err.Error(), "more than 3 entries") {
		t.Errorf("four entries: err = %v, want the limit of three", err)
	}
	odd := &fakeConn{server: &fakeServer{do: func(context.Context, *rpc.Request) (string, error) { return `{"tools":{}}`, nil }}}
	if _, err := list(t.Context(), odd, "tools/list", "tools", ListLimits{Pages: 8, Tools: 3}); err == nil || !strings.Contains(err.Error(), `no array "tools"`) {
		t.Errorf("an object for a list: err = %v", err)
	}
}

// One entry that cannot be used takes nothing from the others.
func TestDecodeTools(t *testing.T) {
	doc := []byte(`[
		{"name":"plain","description":"d","title":"T","inputSchema":{"z":1.10,"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":"yes"}},
		{"name":"odd texts","description":5,"title":[],"annotations":7},
		{"name":"bad schema","inputSchema":"x"},
		{"description":"no name"},
		{"name":5},
		{"name":"plain"},
		{"name":"denied"},
		{"name":"\ud800","outputSchema":{"type":"object"},"inputSchema":null},
		7]`)
	var entries []json.RawMessage
	for _, e := range raw.Elements(doc) {
		entries = append(entries, e)
	}
	got, skipped := decodeTools(entries, &bridge.Target{Handle: "h"}, func(n string) bool { return n != "denied" }, anySchema{})
	var names []string
	for _, tool := range got {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"plain", "odd texts", "\ufffd"}, names); diff != "" {
		t.Fatalf("tools (-want +got):\n%s", diff)
	}
	wantSkipped := []bridge.Skipped{
		{Name: "bad schema", Reason: "its schema is a string"},
		{Reason: "entry 3 of the list has no name"},
		{Reason: "entry 4 of the list has no name"},
		{Name: "plain", Reason: "the list has it twice; the first one counts"},
		{Reason: "entry 8 of the list has no name"},
	}
	if diff := cmp.Diff(wantSkipped, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	plain, odd, surrogate := got[0], got[1], got[2]
	if string(plain.Input) != `{"z":1.10,"type":"object"}` || plain.Title != "T" || plain.Description != "d" {
		t.Errorf("plain = %+v", plain)
	}
	if a := plain.Annotations; a.ReadOnly == nil || !*a.ReadOnly || a.Idempotent != nil || a.Destructive != nil {
		t.Errorf("annotations = %+v", a)
	}
	if odd.Description != "" || odd.Title != "" || string(odd.Input) != `{"type":"object"}` || odd.Output != nil {
		t.Errorf("odd = %+v", odd)
	}
	if string(surrogate.Params) != `"name":"\ud800","arguments":` {
		t.Errorf("params = %s, want the name as the server wrote it", surrogate.Params)
	}
	if plain.SchemaHash == odd.SchemaHash || odd.SchemaHash == surrogate.SchemaHash {
		t.Error("different schemas have the same hash")
	}
}

// countingSchemas counts what it compiles.
type countingSchemas struct{ names []string }

func (c *countingSchemas) Compile(t *bridge.Tool) error {
	c.names = append(c.names, t.Name)
	t.Unchecked, t.Published = "of "+t.Name, len(c.names)
	return nil
}

func TestOnlyChangedToolsAreCompiled(t *testing.T) {
	decode := func(compiler bridge.Compiler, entries ...string) *bridge.Server {
		var es []json.RawMessage
		for _, e := range entries {
			es = append(es, json.RawMessage(e))
		}
		tools, _ := decodeTools(es, &bridge.Target{Handle: "h"}, func(string) bool { return true }, compiler)
		s := &bridge.Server{Handle: "h"}
		s.SetTools(tools)
		return s
	}
	first := &countingSchemas{}
	before := decode(compiled{first, &bridge.Server{}}, `{"name":"same","description":"a"}`, `{"name":"other","inputSchema":{"type":"object"}}`, `{"name":"out"}`, `{"name":"goes"}`)
	then := &countingSchemas{}
	after := decode(compiled{then, before}, `{"name":"new"}`, `{"name":"same","description":"b"}`, `{"name":"other","inputSchema":{"type":"object","title":"x"}}`, `{"name":"out","outputSchema":{"type":"object"}}`)
	if diff := cmp.Diff([]string{"same", "other", "out", "goes"}, first.names); diff != "" {
		t.Errorf("compiled at first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new", "other", "out"}, then.names); diff != "" {
		t.Errorf("compiled then (-want +got):\n%s", diff)
	}
	same := after.Tool("same")
	if same.Description != "b" || same.Unchecked != "of same" || same.Published != 1 {
		t.Errorf("the tool whose schema is the same is %+v", same)
	}
	if other := after.Tool("other"); other.Published != 2 {
		t.Errorf("the tool whose schema is another is %+v", other)
	}
}

func TestGlobs(t *testing.T) {
	s := ServerConfig{Allow: []string{"read_*", "a/*"}, Deny: []string{"*secret*"}, Exclude: []string{"read_[x]"}}
	keep := s.keeps()
	for name, want := range map[string]bool{
		"read_file": true, "a/b/c": true, "write_file": false, "read_secret": false, "read_[x]": false, "read_x": true,
	} {
		if got := keep(name); got != want {
			t.Errorf("keep(%q) = %v, want %v", name, got, want)
		}
	}
	none, all := ServerConfig{Allow: []string{}}, ServerConfig{}
	if none.keeps()("x") || !all.keeps()("x") {
		t.Error("an empty allow list allows, or a missing one does not")
	}
}

func TestCallExplains(t *testing.T) {
	yes := true
	tests := []struct {
		name   string
		err    error
		hints  bridge.Annotations
		kind   bridge.Kind
		fault  bool
		replay bool
		says   string
	}{
		{"answered error", &rpc.Error{Code: -32602, Message: "bad city", Data: json.RawMessage(`{"x":1.10}`)}, bridge.Annotations{}, bridge.UpstreamError, false, false, "bad city"},
		{"not sent", &rpc.Failure{Reason: rpc.NotSent, Msg: "closed"}, bridge.Annotations{}, bridge.Unavailable, false, true, "closed"},
		{"lost", &rpc.Failure{Reason: rpc.Lost, Msg: "exit status 1"}, bridge.Annotations{}, bridge.OutcomeUnknown, true, false, "exit status 1"},
		{"lost, read only", &rpc.Failure{Reason: rpc.Lost, Msg: "x"}, bridge.Annotations{ReadOnly: &yes}, bridge.OutcomeUnknown, true, true, "x"},
		{"lost, idempotent", &rpc.Failure{Reason: rpc.Lost, Msg: "x"}, bridge.Annotations{Idempotent: &yes}, bridge.OutcomeUnknown, true, true, "x"},
		{"session", &rpc.Failure{Reason: rpc.SessionExpired, Msg: "x"}, bridge.Annotations{}, bridge.Unavailable, false, true, "x"},
		{"deadline", &rpc.Failure{Reason: rpc.Deadline, Msg: "20s"}, bridge.Annotations{}, bridge.DeadlineExceeded, true, false, "20s"},
		{"too large", &rpc.Failure{Reason: rpc.TooLarge, Msg: "64 MiB"}, bridge.Annotations{}, bridge.ResultTooLarge, false, false, "64 MiB"},
		{"auth", &rpc.Failure{Reason: rpc.Auth, Msg: "401", Status: 401}, bridge.Annotations{}, bridge.UpstreamAuth, true, false, "401"},
		{"forbidden", &rpc.Failure{Reason: rpc.Auth, Msg: "403", Status: 403}, bridge.Annotations{}, bridge.UpstreamAuth, false, false, "403"},
		{"protocol", &rpc.Failure{Reason: rpc.Protocol, Msg: "HTML"}, bridge.Annotations{}, bridge.UpstreamError, true, false, "HTML"},
		{"start", &rpc.Failure{Reason: rpc.Start, Msg: "not found"}, bridge.Annotations{}, bridge.Unavailable, true, false, "not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &fakeServer{do: func(context.Context, *rpc.Request) (string, error) { return "", tt.err }}
			c := &Client{conn: &fakeConn{server: s}, name: "s"}
			_, err := c.Call(t.Context(), bridge.Request{Tool: &bridge.Tool{Annotations: tt.hints, Target: &bridge.Target{}}}, func() {})
			e, ok := errors.AsType[*bridge.Error](err)
			if !ok {
				t.Fatalf("err = %v, want a bridge.Error", err)
			}
			if e.Kind != tt.kind || e.Fault != tt.fault || e.Replay != tt.replay || !strings.Contains(e.Msg, tt.says) || !strings.Contains(e.Msg, `"s"`) {
				t.Errorf("err = %+v", e)
			}
		})
	}
	s := &fakeServer{do: func(context.Context, *rpc.Request) (string, error) { return `[]`, nil }}
	c := &Client{conn: &fakeConn{server: s}}
	if _, err := c.Call(t.Context(), bridge.Request{Tool: &bridge.Tool{Target: &bridge.Target{}}}, func() {}); bridge.KindOf(err) != bridge.UpstreamError {
		t.Errorf("a result that is an array: err = %v, want upstream-error", err)
	}
	s.do = func(context.Context, *rpc.Request) (string, error) { return "", context.Canceled }
	if _, err := c.Call(t.Context(), bridge.Request{Tool: &bridge.Tool{Target: &bridge.Target{}}}, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's own", err)
	}
}

type credential = remote.Credential

// A server is not quoted with what it alone was given, and its errors do not name it.
func TestRedact(t *testing.T) {
	c := StdioConfig{
		Command: Arg{Text: "/opt/hunter1", Secret: true}, Dir: "/srv/hunter2", HideDir: true, Env: map[string]string{"TOKEN": "hunter3"},
		Args: []Arg{{Text: "--plain=1"}, {Text: "hunter4=", Secret: true}, {Text: "--key=hunter5=", Secret: true}},
	}
	want := []string{"hunter3", "/opt/hunter1", "/srv/hunter2", "hunter4=", "--key=hunter5=", "hunter5="}
	if diff := cmp.Diff(want, redact(c)); diff != "" {
		t.Errorf("redact (-want +got):\n%s", diff)
	}
	c.HideDir, c.Command.Secret = false, false
	if diff := cmp.Diff(want[:1], redact(c)[:1]); diff != "" || len(redact(c)) != 4 {
		t.Errorf("what is no secret is redacted: %q", redact(c))
	}
}

func TestPrintedIDsHideSecrets(t *testing.T) {
	stdio := printedCommand(Arg{Text: "npx"}, []Arg{{Text: "-y"}, {Text: "hunter2", Secret: true}}, map[string]string{"TOKEN": "hunter3"}, "")
	server := printedURL(Arg{Text: "https://me:hunter4@example.com/mcp?key=hunter5"}, nil, map[string][]string{"X-Key": {"hunter6"}})
	secret := printedURL(Arg{Text: "https://hunter7.example.com/", Secret: true}, nil, nil)
	as := printedURL(Arg{Text: "https://example.com/mcp"}, &credential{ClientID: "bridge one", ClientSecret: "hunter8", PrivateKey: "hunter9"}, map[string][]string{"X-Key": {"hunter6"}})
	hidden := printedURL(Arg{Text: "https://example.com/mcp"}, &credential{ClientID: "hunter10", HideID: true}, nil)
	if want := "https://example.com/mcp #as:bridge%20one #headers:"; !strings.HasPrefix(as, want) {
		t.Errorf("printed as %q, want %q and a digest", as, want)
	}
	for _, s := range []string{stdio, server, secret, as, hidden} {
		if strings.Contains(s, "hunter") {
			t.Errorf("%q shows a secret", s)
		}
	}
	if !strings.HasPrefix(stdio, "npx -y #") || !strings.Contains(stdio, " #env:") || !strings.HasPrefix(server, "https://example.com/mcp #url:") {
		t.Errorf("printed as %q and %q", stdio, server)
	}
	ids := map[bridge.EndpointID]string{}
	for name, c := range map[string]credential{
		"one": {ClientID: "a", ClientSecret: "b"}, "another secret": {ClientID: "a", ClientSecret: "c"},
		"two scopes": {ClientID: "a", ClientSecret: "b", Scopes: []string{"x", "y"}}, "one scope like two": {ClientID: "a", ClientSecret: "b", Scopes: []string{"x y"}},
	} {
		e, err := NewRemote(RemoteConfig{URL: Arg{Text: "https://example.com"}, As: &c})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := ids[e.ID()]; ok {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		ids[e.ID()] = name
	}
	if _, err := NewRemote(RemoteConfig{URL: Arg{Text: "https://example.com"}, As: &credential{ClientID: "a", PrivateKey: "hunter11"}}); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("err = %v, want one that shows nothing of the key", err)
	}
	a := identity{Command: "a", Args: []string{"b c"}}
	b := identity{Command: "a", Args: []string{"b", "c"}}
	if a.id("x") == b.id("x") {
		t.Error("two commands that only look alike have the same identity")
	}
	if got := environ([]string{"A=1", "B=2"}, map[string]string{"B": "3", "C": "4"}); !cmp.Equal(got, []string{"A=1", "B=3", "C=4"}) {
		t.Errorf("environ = %v", got)
	}
}
