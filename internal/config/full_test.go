package config_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbridge/internal/config"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// Every key, in both formats and in the spellings each allows.
func TestFull(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile("testdata/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	vars := env(map[string]string{"TOKEN": "t0ken", "NAME": "agent"})
	const zero = "0000000000000000000000000000000000000000000000000000000000000000"

	// Values are compared by what they show; their texts are compared below.
	want := &config.Config{
		Servers: []config.Server{
			{
				Handle: "files", Name: "file-server", Title: "Files", Description: "Reads and writes files: 100 % of them",
				Transport: config.Stdio, Command: config.Plain("npx"),
				Args: []config.Value{
					config.Plain("-y"), config.Plain("@modelcontextprotocol/server-filesystem"), config.Hidden("/data"), config.Plain("8080"),
				},
				Protocol: "auto",
				Tools:    config.Tools{Allow: []string{"*"}, Deny: []string{"write_*"}, Disabled: []string{"move_file", "edit_file"}},
				Timeout:  45 * time.Second, StartTimeout: 90 * time.Second, HandshakeTimeout: 2500 * time.Millisecond,
				MaxConcurrent: 3, Rate: config.Rate{Count: 100, Per: time.Minute},
				ReconnectDelay: 500 * time.Millisecond, Heartbeat: 10 * time.Minute,
				Sharing: config.PerUser, ParseText: true, CheckResults: config.CheckStrict, Elicitation: true,
			},
			{
				Handle: "search", Name: "search", Transport: config.HTTP,
				URL:            config.Hidden("https://mcp.example.com/mcp?key=t0ken"),
				ForwardHeaders: []string{"X-User-Id", "Traceparent"},
				TLS:            config.TLS{CA: dir + "/ca.pem", Cert: "/etc/client.pem", Key: "/etc/client.key", ServerName: "mcp.internal"},
				Proxy:          config.Hidden("http://user:pass@proxy.example.com:3128"),
				Protocol:       "2025-11-25", Timeout: 4 * time.Second, StartTimeout: 6 * time.Second, HandshakeTimeout: 7 * time.Second,
				IdleTimeout: 6 * time.Minute, AutoReconnect: true, ReconnectDelay: 5 * time.Second, Heartbeat: 10 * time.Minute,
				Sharing: config.PerTenant, CheckResults: config.CheckLog,
			},
			{
				Handle: "oauth", Name: "oauth", Transport: config.HTTP,
				URL: config.Plain("https://oauth.example.com/mcp"),
				Credential: &config.Credential{
					ClientID: config.Plain("bridge"), ClientSecret: config.Hidden("t0ken"), Scopes: []string{"read", "write"}, Issuer: "https://id.example.com",
				},
				Protocol: "auto", Timeout: 4 * time.Second, StartTimeout: 6 * time.Second, HandshakeTimeout: 7 * time.Second,
				IdleTimeout: 6 * time.Minute, AutoReconnect: true, ReconnectDelay: 5 * time.Second,
				Sharing: config.Shared, CheckResults: config.CheckLog,
			},
			{
				Handle: "signed", Name: "signed", Transport: config.HTTP,
				URL: config.Plain("https://signed.example.com/mcp"), Proxy: config.Plain("none"),
				Credential: &config.Credential{
					ClientID: config.Hidden("agent"), PrivateKey: config.Hidden(string(key[:len(key)-1])), KeyID: "k1", Algorithm: "ES256", Scopes: []string{"all"},
				},
				Protocol: "auto", Timeout: 4 * time.Second, StartTimeout: 6 * time.Second, HandshakeTimeout: 7 * time.Second,
				IdleTimeout: 6 * time.Minute, AutoReconnect: true, ReconnectDelay: 5 * time.Second, Heartbeat: 10 * time.Minute,
				Sharing: config.Shared, CheckResults: config.CheckLog,
			},
			{
				Handle: "events", Name: "events", Transport: config.SSE, URL: config.Plain("http://127.0.0.1:9000/sse"),
				Protocol: "auto", Timeout: 4 * time.Second, StartTimeout: 6 * time.Second, HandshakeTimeout: 7 * time.Second,
				IdleTimeout: 6 * time.Minute, AutoReconnect: true, ReconnectDelay: 5 * time.Second, Heartbeat: 10 * time.Minute,
				Sharing: config.Shared, CheckResults: config.CheckLog,
			},
			{
				Handle: "off", Name: "off", Disabled: true, Transport: config.Stdio, Command: config.Plain("later"),
				MaxConcurrent: 2,
				Protocol:      "auto", Timeout: 4 * time.Second, StartTimeout: 6 * time.Second, HandshakeTimeout: 7 * time.Second,
				IdleTimeout: 6 * time.Minute, AutoReconnect: true, ReconnectDelay: 5 * time.Second, Heartbeat: 10 * time.Minute,
				Sharing: config.Shared, CheckResults: config.CheckLog,
			},
		},
		Bridge: config.Bridge{
			Listen: "0.0.0.0:8443", BasePath: "/bridge/v1", Hosts: []string{"bridge.example.com", "10.0.0.1"},
			ReadyGrace: time.Second, DrainDelay: 1500 * time.Millisecond, ShutdownGrace: 2 * time.Second, CancelGrace: 3 * time.Second,
			Timeouts:         config.Timeouts{Call: 4 * time.Second, MaxTimeout: 5 * time.Minute, Start: 6 * time.Second, Handshake: 7 * time.Second},
			Pool:             config.Pool{StdioCalls: 1, StdioCallsPerServer: 2, HTTPCalls: 3, MaxProcesses: 4, Connects: 5, IdleTimeout: 6 * time.Minute},
			Breaker:          config.Breaker{Failures: 1, Cooldown: 2 * time.Second, MaxCooldown: 3 * time.Second},
			Limits:           config.Limits{RequestBytes: 1 << 20, ResultBytes: 2e9, Nesting: 3, ToolsPerServer: 4, Pages: 5},
			DescriptionChars: 100,
			Artifacts: config.Artifacts{
				Store: config.Hidden("redis://:t0ken@localhost:6379/0"), Bytes: 3 << 29, TTL: 2 * time.Hour,
				PromoteBytes: 3000, SummaryAfter: 400, SummaryChars: 300,
				Types: map[string]json.RawMessage{
					"link:paper": json.RawMessage(`{"type":"object","properties":{"year":{"maximum":9007199254740993,"multipleOf":1.10},"doi":{"pattern":"^10/<&>"}}}`),
					"anything":   json.RawMessage(`true`),
				},
			},
			Jobs:        config.Jobs{TTL: time.Minute, PerCaller: 2, InputWait: 3 * time.Minute, Events: 4},
			Idempotency: config.Idempotency{TTL: 12 * time.Hour},
			Auth: config.Auth{
				Keys: []config.Key{
					{
						ID: "ci", Hash: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", User: "ci", Tenant: "acme",
						Scopes: []config.Scope{config.ScopeCall, config.ScopeMetrics},
						Policy: config.Policy{
							Allow: []string{"files/*"}, Deny: []string{"*/delete_*"}, Rate: config.Rate{Count: 10, Per: time.Second},
							Burst: 20, Concurrent: 10, Timeout: time.Minute,
						},
					},
					{
						ID: "root", Hash: "sha256:" + zero, User: "admin", Scopes: []config.Scope{config.ScopeAdmin},
						Policy: config.Policy{Allow: []string{}},
					},
				},
				JWT: []config.JWT{
					{
						Issuer: "https://id.example.com", Audience: []string{"bridge"}, User: "email", Tenant: "org", Scopes: "scope",
						Policy: config.Policy{Allow: []string{"search/*"}},
					},
					{Issuer: "http://localhost:8081/realms/x", Audience: []string{"a", "b"}, User: "sub"},
				},
				Anonymous: &config.Policy{Allow: []string{"files/read_*"}, Rate: config.Rate{Count: 5, Per: time.Hour}},
			},
			CORS:         config.CORS{Origins: []string{"https://app.example.com", "http://localhost:5173"}},
			Sources:      config.Sources{Redis: config.Hidden("rediss://redis.example.com:6380/1")},
			Admin:        config.Admin{StateFile: dir + "/state.json", AllowCommands: true},
			OperationIDs: config.OperationIDsMCPO,
			Compat:       config.Compat{MCPO: true},
			Telemetry:    config.Telemetry{LogLevel: slog.LevelDebug, OTLP: "http://localhost:4318", DebugListen: "localhost:6060"},
		},
	}
	wantText := map[string]string{
		"env NODE_ENV": "production", "env PORT": "8080", "env VERSION": "1.10", "env DEBUG": "true", "env DAY": "2025-11-25",
		"env TOKEN": "t0ken", "env ROOT": "/srv/${caller.user}", "cwd": dir + "/users/${caller.user}",
		"header X-Key": "Bearer t0ken", "header X-Tenant": "${caller.tenant}", "header X-Lang": "${caller.header.Accept-Language}",
	}
	for _, file := range []string{"testdata/full.yaml", "testdata/full.json"} {
		t.Run(file, func(t *testing.T) {
			got, warnings, err := config.Load(file, vars)
			if err != nil {
				t.Fatal(err)
			}
			// The one pair of keys of which one takes the other's place.
			if len(warnings) != 1 || warnings[0].Path != "bridge.admin.stateFile" {
				t.Errorf("warnings: %v", warnings)
			}
			ignore := cmp.Options{
				cmpopts.IgnoreFields(config.Config{}, "Name", "Dir"),
				cmpopts.IgnoreFields(config.Server{}, "Line", "Env", "Headers", "Cwd"),
			}
			if diff := cmp.Diff(want, got, ignore); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
			text := make(map[string]string)
			files, _ := got.Server("files")
			text["cwd"] = files.Cwd.Text()
			for name, v := range files.Env {
				text["env "+name] = v.Text()
				if !v.Secret() {
					t.Errorf("env %s is not secret", name)
				}
			}
			search, _ := got.Server("search")
			for name, v := range search.Headers {
				text["header "+name] = v.Text()
				if !v.Secret() {
					t.Errorf("header %s is not secret", name)
				}
			}
			if diff := cmp.Diff(wantText, text); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"tenant", "header.Accept-Language"}, search.CallerRefs(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("CallerRefs (-want +got):\n%s", diff)
			}
		})
	}
}

// An empty mapping is all defaults, and so is a file that names no bridge.
func TestDefaults(t *testing.T) {
	for _, text := range []string{"{}", "mcpServers: {}\n", "mcpServers:\nbridge:\n  pool:\n", `{"mcpServers": null, "bridge": {"auth": null}}`} {
		got, warnings, err := read(t, text)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%q: err %v, warnings %v", text, err, warnings)
			continue
		}
		if diff := cmp.Diff(config.Default(), got, cmpopts.IgnoreFields(config.Config{}, "Name", "Dir")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	b := config.DefaultBridge()
	if b.Listen != "127.0.0.1:8080" || b.Timeouts.Call != 20*time.Second || b.Pool.MaxProcesses != 64 || b.Limits.ResultBytes != 64<<20 {
		t.Errorf("defaults differ from the table in the documentation: %+v", b)
	}
}
