package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/redistest"
)

// newKey returns an API key and its entry in a configuration, with more settings.
func newKey(t *testing.T, id string, more map[string]any) (key string, entry map[string]any) {
	t.Helper()
	key = identity.NewKey()
	digest, err := identity.DigestOf(key)
	if err != nil {
		t.Fatal(err)
	}
	entry = map[string]any{"id": id, "hash": digest.String()}
	maps.Copy(entry, more)
	return key, entry
}

// names returns which tools a caller sees, as handle/tool.
func (p *process) names(header ...string) []string {
	p.t.Helper()
	var c struct {
		Tools []struct{ Handle, Name string }
	}
	decode(p.t, p.do("GET", "/tools", "", header...), &c)
	names := []string{}
	for _, t := range c.Tools {
		names = append(names, t.Handle+"/"+t.Name)
	}
	return names
}

// Callers with different keys and tokens work side by side, and each sees, calls
// and fetches what is its own.
func TestCallers(t *testing.T) {
	mcptest.NoLeaks(t)
	issuer := mcptest.Start(t, mcptest.OIDC)
	token := func(user string, more map[string]any) string {
		t.Helper()
		claims := map[string]any{"iss": issuer.URL, "aud": "bridge", "sub": user, "exp": time.Now().Add(time.Hour).Unix(), "scope": "openid call"}
		maps.Copy(claims, more)
		body, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(issuer.URL+"/token", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
		return "Bearer " + string(b)
	}
	ci, ciEntry := newKey(t, "ci", map[string]any{"allow": []string{"one/*"}, "deny": []string{"*/fail"}})
	next, nextEntry := newKey(t, "ci-next", map[string]any{"user": "ci", "allow": []string{"one/*"}, "deny": []string{"*/fail"}})
	root, rootEntry := newKey(t, "root", map[string]any{"scopes": []string{"call", "admin"}})
	blind, blindEntry := newKey(t, "blind", map[string]any{"scopes": []string{"metrics"}})
	slow, slowEntry := newKey(t, "slow", map[string]any{"rate": "2/h"})
	p := start(t, map[string]server{"one": {"command": "bridge", "args": []string{"demo"}}, "two": {"command": "bridge", "args": []string{"demo"}}}, map[string]any{
		"auth": map[string]any{
			"keys": []any{ciEntry, nextEntry, rootEntry, blindEntry, slowEntry},
			"jwt":  []any{map[string]any{"issuer": issuer.URL, "audience": "bridge", "scopes": "scope", "allow": []string{"two/greet"}}},
		},
	})
	until(t, "both servers are there", func() bool {
		c := p.names("X-API-Key", root)
		return slices.Contains(c, "one/greet") && slices.Contains(c, "two/greet")
	})
	ada, bob := token("ada", nil), token("bob\u202e/../_service_", nil)

	if got := p.names("Authorization", ada); !slices.Equal(got, []string{"two/greet"}) {
		t.Errorf("by her token a caller sees %q", got)
	}
	if got := p.names("X-API-Key", ci); len(got) != 7 || slices.ContainsFunc(got, func(n string) bool { return !strings.HasPrefix(n, "one/") || n == "one/fail" }) {
		t.Errorf("by its key a caller sees %q", got)
	}
	wantProblem(t, p.do("POST", "/tools/two/greet", `{"name":"x"}`, "X-API-Key", ci), 404, "not-found", "no server")
	wantProblem(t, p.do("POST", "/tools/one/fail", `{}`, "X-API-Key", ci), 404, "not-found", "no tool")
	wantProblem(t, p.do("POST", "/tools/one/greet", `{"name":"x"}`, "Authorization", ada), 404, "not-found", "no server")
	wantProblem(t, p.do("GET", "/tools/one/openapi.json", "", "Authorization", ada), 404, "not-found", "no server")

	// What one caller's call returned is another's nothing; both of a user's keys open it.
	ref := func(path string, header ...string) string {
		t.Helper()
		res := p.do("POST", path, `{"name":"x"}`, header...)
		if res.StatusCode != 200 || res.Header.Get("Artifact-Ref") == "" {
			t.Fatalf("%s: %d %s", path, res.StatusCode, res.body)
		}
		return "/artifacts/" + res.Header.Get("Artifact-Ref")
	}
	ofCI, ofAda, ofBob := ref("/tools/one/greet", "X-API-Key", ci), ref("/tools/two/greet", "Authorization", ada), ref("/tools/two/greet", "Authorization", bob)
	for _, tt := range []struct {
		path, name, value string
		want              int
	}{
		{ofCI, "X-API-Key", ci, 200},
		{ofCI, "Authorization", "Bearer " + next, 200},
		{ofCI, "X-API-Key", root, 404},
		{ofCI, "Authorization", ada, 404},
		{ofAda, "Authorization", ada, 200},
		{ofAda, "Authorization", token("ada", map[string]any{"jti": "another"}), 200},
		{ofAda, "Authorization", bob, 404},
		{ofBob, "Authorization", bob, 200},
		{ofBob, "Authorization", ada, 404},
		{ofAda, "X-API-Key", blind, 403},
		{ofAda, "X-API-Key", "mcpb_wrong", 401},
	} {
		if res := p.do("GET", tt.path, "", tt.name, tt.value); res.StatusCode != tt.want {
			t.Errorf("GET %s: %d, want %d", tt.path, res.StatusCode, tt.want)
		}
	}

	// Rows of /status are one's own, but an admin's are all.
	for key, want := range map[string][]string{ci: {"one"}, root: {"one", "two"}} {
		var st struct{ Endpoints []struct{ Handles []string } }
		decode(t, p.do("GET", "/status", "", "X-API-Key", key), &st)
		var got []string
		for _, e := range st.Endpoints {
			got = append(got, e.Handles...)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("/status has %q, want %q", got, want)
		}
	}

	// A rate has its fields, and then its refusal.
	for i, want := range []string{`"calls";r=1;t=1800`, `"calls";r=0;t=1800`} {
		res := p.do("POST", "/tools/two/greet", `{"name":"x"}`, "X-API-Key", slow)
		if got := res.Header.Get("RateLimit"); res.StatusCode != 200 || got != want || res.Header.Get("RateLimit-Policy") != `"calls";q=2;w=3600` {
			t.Errorf("call %d: %d, RateLimit %s, RateLimit-Policy %s", i, res.StatusCode, got, res.Header.Get("RateLimit-Policy"))
		}
	}
	res := p.do("POST", "/tools/two/greet", `{"name":"x"}`, "X-API-Key", slow)
	wantProblem(t, res, 429, "rate-limited", "over your rate")
	if got := res.Header.Get("RateLimit"); got != `"calls";r=0;t=1800` || res.Header.Get("Retry-After") != "1800" {
		t.Errorf("refused with RateLimit %s, Retry-After %s", got, res.Header.Get("Retry-After"))
	}

	// A wrong credential, or none, gets nothing but what is open to all.
	for _, header := range [][]string{nil, {"X-API-Key", "mcpb_wrong"}, {"Authorization", token("eve", map[string]any{"aud": "others"})}, {"Authorization", ada[:len(ada)-5]}} {
		for _, path := range []string{"/tools", "/openapi.json", "/status", "/artifacts", "/tools/one/greet", "/mcp"} {
			res := p.do("GET", path, "", header...)
			if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), `Bearer realm="MCP Bridge"`) {
				t.Errorf("GET %s with %.20q: %d, WWW-Authenticate %q", path, header, res.StatusCode, res.Header.Get("WWW-Authenticate"))
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/problems/unauthenticated", "/", "/docs", "/docs/assets/docs.js"} {
			if res := p.do("GET", path, "", header...); res.StatusCode != 200 {
				t.Errorf("GET %s with %.20q: %d", path, header, res.StatusCode)
			}
		}
	}
	for _, secret := range []string{ci, next, root, slow, strings.TrimPrefix(ada, "Bearer ")} {
		if strings.Contains(p.log(), secret) {
			t.Error("a credential is in the log")
		}
	}
	if log := p.log(); !strings.Contains(log, `"caller":"ci-next"`) && !strings.Contains(log, `"caller":"ci"`) || !strings.Contains(log, `"user":"ada"`) {
		t.Error("the log does not say who called")
	}

	// Keys of the issuer change under the bridge.
	if res, err := http.Post(issuer.URL+"/rotate", "", nil); err != nil || res.Body.Close() != nil {
		t.Fatal(err)
	}
	carol := token("carol", nil)
	for range 300 { // they are read again after 10 s at the earliest
		if res = p.do("GET", "/tools", "", "Authorization", carol); res.StatusCode != 401 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if res.StatusCode != 200 {
		t.Errorf("after the issuer's rotation: %d %s", res.StatusCode, res.body)
	}
	if res := p.do("GET", "/tools", "", "Authorization", ada); res.StatusCode != 401 {
		t.Errorf("a token of the key that is gone: %d", res.StatusCode)
	}
	issuer.Stop()
	if res := p.do("GET", "/tools", "", "X-API-Key", ci); res.StatusCode != 200 {
		t.Errorf("a key, with the issuer down: %d", res.StatusCode)
	}
}

// An issuer that is down at first is found when it comes.
func TestIssuerComesLater(t *testing.T) {
	issuer := mcptest.Start(t, mcptest.OIDC)
	url := issuer.URL
	res, err := http.Post(url+"/token", "application/json", strings.NewReader(fmt.Sprintf(`{"iss":%q,"aud":"bridge","sub":"ada","exp":%d}`, url, time.Now().Add(time.Hour).Unix())))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	old, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	issuer.Stop()
	p := start(t, map[string]server{}, map[string]any{"auth": map[string]any{"jwt": []any{map[string]any{"issuer": url, "audience": "bridge"}}}})
	got := p.do("GET", "/tools", "", "Authorization", "Bearer "+string(old))
	wantProblem(t, got, 503, "server-unavailable", "issuer")
	if got.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", got.Header.Get("Retry-After"))
	}
	mcptest.StartAt(t, issuer.Addr, mcptest.OIDC) // with another key, so the token is now known to be wrong
	for range 300 {
		if got = p.do("GET", "/tools", "", "Authorization", "Bearer "+string(old)); got.StatusCode != 503 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	wantProblem(t, got, 401, "unauthenticated", "not valid")
}

func TestCallersOfConfiguration(t *testing.T) {
	rated := config.Policy{Allow: []string{"a/*"}, Rate: config.Rate{Count: 60, Per: time.Minute}, Concurrent: 3, Timeout: time.Second}
	rule := &bridge.Rule{Allow: []string{"a/*"}, Limits: bridge.Limits{PerSecond: 1, Burst: 60, Concurrent: 3}, Timeout: time.Second}
	key := config.Key{ID: "ci", Hash: "sha256:" + strings.Repeat("0a", 32), User: "u", Tenant: "t", Scopes: []config.Scope{config.ScopeAdmin}, Policy: rated}
	wantKey := identity.Key{ID: "ci", User: "u", Tenant: "t", Grant: identity.Grant{Scopes: bridge.ScopeAdmin, Rule: rule}}
	for i := range wantKey.Hash {
		wantKey.Hash[i] = 0x0a
	}
	jwt := config.JWT{Issuer: "https://id.example", Audience: []string{"b"}, User: "sub", Scopes: "scope"}
	burst := rated
	burst.Burst = 5
	bursting := *rule
	bursting.Burst = 5
	for _, tt := range []struct {
		name     string
		auth     config.Auth
		loopback bool
		want     identity.Options
	}{
		{"nothing, on loopback", config.Auth{}, true, identity.Options{Anonymous: &identity.Grant{Scopes: bridge.AllScopes}, User: "local"}},
		{"nothing, beyond", config.Auth{}, false, identity.Options{Anonymous: &identity.Grant{Scopes: bridge.ScopeCall}, User: "local"}},
		{"a policy, on loopback", config.Auth{Anonymous: &burst}, true, identity.Options{Anonymous: &identity.Grant{Scopes: bridge.ScopeCall, Rule: &bursting}}},
		{"a policy, beyond", config.Auth{Anonymous: &rated}, false, identity.Options{Anonymous: &identity.Grant{Scopes: bridge.ScopeCall, Rule: rule}}},
		{"keys", config.Auth{Keys: []config.Key{key}}, true, identity.Options{Keys: []identity.Key{wantKey}}},
		{"tokens and guests", config.Auth{JWT: []config.JWT{jwt}, Anonymous: &rated}, true, identity.Options{
			Issuers:   []identity.Issuer{{URL: "https://id.example", Audience: []string{"b"}, User: "sub", Scopes: "scope", Rule: &bridge.Rule{}}},
			Anonymous: &identity.Grant{Scopes: bridge.ScopeCall, Rule: rule},
		}},
	} {
		if diff := cmp.Diff(tt.want, callers(tt.auth, tt.loopback)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := operator(config.Auth{Keys: []config.Key{key}, Anonymous: &rated}); got.Rule != nil || got.Scopes != bridge.AllScopes {
		t.Errorf("the operator has the rule %+v", got.Rule)
	}
	for user, auth := range map[string]config.Auth{"local": {}, "": {Anonymous: &rated}} {
		if got := operator(auth); got.User != user {
			t.Errorf("the operator is %q, want %q", got.User, user)
		}
	}
}

// A file that has lost its keys, being cut off, say, must not open the bridge to everybody.
func TestKeysAreNotLost(t *testing.T) {
	mine, entry := newKey(t, "mine", map[string]any{"scopes": []string{"call", "admin"}})
	auth := map[string]any{"auth": map[string]any{"keys": []any{entry}}}
	p, f := startFile(t, map[string]server{}, auth)
	admin := []string{"X-API-Key", mine}
	for _, text := range []string{`{"mcpServers": {}}`, `{"mcpServers": {}, "bridge": {"auth": {"keys": []}}}`, `{"mcpServers": {}, "bridge": {"auth": {"anonymous": {"allow": ["*/*"]}}}}`} {
		f.replace(text)
		until(t, "the file is refused: "+text, func() bool {
			return strings.Contains(string(p.do("GET", "/status", "", admin...).body), "no longer says who callers are")
		})
		if got := p.do("GET", "/tools", "").StatusCode; got != 401 {
			t.Errorf("%s: without a key %d, want 401", text, got)
		}
		f.replace(f.text(map[string]server{}))
		until(t, "the good file is back", func() bool {
			return !strings.Contains(string(p.do("GET", "/status", "", admin...).body), "no longer says")
		})
	}
}

// Keys come and go with the file, at once and for every request.
func TestKeysAreReplaced(t *testing.T) {
	mine, entry := newKey(t, "mine", map[string]any{"scopes": []string{"call", "admin"}})
	theirs, other := newKey(t, "theirs", map[string]any{"allow": []string{}})
	p, f := startFile(t, map[string]server{}, nil)
	security := func(header ...string) string {
		var doc struct{ Security json.RawMessage }
		_ = json.Unmarshal(p.do("GET", "/openapi.json", "", header...).body, &doc)
		return string(doc.Security)
	}
	status := func(header ...string) int { return p.do("GET", "/tools", "", header...).StatusCode }
	if security() != "" || status() != 200 || status("X-API-Key", mine) != 200 {
		t.Error("without keys in the file, not everybody is the anonymous caller")
	}
	replace := func(auth map[string]any) {
		t.Helper()
		f.more = map[string]any{"auth": auth}
		f.replace(f.text(map[string]server{}))
	}
	replace(map[string]any{"keys": []any{entry}})
	until(t, "a key is needed", func() bool {
		return status() == 401 && status("X-API-Key", mine) == 200 && security("X-API-Key", mine) == `[{"bearer":[]},{"apiKey":[]}]`
	})
	replace(map[string]any{"keys": []any{entry, other}, "anonymous": map[string]any{"allow": []string{}}})
	until(t, "there are guests, and another key", func() bool { return status() == 200 && status("X-API-Key", theirs) == 200 })
	if status("X-API-Key", "mcpb_wrong") != 401 {
		t.Error("a wrong key makes a guest")
	}
	if got := security(); got != `[{},{"bearer":[]},{"apiKey":[]}]` {
		t.Errorf("beside guests the document wants %s", got)
	}
	replace(map[string]any{"keys": []any{other}})
	until(t, "the first key is gone", func() bool { return status("X-API-Key", mine) == 401 && status("X-API-Key", theirs) == 200 })
	f.replace("{")
	until(t, "the file is read", func() bool { return strings.Contains(p.log(), "the configuration is not changed") })
	if status() != 401 || status("X-API-Key", theirs) != 200 {
		t.Error("a file that cannot be read has changed the keys")
	}
}

// Two bridges with one Redis share what a caller may spend; without it each counts for itself.
func TestBridgesShareRates(t *testing.T) {
	redis := redistest.Start(t)
	key, entry := newKey(t, "ci", map[string]any{"rate": "6/h"})
	more := map[string]any{"artifacts": map[string]any{"store": redis.URL()}, "auth": map[string]any{"keys": []any{entry}}}
	demo := map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}
	bridges := []*process{start(t, demo, more), start(t, demo, more)}
	for _, p := range bridges {
		until(t, "the server is there", func() bool { return len(p.names("X-API-Key", key)) > 0 })
	}
	spend := func(n int) (passed int) {
		for i := range n {
			res := bridges[i%2].do("POST", "/tools/demo/greet", `{"name":"x"}`, "X-API-Key", key)
			switch res.StatusCode {
			case 200:
				passed++
			case 429:
				if after := res.Header.Get("Retry-After"); len(after) != 3 { // nearly the 600 s that one call takes
					t.Errorf("Retry-After %s", after)
				}
			default:
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
		}
		return passed
	}
	if n := spend(4); n != 4 {
		t.Errorf("%d of 4 calls passed", n)
	}
	if n := spend(8); n != 2 {
		t.Errorf("%d more calls passed, want the 2 that were left of 6", n)
	}
	redis.Kill()
	if n := spend(4); n != 0 {
		t.Errorf("%d calls passed when the Redis had gone: each bridge knew that all is spent", n)
	}
}
