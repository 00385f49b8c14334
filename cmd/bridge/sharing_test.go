package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/routes"
)

// A team is a bridge for callers who say in headers who they are.
type team struct {
	*served
	url string
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newTeam(t *testing.T, servers map[string]server) *team {
	t.Helper()
	log := &lockedBuffer{}
	logger := slog.New(slog.NewJSONHandler(log, nil))
	store := artifacts.NewMemory(1 << 20)
	keeper := artifacts.New(artifacts.Options{Store: store, Log: logger})
	a, err := newApp(readConfig(t, servers), logger, keeper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	a.run(t.Context())
	if err := a.catalogue.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(routes.New(routes.Options{
		Bridge: a.bridge, Documents: a.documents, Log: logger, Loopback: true, Artifacts: keeper,
		Status: func() routes.Status { return a.status(keeper) },
		Caller: a.headers.with(func(r *http.Request) (bridge.Caller, error) {
			return bridge.Caller{ID: r.Header.Get("Test-User"), User: r.Header.Get("Test-User"), Tenant: r.Header.Get("Test-Tenant"), Scopes: bridge.ScopeCall}, nil
		}),
	}))
	t.Cleanup(web.Close)
	return &team{&served{a, t}, web.URL, log}
}

// A member is somebody with headers: pairs of names and values.
type member []string

var (
	alice = member{"Test-User", "alice", "Test-Tenant", "acme", "X-Token", "alices-horse"}
	bob   = member{"Test-User", "bob", "Test-Tenant", "acme", "X-Token", "bobs-battery"}
	carol = member{"Test-User", "carol", "Test-Tenant", "other"}
)

func (m member) with(more ...string) member { return append(append(member{}, m...), more...) }

// do makes a request as somebody.
func (tm *team) do(who member, method, path, body string) response {
	tm.t.Helper()
	req, err := http.NewRequestWithContext(tm.t.Context(), method, tm.url+path, strings.NewReader(body))
	if err != nil {
		tm.t.Fatal(err)
	}
	for i := 0; i < len(who); i += 2 {
		req.Header.Add(who[i], who[i+1])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tm.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		tm.t.Fatal(err)
	}
	return response{res, b}
}

// text calls a tool as somebody, demands success, and returns the answer's text.
func (tm *team) text(who member, tool, args string) string {
	tm.t.Helper()
	res := tm.do(who, "POST", "/tools/"+tool, args)
	var r struct{ Content []struct{ Text string } }
	if res.StatusCode != http.StatusOK || json.Unmarshal(res.body, &r) != nil {
		tm.t.Errorf("%s as %s: %d %.300s", tool, who[1], res.StatusCode, res.body)
		return ""
	}
	if len(r.Content) == 0 {
		return string(res.body)
	}
	return r.Content[0].Text
}

// Two users with different tokens on one server: two clients, and neither sees the other's state.
func TestUsersSideBySide(t *testing.T) {
	mcptest.NoLeaks(t)
	memory := with(with(npm("memory"), "sharing", "user"), "env", map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "${caller.user}.jsonl")})
	token := with(with(mode(t, "ok"), "sharing", "user"), "env", map[string]string{"TOKEN": "${caller.header.X-Token}", "WHO": "${caller.user} of ${caller.tenant}"})
	tm := newTeam(t, map[string]server{"memory": memory, "token": token, "notes": with(mode(t, "ok", "notes"), "sharing", "tenant")})

	var wg sync.WaitGroup
	for _, who := range []member{alice, bob} {
		wg.Go(func() {
			entity := fmt.Sprintf(`{"entities":[{"name":"%s","entityType":"person","observations":["knows %[1]s"]}]}`, who[1])
			tm.text(who, "memory/create_entities", entity)
			for range 20 {
				if got := tm.text(who, "token/env", `{"name":"TOKEN"}`); got != who[5] {
					t.Errorf("%s runs with %q", who[1], got)
				}
			}
			if got := tm.text(who, "token/env", `{"name":"WHO"}`); got != who[1]+" of acme" {
				t.Errorf("%s is %q to the server", who[1], got)
			}
		})
	}
	wg.Wait()
	for i, who := range []member{alice, bob} {
		other := []member{bob, alice}[i]
		graph := tm.do(who, "POST", "/tools/memory/read_graph", "")
		if !bytes.Contains(graph.body, []byte("knows "+who[1])) || bytes.Contains(graph.body, []byte(other[1])) {
			t.Errorf("%s remembers %s", who[1], graph.body)
		}
	}
	if a, b := tm.text(alice, "token/pid", "{}"), tm.text(bob, "token/pid", "{}"); a == b {
		t.Error("two users share a process")
	}
	if a, b, c := tm.text(alice, "notes/pid", "{}"), tm.text(bob, "notes/pid", "{}"), tm.text(carol, "notes/pid", "{}"); a != b || a == c {
		t.Errorf("processes of tenants: %s and %s, %s; want one for acme, another one for the other", a, b, c)
	}

	// Another token is another process, and no token none.
	changed := member{alice[0], alice[1], alice[2], alice[3], "X-Token", "new-horse"}
	if got := tm.text(changed, "token/env", `{"name":"TOKEN"}`); got != "new-horse" {
		t.Errorf("with another token: %q", got)
	}
	for _, tt := range []struct {
		who        member
		tool, says string
	}{
		{carol, "token/pid", "the header X-Token"},
		{member{"Test-User", "dave", "X-Token", "x"}, "token/pid", "a tenant"},
		{alice.with("X-Token", "second"), "token/pid", "more than once"},
		{member{"Test-User", "../root", "Test-Tenant", "acme"}, "memory/read_graph", "A-Z a-z 0-9"},
		{member{"Test-User", "..", "Test-Tenant", "acme"}, "memory/read_graph", "not dots alone"},
		{member{"Test-User", strings.Repeat("x", 65), "Test-Tenant", "acme"}, "memory/read_graph", "64"},
		{member{"Test-Tenant", "acme"}, "memory/read_graph", "as nobody"},
		{member{"Test-User", "dave"}, "notes/pid", "without"},
	} {
		wantProblem(t, tm.do(tt.who, "POST", "/tools/"+tt.tool, "{}"), 403, "forbidden", tt.says)
	}

	status := tm.do(alice, "GET", "/status", "").body
	var rows routes.Status
	if err := json.Unmarshal(status, &rows); err != nil || len(rows.Endpoints) != 3 { // her memory, her token, her tenant's notes
		t.Errorf("alice sees the endpoints %+v, %v; want three", rows.Endpoints, err)
	}
	if all := tm.pool.Stats().Endpoints; len(all) != 8 { // bob's memory and token, carol's notes, alice's other token, and the memory of whom documents are made for
		t.Errorf("%d endpoints in all, want 8", len(all))
	}
	for _, secret := range []string{"alices-horse", "bobs-battery", "new-horse"} {
		if bytes.Contains(status, []byte(secret)) || strings.Contains(tm.log.String(), secret) {
			t.Errorf("%q shows in the status or the log", secret)
		}
	}
}

