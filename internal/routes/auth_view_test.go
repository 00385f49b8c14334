package routes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// For random rules: what a caller's lists have, its documents show and its calls reach
// is the same set, that of the predicate.
func TestOneSetOfTools(t *testing.T) {
	handles := []string{"files", "search", "a/b", "bridge"}
	tools := []string{"read", "write_all", "delete", "x/y", "a b", "docs"}
	var servers []*bridge.Server
	for _, h := range handles {
		servers = append(servers, newToolServer(h, tools...))
	}
	slices.SortFunc(servers, func(a, b *bridge.Server) int { return strings.Compare(a.Handle, b.Handle) })
	f := newFixture(servers...)
	var rule *bridge.Rule
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{ID: "key", Scopes: bridge.ScopeCall, Rule: rule}, nil
	}
	f.allows = func(handle, tool string) bool {
		return identity.Rules{}.Allows(bridge.Caller{Rule: rule}, handle, tool)
	}
	c := f.serve(t)

	parts := []string{"*", "files", "search", "a/b", "bridge", "a*", "*e*", "read", "write_*", "x/y", "[a-d]*", "?*", "nothing"}
	random := rand.New(rand.NewPCG(1, 2)) // the same ones each time
	globs := func(most int) []string {
		var list []string
		for range random.IntN(most + 1) {
			g := parts[random.IntN(len(parts))]
			if random.IntN(4) > 0 {
				g += "/" + parts[random.IntN(len(parts))]
			}
			list = append(list, g)
		}
		return list
	}
	sizes := map[int]bool{}
	for i := range 60 {
		rule = &bridge.Rule{Allow: globs(4), Deny: globs(2)}
		switch i {
		case 0:
			rule = nil
		case 1:
			rule = &bridge.Rule{Allow: []string{}}
		}
		want := []string{}
		for _, h := range handles {
			for _, tool := range tools {
				if f.allows(h, tool) {
					want = append(want, h+" "+tool)
				}
			}
		}
		slices.Sort(want)
		sizes[len(want)] = true
		for name, got := range map[string][]string{
			"GET /tools":                   seen(t, c, handles, false),
			"GET /tools?handles=":          seen(t, c, handles, true),
			"the calls":                    reached(t, c, handles, tools),
			"the descriptions":             described(c, handles, tools),
			"/openapi.json":                documented(t, c, "", "/openapi.json", handles),
			"/openapi-3.0.json":            documented(t, c, "", "/openapi-3.0.json", handles),
			"/openapi.json?profile=flat":   documented(t, c, "", "/openapi.json?profile=flat", handles),
			"/openapi.json?handles= each":  documented(t, c, "each", "/openapi.json", handles),
			"the documents of the servers": documented(t, c, "own", "/openapi.json", handles),
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("rule %+v, %s (-want +got):\n%s", rule, name, diff)
			}
		}
	}
	if len(sizes) < 6 {
		t.Errorf("the rules allowed only %v tools", sizes)
	}
}

func fetch(t *testing.T, c *client, path string, v any) bool {
	t.Helper()
	r := c.do("GET", path, "")
	if r.status == http.StatusNotFound {
		return false
	}
	if err := json.Unmarshal([]byte(r.body), v); err != nil || r.status != 200 {
		t.Fatalf("GET %s: %d, %v: %s", path, r.status, err, r.body)
	}
	return true
}

func seen(t *testing.T, c *client, handles []string, one bool) []string {
	t.Helper()
	queries := []string{""}
	if one {
		queries = nil
		for _, h := range handles {
			queries = append(queries, "?handles="+url.QueryEscape(h))
		}
	}
	all := []string{}
	for _, q := range queries {
		var list Catalogue
		fetch(t, c, "/tools"+q, &list)
		servers := map[string]int{}
		for _, tool := range list.Tools {
			all = append(all, tool.Handle+" "+tool.Name)
			servers[tool.Handle]++
		}
		for _, s := range list.Servers {
			if servers[s.Handle] != s.ToolCount || s.ToolCount == 0 {
				t.Errorf("GET /tools%s: %s says that it has %d tools, and %d are listed", q, s.Handle, s.ToolCount, servers[s.Handle])
			}
		}
	}
	slices.Sort(all)
	return all
}

func reached(t *testing.T, c *client, handles, tools []string) []string {
	t.Helper()
	all := []string{}
	for _, h := range handles {
		for _, tool := range tools {
			r := c.do("POST", "/tools/"+url.PathEscape(h)+"/"+url.PathEscape(tool), "{}")
			switch r.status {
			case 200:
				all = append(all, h+" "+tool)
			case 404:
			default:
				t.Errorf("%s/%s: %d %s", h, tool, r.status, r.body)
			}
		}
	}
	slices.Sort(all)
	return all
}

func described(c *client, handles, tools []string) []string {
	all := []string{}
	for _, h := range handles {
		for _, tool := range tools {
			path := "/tools/" + url.PathEscape(h) + "/" + url.PathEscape(tool)
			if tool == "docs" { // whose path is a page
				path = "/tools/" + url.PathEscape(h) + "?q=docs"
			}
			if r := c.do("GET", path, ""); r.status == 200 && (tool != "docs" || strings.Contains(r.body, `"name":"docs"`)) {
				all = append(all, h+" "+tool)
			}
		}
	}
	slices.Sort(all)
	return all
}

// documented returns the tools of a document, of one for each handle's narrowing, or of the servers' own.
func documented(t *testing.T, c *client, which, path string, handles []string) []string {
	t.Helper()
	all := []string{}
	add := func(at, prefix string) {
		var doc struct{ Paths map[string]any }
		if !fetch(t, c, at, &doc) {
			return
		}
		for p := range doc.Paths {
			handle, tool, _ := strings.Cut(strings.TrimPrefix(prefix+p, "/tools/"), "/")
			h, err := url.PathUnescape(handle)
			n, err2 := url.PathUnescape(tool)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			all = append(all, h+" "+n)
		}
	}
	if which == "" {
		add(path, "")
	}
	for _, h := range handles {
		switch which {
		case "each":
			add(fmt.Sprintf("%s?handles=%s", path, url.QueryEscape(h)), "")
		case "own":
			add("/tools/"+url.PathEscape(h)+path, "/tools/"+url.PathEscape(h))
		}
	}
	slices.Sort(all)
	return all
}
