package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpbridge/internal/config"
)

// docs/operating.md lists the metrics that a scrape has.
func TestDocsListMetrics(t *testing.T) {
	p := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	p.ready()
	p.call("demo", "add", `{"a":1,"b":2}`, 200)
	labels := map[string][]string{}
	lines := strings.Split(string(p.get("/metrics").body), "\n")
	for _, line := range lines {
		if m := regexp.MustCompile(`^(mcp_bridge_\w+?)(?:_bucket|_sum|_count)?\{(.*)\} `).FindStringSubmatch(line); m != nil {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
				if label[1] != "le" && !slices.Contains(labels[m[1]], "`"+label[1]+"`") {
					labels[m[1]] = append(labels[m[1]], "`"+label[1]+"`")
				}
			}
		}
	}
	var rows strings.Builder
	rows.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	help := ""
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "# HELP mcp_bridge_"); ok {
			_, help, _ = strings.Cut(text, " ")
		}
		if text, ok := strings.CutPrefix(line, "# TYPE mcp_bridge_"); ok {
			name, kind, _ := strings.Cut(text, " ")
			fmt.Fprintf(&rows, "| `mcp_bridge_%s` | %s | %s | %s |\n", name, kind, strings.Join(labels["mcp_bridge_"+name], ", "), help)
		}
	}
	const begin, end, path = "<!-- metrics -->\n", "<!-- end -->\n", "../../docs/operating.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatal("docs/operating.md has no place for the metrics")
	case old == rows.String():
	case os.Getenv("UPDATE") == "":
		t.Errorf("docs/operating.md does not list the metrics that there are; run make docs:\n%s", rows.String())
	default:
		if err := os.WriteFile(path, []byte(before+begin+rows.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// docs/configuration.md says of each key of the bridge whether a change takes a restart.
func TestDocsSayWhatTakesARestart(t *testing.T) {
	full, _, err := config.Load("../../internal/config/testdata/full.json", func(string) string { return "x" })
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|.*\\| (a restart|nothing) \\|$").FindAllStringSubmatch(string(b), -1)
	if len(rows) < 40 {
		t.Fatalf("the table of bridge has %d rows", len(rows))
	}
	for _, row := range rows {
		running, next := config.DefaultBridge(), config.DefaultBridge()
		to, from := reflect.ValueOf(&next).Elem(), reflect.ValueOf(full.Bridge)
		for word := range strings.SplitSeq(row[1], ".") {
			named := func(field string) bool { return strings.EqualFold(field, word) }
			to, from = to.FieldByNameFunc(named), from.FieldByNameFunc(named)
		}
		if reflect.DeepEqual(to.Interface(), from.Interface()) {
			t.Fatalf("%s is as by default in the file of all keys", row[1])
		}
		to.Set(from)
		if restart := len(needRestart(&running, &next)) > 0; restart != (row[2] == "a restart") {
			t.Errorf("docs/configuration.md says that a change of %s takes %s", row[1], row[2])
		}
	}
}

// The links of the documents lead to files and headings that are there.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	for _, path := range docPaths(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			target, err := os.Stat(to)
			if err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[0])
				continue
			}
			if m[2] == "" || target.IsDir() {
				continue
			}
			text, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors(string(text)), m[2]) {
				t.Errorf("%s: %s leads to no heading; there are %q", path, m[0], anchors(string(text)))
			}
		}
	}
}

// anchors are the names of the document's headings.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}
