package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// behind runs a test with bridge A in front of a bridge B in front of real
// servers, once over each way in which B publishes them: what A offers as
// b/ok__echo is B's ok/echo.
func behind(t *testing.T, test func(t *testing.T, a *process)) {
	servers := func(t *testing.T) map[string]server {
		return map[string]server{
			"ok": mode(t, "ok"), "exact": mode(t, "exact"), "results": mode(t, "results"),
			"names": mode(t, "names"), "schemas": mode(t, "schemas"), "pages": mode(t, "pages", "1200", "500"),
		}
	}
	for name, protocol := range map[string]string{"modern": "auto", "sessions": "2025-11-25", "oldest": "2024-11-05"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, servers(t), nil)
			a := start(t, map[string]server{"b": {"url": b.base + "/mcp", "protocol": protocol}}, nil)
			a.ready()
			test(t, a)
		})
	}
	t.Run("stdio", func(t *testing.T) {
		a := start(t, map[string]server{"b": published(t, servers(t))}, nil)
		a.ready()
		test(t, a)
	})
}

// published returns the entry of a bridge that publishes these servers over stdio.
func published(t *testing.T, servers map[string]server) server {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "published.json")
	write(t, path, string(b))
	program, err := exec.LookPath("bridge")
	if err != nil {
		t.Fatal(err)
	}
	return server{"command": program, "args": []string{"mcp", "--config", path}}
}

func TestBridgeBehindBridge(t *testing.T) {
	behind(t, func(t *testing.T, a *process) {
		for _, tt := range []struct{ tool, args, want string }{
			{"exact__numbers", `{}`, exactNumbers},
			{"exact__unknown_blocks", `{}`, `{"content":` + exactBlocks + `}`},
			{"exact__surrogate", `{}`, exactSurrogate},
			{"ok__answer", answer(`{"content" : [ ], "structuredContent":{ "n":1.10 } }`), `{ "n":1.10 }`},
			{"ok__huge", `{"bytes":3000000}`, ""},
		} {
			// That artifact can be read again means that its reference came through.
			_, res := a.artifact("b", tt.tool, tt.args)
			if tt.want != "" && string(res.body) != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", tt.tool, res.body, tt.want)
			}
		}
		const args = `{"z":9007199254740993, "price":1.10,"a":1e400,"html":"<b>&</b>"}`
		var echoed struct{ Content []struct{ Text string } }
		decode(t, a.call("b", "ok__args", args, 200), &echoed)
		if echoed.Content[0].Text != args {
			t.Errorf("the arguments came as %s, want %s", echoed.Content[0].Text, args)
		}
	})
}
