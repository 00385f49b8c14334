package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/redistest"
	"mcpbridge/internal/routes"
)

// put puts an entry and demands the status. The answer holds nothing of what is to be secret.
func (p *process) put(path, entry string, status int, header ...string) response {
	p.t.Helper()
	res := p.do("PUT", path, entry, header...)
	if res.StatusCode != status {
		p.t.Errorf("PUT %s %.200s: status %d, want %d: %.500s", path, entry, res.StatusCode, status, res.body)
	}
	if strings.Contains(string(res.body), "s3cret") {
		p.t.Errorf("PUT %s answers with a secret: %s", path, res.body)
	}
	return res
}

func (p *process) configured(path string) (s routes.AdminServer) {
	p.t.Helper()
	res := p.get(path)
	decode(p.t, res, &s)
	if strings.Contains(string(res.body), "s3cret") {
		p.t.Errorf("GET %s shows a secret: %s", path, res.body)
	}
	if etag := res.Header.Get("ETag"); s.Version != "" && etag != `"`+s.Version+`"` {
		p.t.Errorf("GET %s: ETag %s, version %s", path, etag, s.Version)
	}
	return s
}

func stateFile(t *testing.T) (string, map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.json")
	return path, map[string]any{"admin": map[string]any{"stateFile": path}}
}

// A server is put, called, changed, deleted; and is there again after a restart.
func TestAdminLife(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	state, more := stateFile(t)
	p, f := startFile(t, map[string]server{"mine": mode(t, "ok")}, more)
	p.ready()
	pid := p.pid("mine")

	entry := fmt.Sprintf(`{"url":%q,"headers":{"X-Key":"s3cret"},"timeout":"5s"}`, remote.URL+"?token=s3cret")
	res := p.put("/admin/servers/new", entry, http.StatusCreated, "If-None-Match", "*")
	first := res.Header.Get("ETag")
	if !strings.Contains(string(res.body), `"state":"ready"`) {
		t.Errorf("PUT answers before the server is ready: %s", res.body)
	}
	if got := p.text("new", "echo", `{"message":"at once"}`); got != "at once" {
		t.Errorf("called: %q", got)
	}
	s := p.configured("/admin/servers/new")
	want := fmt.Sprintf(`{"url":%q,"headers":{"X-Key":"[hidden]"},"timeout":"5s"}`, remote.URL+"?[hidden]")
	if string(s.Entry) != want || s.Source != "state file" || `"`+s.Version+`"` != first {
		t.Errorf("GET = %+v %s, want %s", s, s.Entry, want)
	}
	if res := p.do("GET", "/admin/servers/new", "", "If-None-Match", first); res.StatusCode != http.StatusNotModified {
		t.Errorf("GET of what is known: %d", res.StatusCode)
	}
	wantProblem(t, p.put("/admin/servers/new", entry, 412, "If-None-Match", "*"), 412, "precondition-failed", "version")
	wantProblem(t, p.put("/admin/servers/new", entry, 412, "If-Match", `"other"`), 412, "precondition-failed", strings.Trim(first, `"`))
	wantProblem(t, p.put("/admin/servers/none", entry, 412, "If-Match", "*"), 412, "precondition-failed", "no entry")
	second := p.put("/admin/servers/new", `{"url":"`+remote.URL+`","title":"Other"}`, http.StatusOK, "If-Match", first).Header.Get("ETag")
	if second == first || p.configured("/admin/servers/new").Fingerprint == s.Fingerprint {
		t.Error("a change has the version or the fingerprint of before")
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state file: %v, %v", info, err)
	}
	if p.pid("mine") != pid {
		t.Error("the file's server has another process")
	}
	p.stop(syscall.SIGTERM)

	p = startArgs(t, "serve", "--config", f.path)
	p.ready() // and nothing else: what was put is there from the beginning on
	if got := p.text("new", "echo", `{"message":"again"}`); got != "again" {
		t.Errorf("after a restart: %q", got)
	}
	if s := p.configured("/admin/servers/new"); `"`+s.Version+`"` != second {
		t.Errorf("after a restart the version is %s, was %s", s.Version, second)
	}
	wantProblem(t, p.do("DELETE", "/admin/servers/new", "", "If-Match", first), 412, "precondition-failed", "")
	if res := p.do("DELETE", "/admin/servers/new", "", "If-Match", second); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %d %s", res.StatusCode, res.body)
	}
	p.problem("new", "echo", `{}`, 404, "not-found", "")
	wantProblem(t, p.get("/admin/servers/new"), 404, "not-found", "")
	wantProblem(t, p.do("DELETE", "/admin/servers/new", ""), 404, "not-found", "")
	if strings.Contains(p.log(), "s3cret") {
		t.Error("the log shows a secret")
	}
}

