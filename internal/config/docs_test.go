package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var updateDocs = flag.Bool("update", false, "write docs/configuration.md anew")

// everyKey is a file in which the decoder finds a place to look for each key.
const everyKey = `{
	"mcpServers": {"local": {"command": "x"}, "remote": {"url": "http://x.example", "credential": {}}},
	"bridge": {"auth": {"keys": [{}], "jwt": [{}], "anonymous": {}}},
}`

// docs/configuration.md has every key that the decoder looks for, and no other, with the
// type and the default that the code has. What a key means is in docKeys.
func TestDocs(t *testing.T) {
	root, err := parse([]byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	looked := make(map[string]bool)
	d := &decoder{getenv: func(string) string { return "" }, heard: func(path string) {
		path = regexp.MustCompile(`^mcpServers\.(local|remote)`).ReplaceAllString(path, "mcpServers.*")
		looked[strings.ReplaceAll(path, "[0]", "[]")] = true
	}}
	d.file(root)
	documented := make(map[string]bool)
	for _, k := range docKeys {
		documented[k.path] = true
	}
	for path := range maps.Clone(looked) { // a mapping is documented by its keys, unless it can be something else too
		if i := strings.LastIndexByte(path, '.'); i >= 0 && !documented[path[:i]] {
			delete(looked, strings.TrimSuffix(path[:i], "[]"))
		}
	}
	for path := range looked {
		if !documented[path] {
			t.Errorf("the key %s is not documented: say in docKeys what it means", path)
		}
	}
	for _, k := range docKeys {
		if !looked[k.path] {
			t.Errorf("docKeys has %s, which the decoder does not look for", k.path)
		}
	}
	if t.Failed() {
		return
	}

	file := filepath.Join("..", "..", "docs", "configuration.md")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- keys of ([^ ]+) -->\n).*?(<!-- end -->\n)`)
	shown := 0
	now := table.ReplaceAllFunc(old, func(b []byte) []byte {
		m := table.FindSubmatch(b)
		rows, n := docTable(t, string(m[2]))
		shown += n
		return slices.Concat(m[1], []byte(rows), m[3])
	})
	if shown != len(docKeys) {
		t.Errorf("docs/configuration.md shows %d keys of %d: a table is missing", shown, len(docKeys))
	}
	if string(now) == string(old) {
		return
	}
	if !*updateDocs {
		t.Fatal("docs/configuration.md is not what the code says; run make docs")
	}
	if err := os.WriteFile(file, now, 0o644); err != nil {
		t.Fatal(err)
	}
}

// docTable is the table of the keys whose path is prefix and words behind it.
func docTable(t *testing.T, prefix string) (rows string, n int) {
	t.Helper()
	bridge := prefix == "bridge"
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |")
	if bridge {
		b.WriteString(" a change takes |")
	}
	b.WriteString("\n|---|---|---|---|")
	if bridge {
		b.WriteString("---|")
	}
	b.WriteByte('\n')
	for _, k := range docKeys {
		if docSection(k.path) != prefix {
			continue
		}
		n++
		name := strings.TrimPrefix(k.path, prefix+".")
		kind, def := k.kind, k.def
		if v, ok := docValue(prefix, name); ok {
			if kind == "" {
				kind = docKind(v)
			}
			if def == "" {
				def = docDefault(v)
			}
		}
		if kind == "" || def == "" {
			t.Errorf("%s: no field of the configuration has this name, so docKeys must have its type and default", k.path)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |", name, kind, def, k.means)
		if bridge {
			fmt.Fprintf(&b, " %s |", map[bool]string{true: "a restart", false: "nothing"}[k.restart])
		}
		b.WriteByte('\n')
	}
	return b.String(), n
}

// docSections are the tables, the longer names first.
var docSections = []string{
	"bridge.auth.keys[]", "bridge.auth.jwt[]", "bridge.auth.anonymous", "mcpServers.*.credential", "mcpServers.*.tls", "mcpServers.*", "bridge",
}

// docSection is the table that has the key, or "" for the top of the file.
func docSection(path string) string {
	for _, s := range docSections {
		if strings.HasPrefix(path, s+".") {
			return s
		}
	}
	return "file"
}

// docValue finds the value of a key in a configuration of defaults: fields have the names of keys.
func docValue(section, name string) (reflect.Value, bool) {
	b := DefaultBridge()
	server := newServer("", &b)
	v := map[string]reflect.Value{
		"bridge": reflect.ValueOf(b), "mcpServers.*": reflect.ValueOf(server), "mcpServers.*.credential": reflect.ValueOf(Credential{}),
		"mcpServers.*.tls": reflect.ValueOf(TLS{}), "bridge.auth.keys[]": reflect.ValueOf(Key{}), "bridge.auth.jwt[]": reflect.ValueOf(JWT{}),
		"bridge.auth.anonymous": reflect.ValueOf(Policy{}),
	}[section]
	for word := range strings.SplitSeq(name, ".") {
		if v.Kind() != reflect.Struct {
			return v, false
		}
		if v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, word) }); !v.IsValid() {
			return v, false
		}
	}
	return v, true
}

// docKind is how a type is called in the documentation.
func docKind(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "duration"
	case Rate:
		return "rate"
	case int64:
		return "size"
	case int:
		return "number"
	case bool:
		return "boolean"
	case Value, string:
		return "text"
	case []Value, []string:
		return "list"
	case map[string]Value:
		return "mapping"
	}
	return ""
}

// docDefault is a default as a file would have it, or a dash for none.
func docDefault(v reflect.Value) string {
	code := func(s string) string {
		if s == "" {
			return "none"
		}
		return "`" + s + "`"
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return code(docDuration(x))
	case int64:
		for _, u := range []struct {
			bytes int64
			name  string
		}{{1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if x%u.bytes == 0 {
				return code(strconv.FormatInt(x/u.bytes, 10) + u.name)
			}
		}
		return code(strconv.FormatInt(x, 10))
	case Value:
		return code(x.Text())
	case Rate:
		return "none"
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return "none"
	case reflect.String:
		return code(v.String())
	}
	return code(fmt.Sprint(v.Interface()))
}

// docDuration leaves out the zeros that a Duration prints: 10m for 10m0s.
func docDuration(d time.Duration) string {
	s := d.String()
	if d%time.Hour == 0 && d != 0 {
		return strings.TrimSuffix(s, "0m0s")
	}
	if d%time.Minute == 0 && d != 0 {
		return strings.TrimSuffix(s, "0s")
	}
	return s
}

// Each default is shown as the decoder reads it.
func TestDocDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 300 * time.Millisecond: "300ms", 20 * time.Second: "20s", 5 * time.Minute: "5m", 90 * time.Second: "1m30s", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m",
	} {
		if got := docDuration(d); got != want {
			t.Errorf("docDuration(%d) = %s, want %s", d, got, want)
		}
		if got, err := parseDuration(want); err != nil || got != d {
			t.Errorf("parseDuration(%s) = %v, %v", want, got, err)
		}
	}
}