// Documents never start what takes headers, lists do, and nobody's shows what is another's.
func TestListsOfOwnServers(t *testing.T) {
	mcptest.NoLeaks(t)
	tm := newTeam(t, map[string]server{
		"token": with(with(mode(t, "ok"), "sharing", "user"), "env", map[string]string{"TOKEN": "${caller.header.X-Token}"}),
		"notes": with(mode(t, "ok", "notes"), "sharing", "tenant"),
	})
	document := func(who member) string {
		var b []byte
		until(t, "the document of "+who[1], func() bool {
			res := tm.do(who, "GET", "/openapi.json", "")
			b = res.body
			return res.StatusCode == http.StatusOK
		})
		return string(b)
	}
	if doc := document(alice); !strings.Contains(doc, "/tools/notes/echo") || strings.Contains(doc, "/tools/token/") {
		t.Errorf("alice's document has notes %v, token %v; want notes alone", strings.Contains(doc, "/tools/notes/echo"), strings.Contains(doc, "/tools/token/"))
	}
	state := func(who member, handle string) (s struct {
		State     string `json:"state"`
		LastError string `json:"last_error"`
		ToolCount int    `json:"tool_count"`
	},
	) {
		decode(t, tm.do(who, "GET", "/tools/"+handle, ""), &s)
		return s
	}
	until(t, "alice's list has her tools", func() bool { return state(alice, "token").ToolCount > 0 })
	if doc := document(alice); !strings.Contains(doc, "/tools/token/echo") {
		t.Error("alice's document lacks what is connected for her")
	}
	if doc := document(bob); strings.Contains(doc, "/tools/token/") {
		t.Error("bob's document has what is connected for alice")
	}
	if s := state(carol, "token"); s.State != "needs-caller" || !strings.Contains(s.LastError, "X-Token") {
		t.Errorf("without the header: %+v", s)
	}
	// acme's notes, carol's, which her list began to start, and alice's token
	until(t, "there are three processes", func() bool { return tm.pool.Stats().Processes >= 3 })
	if n := tm.pool.Stats().Processes; n != 3 {
		t.Errorf("%d processes, want 3", n)
	}
}

