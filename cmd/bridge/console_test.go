package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/web/webtest"
)

// An operator opens the console of a bridge that needs keys, below a base path: it asks for a
// key, shows which server is broken, why and what comes next, and then a call as it is
// made, over HTTP and over MCP. Each tool's link opens it in Swagger UI.
func TestConsole(t *testing.T) {
	mcptest.NoLeaks(t)
	root, rootEntry := newKey(t, "root", map[string]any{"scopes": []string{"call", "admin"}})
	ci, ciEntry := newKey(t, "ci", map[string]any{"allow": []string{"demo/greet"}})
	p := start(t, map[string]server{
		"demo":    {"command": "bridge", "args": []string{"demo"}},
		"weather": {"command": "bridge", "args": []string{"nonsense"}},
		"search":  {"url": "http://127.0.0.1:" + freePort(t) + "/mcp"},
	}, map[string]any{"basePath": "/tools-for/all", "auth": map[string]any{"keys": []any{rootEntry, ciEntry}}})
	p.base += "/tools-for/all"
	until(t, "the demo is there", func() bool { return slices.Contains(p.names("X-API-Key", root), "demo/greet") })
	res := p.call("demo", "greet", `{"name":"unseen-argument"}`, 200, "X-API-Key", ci, "Request-Id", "from-ci")
	if !strings.Contains(string(res.body), "unseen-argument") {
		t.Fatalf("%s", res.body)
	}
	call := fmt.Sprintf(`fetch('tools/demo/greet', {method: 'POST', headers: {'X-API-Key': %q, 'Content-Type': 'application/json', 'Request-Id': 'from-page'}, body: '{"name":"x"}'}).then((r) => r.text())`, root)
	overMCP := fmt.Sprintf(`fetch('mcp', {method: 'POST', headers: {'X-API-Key': %q, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'demo__add', 'MCP-Protocol-Version': '2026-07-28'}, body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'tools/call', params: {name: 'demo__add', arguments: {a: 1, b: 2}, _meta: {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': {name: 'x', version: '1'}, 'io.modelcontextprotocol/clientCapabilities': {}}}})}).then((r) => r.text())`, root)
	const rows = `[...document.querySelectorAll('.calls tbody tr')].map((r) => r.innerText.replace(/\s+/g, ' ').replace(/^[0-9:]+ /, ''))`
	s := webtest.Browse(t, webtest.Visit{URL: p.base + "/", Steps: []webtest.Step{
		{Wait: "#key-label", Text: "needs an API key"},
		{Fill: "#key-input", Text: root},
		{Press: "Enter"},
		{Wait: "#summary", Text: "2 of 3 servers are broken: search, weather"},
		{Value: `[...document.querySelectorAll('.servers tbody tr')].map((r) => r.innerText.replace(/\s+/g, ' '))`},
		{Wait: ".calls tbody tr", Text: "from-ci"},
		{Value: call},
		{Wait: ".calls tbody tr", Text: "from-page"},
		{Value: overMCP},
		{Wait: ".calls tbody tr", Text: "demo add"},
		{Value: rows},
		{Value: `document.body.innerText`},
		{Screenshot: filepath.Join(t.ArtifactDir(), "console.png")},
		{Click: "#tools summary"},
		{Click: "#tools .names li a >> text=greet"},
		{Wait: "#key label", Text: "needs"},
		{Fill: "#key input", Text: root},
		{Press: "Enter"},
		{Wait: ".opblock.is-open .opblock-summary", Text: "greet"},
		{Value: `location.pathname`},
	}})
	if len(s.Foreign) > 0 {
		t.Errorf("it asked other hosts: %q", s.Foreign)
	}
	for _, f := range s.Faults {
		if !strings.Contains(f, "401") && !strings.Contains(f, "console/events: net::ERR_ABORTED") { // of each the browser tells
			t.Errorf("the browser complained: %s", f)
		}
	}
	var servers, calls []string
	var all, path string
	for i, v := range map[int]any{0: &servers, 3: &calls, 4: &all, 5: &path} {
		if err := json.Unmarshal(s.Values[i], v); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]string{{"search Failed", "connection refused", "Tried again"}, {"weather Failed", "ended during the handshake", "Tried again"}, {"demo Ready"}} {
		for _, text := range want {
			if !strings.Contains(servers[i], text) {
				t.Errorf("row %d says %q, and not %q", i, servers[i], text)
			}
		}
	}
	if len(calls) != 3 || !strings.HasPrefix(calls[0], "demo add ok") || !strings.HasPrefix(calls[1], "demo greet ok 200") || !strings.HasSuffix(calls[2], "from-ci") {
		t.Errorf("calls: %q; the one over MCP was answered %s", calls, s.Values[2])
	}
	if strings.Contains(all, "unseen-argument") || strings.Contains(all, root) {
		t.Errorf("the page shows an argument or a key:\n%s", all)
	}
	if path != "/tools-for/all/tools/demo/docs" {
		t.Errorf("the link led to %s", path)
	}
	// The key that sees little is shown little.
	if got := p.snapshot("X-API-Key", ci); len(got.Servers) != 1 || got.Servers[0].Tools != 1 || len(got.Calls) != 1 || got.Calls[0].ID != "from-ci" || len(got.Circuits) != 1 {
		t.Errorf("a caller with one tool is shown %+v", got)
	}
	p.call("demo", "greet", `{"name":"x"}`, 202, "X-API-Key", ci, "Prefer", "respond-async")
	until(t, "the job is on the console", func() bool {
		calls := p.snapshot("X-API-Key", ci).Calls
		return len(calls) == 2 && calls[0].Name == "greet" && calls[0].Code == "" && calls[0].ID != ""
	})
}

