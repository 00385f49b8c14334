package config_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/config"
)

// The files of other programs are taken as they are; what has no effect here
// is said, with its line.
func TestOtherProgramsFiles(t *testing.T) {
	for _, tc := range []struct {
		file     string
		servers  []string // handle, transport, command or URL
		warnings []string
	}{
		{"claude_desktop_config.json", []string{"filesystem stdio npx", "github stdio docker"}, nil},
		{
			"cursor_mcp.json",
			[]string{"local stdio uvx", "remote http https://mcp.example.com/mcp"},
			[]string{"line 3: mcpServers.local.envFile: has no effect; put the variables into env, as ${NAME} or ${file:path}"},
		},
		{
			"vscode_mcp.json",
			[]string{"github http https://api.example.com/mcp/", "memory stdio npx"},
			[]string{
				"line 3: inputs: has no effect: nobody is there to be asked; use ${NAME} and the environment",
				"line 8: servers.memory.dev: unknown key, has no effect",
			},
		},
		{
			"mcpo_config.json",
			[]string{
				"memory stdio npx", "time stdio uvx", "mcp_sse sse http://127.0.0.1:8001/sse",
				"mcp_streamable_http http http://127.0.0.1:8002/mcp", "oauth http http://localhost:8000/mcp",
			},
			[]string{"line 7: mcpServers.oauth.oauth: has no effect; write a credential"},
		},
		{
			"cline_settings.json",
			[]string{"weather stdio node", "old stdio node (disabled)", "web sse https://mcp.example.com/sse", "gemini stdio npx -y some-mcp"},
			[]string{
				"line 7: mcpServers.weather.autoApprove: has no effect; who may call a tool is in bridge.auth",
				"line 9: mcpServers.weather.transportType: unknown key, has no effect",
				"line 12: mcpServers.web.env: has no effect beside url",
				"line 12: mcpServers.web.headers.Accept: has no effect: the bridge sets this header itself",
				"line 13: mcpServers.gemini.command: is taken as the name of one program, spaces and all; put the other words into args",
				"line 13: mcpServers.gemini.includeTools: has no effect; write tools: {allow: […]}",
				"line 13: mcpServers.gemini.trust: has no effect; who may call a tool is in bridge.auth",
			},
		},
	} {
		t.Run(tc.file, func(t *testing.T) {
			cfg, warnings, err := config.Load("testdata/hosts/"+tc.file, env(map[string]string{"TZ": "UTC", "API_KEY": "k"}))
			if err != nil {
				t.Fatal(err)
			}
			var servers, warned []string
			for _, s := range cfg.Servers {
				text := fmt.Sprintf("%s %s %s%s", s.Handle, s.Transport, s.Command, s.URL)
				if s.Disabled {
					text += " (disabled)"
				}
				servers = append(servers, text)
			}
			for _, w := range warnings {
				warned = append(warned, w.String())
			}
			if diff := cmp.Diff(tc.servers, servers); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, warned); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Warnings come beside errors too, and in a spelling that was nearly right.
func TestWarnings(t *testing.T) {
	for _, tc := range []struct{ entry, want string }{
		{`{command: x, disabledTool: [a]}`, "line 2: mcpServers.a.disabledTool: unknown key, has no effect; did you mean disabledTools?"},
		{`{command: x, maxConcurrrent: 1, url: y}`, "line 2: mcpServers.a.maxConcurrrent: unknown key, has no effect; did you mean maxConcurrent?"},
		{`{command: x, headers: {K: s3cret}}`, "line 2: mcpServers.a.headers: has no effect beside command; a process takes its secrets from env"},
		{`{url: "http://x", cwd: /tmp, args: [s3cret]}`, "line 2: mcpServers.a.args: has no effect beside url\nline 2: mcpServers.a.cwd: has no effect beside url"},
		{`{serverUrl: "http://x"}`, "line 2: mcpServers.a.serverUrl: has no effect; write url"},
		{`{command: /opt/my server}`, ""},
		{`{command: my server, args: []}`, ""},
		{`{command: x, url: null, headers: {}, proxy: ""}`, ""},
	} {
		_, warnings, _ := read(t, "mcpServers:\n  a: "+tc.entry)
		var warned []string
		for _, w := range warnings {
			warned = append(warned, w.String())
		}
		if got := lines(warned...); got != tc.want {
			t.Errorf("%s: warnings:\n%s\nwant:\n%s", tc.entry, got, tc.want)
		}
	}
}

// All words for the transports, in any case.
func TestTransportWords(t *testing.T) {
	words := map[config.Transport][]string{
		config.Stdio: {"stdio", "local", "process", "STDIO"},
		config.HTTP:  {"http", "streamable-http", "streamable_http", "streamableHttp", "mcp", ""},
		config.SSE:   {"sse", "server-sent-events", "event-stream", "SSE"},
	}
	for want, ws := range words {
		entry := "url: http://x"
		if want == config.Stdio {
			entry = "command: x"
		}
		for _, w := range ws {
			for _, key := range []string{"type", "transport"} {
				text := fmt.Sprintf("mcpServers: {a: {%s, %s: %s}}", entry, key, w)
				cfg, warnings, err := read(t, text)
				if err != nil || len(warnings) > 0 {
					t.Errorf("%s: %v %v", text, err, warnings)
					continue
				}
				if got := cfg.Servers[0].Transport; got != want {
					t.Errorf("%s: transport %s, want %s", text, got, want)
				}
			}
		}
	}
}
