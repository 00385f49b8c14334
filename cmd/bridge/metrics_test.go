package main

import (
	"strings"
	"testing"
)

// What an operator watches: calls by server and outcome, reloads, states; and no text of callers.
func TestMetrics(t *testing.T) {
	mine, entry := newKey(t, "mine", map[string]any{"scopes": []string{"call", "metrics"}})
	other, otherEntry := newKey(t, "other", nil)
	ok := mode(t, "ok")
	more := map[string]any{"auth": map[string]any{"keys": []any{entry, otherEntry}}}
	p, f := startFile(t, map[string]server{"ok": ok}, more)
	until(t, "the bridge is ready", func() bool { return p.do("GET", "/readyz", "").StatusCode == 200 })
	p.do("POST", "/tools/ok/echo", `{"message":"x"}`, "X-API-Key", mine)
	p.do("POST", "/tools/ok/echo", `{"message":"x"}`, "X-API-Key", mine, "Prefer", "respond-async")
	p.do("POST", "/tools/ok/echo", `[]`, "X-API-Key", mine)
	p.do("POST", "/tools/s3cret/echo", `{}`, "X-API-Key", mine)
	p.do("POST", "/tools/s3cret/echo", `{}`)
	p.do("POST", "/tools/s3cret/echo", `{}`, "X-API-Key", mine, "Prefer", "wait=x")
	p.do("GET", "/resources/s3cret/content?s3cret=1", "")
	write(t, f.path, "{")
	wants := []string{
		`mcp_bridge_calls_total{code="",server="ok"} 2`,
		`mcp_bridge_calls_total{code="malformed-request",server="ok"} 1`,
		`mcp_bridge_calls_total{code="malformed-request",server=""} 1`,
		`mcp_bridge_calls_total{code="not-found",server=""} 1`,
		`mcp_bridge_call_duration_seconds_count{server="ok"} 3`,
		`mcp_bridge_servers{state="ready"} 2`, // with the built-in one
		`mcp_bridge_config_reloads_total{result="failed"} 1`,
		`mcp_bridge_config_stale 1`,
		`mcp_bridge_open_circuits{endpoint="mcp:ok"} 0`,
		`mcp_bridge_artifacts_total{result="kept"} 2`,
	}
	var text string
	until(t, "the metrics tell of all", func() bool {
		res := p.do("GET", "/metrics", "", "X-API-Key", mine)
		text = string(res.body)
		for _, want := range wants {
			if !strings.Contains(text, want+"\n") {
				return false
			}
		}
		return res.StatusCode == 200
	})
	if strings.Contains(text, "s3cret") {
		t.Error("the metrics show what a caller wrote")
	}
	if got := p.do("GET", "/metrics", "", "X-API-Key", other).StatusCode; got != 200 { // on loopback they are for all
		t.Errorf("without the scope, on loopback: %d", got)
	}
}