// A consoleSnapshot is what tests need of the console's first event.
type consoleSnapshot struct {
	Servers  []struct{ Tools int }
	Circuits []struct{ Name string }
	Calls    []struct{ ID, Handle, Kind, Name, Code string }
}

// watch opens the events of the console.
func (p *process) watch(header ...string) (events *bufio.Reader, end func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/console/events", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("status %d", res.StatusCode)
	}
	return bufio.NewReader(res.Body), func() { cancel(); res.Body.Close() }
}

// snapshot returns what the console shows at first.
func (p *process) snapshot(header ...string) (s consoleSnapshot) {
	p.t.Helper()
	events, end := p.watch(header...)
	defer end()
	for {
		line, err := events.ReadString('\n')
		if err != nil {
			p.t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, `data: {"now"`); ok {
			if err := json.Unmarshal([]byte(`{"now"`+data), &s); err != nil {
				p.t.Fatal(err)
			}
			return s
		}
	}
}

// A key that is taken away ends the streams that it has opened, and the end of the bridge ends
// those of others without waiting for who looks.
func TestConsoleStreamsEnd(t *testing.T) {
	mcptest.NoLeaks(t)
	one, oneEntry := newKey(t, "one", nil)
	two, twoEntry := newKey(t, "two", nil)
	p, f := startFile(t, nil, map[string]any{"auth": map[string]any{"keys": []any{oneEntry, twoEntry}}, "shutdownGrace": "10m"})
	stays, end := p.watch("X-API-Key", one)
	defer end()
	goes, end := p.watch("X-API-Key", two)
	defer end()
	f.more["auth"] = map[string]any{"keys": []any{oneEntry}}
	f.replace(f.text(nil))
	if _, err := io.Copy(io.Discard, goes); err != nil { // returns at the end of the stream
		t.Errorf("the stream of a key that was taken away ended with %v", err)
	}
	if line, err := stays.ReadString('\n'); err != nil || line != ": open\n" {
		t.Errorf("the other one: %q, %v", line, err)
	}
	p.stop(syscall.SIGTERM) // which takes a minute at most
	if _, err := io.Copy(io.Discard, stays); err != nil {
		t.Errorf("at the end of the bridge the stream ended with %v", err)
	}
}