// One user's refused token neither opens the circuit of another one nor is it ever shown.
func TestCircuitsApart(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPNeed, "X-Token", "alices-horse")
	tm := newTeam(t, map[string]server{"remote": {"url": remote.URL, "sharing": "user", "headers": map[string]string{"X-Token": "${caller.header.X-Token}"}}})
	for range 2 {
		wantProblem(t, tm.do(bob, "POST", "/tools/remote/echo", `{"message":"hi"}`), 502, "upstream-auth", "remote")
		if got := tm.text(alice, "remote/echo", `{"message":"hi"}`); got != "hi" {
			t.Errorf("alice got %q", got)
		}
	}
	if strings.Contains(tm.log.String(), "bobs-battery") {
		t.Error("a token is in the log")
	}
}

// A caller's header on the list reaches the server on that call alone, also when many share the connection.
func TestForwardedHeaderReachesItsCallAlone(t *testing.T) {
	for _, args := range [][]string{nil, {"stateless"}, {"json"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			remote := mcptest.Start(t, mcptest.HTTPOK, args...)
			tm := newTeam(t, map[string]server{
				"on":  {"url": remote.URL, "forwardHeaders": []string{"X-User-Id", "X-Trace"}},
				"off": {"url": remote.URL},
			})
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					id := fmt.Sprint(i)
					for range 10 {
						who := member{"X-User-Id", id, "X-Other", "mine", "Authorization", "Bearer mine"}
						if i%2 == 0 {
							who, id = who[2:], ""
						}
						if got := tm.text(who, "on/header", `{"message":"X-User-Id"}`); got != id {
							t.Errorf("the server got %q on a call with %q", got, id)
						}
					}
				})
			}
			wg.Wait()
			who := member{"X-User-Id", "7", "X-Other", "mine", "Authorization", "Bearer mine"}
			for _, tool := range []string{"on/header", "off/header"} {
				for _, name := range []string{"X-Other", "Authorization", "Test-User"} {
					if got := tm.text(who, tool, `{"message":"`+name+`"}`); got != "" {
						t.Errorf("%s reached %s: %q", name, tool, got)
					}
				}
			}
			if got := tm.text(who, "off/header", `{"message":"X-User-Id"}`); got != "" {
				t.Errorf("the header reached a server that it is not for: %q", got)
			}
		})
	}
}

// The whole program: keys make users, and each user has a process of its own, of which none is left.
func TestKeysMakeUsers(t *testing.T) {
	dir := t.TempDir()
	keys := map[string]string{}
	var entries []any
	for _, user := range []string{"alice", "bob"} {
		key, entry := newKey(t, user, map[string]any{"user": user, "tenant": "acme", "scopes": []string{"call"}})
		keys[user] = key
		entries = append(entries, entry)
	}
	p := start(t, map[string]server{
		"memory": with(with(npm("memory"), "sharing", "user"), "env", map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "${caller.user}.jsonl")}),
		"who":    with(with(mode(t, "ok"), "sharing", "user"), "env", map[string]string{"WHO": "${caller.user}", "LANG_WANTED": "${caller.header.X-Lang}"}),
	}, map[string]any{"auth": map[string]any{"keys": entries}})
	header := func(user string) []string { return []string{"X-API-Key", keys[user], "X-Lang", user + "-lang"} }
	var wg sync.WaitGroup
	for user := range keys {
		wg.Go(func() {
			p.call("memory", "create_entities", `{"entities":[{"name":"`+user+`","entityType":"person","observations":[]}]}`, 200, header(user)...)
			for range 5 {
				for name, want := range map[string]string{"WHO": user, "LANG_WANTED": user + "-lang"} {
					if res := p.call("who", "env", `{"name":"`+name+`"}`, 200, header(user)...); !bytes.Contains(res.body, []byte(`"`+want+`"`)) {
						t.Errorf("%s of %s: %s", name, user, res.body)
					}
				}
			}
		})
	}
	wg.Wait()
	for user, other := range map[string]string{"alice": "bob", "bob": "alice"} {
		res := p.call("memory", "read_graph", "{}", 200, header(user)...)
		if !bytes.Contains(res.body, []byte(`"`+user+`"`)) || bytes.Contains(res.body, []byte(other)) {
			t.Errorf("%s remembers %s", user, res.body)
		}
		if ref := res.Header.Get("Artifact-Ref"); p.do("GET", "/artifacts/"+ref, "", header(other)...).StatusCode != http.StatusNotFound {
			t.Errorf("%s can fetch a result of %s", other, user)
		}
	}
	if n := len(tagged(p.tag)); n < 5 { // the bridge and two processes of each
		t.Errorf("%d processes run, want at least 5", n)
	}
	wantProblem(t, p.do("POST", "/tools/who/env", `{}`), 401, "unauthenticated", "")
}
