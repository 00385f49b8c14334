package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/config"
)

func TestCommandHandle(t *testing.T) {
	for line, want := range map[string]string{
		// Node
		"npx -y @modelcontextprotocol/server-everything":         "everything",
		"npx -y @modelcontextprotocol/server-filesystem@1.2 /d":  "filesystem",
		"npx --yes mcp-server-memory":                            "memory",
		"npx -y @playwright/mcp@latest --headless":               "playwright",
		"npx -y -p @acme/tools-mcp acme":                         "tools",
		"npx --package=@acme/mcp acme":                           "acme",
		"npx -y @upstash/context7-mcp":                           "context7",
		"/usr/bin/npx -y firecrawl-mcp":                          "firecrawl",
		"npx.cmd -y my_mcp_server":                               "my",
		"npx mcp-remote https://mcp.example.com/sse":             "remote",
		"pnpm dlx @acme/weather-server":                          "weather",
		"npm exec -- @acme/weather-server":                       "weather",
		"bunx foo-mcp":                                           "foo",
		"node /home/me/weather/build/index.js":                   "weather",
		"node --env-file .env dist/main.js":                      "server",
		"node node_modules/@acme/mcp-server-notes/dist/index.js": "notes",
		"node C:\\Users\\me\\notes\\dist\\index.js":              "notes",
		"deno run -A jsr:@acme/clock":                            "clock",
		// Python
		"uvx mcp-server-time":                               "time",
		"uvx mcp-server-time==1.2.3":                        "time",
		"uvx mcp-server-git[extra]>=2":                      "git",
		"uvx --from mcp-server-fetch mcp-fetch":             "fetch",
		"uvx --from git+https://example.com/acme/serena s":  "s",
		"uvx git+https://example.com/acme/serena.git":       "serena",
		"uv --directory /opt/weather run weather.py":        "weather",
		"uv tool run mcp-server-sqlite --db x":              "sqlite",
		"uv run -m notes_mcp":                               "notes",
		"python -m mcp_server_time --local-timezone=UTC":    "time",
		"python3.12 /opt/weather/server.py":                 "weather",
		"python3 -u /path/to/foo-server.py":                 "foo",
		"pipx run mcp-server-git":                           "git",
		"/home/me/.venv/bin/python /srv/jira/src/server.py": "jira",
		// Others
		"docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server":  "github",
		"docker run --rm -i --mount type=bind,src=/a,dst=/b mcp/time:1": "time",
		"podman run -i localhost:5000/acme/mcp-notes@sha256:abc":        "notes",
		"java -jar /opt/weather-mcp.jar":                                "weather",
		"java -cp x -Dfoo=bar -jar app.jar":                             "server",
		"go run ./cmd/notes":                                            "notes",
		"env FOO=bar npx -y mcp-server-time":                            "time",
		"env -u FOO BAR=1 uvx mcp-server-git":                           "git",
		"/path/to/foo-server.py":                                        "foo",
		"/path/to/foo-server.py --port 1":                               "foo",
		"./weather/server.py":                                           "weather",
		"server.py":                                                     "server",
		"./server":                                                      "server",
		"mcp":                                                           "server",
		"mcp-server":                                                    "server",
		"bridge demo":                                                   "demo",
		"/usr/local/bin/bridge demo":                                    "demo",
		"bin/bridge --verbose demo":                                     "demo",
		"bridge":                                                        "server",
		"bridge-mcp":                                                    "server",
		"npx":                                                           "npx",
		"npx -y":                                                        "npx",
		"sh -c":                                                         "sh",
		"my__tool_":                                                     "my-tool",
		"Weather.v2":                                                    "Weather-v2",
		"ünïcode":                                                       "n-code",
		"日本":                                                            "server",
		"@":                                                             "server",
		"env":                                                           "env",
		"env env env env env":                                           "env",
	} {
		if got := config.CommandHandle(strings.Fields(line)); got != want {
			t.Errorf("CommandHandle(%s) = %q, want %q", line, got, want)
		}
	}
	if got := config.CommandHandle(nil); got != "server" {
		t.Errorf("CommandHandle(nil) = %q", got)
	}
}

func TestURLHandle(t *testing.T) {
	for url, want := range map[string]string{
		"https://mcp.example.com/mcp":             "example",
		"https://mcp.linear.app/sse":              "linear",
		"https://api.githubcopilot.com/mcp/":      "githubcopilot",
		"https://example.com/":                    "example",
		"https://search.example.com/mcp":          "search",
		"https://mcp.api.example.co.uk/":          "example",
		"https://weather-mcp.example.com/":        "weather",
		"https://mcp.com/":                        "server",
		"https://mcp.com/weather":                 "weather",
		"http://localhost:3000/mcp":               "server",
		"http://localhost:3000/weather/mcp":       "weather",
		"http://127.0.0.1:8000/servers/notes/mcp": "notes",
		"http://[::1]:8000/":                      "server",
		"http://bridge/mcp":                       "server",
		"http://bridge.example.com/tools":         "tools",
		"http://%zz":                              "server",
	} {
		if got := config.URLHandle(url); got != want {
			t.Errorf("URLHandle(%s) = %q, want %q", url, got, want)
		}
	}
}

// What the command line gives is what a file with the same server gives.
func TestFromCommand(t *testing.T) {
	argv := []string{"npx", "-y", "mcp-server-time", "${HOME}", "a b", ""}
	got, err := config.FromCommand(argv)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := config.Read(strings.NewReader(`mcpServers: {time: {command: npx, args: [-y, mcp-server-time, "${HOME}", a b, ""]}}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Dir, want.Servers[0].Line = "", 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FromCommand (-want +got):\n%s", diff)
	}
	for _, argv := range [][]string{nil, {}, {""}, {"a\x00"}, {"a", "\x00"}} {
		if _, err := config.FromCommand(argv); err == nil {
			t.Errorf("FromCommand(%q): no error", argv)
		}
	}
	if argv := slices.Repeat([]string{"x"}, 3); config.CommandHandle(argv) != "x" || !slices.Equal(argv, []string{"x", "x", "x"}) {
		t.Errorf("CommandHandle changed its argument: %q", argv)
	}
}

func TestFromURL(t *testing.T) {
	got, err := config.FromURL("https://mcp.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := config.Read(strings.NewReader(`mcpServers: {example: {url: "https://mcp.example.com/mcp"}}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Dir, want.Servers[0].Line = "", 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FromURL (-want +got):\n%s", diff)
	}
	for _, url := range []string{"", "mcp.example.com", "file:///etc/passwd", "https://u:s3cret@x/"} {
		if _, err := config.FromURL(url); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("FromURL(%q) = %v", url, err)
		}
	}
}
