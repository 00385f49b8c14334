package config_test

import (
	"fmt"
	"strings"

	"mcpbridge/internal/config"
)

func Example() {
	file := `
mcpServers:
  files: {command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /data], tools: {deny: [write_*]}}
  search: {url: "https://mcp.example.com/mcp", headers: {X-Key: "${SEARCH_KEY}"}, timeout: 45s}
bridge:
  listen: 127.0.0.1:9000
`
	getenv := func(name string) string { return map[string]string{"SEARCH_KEY": "a secret"}[name] }
	cfg, warnings, err := config.Read(strings.NewReader(file), "bridge.yaml", getenv)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	for _, s := range cfg.Servers {
		fmt.Println(s.Handle, s.Transport, s.Timeout)
	}
	search, _ := cfg.Server("search")
	key := search.Headers["X-Key"]
	fmt.Println(key, len(key.Text()))
	fmt.Println(cfg.Bridge.Listen, cfg.Bridge.Pool.MaxProcesses)
	// Output:
	// files stdio 20s
	// search http 45s
	// [hidden] 8
	// 127.0.0.1:9000 64
}

// Everything that is wrong is said at once. What has no effect is a warning.
func ExampleRead_problems() {
	file := `{
  "mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"], "timeout": "soon", "autoApprove": ["now"]},
    "search": {"url": "https://mcp.example.com/mcp", "headers": {"X-Key": "${SEARCH_KEY}"}}
  },
  "bridge": {"lisen": ":8080"}
}`
	_, warnings, err := config.Read(strings.NewReader(file), "bridge.json", func(string) string { return "" })
	fmt.Println(err)
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	// Output:
	// line 3: mcpServers.time.timeout: "soon" is not a duration: write 300ms, 20s, 5m, 1h30m or a number of seconds
	// line 4: mcpServers.search.headers.X-Key: refers to ${SEARCH_KEY}, which is not set in the environment; ${SEARCH_KEY:-default} gives a default
	// line 6: bridge.lisen: unknown key; did you mean listen?
	// warning: line 3: mcpServers.time.autoApprove: has no effect; who may call a tool is in bridge.auth
}

func ExampleFromCommand() {
	cfg, err := config.FromCommand([]string{"npx", "-y", "@modelcontextprotocol/server-everything"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := cfg.Servers[0]
	fmt.Println(s.Handle, s.Command, s.Args)
	// Output: everything npx [-y @modelcontextprotocol/server-everything]
}

func ExampleCheckExposure() {
	fmt.Println(config.CheckExposure("127.0.0.1:8080", false, false))
	fmt.Println(config.CheckExposure("0.0.0.0:8080", false, false))
	// Output:
	// <nil>
	// listen: "0.0.0.0:8080" can be reached from other machines, and nothing says who may call: set bridge.auth.keys or bridge.auth.jwt, listen on 127.0.0.1, or allow it with --insecure-no-auth
}

// A value can refer to the caller; it is complete when a call comes in.
func ExampleValue_Resolve() {
	file := `mcpServers: {notes: {command: notes-mcp, sharing: user, env: {NOTES_DIR: "/srv/notes/${caller.user}"}}}`
	cfg, _, err := config.Read(strings.NewReader(file), "bridge.yaml", func(string) string { return "" })
	if err != nil {
		fmt.Println(err)
		return
	}
	dir := cfg.Servers[0].Env["NOTES_DIR"]
	text, err := dir.Resolve(func(ref string) (string, error) {
		return map[string]string{"user": "ada"}[ref], nil
	})
	fmt.Println(dir.Caller(), text, err)
	// Output: [user] /srv/notes/ada <nil>
}
