package routes

import (
	"errors"
	"net/http"
	"testing"

	"mcpbridge/internal/bridge"
)

// MCP clients pass the checks of all requests, and are known when they are let in.
func TestMCP(t *testing.T) {
	f := newFixture()
	var refuse error
	f.opts.BasePath = "/base"
	f.opts.Caller = func(r *http.Request) (bridge.Caller, error) {
		return bridge.Caller{User: r.Header.Get("User"), Scopes: bridge.ScopeCall}, refuse
	}
	f.opts.MCP = func(w http.ResponseWriter, r *http.Request, c bridge.Caller, _ bridge.Trace) {
		w.Header().Set("Saw", c.User+" "+r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusAccepted)
	}
	c := f.serve(t)
	for _, tt := range []struct {
		method, path, header string
		status               int
		saw                  string
	}{
		{"POST", "/base/mcp", "User: ann", 202, "ann POST /mcp"},
		{"GET", "/base/mcp/", "User: bob", 202, "bob GET /mcp/"},
		{"DELETE", "/base/mcp", "X: x", 202, "DELETE /mcp"},
		{"PUT", "/base/mcp", "X: x", 405, ""},
		{"POST", "/mcp", "X: x", 404, ""},
		{"POST", "/base/mcp/x", "X: x", 404, ""},
		{"POST", "/base/mcp", "Host: evil.example", 403, ""},
		{"POST", "/base/mcp", "Origin: https://evil.example", 403, ""},
	} {
		res := c.do(tt.method, tt.path, "", tt.header)
		if res.status != tt.status || res.header.Get("Saw") != tt.saw || res.header.Get("Request-Id") == "" {
			t.Errorf("%s %s %q: %d, saw %q; want %d, %q", tt.method, tt.path, tt.header, res.status, res.header.Get("Saw"), tt.status, tt.saw)
		}
	}
	refuse = &bridge.Error{Kind: Unauthenticated, Msg: "Who?", Err: errors.New("no key")}
	if res := c.do("POST", "/base/mcp", ""); res.status != 401 || res.header.Get("WWW-Authenticate") == "" || res.header.Get("Saw") != "" {
		t.Errorf("unknown: %d %v", res.status, res.header)
	}
	f.opts.MCP, refuse = nil, nil
	if res := f.serve(t).do("POST", "/base/mcp", ""); res.status != 404 {
		t.Errorf("without MCP: %d", res.status)
	}
}