// What an entry may not hold is said all at once, and nothing is changed.
func TestAdminRefusals(t *testing.T) {
	_, more := stateFile(t)
	p, _ := startFile(t, map[string]server{"mine": {"command": "x", "disabled": true}}, more)
	p.ready()
	for _, tt := range []struct {
		path, entry string
		status      int
		code, says  string
	}{
		{"/admin/servers/a", `{"command":"sh","args":["-c","touch /tmp/x"]}`, 422, "invalid-arguments", "allowCommands"},
		{"/admin/servers/a", `{"url":"http://x","tls":{"key":"/etc/passwd","cert":"/etc/passwd"}}`, 422, "invalid-arguments", "allowCommands"},
		{"/admin/servers/a", `{"url":"http://x","headers":{"A":"[hidden]"}}`, 422, "invalid-arguments", "[hidden]"},
		{"/admin/servers/a", `{"url":"http://x","headers":{"A":"${caller.user}"}}`, 422, "invalid-arguments", "caller"},
		{"/admin/servers/bridge", `{"url":"http://x"}`, 422, "invalid-arguments", "reserved"},
		{"/admin/servers/a", `{"url":"http://x"} x`, 400, "malformed-request", "one JSON object"},
		{"/admin/servers/a", `{"url":"http://x","url":"http://y"}`, 400, "malformed-request", ""},
		{"/admin/servers/a", `[]`, 400, "malformed-request", "not a JSON object"},
		{"/admin/servers/a", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), 400, "malformed-request", ""},
		{"/admin/servers/mine", `{"url":"http://x"}`, 403, "forbidden", "change it there"},
		{"/admin/servers/a?tenant=x", `{"url":"http://x"}`, 400, "malformed-request", "tenant"},
		{"/admin/users/u/servers/a?tennant=x", `{"url":"http://x"}`, 400, "malformed-request", "tennant"},
		{"/admin/users/u/servers/a", `{"url":"http://x","sharing":"user"}`, 422, "invalid-arguments", "one user's own"},
	} {
		wantProblem(t, p.put(tt.path, tt.entry, tt.status), tt.status, tt.code, tt.says)
	}
	wantProblem(t, p.put("/admin/servers/a", `{"url":"http://x"}`, 400, "If-None-Match", `"v"`), 400, "malformed-request", "If-None-Match")
	wantProblem(t, p.put("/admin/servers/a", `{"url":"http://x"}`, 403, "Origin", "https://evil.example"), 403, "forbidden", "origin")
	wantProblem(t, p.put("/admin/servers/a", `{"url":"http://x"}`, 415, "Content-Type", "text/plain"), 415, "unsupported-media-type", "")
	wantProblem(t, p.do("DELETE", "/admin/servers/mine", ""), 403, "forbidden", "change it there")
	wantProblem(t, p.do("POST", "/admin/servers/none/reset", ""), 404, "not-found", "")
	wantProblem(t, p.do("POST", "/admin/servers/a", ""), 405, "method-not-allowed", "")

	var many struct {
		Count  int
		Errors []routes.AdminProblem
	}
	res := p.put("/admin/servers/a", `{"url":"http://x","timeout":"soon","rate":5,"tools":{"denied":[]},"headers":{"A\n":"b"}}`, 422)
	if err := json.Unmarshal(res.body, &many); err != nil || many.Count != 4 || len(many.Errors) != 4 {
		t.Errorf("four mistakes: %s", res.body)
	}
	var list routes.AdminList
	decode(t, p.get("/admin/servers"), &list)
	if len(list.Servers) != 1 || list.Servers[0].Handle != "mine" || list.Servers[0].Source != "file" {
		t.Errorf("servers = %+v", list.Servers)
	}
	if warned := p.put("/admin/servers/a", `{"url":"http://127.0.0.1:1/${HOME}"}`, 201); !strings.Contains(string(warned.body), `"pointer":"/url"`) {
		t.Errorf("a reference is not warned of: %s", warned.body)
	}

	// Commands, where they are allowed.
	more["admin"].(map[string]any)["allowCommands"] = true
	allowed := start(t, map[string]server{}, more)
	line, err := json.Marshal(mode(t, "ok"))
	if err != nil {
		t.Fatal(err)
	}
	allowed.put("/admin/servers/local", string(line), 201)
	allowed.call("local", "echo", `{"message":"x"}`, 200)

	// Nowhere to keep anything.
	p = start(t, map[string]server{}, nil)
	wantProblem(t, p.put("/admin/servers/a", `{"url":"http://x"}`, 403), 403, "forbidden", "bridge.admin.stateFile")
	wantProblem(t, p.do("DELETE", "/admin/servers/a", ""), 403, "forbidden", "bridge.sources.redis")
}

