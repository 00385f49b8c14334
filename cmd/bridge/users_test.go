package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// rpc sends a message to /mcp and returns the answer.
func (p *process) rpc(message string, header ...string) response {
	p.t.Helper()
	return p.do("POST", "/mcp", message, append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
}

// session opens a session of /mcp and returns its id.
func (p *process) session(header ...string) string {
	p.t.Helper()
	res := p.rpc(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, header...)
	id := res.Header.Get("Mcp-Session-Id")
	if res.StatusCode != http.StatusOK || id == "" {
		p.t.Fatalf("initialize: %d %s", res.StatusCode, res.body)
	}
	return id
}

// Two users on one bridge, by keys: neither the sessions of /mcp nor the answers that are kept
// for an Idempotency-Key of one are of use to the other, and a session is no use without its user's key.
func TestNothingCrosses(t *testing.T) {
	keys := map[string]string{}
	var entries []any
	for _, user := range []string{"alice", "bob"} {
		key, entry := newKey(t, user, map[string]any{"allow": []string{"who/*"}})
		keys[user] = key
		entries = append(entries, entry)
	}
	root, entry := newKey(t, "root", nil)
	servers := map[string]server{
		"who":   with(with(mode(t, "ok"), "sharing", "user"), "env", map[string]string{"WHO": "${caller.user}"}),
		"other": mode(t, "ok", "other"),
	}
	p, f := startFile(t, servers, map[string]any{"auth": map[string]any{"keys": append(entries, entry)}})
	until(t, "the servers are there", func() bool { return len(p.names("X-API-Key", root)) > 0 })
	as := func(user string, more ...string) []string { return append([]string{"X-API-Key", keys[user]}, more...) }

	sessions := map[string]string{}
	for user := range keys {
		sessions[user] = p.session(as(user)...)
	}
	in := func(user string) []string { return as(user, "Mcp-Session-Id", sessions[user]) }
	who := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who__env","arguments":{"name":"WHO"}}}`
	var wg sync.WaitGroup
	for user := range keys {
		wg.Go(func() {
			for range 10 {
				if res := p.rpc(who, in(user)...); !strings.Contains(string(res.body), `"`+user+`"`) {
					t.Errorf("%s is told %s", user, res.body)
				}
				res := p.call("who", "env", `{"name":"WHO"}`, 200, as(user, "Idempotency-Key", "the same")...)
				if !strings.Contains(string(res.body), `"`+user+`"`) {
					t.Errorf("by the key of both, %s is told %s", user, res.body)
				}
			}
		})
	}
	wg.Wait()
	if list := p.rpc(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, in("alice")...); strings.Contains(string(list.body), "other__") || !strings.Contains(string(list.body), "who__env") {
		t.Errorf("alice's list is %s", list.body)
	}
	if res := p.rpc(strings.Replace(who, "who__env", "other__pid", 1), in("alice")...); !strings.Contains(string(res.body), `"code":-32602`) {
		t.Errorf("what alice does not see answers %s", res.body)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		res := p.do(method, "/mcp", map[string]string{"POST": who}[method], as("bob", "Mcp-Session-Id", sessions["alice"], "Accept", "application/json, text/event-stream")...)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("bob's %s in alice's session: %d %s", method, res.StatusCode, res.body)
		}
	}
	if res := p.rpc(who, in("alice")...); !strings.Contains(string(res.body), `"alice"`) {
		t.Errorf("after that, alice is told %s", res.body)
	}

	f.more = map[string]any{"auth": map[string]any{"keys": append(entries[1:], entry)}}
	f.replace(f.text(servers))
	until(t, "alice's key is gone", func() bool { return p.do("GET", "/tools", "", as("alice")...).StatusCode == http.StatusUnauthorized })
	if res := p.rpc(who, in("alice")...); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("her session without her key: %d %s", res.StatusCode, res.body)
	}
	if res := p.rpc(who, in("bob")...); !strings.Contains(string(res.body), `"bob"`) {
		t.Errorf("bob's session: %s", res.body)
	}
	for user, key := range keys {
		if strings.Contains(p.log(), key) {
			t.Errorf("the log shows the key of %s", user)
		}
	}
}
