package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpbridge/internal/config"
)

// marker is in every secret of the fuzz targets.
const marker = "zQ9xV"

// lineBreaks makes all that YAML takes for the end of a line one.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// FuzzRead states what holds for any file: no panic; an error has problems,
// each with a line of the file; what came from the environment is in no message.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*.json", "testdata/hosts/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data), "\n")
			f.Add(string(data), "://")
		}
	}
	f.Add("a: &a [*a]", "x")
	f.Add("\r-", "x")
	f.Add("mcpServers: {a: &a {<<: *a}}", "x")
	f.Add(`{"bridge": {"listen": "${A}", "auth": {"keys": ["${B:-${C}}"]}}}`, "[")
	f.Add("mcpServers:\n  a: {url: 'http://x/${U}', headers: {A: '$${x}${V}'}}\n", "\x00")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if strings.Contains(text, marker) {
			return
		}
		secret += marker + secret
		cfg, warnings, err := config.Read(strings.NewReader(text), "testdata/x.yaml", func(string) string { return secret })
		if (cfg == nil) == (err == nil) {
			t.Fatalf("configuration %v, error %v", cfg, err)
		}
		last := 1 + strings.Count(lineBreaks.Replace(text), "\n")
		problems := warnings
		if err != nil {
			e, ok := errors.AsType[*config.Error](err)
			if !ok || len(e.Problems) == 0 {
				t.Fatalf("error is a %T without problems: %v", err, err)
			}
			problems = append(problems, e.Problems...)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > last {
				t.Errorf("line %d of %d: %s", p.Line, last, p)
			}
			if p.Msg == "" || strings.ContainsAny(p.String(), "\n\r\x00") {
				t.Errorf("not a line of text: %q", p)
			}
			if strings.Contains(p.String(), marker) {
				t.Errorf("shows a secret: %s", p)
			}
		}
		if cfg != nil {
			for _, s := range cfg.Servers {
				if strings.ContainsAny(s.Handle, "\n\x00") || s.Handle == "" || s.Transport == "" {
					t.Errorf("server %q, transport %q", s.Handle, s.Transport)
				}
			}
		}
	})
}

// FuzzSecrets puts text into env and headers, where nothing of it may be shown,
// whatever is wrong with it, and where good text arrives as it is.
func FuzzSecrets(f *testing.F) {
	for _, s := range []string{"", "x", "a\nb", "${A}", "${", "${file:x}", "${A:-}", "${caller.user}", "\x00", "é", " ", "*a", "!b", "- c: d", `"`} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, value string, asJSON bool) {
		value = marker + strings.ToValidUTF8(value, "")
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text := `{"mcpServers": {"a": {"command": "x", "env": {"K": ` + string(quoted) + `}}, "b": {"url": "http://x", "headers": {"K": ` + string(quoted) + `}}}}`
		if !asJSON {
			text = "mcpServers:\n  a: {command: x, env: {K: " + value + "}}\n  b:\n    url: http://x\n    headers:\n      K: " + value + "\n"
		}
		cfg, warnings, err := config.Read(strings.NewReader(text), "testdata/x.yaml", noEnv)
		for _, w := range warnings {
			// In YAML the text may end the value and go on with keys of its own.
			if asJSON && strings.Contains(w.String(), marker) {
				t.Errorf("warning shows a secret: %s", w)
			}
		}
		if err != nil {
			// The same holds for errors, but the value itself starts with the marker.
			if strings.Contains(err.Error(), marker) && (asJSON || !strings.ContainsAny(value, ":,{}[]\"\n?&")) {
				t.Errorf("error shows a secret: %v", err)
			}
			return
		}
		if asJSON && !strings.Contains(value, "$") {
			for i, got := range []config.Value{cfg.Servers[0].Env["K"], cfg.Servers[1].Headers["K"]} {
				if got.Text() != value || !got.Secret() {
					t.Errorf("%d: %q (secret %t), want %q", i, got.Text(), got.Secret(), value)
				}
			}
		}
	})
}

// FuzzCommandHandle: any command line has a handle that a file could have.
func FuzzCommandHandle(f *testing.F) {
	for _, s := range []string{"npx\n-y\n@a/b", "bridge\ndemo", "\n", "uvx\n--from\n", "docker\nrun\n-e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		argv := strings.Split(line, "\n")
		for _, handle := range []string{config.CommandHandle(argv), config.URLHandle(line)} {
			if handle == "" || handle == "bridge" || strings.Contains(handle, "__") || strings.ContainsFunc(handle, func(r rune) bool {
				return !(r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
			}) {
				t.Errorf("%q: handle %q", line, handle)
			}
		}
	})
}
