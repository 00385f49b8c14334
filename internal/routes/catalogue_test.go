package routes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// newCatalogueFixture returns a fixture whose answers show what the catalogue can hold.
func newCatalogueFixture() *fixture {
	demo := newToolServer("demo", "add", "echo", "Zap")
	demo.Title, demo.Description, demo.Instructions = "The Demo", "For trying.", "Use <echo> & add."
	t := newTool("demo", "exact", `{"type":"object","properties":{"z":{"maximum":9007199254740993,"default":1.10},"a":{"const":"<&>\u00e9"}}}`)
	t.Title, t.Output = "Exactly", []byte(`{"z":1.0,"a":2}`)
	t.Raw = []byte(`{"name":"exact","annotations":{"readOnlyHint":true,"x-y":1.0},"inputSchema":{}}`)
	t.Unchecked = "its pattern cannot be read"
	demo.Tools = append(demo.Tools, t)
	demo.Skipped = []bridge.Skipped{{Name: "bad", Reason: "its schema is a list"}}
	down := &bridge.Server{Handle: "down", Title: "down", State: bridge.Failed, LastError: "exec: \"nope\" not found", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))}
	odd := newToolServer("odd name/ü", "t")
	return newFixture(demo, down, odd)
}

func TestGetTool(t *testing.T) {
	c := newCatalogueFixture().serve(t)
	r := c.do("GET", "/tools/demo/exact", "")
	r.wantOK(t, `{"handle":"demo","name":"exact","title":"Exactly","description":"Does exact.",`+
		`"annotations":{"readOnlyHint":true,"x-y":1.0},`+
		`"input_schema":{"type":"object","properties":{"z":{"maximum":9007199254740993,"default":1.10},"a":{"const":"<&>\u00e9"}}},`+
		`"output_schema":{"z":1.0,"a":2},"schema_sha256":"hash-of-exact","unchecked":"its pattern cannot be read",`+
		`"links":{"self":"../../tools/demo/exact","call":"../../tools/demo/exact"}}`)
	if got := r.header.Get("ETag"); got != `"hash-of-exact"` {
		t.Errorf("ETag = %s, want the schema's hash", got)
	}
	c.do("GET", "/tools/odd%20name%2F%C3%BC/t", "").wantOK(t, `{"handle":"odd name/ü","name":"t","description":"Does t.","input_schema":{"type":"object"},"schema_sha256":"hash-of-t",`+
		`"links":{"self":"../../tools/odd%20name%2F%C3%BC/t","call":"../../tools/odd%20name%2F%C3%BC/t"}}`)
	if p := c.do("GET", "/tools/down/x", "").wantProblem(t, 503, bridge.Unavailable); !strings.Contains(p["detail"].(string), "not found") {
		t.Errorf("detail = %q", p["detail"])
	}
	c.do("GET", "/tools/demo/bad", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/tools/demo/ADD", "").wantProblem(t, 404, bridge.NotFound)
}

func TestGetServer(t *testing.T) {
	c := newCatalogueFixture().serve(t)
	var p ServerPage
	r := c.do("GET", "/tools/demo", "")
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatal(err)
	}
	since, listed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	want := ServerInfo{
		Handle: "demo", Title: "The Demo", Description: "For trying.", State: bridge.Ready, Since: &since, Listed: &listed,
		Server:    &SelfInfo{Name: "a-server", Version: "1.2.3", Protocol: "2025-11-25", Instructions: "Use <echo> & add."},
		ToolCount: 4, Links: ServerLinks{Self: "../tools/demo", OpenAPI: "../tools/demo/openapi.json", Docs: "../tools/demo/docs", Resources: "../resources/demo", Prompts: "../prompts/demo"},
	}
	if diff := cmp.Diff(want, p.ServerInfo); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if got := toolNames(p.ToolList); !slices.Equal(got, []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact"}) || p.Total != 4 || p.Next != "" {
		t.Errorf("tools = %v of %d, next %q", got, p.Total, p.Next)
	}
	if diff := cmp.Diff([]bridge.Skipped{{Name: "bad", Reason: "its schema is a list"}}, p.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	c.do("GET", "/tools/down", "").wantOK(t, `{"handle":"down","title":"down","state":"failed","last_error":"exec: \"nope\" not found","since":"2026-01-02T02:04:05Z","tool_count":0,"resource_count":0,"template_count":0,"prompt_count":0,`+
		`"links":{"self":"../tools/down","openapi":"../tools/down/openapi.json","docs":"../tools/down/docs","resources":"../resources/down","prompts":"../prompts/down"},"tools":[],"total":0,"skipped":[]}`)
}

func toolNames(l ToolList) []string {
	var names []string
	for _, t := range l.Tools {
		names = append(names, t.Handle+"/"+t.Name)
	}
	return names
}

func (c *client) list(path string) Catalogue {
	c.t.Helper()
	r := c.do("GET", path, "")
	if r.status != 200 {
		c.t.Fatalf("GET %s = %d %s", path, r.status, r.body)
	}
	var l Catalogue
	if err := json.Unmarshal([]byte(r.body), &l); err != nil {
		c.t.Fatal(err)
	}
	return l
}

func TestListTools(t *testing.T) {
	c := newCatalogueFixture().serve(t)
	all := []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact", "odd name/ü/t"}
	tests := []struct {
		query   string
		servers []string
		tools   []string
	}{
		{"", []string{"demo", "down", "odd name/ü"}, all},
		{"?handles=demo,odd+name%2F%C3%BC", []string{"demo", "odd name/ü"}, all},
		{"?handles=down", []string{"down"}, nil},
		{"?handles=down&handles=odd%20name/%C3%BC", []string{"down", "odd name/ü"}, []string{"odd name/ü/t"}},
		{"?handles=", nil, nil},
		{"?handles=nope", nil, nil},
		{"?handles=nope,demo", []string{"demo"}, all[:4]},
		{"?q=ZAP", []string{"demo", "down", "odd name/ü"}, []string{"demo/Zap"}},
		{"?q=exactly", []string{"demo", "down", "odd name/ü"}, []string{"demo/exact"}},
		{"?q=does+e", []string{"demo", "down", "odd name/ü"}, []string{"demo/echo", "demo/exact"}},
		{"?q=nothing", []string{"demo", "down", "odd name/ü"}, nil},
		{"?q=e&handles=demo", []string{"demo"}, []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact"}},
	}
	for _, tt := range tests {
		l := c.list("/tools" + tt.query)
		var servers []string
		for _, s := range l.Servers {
			servers = append(servers, s.Handle)
		}
		if !slices.Equal(servers, tt.servers) || !slices.Equal(toolNames(l.ToolList), tt.tools) || l.Total != len(tt.tools) {
			t.Errorf("%s: servers %v, tools %v of %d; want %v, %v", tt.query, servers, toolNames(l.ToolList), l.Total, tt.servers, tt.tools)
		}
	}
	if r := c.do("GET", "/tools?handles=", ""); r.body != `{"servers":[],"tools":[],"total":0}` {
		t.Errorf("an empty list = %s", r.body)
	}
}

func TestPages(t *testing.T) {
	c := newCatalogueFixture().serve(t)
	for _, tt := range []struct {
		path string
		want []string
	}{
		{"/tools?limit=%d", []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact", "odd name/ü/t"}},
		{"/tools?limit=%d&q=e", []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact", "odd name/ü/t"}},
		{"/tools?q=does+e&limit=%d", []string{"demo/echo", "demo/exact"}},
		{"/tools?handles=demo&limit=%d", []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact"}},
		{"/tools/demo?limit=%d", []string{"demo/add", "demo/echo", "demo/Zap", "demo/exact"}},
	} {
		for limit := 1; limit <= 6; limit++ {
			path := fmt.Sprintf(tt.path, limit)
			var got []string
			for pages := 0; path != ""; pages++ {
				l := c.list(path)
				if len(l.Tools) > limit || pages > 10 {
					t.Fatalf("%s: %d tools on page %d", path, len(l.Tools), pages)
				}
				if l.Total != len(tt.want) {
					t.Errorf("%s: total = %d, want %d", path, l.Total, len(tt.want))
				}
				got = append(got, toolNames(l.ToolList)...)
				if l.Next == "" {
					break
				}
				path = c.resolve(path, l.Next)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", path, got, tt.want)
			}
		}
	}
}

// TestPagesOfAChangingCatalogue: what stays is listed once, whatever goes or comes meanwhile.
func TestPagesOfAChangingCatalogue(t *testing.T) {
	for name, tt := range map[string]struct {
		after []string
		want  []string
	}{
		"the last one went":      {[]string{"a", "c", "d"}, []string{"c", "d"}},
		"one before it went":     {[]string{"b", "c", "d"}, []string{"c", "d"}},
		"one came before it":     {[]string{"x", "a", "b", "c", "d"}, []string{"c", "d"}},
		"one came behind it":     {[]string{"a", "b", "x", "c", "d"}, []string{"x", "c", "d"}},
		"all went":               {nil, nil},
		"the server has another": {[]string{"z"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(newToolServer("s", "a", "b", "c", "d"))
			c := f.serve(t)
			first := c.list("/tools?limit=2")
			f.snap = bridge.NewSnapshot(2, true, []*bridge.Server{newToolServer("s", tt.after...)})
			var got []string
			next := c.resolve("/tools", strings.Replace(first.Next, "limit=2", "limit=100", 1))
			for _, tool := range c.list(next).Tools {
				got = append(got, tool.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the second page is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCallersSeeWhatTheyMayCall(t *testing.T) {
	f := newCatalogueFixture()
	f.allows = func(handle, tool string) bool { return handle == "demo" && (tool == "add" || tool == "echo") }
	c := f.serve(t)
	l := c.list("/tools")
	if got := toolNames(l.ToolList); !slices.Equal(got, []string{"demo/add", "demo/echo"}) || len(l.Servers) != 1 || l.Servers[0].ToolCount != 2 {
		t.Errorf("servers %v, tools %v", l.Servers, got)
	}
	for _, path := range []string{"/tools/down", "/tools/down/docs", "/tools/down/openapi.json", "/tools/demo/Zap", "/tools/odd%20name%2F%C3%BC"} {
		c.do("GET", path, "").wantProblem(t, 404, bridge.NotFound)
	}
	c.do("POST", "/tools/demo/Zap", "").wantProblem(t, 404, bridge.NotFound)
	for _, path := range []string{"/tools/demo", "/openapi.json", "/tools/demo/openapi.json"} {
		if r := c.do("GET", path, ""); strings.Contains(r.body, "Zap") || strings.Contains(r.body, `"bad"`) || !strings.Contains(r.body, "echo") {
			t.Errorf("GET %s = %d %s", path, r.status, r.body)
		}
	}
}

func TestCatalogueIsConditional(t *testing.T) {
	f := newCatalogueFixture()
	c := f.serve(t)
	for _, path := range []string{"/tools", "/tools?q=e", "/tools/demo", "/tools/demo/add", "/problems/internal", "/openapi-bridge.json"} {
		r := c.do("GET", path, "")
		etag := r.header.Get("ETag")
		if etag == "" || r.header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("GET %s: headers = %v", path, r.header)
		}
		again := c.do("GET", path, "", "If-None-Match: "+etag)
		if again.status != 304 || again.body != "" || again.header.Get("ETag") != etag {
			t.Errorf("GET %s again = %d %q", path, again.status, again.body)
		}
		if other := c.do("GET", path, "", `If-None-Match: "x"`); other.body != r.body {
			t.Errorf("GET %s with another tag = %d", path, other.status)
		}
	}
	before := c.do("GET", "/tools/demo", "").header.Get("ETag")
	changed := f.snap.Server("demo").Copy()
	changed.State = bridge.Degraded
	f.snap = bridge.NewSnapshot(2, true, []*bridge.Server{changed})
	if r := c.do("GET", "/tools/demo", "", "If-None-Match: "+before); r.status != 200 || !strings.Contains(r.body, "degraded") {
		t.Errorf("a changed server = %d %s", r.status, r.body)
	}
}

func TestMatches(t *testing.T) {
	tests := []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{`"a"`}, true},
		{[]string{`W/"a"`}, true},
		{[]string{`*`}, true},
		{[]string{` * `}, true},
		{[]string{`"b"`}, false},
		{[]string{`"b", "a"`}, true},
		{[]string{`"b","c" , W/"a"`}, true},
		{[]string{`"b"`, `"a"`}, true},
		{[]string{`"b, \"a"`}, false},
		{[]string{`"x,y", "a"`}, true},
		{[]string{`a`}, false},
		{[]string{`"a`}, false},
		{[]string{`w/"a"`}, false},
		{[]string{`"a"b`}, true},
		{[]string{`"*"`}, false},
	}
	for _, tt := range tests {
		if got := matches(tt.values, `"a"`); got != tt.want {
			t.Errorf("matches(%q) = %v, want %v", tt.values, got, tt.want)
		}
	}
}
