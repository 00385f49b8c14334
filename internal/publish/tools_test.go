package publish

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// namesOf lists the names that a session sees, over all pages.
func namesOf(t *testing.T, cs *mcp.ClientSession) []string {
	t.Helper()
	names := []string{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func TestListed(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t).serve()
		if diff := cmp.Diff([]string{"demo__add", "demo__echo", "files__read"}, namesOf(t, f.connect(version, nil))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestEntries(t *testing.T) {
	const object = `{"type":"object"}`
	for _, tt := range []struct{ name, entry, want, legacy string }{
		{
			"as sent", `{"name":"x","title":"T","description":"D","inputSchema":{"type":"object","properties":{"n":{"default":1.10,"maximum":9007199254740993}}},"annotations":{"readOnlyHint":true,"own":1.0},"_meta":{"z":1.0,"a":2},"future":[1e400]}`,
			`{"name":"s__x","title":"T","description":"D","annotations":{"readOnlyHint":true,"own":1.0},"_meta":{"z":1.0,"a":2},"future":[1e400],"inputSchema":{"type":"object","properties":{"n":{"default":1.10,"maximum":9007199254740993}}}}`, "",
		},
		{"no schema", `{"name":"x"}`, `{"name":"s__x","inputSchema":` + object + `}`, ""},
		{"properties alone", `{"name":"x","inputSchema":{ "properties":{"a":{}}}}`, `{"name":"s__x","inputSchema":{"type":"object","properties":{"a":{}}}}`, ""},
		{"a list of types", `{"name":"x","inputSchema":{"properties":{},"type":["object","null"]}}`, `{"name":"s__x","inputSchema":{"type":"object","properties":{}}}`, ""},
		{
			"an output that is no object", `{"name":"x","inputSchema":` + object + `,"outputSchema":{"type":"array"}}`,
			`{"name":"s__x","inputSchema":` + object + `,"outputSchema":{"type":"array"}}`, `{"name":"s__x","inputSchema":` + object + `}`,
		},
		{
			"an output that is one", `{"name":"x","inputSchema":` + object + `,"outputSchema":{"type":"object","required":[]}}`,
			`{"name":"s__x","inputSchema":` + object + `,"outputSchema":{"type":"object","required":[]}}`, "",
		},
		{
			"wrong types", `{"name":"x","title":1,"description":5,"annotations":{"title":2,"readOnlyHint":"yes","idempotentHint":true},"_meta":[],"execution":"x","icons":[{"src":1}],"inputSchema":` + object + `}`,
			`{"name":"s__x","annotations":{"idempotentHint":true},"inputSchema":` + object + `}`, "",
		},
		{"annotations of a wrong type", `{"name":"x","annotations":[],"icons":{},"inputSchema":` + object + `}`, `{"name":"s__x","inputSchema":` + object + `}`, ""},
		{
			"icons", `{"name":"x","icons":[{"src":"data:,","sizes":["48x48"],"mimeType":"image/png"}],"inputSchema":` + object + `}`,
			`{"name":"s__x","icons":[{"src":"data:,","sizes":["48x48"],"mimeType":"image/png"}],"inputSchema":` + object + `}`, "",
		},
		{"icons of wrong sizes", `{"name":"x","icons":[{"src":"data:,","sizes":"48x48"}],"inputSchema":` + object + `}`, `{"name":"s__x","inputSchema":` + object + `}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := newTool("s", "x", tt.entry)
			if got := string(appendEntry(nil, tool, true)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if tt.legacy == "" {
				tt.legacy = tt.want
			}
			if got := string(appendEntry(nil, tool, false)); got != tt.legacy {
				t.Errorf("before 2026-07-28: got %s\nwant %s", got, tt.legacy)
			}
		})
	}
}

// One entry that a client cannot read would cost it the whole list.
func TestOddToolsDoNotBreakTheList(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, newServer("s",
			newTool("s", "typed", `{"name":"typed","title":1,"description":5,"annotations":{"title":2,"readOnlyHint":"yes"},"_meta":[],"icons":5,"inputSchema":{"properties":{}}}`),
			newTool("s", "list", `{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`),
			newTool("s", "a b/c", ""), newTool("s", strings.Repeat("long_", 30), ""), newTool("s", "grüße", ""),
		)).serve()
		cs := f.connect(version, nil)
		names := namesOf(t, cs)
		if len(names) != 5 {
			t.Fatalf("got %q, want five", names)
		}
		seen := map[string]bool{}
		for _, n := range names {
			if seen[n] || len(n) > 64 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Errorf("the name %q is bad, or there twice", n)
			}
			seen[n] = true
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: n}); err != nil {
				t.Errorf("%s: %v", n, err)
			}
		}
	})
}

// The whole list, over all pages, is each tool once, whatever the size of a page.
func TestPages(t *testing.T) {
	var many []*bridge.Tool
	want := []string{"a__x"}
	for i := range 25 {
		many = append(many, newTool("b", fmt.Sprintf("t%02d", i), ""))
		want = append(want, fmt.Sprintf("b__t%02d", i))
	}
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, newServer("a", newTool("a", "x", "")), newServer("b", many...), newServer("c"))
		f.opts.PageTools = 10
		f.serve()
		cs := f.connect(version, nil)
		first, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Tools) != 10 || first.NextCursor == "" {
			t.Errorf("the first page has %d tools and the cursor %q", len(first.Tools), first.NextCursor)
		}
		if diff := cmp.Diff(want, namesOf(t, cs)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		for _, cursor := range []string{"nonsense!", "bm9uZQ", "e30"} {
			if _, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor}); err == nil || !strings.Contains(err.Error(), "cursor") {
				t.Errorf("the cursor %q: %v", cursor, err)
			}
		}
		// The tool that the cursor names goes, and its server's list begins anew.
		f.set(true, newServer("b", many[15:]...))
		rest, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: place{"b", "t08"}.String()})
		if err != nil || len(rest.Tools) != 10 || rest.Tools[0].Name != "b__t15" {
			t.Errorf("behind a tool that is gone: %v, %v", rest, err)
		}
	})
}

func TestPagesAreBoundedInBytes(t *testing.T) {
	long := strings.Repeat("x", 500)
	var tools []*bridge.Tool
	for i := range 5 {
		tools = append(tools, newTool("b", fmt.Sprint("t", i), `{"name":"t","description":"`+long+`"}`))
	}
	f := newFixture(t, newServer("b", tools...))
	f.opts.PageBytes = 1000
	f.serve()
	id := f.begin()
	cursor := ""
	for _, want := range []int{2, 2, 1} {
		page := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"`+cursor+`"}}`, sessionHeader, id).message()
		if n := strings.Count(page, `{"name":"b__t`); n != want {
			t.Errorf("a page has %d tools, want %d", n, want)
		}
		_, cursor, _ = strings.Cut(page, `"nextCursor":"`)
		cursor, _, _ = strings.Cut(cursor, `"`)
	}
	if cursor != "" {
		t.Error("there is a page more")
	}
}

func TestCallersSeeTheirOwn(t *testing.T) {
	f := newFixture(t)
	f.allows = func(c bridge.Caller, handle, _ string) bool { return c.User == "bob" || handle == "files" }
	f.serve()
	list := func(header ...string) string {
		id := f.begin(header...)
		return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, append(header, sessionHeader, id)...).message()
	}
	if got := list("User", "bob"); !strings.Contains(got, "demo__add") {
		t.Errorf("bob sees %s", got)
	}
	if got := list("User", "ann"); strings.Contains(got, "demo__add") || !strings.Contains(got, "files__read") {
		t.Errorf("ann sees %s", got)
	}
	// What is not listed cannot be called, and does not exist.
	r := f.modernCall("demo__add", `{}`)
	if !strings.Contains(r.message(), `"code":-32602`) || !strings.Contains(r.message(), "unknown tool") {
		t.Errorf("ann calls: %s", r.body)
	}
	if r := f.modernCall("demo__add", `{}`, "User", "bob"); !strings.Contains(r.message(), `"result"`) {
		t.Errorf("bob calls: %s", r.body)
	}
}

func TestHandles(t *testing.T) {
	for query, want := range map[string]string{
		"?handles=files": "files__read", "?handles=demo": "demo__add demo__echo", "?handles=": "", "?handles=nobody": "",
		"?handles=demo,files": "demo__add demo__echo files__read", "?handles=demo&handles=files": "demo__add demo__echo files__read", "?other=1": "demo__add demo__echo files__read",
	} {
		f := newFixture(t).serve()
		f.url += "/" + query
		onEach(t, func(t *testing.T, version string) {
			f := &fixture{t: t, url: f.url}
			cs := f.connect(version, nil)
			if got := strings.Join(namesOf(t, cs), " "); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"})
			if called := err == nil; called != strings.Contains(want, "demo__add") {
				t.Errorf("%s: the call of demo__add: %v", query, err)
			}
		})
	}
	f := newFixture(t).serve()
	f.url += "?handles=%zz"
	if r := f.do("POST", initialize); r.status != 400 || !strings.Contains(r.body, "query") {
		t.Errorf("a query that cannot be read: %d %s", r.status, r.body)
	}
}

// A client that lists at its start, which is the bridge's too, gets the whole list.
func TestListWaitsForServers(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		connecting := &bridge.Server{Handle: "demo", State: bridge.Connecting}
		f := newFixture(t, connecting)
		f.snap.Store(bridge.NewSnapshot(1, false, []*bridge.Server{connecting}))
		f.serve()
		cs := f.connect(version, nil)
		listed := make(chan []string, 1)
		called := make(chan error, 1)
		go func() { listed <- namesOf(t, cs) }()
		go func() {
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"})
			called <- err
		}()
		f.set(false, connecting) // a change that settles nothing
		f.set(false, newServer("demo", newTool("demo", "add", "")))
		if diff := cmp.Diff([]string{"demo__add"}, <-listed); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if err := <-called; err != nil {
			t.Errorf("the call: %v", err)
		}
	})
}

func TestInstructions(t *testing.T) {
	a, b := newServer("a"), newServer("b")
	a.Instructions, b.Instructions = strings.Repeat("ü", instructionChars+1), "Call me."
	f := newFixture(t, a, b).serve()
	got := f.connect("2025-11-25", nil).InitializeResult().Instructions
	if !strings.HasSuffix(got, "## b\n\nCall me.") || !strings.Contains(got, "## a\n\nüü") || strings.Count(got, "ü") != instructionChars {
		t.Errorf("instructions: %q", got)
	}
	var many []*bridge.Server
	for i := range 40 {
		s := newServer(fmt.Sprint("s", i))
		s.Instructions = strings.Repeat("y", 3000)
		many = append(many, s)
	}
	if n := len(instructions(bridge.NewSnapshot(1, true, many))); n > instructionBytes+1000 {
		t.Errorf("they have %d bytes", n)
	}
}

// What is there, or may come, is advertised.
func TestCapabilities(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t).serve()
		cs := f.connect(version, nil)
		got, err := json.Marshal(cs.InitializeResult().Capabilities)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != `{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":true}}` {
			t.Errorf("capabilities %s", got)
		}
		if p, err := cs.ListPrompts(t.Context(), nil); err != nil || len(p.Prompts) != 0 {
			t.Errorf("prompts/list: %v, %v", p, err)
		}
		if version >= modern {
			return // there it is a part of listening
		}
		if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "x:y"}); err == nil {
			t.Error("resources/subscribe was answered")
		}
	})
}