// Two bridges share one Redis: what is put to one, both serve, also while Redis is away, and
// when it comes back without its data.
func TestAdminSharedByBridges(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	redis := redistest.Start(t)
	more := map[string]any{"sources": map[string]any{"redis": redis.URL()}}
	a, b := start(t, map[string]server{}, more), start(t, map[string]server{}, more)
	a.ready()
	b.ready()
	good := fmt.Sprintf(`{"url":%q}`, remote.URL)
	a.put("/admin/servers/shared", good, http.StatusCreated)
	a.call("shared", "echo", `{"message":"x"}`, 200)
	until(t, "the other bridge serves it", func() bool { return b.serves("shared") })
	b.call("shared", "echo", `{"message":"x"}`, 200)

	version := `"` + b.configured("/admin/servers/shared").Version + `"`
	b.put("/admin/servers/shared", fmt.Sprintf(`{"url":%q,"title":"B"}`, remote.URL), http.StatusOK, "If-Match", version)
	wantProblem(t, a.put("/admin/servers/shared", good, 412, "If-Match", version), 412, "precondition-failed", "")

	redis.Kill()
	for _, p := range []*process{a, b} {
		p.call("shared", "echo", `{"message":"without Redis"}`, 200)
		wantProblem(t, p.put("/admin/servers/other", good, 503), 503, "store-unavailable", "redis")
	}
	p := start(t, map[string]server{"of-the-file": {"url": remote.URL}}, more) // starts without it, too
	p.ready()
	p.call("of-the-file", "echo", `{"message":"x"}`, 200)

	redis.Restart(t) // empty
	until(t, "a new server is kept", func() bool {
		res := a.do("PUT", "/admin/servers/other", good)
		return res.StatusCode == http.StatusCreated || res.StatusCode == http.StatusOK
	})
	until(t, "all serve both", func() bool {
		return a.serves("other", "shared") && b.serves("other", "shared") && p.serves("of-the-file", "other", "shared")
	})
	b.do("DELETE", "/admin/servers/other", "")
	b.do("DELETE", "/admin/servers/shared", "")
	until(t, "none serves them any more", func() bool { return a.serves() && b.serves() && p.serves("of-the-file") })
	for _, p := range []*process{a, b} {
		if n := strings.Count(p.log(), "the servers in redis cannot be read"); n != 1 {
			t.Errorf("that Redis was away is logged %d times, want once", n)
		}
	}
}

// Of many who change one version, one does, through whichever bridge; and nobody's change is half done.
func TestAdminRaces(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	redis := redistest.Start(t)
	more := map[string]any{"sources": map[string]any{"redis": redis.URL()}}
	a, b := start(t, map[string]server{}, more), start(t, map[string]server{}, more)
	entry := func(n int) string { return fmt.Sprintf(`{"url":%q,"title":"%d"}`, remote.URL, n) }
	etag := a.put("/admin/servers/s", entry(0), http.StatusCreated).Header.Get("ETag")
	for round := range 3 {
		var won atomic.Int32
		var next atomic.Value
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				p := []*process{a, b}[i%2]
				switch res := p.do("PUT", "/admin/servers/s", entry(10*round+i), "If-Match", etag); res.StatusCode {
				case http.StatusOK:
					won.Add(1)
					next.Store(res.Header.Get("ETag"))
				case http.StatusPreconditionFailed:
				default:
					t.Errorf("status %d: %s", res.StatusCode, res.body)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d have changed one version", round, won.Load())
		}
		etag = next.Load().(string)
	}
	until(t, "both have the last version", func() bool {
		return `"`+a.configured("/admin/servers/s").Version+`"` == etag && `"`+b.configured("/admin/servers/s").Version+`"` == etag
	})
}

