package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"mcpbridge/internal/config"
)

// What is not YAML or JSON at all: one message, the right line, and nothing of
// the text, which may be a secret.
func TestSyntaxErrors(t *testing.T) {
	const (
		notJSON = "not JSON (the file starts with a brace): "
		empty   = "line 1: the file is empty; write {} if nothing is meant"
		anchor  = "not YAML: a reference (*name) to an anchor that is not there; put quotes around text that starts with a star"
		tag     = "a tag (!…) that has no meaning here; put quotes around text that starts with an exclamation mark"
	)
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", empty},
		{"space", " \n\t\n", empty},
		{"comment", "# mcpServers:\n", empty},
		{"null", "---\n~\n", empty},
		{"latin-1", "a: b\nmcpServers: \xe9\n", "line 2: the file is not UTF-8"},
		{"utf-16", "\xff\xfe{\x00}\x00", "line 1: the file is not UTF-8"},
		{"control", "a:\n  b: \x01\n", "line 2: control character U+0001"},

		{"flow", "mcpServers:\n  a: {args: [x,\n  env: 1\n", "line 2: not YAML: did not find expected ',' or ']', here or further down"},
		{"indentation", "mcpServers:\n  a:\n    command: x\n   args: [y]\n", "line 2: not YAML: did not find expected key, here or further down"},
		{"tab", "mcpServers:\n\ta: 1\n", "line 2: not YAML: found character that cannot start any token"},
		{"escape", "mcpServers:\n  a: {env: {K: \"s3\\cret\"}}\n", "line 2: not YAML: found unknown escape character"},
		{"first line", "a: b: s3cret\n", "line 1: not YAML: mapping values are not allowed in this context"},
		{"at", "a:\n  K: @s3cret\n", "line 2: not YAML: found character that cannot start any token"},
		{"open quote", "a:\n  K: 's3cret\n", "line 2: not YAML: found unexpected end of stream"},
		{"anchor", "a:\n  K: *s3cret\n", "line 2: " + anchor},
		{"alias in itself", "a: &a\n  b: [*a]\n", "line 2: an alias inside what it stands for"},
		{"tag", "a:\n  K: !s3cret x\n", "line 2: " + tag},
		{"tag of a mapping", "a: !!set {x}\n", "line 1: " + tag},
		{"tag of a list", "a: !!omap [x]\n", "line 1: " + tag},
		{"binary", "a: !!binary czNjcmV0\n", "line 1: " + tag},
		{"key is a list", "? [a]\n: b\n", "line 1: a key must be text, not a list"},
		{"merge", "a:\n  <<: s3cret\n", "line 2: << merges a mapping, or a list of mappings, not text"},
		{"documents", "a: 1\n---\nb: 2\n", "line 2: a second document; the file holds one"},
		{"second document bad", "a: 1\n---\nb: [\n", "line 3: not YAML: did not find expected node content, here or further down"},
		{"deep YAML", "a: " + deep, "line 1: nested more than 200 deep"},

		{"no JSON", "{mcpServers: {}}", "line 1: " + notJSON + "no string, number, true, false or null of JSON; keys need quotes, too"},
		{"comma", "{\n\"a\": 1\n\"b\": 2}", "line 3: " + notJSON + "invalid character '\"' after object value (expecting ',' or '}')"},
		{"half a file", "{\"mcpServers\": {\n  \"a\": {\"command\": \"s3c\n", "line 2: " + notJSON + "the file ends in the middle of something"},
		{"open comment", "{ /* ", "line 1: " + notJSON + "the file ends in the middle of something"},
		{"bad escape", "{\n\"a\": \"s3\\cret\"}", "line 2: " + notJSON + "no string, number, true, false or null of JSON; keys need quotes, too"},
		{"line break in a string", "{\"a\": \"s3\ncret\"}", "line 1: " + notJSON + "no string, number, true, false or null of JSON; keys need quotes, too"},
		{"word", "{\n\"a\": s3cret}", "line 2: " + notJSON + "no string, number, true, false or null of JSON; keys need quotes, too"},
		{"more", "{}\n{}", "line 2: " + notJSON + "invalid character '{' after top-level value"},
		{"surrogate", "{\n\"a\": \"\\ud83d s3cret\"}", "line 2: not JSON: half a surrogate pair in a string"},
		{"low surrogate", "{\"a\": \"\\ude00\"}", "line 1: not JSON: half a surrogate pair in a string"},
		{"two high surrogates", "{\"a\": \"\\ud83d\\ud83d\"}", "line 1: not JSON: half a surrogate pair in a string"},
		{"NUL", "{\"a\": \"s3cret\\u0000\"}", "line 1: control character U+0000"},
		{"deep JSON", "{\"a\": /* [[ */ \"[[[\",\n// [\n\"b\":\n" + deep + "}", "line 4: nested more than 200 deep"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, tc.text, tc.want) })
	}
}

