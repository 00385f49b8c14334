package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/config"
)

func readEntry(key config.EntryKey, text string, commands bool) (config.Server, []config.Problem, error) {
	b := config.DefaultBridge()
	return config.ReadEntry(key, []byte(text), config.EntryRules{Bridge: &b, Dir: "/etc/mcp", AllowCommands: commands})
}

// What the file refuses, an entry cannot have either; and some more.
func TestBadEntries(t *testing.T) {
	for _, tc := range []struct {
		name, entry string
		commands    bool
		want        string // pointer, space, message
	}{
		{"command", `{"command":"sh","args":["-c","id"]}`, false, "/command starts a process, which entries may only if bridge.admin.allowCommands is true"},
		{"command in disguise", `{"command":"sh","type":"local","disabled":true}`, false, "/command starts a process, which entries may only if bridge.admin.allowCommands is true"},
		{"command twice", `{"url":"http://x","url":"http://y"}`, false, "/url is here twice; first in line 1"},
		{"file of a key", `{"url":"https://x","tls":{"ca":"/etc/shadow"}}`, false, "/tls/ca names a file of the bridge's machine, which entries may only if bridge.admin.allowCommands is true"},
		{"hidden header", `{"url":"http://x","headers":{"X-Key":"[hidden]"}}`, false, "/headers/X-Key says [hidden], which stands for a secret that was not shown; send the secret itself"},
		{"hidden query", `{"url":"http://x/?[hidden]"}`, false, "/url says [hidden], which stands for a secret that was not shown; send the secret itself"},
		{"hidden credential", `{"url":"http://x","credential":{"clientId":"a","clientSecret":"[hidden]"}}`, false, "/credential/clientSecret says [hidden], which stands for a secret that was not shown; send the secret itself"},
		{"hidden in a disabled one", `{"url":"http://x","headers":{"X-Key":"[hidden]"},"disabled":true}`, false, "/headers/X-Key says [hidden], which stands for a secret that was not shown; send the secret itself"},
		{"caller", `{"url":"http://x","headers":{"U":"${caller.user}"},"sharing":"user"}`, false, "/headers/U refers to the caller, which only servers of the configuration file can"},
		{"many", `{"url":"ftp://x","timeout":"soon","tools":{"deny":["[a"]}}`, false, strings.Join([]string{
			"/url the value is not a URL that starts with http:// or https://",
			`/tools/deny/0 "[a" is not a glob: a [ without its ], or a backslash at the end`,
			`/timeout "soon" is not a duration: write 300ms, 20s, 5m, 1h30m or a number of seconds`,
		}, "\n")},
		{"a list", `[]`, false, " must be a mapping, not a list"},
		{"null", `null`, false, " is null; a server needs command or url"},
		{"nothing", ``, false, " not JSON (the file starts with a brace): the file ends in the middle of something"},
		{"deep", strings.Repeat("[", 1000), false, " nested more than 200 deep"},
		{"not UTF-8", "{\"url\":\"http://\xff\"}", false, " the file is not UTF-8"},
		{"large", `{"url":"http://x","title":"` + strings.Repeat("x", 1<<20) + `"}`, false, " the entry is larger than 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := readEntry(config.EntryKey{Handle: "a"}, tc.entry, tc.commands)
			e, ok := errors.AsType[*config.Error](err)
			if !ok {
				t.Fatalf("error = %v, want an *Error", err)
			}
			var got []string
			for _, p := range e.Problems {
				got = append(got, p.Pointer()+" "+p.Msg)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	_, _, err := readEntry(config.EntryKey{Handle: "a", User: "u"}, `{"url":"http://x","sharing":"tenant"}`, false)
	if err == nil || !strings.Contains(err.Error(), "one user's own") {
		t.Errorf("sharing of a user's own server: %v", err)
	}
}

func TestBadKeys(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, k := range []config.EntryKey{
		{},
		{Handle: "bridge"},
		{Handle: ".."},
		{Handle: "a\nb"},
		{Handle: long},
		{Handle: "\xff"},
		{Handle: "a", Tenant: "t"},
		{Handle: "a", User: long},
		{Handle: "a", User: "\xff"},
	} {
		if _, _, err := readEntry(k, `{"url":"http://x"}`, false); err == nil {
			t.Errorf("%.20q is a key", k)
		}
	}
	for _, k := range []config.EntryKey{
		{Handle: "a/b"}, {Handle: "\u00e9"}, {Handle: "a", User: "1_2"}, {Handle: "a", User: "a/b\n_service_\u00e9", Tenant: "t"},
	} {
		if _, _, err := readEntry(k, `{"url":"http://x"}`, false); err != nil {
			t.Errorf("%q: %v", k, err)
		}
	}
}

// Text is taken as it stands, and said to be.
func TestEntryExpandsNothing(t *testing.T) {
	t.Setenv("HOME", "/root")
	s, warnings, err := readEntry(config.EntryKey{Handle: "a"}, `{"url":"http://x/${HOME}","headers":{"X":"${file:/etc/passwd}$${y}${z"}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.URL.Text() + " " + s.Headers["X"].Text(); got != "http://x/${HOME} ${file:/etc/passwd}$${y}${z" {
		t.Errorf("text = %q", got)
	}
	var at []string
	for _, w := range warnings {
		at = append(at, w.Pointer())
	}
	if diff := cmp.Diff([]string{"/url", "/headers/X"}, at); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	s, _, err = readEntry(config.EntryKey{Handle: "a"}, `{"command":"run","cwd":"sub","env":{"K":"v"}}`, true)
	if err != nil || s.Cwd.Text() != "/etc/mcp/sub" || s.Env["K"].Text() != "v" {
		t.Errorf("with commands allowed: %+v, %v", s, err)
	}
}

func TestPointer(t *testing.T) {
	for path, want := range map[string]string{
		"":                         "",
		"timeout":                  "/timeout",
		"mcpServers.a.args[12]":    "/mcpServers/a/args/12",
		`headers["a/b~c.d [x]"]`:   "/headers/a~1b~0c.d [x]",
		`a["\"]"].b`:               `/a/"]/b`,
		"env[…]":                   "/env",
		"tools.deny[0]":            "/tools/deny/0",
		`["x y"].timeout`:          "/x y/timeout",
		"credential.scopes[1]":     "/credential/scopes/1",
		`types["\u00e9"][0]["\n"]`: "/types/\u00e9/0/\n",
	} {
		if got := (config.Problem{Path: path}).Pointer(); got != want {
			t.Errorf("Pointer of %q = %q, want %q", path, got, want)
		}
	}
}

// What is shown holds no secret, and says all the rest: read again it is the same server.
func TestShow(t *testing.T) {
	b := config.DefaultBridge()
	for _, tc := range []struct{ name, entry, want string }{
		{"plain", `{"url":"http://x/mcp","timeout":"45s","tools":{"allow":[],"deny":["b"]},"rate":"10/s","sharing":"user","heartbeat":0,"autoReconnect":false}`, ""},
		{"plain command", `{"command":"run","args":["a","b"],"cwd":"/tmp","name":"n","title":"t","description":"d","disabled":true,"disabledTools":["x"],"maxConcurrent":3,"idleTimeout":0,"startTimeout":"1s","handshakeTimeout":"2s","parseText":true,"checkResults":"strict","elicitation":true}`, ""},
		{"sse", `{"url":"http://x","type":"sse","reconnectDelay":"1s","protocol":"2024-11-05","forwardHeaders":["X-A"]}`, ""},
		{"tls", `{"url":"https://x","tls":{"ca":"/ca","serverName":"y"}}`, ""},
		{"headers", `{"url":"http://x","headers":{"x-key":"s3cret"}}`, `{"url":"http://x","headers":{"X-Key":"[hidden]"}}`},
		{"env", `{"command":"run","env":{"K":"s3cret"}}`, `{"command":"run","env":{"K":"[hidden]"}}`},
		{"query", `{"url":"http://x/mcp?token=s3cret&a=b"}`, `{"url":"http://x/mcp?[hidden]"}`},
		{"proxy", `{"url":"http://x","proxy":"http://u:s3cret@p:1"}`, `{"url":"http://x","proxy":"[hidden]"}`},
		{"no proxy", `{"url":"http://x","proxy":"none"}`, ""},
		{
			"credential", `{"url":"http://x","credential":{"clientId":"me","clientSecret":"s3cret","scopes":["a"],"issuer":"https://id"}}`,
			`{"url":"http://x","credential":{"clientId":"me","clientSecret":"[hidden]","scopes":["a"],"issuer":"https://id"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _, err := readEntry(config.EntryKey{Handle: "a"}, tc.entry, true)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Show(&b)
			if strings.Contains(string(got), "s3cret") {
				t.Errorf("shows a secret: %s", got)
			}
			if tc.want != "" {
				if string(got) != tc.want {
					t.Errorf("Show = %s, want %s", got, tc.want)
				}
				return
			}
			again, _, err := readEntry(config.EntryKey{Handle: "a"}, string(got), true)
			if err != nil || again.Fingerprint() != s.Fingerprint() {
				t.Errorf("Show = %s, which is another server: %v", got, err)
			}
			if !json.Valid(got) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
	expanded, _, err := config.Read(strings.NewReader(`{"mcpServers":{"a":{"url":"http://${H}/x","title":"t"},"b":{"command":"${H}","args":["${H}"]}}}`), "x", env(map[string]string{"H": "s3cret"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range expanded.Servers {
		if got := string(s.Show(&b)); strings.Contains(got, "s3cret") || !strings.Contains(got, "[hidden]") {
			t.Errorf("of what came from the environment: %s", got)
		}
	}
}

// Any difference, and nothing else, makes another fingerprint.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for _, entry := range []string{
		`{"url":"http://x"}`, `{"url":"http://y"}`, `{"url":"http://x","headers":{"A":"1"}}`, `{"url":"http://x","headers":{"A":"2"}}`,
		`{"url":"http://x","headers":{"A1":""}}`, `{"url":"http://x","headers":{"A":"1","B":"1"}}`, `{"url":"http://x","tools":{"allow":[]}}`, `{"url":"http://x","timeout":1}`,
		`{"url":"http://x","credential":{"clientId":"a","clientSecret":"b"}}`, `{"url":"http://x","credential":{"clientId":"a","clientSecret":"c"}}`,
		`{"command":"a","args":["b","c"]}`, `{"command":"a","args":["b c"]}`, `{"command":"a","disabled":true}`,
	} {
		s, _, err := readEntry(config.EntryKey{Handle: "a"}, entry, true)
		if err != nil {
			t.Fatal(err)
		}
		f := s.Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", entry, other)
		}
		seen[f] = entry
	}
	read := func(text string) string {
		cfg, _, err := config.Read(strings.NewReader(text), "/etc/x", noEnv)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Servers[0].Fingerprint()
	}
	one := read(`{"mcpServers":{"a":{"url":"http://x","headers":{"A":"1","B":"2"}}}}`)
	if two := read("\n\nmcpServers:\n  a: {headers: {B: '2', A: '1'}, url: http://x, timeout: 20}\n"); one != two {
		t.Errorf("%s and %s", one, two)
	}
}