// The file takes a handle that was put: it wins, and the entry is in use again when it leaves.
func TestAdminAgainstFile(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	_, more := stateFile(t)
	p, f := startFile(t, map[string]server{}, more)
	entry := fmt.Sprintf(`{"url":%q,"title":"of the administration"}`, remote.URL)
	p.put("/admin/servers/s", entry, http.StatusCreated)
	title := func() string {
		var c struct {
			Servers []struct{ Handle, Title string }
		}
		decode(t, p.get("/tools"), &c)
		for _, s := range c.Servers {
			if s.Handle == "s" {
				return s.Title
			}
		}
		return ""
	}
	// While the file changes all the time, others are put; each is right in itself.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.put("/admin/servers/"+url.PathEscape(fmt.Sprintf("put %d", i%3)), entry, []int{201, 200}[min(i/3, 1)])
			}
		}
	})
	for i := range 3 {
		f.replace(f.text(map[string]server{fmt.Sprintf("file%d", i): {"url": remote.URL}, "s": {"url": remote.URL, "title": "of the file"}}))
		until(t, "the file's server is in use", func() bool { return title() == "of the file" })
		f.replace(f.text(map[string]server{}))
		until(t, "the entry is in use again", func() bool { return title() == "of the administration" })
	}
	close(stop)
	wg.Wait()

	f.replace(f.text(map[string]server{"s": {"url": remote.URL, "title": "of the file"}}))
	until(t, "the file wins", func() bool { return title() == "of the file" })
	if s := p.configured("/admin/servers/s"); s.Source != "file" || s.Shadowed {
		t.Errorf("in use is %+v", s)
	}
	wantProblem(t, p.put("/admin/servers/s", entry, 403), 403, "forbidden", "change it there")
	if st := p.config(); len(st.Unusable) != 1 || !strings.Contains(st.Unusable[0], "wins") || !strings.Contains(p.log(), "which wins") {
		t.Errorf("it is not said that the file wins: %+v", st)
	}
	// The entry behind it can go.
	if res := p.do("DELETE", "/admin/servers/s", ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE of what the file hides: %d %s", res.StatusCode, res.body)
	}
	if title() != "of the file" {
		t.Error("the file's server is gone too")
	}
}

// A kept entry that is no good costs no other one.
func TestAdminBadRecord(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	state, more := stateFile(t)
	write(t, state, fmt.Sprintf(`{"entries":[
		{"handle":"good","version":"1","entry":{"url":%q}},
		{"handle":"bad","version":"2","entry":{"url":"ftp://s3cret","timeout":"soon"}},
		{"handle":"command","version":"3","entry":{"command":"sh","args":["-c","id"]}},
		7]}`, remote.URL))
	p := start(t, map[string]server{}, more)
	p.ready()
	if !p.serves("good") {
		t.Errorf("servers: %s", p.get("/tools").body)
	}
	var list routes.AdminList
	decode(t, p.get("/admin/servers"), &list)
	if len(list.Servers) != 4 {
		t.Errorf("listed: %+v", list.Servers)
	}
	if s := p.configured("/admin/servers/bad"); len(s.Errors) != 2 || s.Errors[1].Pointer != "/timeout" {
		t.Errorf("bad: %+v", s)
	}
	if st := p.config(); len(st.Unusable) != 3 || strings.Count(p.log(), "is not in use") != 3 || strings.Contains(p.log(), "s3cret") {
		t.Errorf("unusable: %q\n%s", st.Unusable, p.log())
	}
	p.put("/admin/servers/bad", fmt.Sprintf(`{"url":%q}`, remote.URL), http.StatusOK, "If-Match", `"2"`)
	if !p.serves("bad", "good") {
		t.Errorf("mended: %s", p.get("/tools").body)
	}
	if now, err := os.ReadFile(state); err != nil || !strings.Contains(string(now), "7") {
		t.Errorf("a record that is not understood is gone: %s, %v", now, err)
	}
}

