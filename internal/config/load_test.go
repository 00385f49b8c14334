package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/config"
)

func noEnv(string) string { return "" }

// Every mistake is reported at once, with the line it is on, in either format.
func TestMistakes(t *testing.T) {
	duplicate := "is here twice; first in line "
	msgs := []struct{ path, msg string }{
		{"mcpServers.files.timeout", `"20 sec" is not a duration: write 300ms, 20s, 5m, 1h30m or a number of seconds`},
		{"mcpServers.both", "has both command and url; a server has one of them"},
		{"mcpServers.bridge", "the name bridge is reserved for the bridge's own tools; give the server another"},
		{"mcpServers.search.url", "the value is not a URL that starts with http:// or https://"},
		{"mcpServers.search.headers.X-Key", "refers to ${SEARCH_KEY}, which is not set in the environment; ${SEARCH_KEY:-default} gives a default"},
		{"mcpServers.search.headers.Authorization", "the value holds a line break or another control character, which no header can"},
		{"mcpServers.events.type", `"carrier-pigeon" is not a transport: write stdio (or local, process), http (or streamable-http, mcp) or sse (or event-stream)`},
		{"mcpServers.events", duplicate},
		{"bridge.listen", `"8080" is not host:port, as 127.0.0.1:8080`},
		{"bridge.lisen", "unknown key; did you mean listen?"},
	}
	for _, tc := range []struct {
		file  string
		lines []int
		first string
	}{
		{"testdata/mistakes.yaml", []int{6, 7, 10, 13, 15, 16, 18, 20, 23, 24}, "17"},
		{"testdata/mistakes.json", []int{7, 9, 12, 14, 16, 17, 23, 26, 29, 30}, "22"},
	} {
		t.Run(tc.file, func(t *testing.T) {
			cfg, _, err := config.Load(tc.file, noEnv)
			if cfg != nil {
				t.Error("Load returned a configuration beside the error")
			}
			e, ok := errors.AsType[*config.Error](err)
			if !ok {
				t.Fatalf("Load = %v, want an *Error", err)
			}
			var want []config.Problem
			for i, m := range msgs {
				if m.msg == duplicate {
					m.msg += tc.first
				}
				want = append(want, config.Problem{Line: tc.lines[i], Path: m.path, Msg: m.msg})
			}
			if diff := cmp.Diff(want, e.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if e.Name != tc.file {
				t.Errorf("Name = %q, want %q", e.Name, tc.file)
			}
		})
	}
}

// read decodes text as a file in /etc/mcp, without an environment.
func read(t *testing.T, text string) (*config.Config, []config.Problem, error) {
	t.Helper()
	return config.Read(strings.NewReader(text), "/etc/mcp/bridge.yaml", noEnv)
}