// Things that YAML decoders refuse, or change, in JSON.
func TestJSON(t *testing.T) {
	long := strings.Repeat("k", 5000)
	cfg, _, err := read(t, "\ufeff \n// comment\n/* { */ {\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {"+
		`"SLASH": "a\/b", "PAIR": "\ud83d\ude00\u00e9", "QUOTE": "\"\\\b\f\n\r\t", "BIG": 123456789012345678901234567890, "EXP": 1E400, "`+long+`": "long", "COLON":"a:b", "TAB":`+"\t"+`"no", "DEL": "`+"\\u007f"+`",},},},}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"SLASH": "a/b", "PAIR": "😀é", "QUOTE": "\"\\\b\f\n\r\t", "BIG": "123456789012345678901234567890", "EXP": "1E400",
		long: "long", "COLON": "a:b", "TAB": "no", "DEL": "\x7f",
	} {
		if got := cfg.Servers[0].Env[name].Text(); got != want {
			t.Errorf("%.10s = %q, want %q", name, got, want)
		}
	}
}

// Anchors and merges work, and explicit keys win.
func TestYAMLAliases(t *testing.T) {
	cfg, warnings, err := read(t, `
mcpServers:
  a: &base
    command: x
    timeout: 5s
    env: &env {K: 1}
    args: &args [-y]
  b:
    <<: *base
    timeout: 6s
  c: {<<: [{title: first}, {title: second, command: y}], args: *args, "env": *env}
  d: {command: z, env: {"<<": quoted, A: <<}}
`)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	b, _ := cfg.Server("b")
	c, _ := cfg.Server("c")
	d, _ := cfg.Server("d")
	if b.Command.Text() != "x" || b.Timeout.Seconds() != 6 || b.Env["K"].Text() != "1" {
		t.Errorf("b = %+v", b)
	}
	if c.Title != "first" || c.Command.Text() != "y" || c.Args[0].Text() != "-y" || c.Env["K"].Text() != "1" {
		t.Errorf("c = %+v", c)
	}
	if d.Env["<<"].Text() != "quoted" || d.Env["A"].Text() != "<<" {
		t.Errorf("d = %+v", d)
	}
	if _, ok := cfg.Server("e"); ok {
		t.Error("found a server that is not there")
	}
}

// A few lines that stand for billions of values end quickly.
func TestYAMLBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		from, to := string(rune('a'+i)), string(rune('a'+i+1))
		b.WriteString(to + "0: &" + to + "0 [" + strings.Repeat("*"+from+"0, ", 9) + "*" + from + "0]\n")
	}
	_, _, err := read(t, b.String())
	if err == nil || !strings.HasSuffix(err.Error(), "the file holds more than 200000 values, those that aliases stand for included") {
		t.Errorf("error: %v", err)
	}
	_, _, err = read(t, "{\"a\": ["+strings.Repeat("1,", 200_001)+"]}")
	if err == nil || err.Error() != "line 1: the file holds more than 200000 values" {
		t.Errorf("error: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	if _, _, err := config.Read(iotest.ErrReader(broken), "x", noEnv); !errors.Is(err, broken) {
		t.Errorf("Read = %v, want %v", err, broken)
	}
	if _, _, err := read(t, strings.Repeat("# long\n", 1<<20)); err == nil || err.Error() != "the file is larger than 4 MiB" {
		t.Errorf("Read of a large file = %v", err)
	}
	if _, _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), noEnv); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file = %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Find(dir); !errors.Is(err, config.ErrNoFile) || !strings.Contains(err.Error(), "bridge.yaml, bridge.json and mcp-servers-config.json in "+dir) {
		t.Errorf("Find in an empty directory = %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bridge.yaml"), 0o700); err != nil { // a directory is no file
		t.Fatal(err)
	}
	for _, name := range []string{"mcp-servers-config.json", "bridge.json"} {
		want := filepath.Join(dir, name)
		if err := os.WriteFile(want, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := config.Find(dir); got != want || err != nil {
			t.Errorf("Find = %s, %v; want %s", got, err, want)
		}
	}
	file := filepath.Join(dir, "bridge.json")
	if _, err := config.Find(file); err == nil || errors.Is(err, config.ErrNoFile) {
		t.Errorf("Find below a file = %v", err)
	}
}