// A circuit that is open is closed by hand.
func TestAdminReset(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	p := start(t, map[string]server{"r": {"url": remote.URL}}, nil)
	p.ready()
	p.problem("r", "http_status", `{"status":401}`, 502, "upstream-auth", "401")
	until(t, "the circuit is open", func() bool { return p.do("POST", "/tools/r/echo", `{"message":"x"}`).StatusCode == 503 })
	if res := p.do("POST", "/admin/servers/r/reset", ""); res.StatusCode != http.StatusNoContent {
		t.Fatalf("reset = %d %s", res.StatusCode, res.body)
	}
	p.call("r", "echo", `{"message":"x"}`, 200)
}

// A user's own server is seen and called by that user alone, and only an admin changes it.
func TestAdminUserServer(t *testing.T) {
	remote, others := mcptest.Start(t, mcptest.HTTPRaw, "ok"), mcptest.Start(t, mcptest.HTTPRaw, "ok")
	root, rootEntry := newKey(t, "root", map[string]any{"user": "op", "scopes": []string{"call", "admin"}})
	ann, annEntry := newKey(t, "ann", map[string]any{"user": "ann/1"})
	bob, bobEntry := newKey(t, "bob", map[string]any{"user": "ann/1", "tenant": "acme"})
	_, more := stateFile(t)
	more["auth"] = map[string]any{"keys": []any{rootEntry, annEntry, bobEntry}}
	p := start(t, map[string]server{"notes": {"url": others.URL, "tools": map[string]any{"allow": []string{"pid"}}}}, more)
	as := func(key string) []string { return []string{"X-API-Key", key} }
	entry := fmt.Sprintf(`{"url":%q,"tools":{"allow":["echo"]}}`, remote.URL)
	path := "/admin/users/ann%2F1/servers/notes"
	wantProblem(t, p.put(path, entry, 403, as(ann)...), 403, "forbidden", "admin")
	wantProblem(t, p.put(path, entry, 401), 401, "unauthenticated", "")
	p.put(path, entry, 201, as(root)...)
	until(t, "the user sees her own", func() bool { return strings.Join(p.names(as(ann)...), " ") == "notes/echo" })
	p.call("notes", "echo", `{"message":"x"}`, 200, as(ann)...)
	for _, other := range []string{root, bob} {
		until(t, "others see everybody's", func() bool { return strings.Join(p.names(as(other)...), " ") == "notes/pid" })
		p.call("notes", "echo", `{"message":"x"}`, 404, as(other)...)
	}
	if res := p.do("DELETE", path+"?tenant=acme", "", as(root)...); res.StatusCode != 404 {
		t.Errorf("DELETE of another tenant's: %d", res.StatusCode)
	}
	if res := p.do("DELETE", path, "", as(root)...); res.StatusCode != 204 {
		t.Errorf("DELETE: %d %s", res.StatusCode, res.body)
	}
	until(t, "the user sees everybody's", func() bool { return strings.Join(p.names(as(ann)...), " ") == "notes/pid" })
	for _, what := range []string{"put", "delete"} {
		if line := `"a server was changed through the administration","what":"` + what + `","server":"notes of user ann/1","caller":"root","user":"op"`; !strings.Contains(p.log(), line) {
			t.Errorf("the log does not say who did that: %s", line)
		}
	}
}

// A cluster of Redis servers keeps and pushes entries as one server does.
func TestAdminOnCluster(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	more := map[string]any{"sources": map[string]any{"redis": redisCluster(t)}}
	a, b := start(t, map[string]server{}, more), start(t, map[string]server{}, more)
	etag := a.put("/admin/servers/s", fmt.Sprintf(`{"url":%q}`, remote.URL), 201).Header.Get("ETag")
	until(t, "the other bridge serves it", func() bool { return b.serves("s") })
	if res := b.do("DELETE", "/admin/servers/s", "", "If-Match", etag); res.StatusCode != 204 {
		t.Errorf("DELETE: %d %s", res.StatusCode, res.body)
	}
	until(t, "it is gone from both", func() bool { return a.serves() && b.serves() })
}
