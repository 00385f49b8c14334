package routes

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
)

// docs/http.md has every operation of the fixed surface, every parameter and header, and
// every problem, as the code has them.
func TestDocs(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "http.md")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc := newServer(Options{}).api.OpenAPI()
	tables := map[string]string{"problems": problemsTable(), "request headers": headersTable(doc, true), "answer headers": headersTable(doc, false), "query": queryTable(doc)}
	for _, tag := range doc.Tags {
		tables[tag.Name] = operationsTable(doc, tag.Name)
	}
	now := slices.Clone(old)
	for name, rows := range tables {
		begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- end -->\n")
		before, rest, found := bytes.Cut(now, begin)
		_, after, closed := bytes.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("docs/http.md has no place for %q", name)
		}
		now = slices.Concat(before, begin, []byte(rows), end, after)
	}
	if bytes.Equal(now, old) {
		return
	}
	if !*update {
		t.Fatal("docs/http.md is not what the code says; run make docs")
	}
	if err := os.WriteFile(file, now, 0o644); err != nil {
		t.Fatal(err)
	}
}

// An operation is one of the fixed surface.
type operation struct {
	method, path string
	*huma.Operation
}

// operations are in the order of their paths.
func operations(doc *huma.OpenAPI) []operation {
	var all []operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, o := range []operation{{"GET", path, item.Get}, {"POST", path, item.Post}, {"PUT", path, item.Put}, {"DELETE", path, item.Delete}} {
			if o.Operation != nil {
				all = append(all, o)
			}
		}
	}
	return all
}

// cell makes text fit for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func operationsTable(doc *huma.OpenAPI, tag string) string {
	var b strings.Builder
	b.WriteString("| operation | what | answers, besides problems |\n|---|---|---|\n")
	for _, o := range operations(doc) {
		if !slices.Contains(o.Tags, tag) {
			continue
		}
		var path strings.Builder
		path.WriteString(o.path)
		for _, p := range o.Parameters {
			if p.In == "query" && p.Required {
				path.WriteString("?" + p.Name + "=")
			}
		}
		var answers []string
		for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
			if status < "400" {
				answers = append(answers, status+": "+o.Responses[status].Description)
			}
		}
		what := o.Summary + "."
		if strings.HasSuffix(o.Summary, "?") {
			what = o.Summary
		}
		if o.Description != "" {
			what += " " + o.Description
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", o.method, path.String(), cell(what), cell(strings.Join(answers, " ")))
	}
	return b.String()
}

// A use is one meaning of a name, and the operations where it has that.
type use struct {
	name, means string
	where       []string
}

// usesTable lists uses by their names; those with one meaning have one row.
func usesTable(what string, uses map[[2]string][]string) string {
	all := make([]use, 0, len(uses))
	for k, where := range uses {
		all = append(all, use{k[0], k[1], where})
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.means, b.means)) })
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | meaning | where |\n|---|---|---|\n", what)
	for _, u := range all {
		where := "`" + strings.Join(u.where, "`, `") + "`"
		if len(u.where) > 6 {
			where = "everywhere"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", u.name, cell(u.means), where)
	}
	return b.String()
}

func queryTable(doc *huma.OpenAPI) string {
	uses := map[[2]string][]string{}
	for _, o := range operations(doc) {
		for _, p := range o.Parameters {
			if p.In == "query" && !regexp.MustCompile(`openapi.*(yaml|3\.0)`).MatchString(o.path) { // as openapi.json
				k := [2]string{p.Name, p.Description}
				uses[k] = append(uses[k], o.method+" "+o.path)
			}
		}
	}
	return usesTable("key", uses)
}

func headersTable(doc *huma.OpenAPI, request bool) string {
	uses := map[[2]string][]string{}
	add := func(name, means string, o operation) {
		k, where := [2]string{name, means}, o.method+" "+o.path
		if !slices.Contains(uses[k], where) {
			uses[k] = append(uses[k], where)
		}
	}
	for _, o := range operations(doc) {
		if request {
			for _, p := range o.Parameters {
				if p.In == "header" {
					add(p.Name, p.Description, o)
				}
			}
			continue
		}
		for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
			for name, h := range o.Responses[status].Headers {
				add(name, h.Description, o)
			}
		}
	}
	return usesTable("header", uses)
}

func problemsTable() string {
	kinds := slices.SortedFunc(maps.Keys(meanings), func(a, b bridge.Kind) int {
		return cmp.Or(cmp.Compare(meanings[a].status, meanings[b].status), cmp.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString("| status | code | what happened | what to do |\n|---|---|---|---|\n")
	for _, k := range kinds {
		m := meanings[k]
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", m.status, k, cell(m.what), cell(m.do))
	}
	return b.String()
}
