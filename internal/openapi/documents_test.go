package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
)

func described(title, description string) func(*bridge.Tool) {
	return func(t *bridge.Tool) { t.Title, t.Description = title, description }
}

// catalogue has tools in the shapes that servers in use have.
func catalogue(t testing.TB) *bridge.Snapshot {
	const dialect = `"$schema":"http://json-schema.org/draft-07/schema#",`
	hints := func(b *bridge.Tool) {
		b.Annotations = bridge.Annotations{ReadOnly: new(true), Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)}
	}
	demo := server("demo",
		tool(t, "demo", "echo", `{`+dialect+`"type":"object","properties":{"message":{"type":"string","description":"What to say"}},"required":["message"]}`, described("Echo", "Says it again"), hints),
		tool(t, "demo", "get-env", `{`+dialect+`"type":"object","properties":{}}`, described("", "")),
		tool(t, "demo", "add", `{`+dialect+`"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`,
			output(`{`+dialect+`"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"],"additionalProperties":false}`)),
		tool(t, "demo", "links", `{`+dialect+`"type":"object","properties":{"count":{"default":3,"description":"How many (1-10)","type":"number","minimum":1,"maximum":10}}}`),
	)
	demo.Name, demo.Version, demo.Instructions = "example-server", "2.1.0", "Say something.\n\nThen listen.\n"
	graph := server("graph",
		tool(t, "graph", "create_entities", `{`+dialect+`"type":"object","properties":{"entities":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"observations":{"type":"array","items":{"type":"string"}}},"required":["name"]}}},"required":["entities"]}`,
			output(`{`+dialect+`"type":"object","properties":{"entities":{"type":"array","items":{"type":"object","additionalProperties":false}}},"required":["entities"]}`)),
		tool(t, "graph", "query", `{"type":"object","properties":{"filter":{"anyOf":[{"$ref":"#/$defs/Filter"},{"type":"null"}],"default":null},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":10,"title":"Limit"}},"$defs":{"Filter":{"type":"object","title":"Filter","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/Filter"}},"field":{"type":"string"}}}},"title":"queryArguments"}`, hints),
	)
	graph.Name, graph.Title, graph.Description = "example-server", "Knowledge graph", "What is known"
	odd := server("odd names/здесь",
		tool(t, "odd names/здесь", "{id}", props(`"a":{}`)), tool(t, "odd names/здесь", "other", props(`"a":{}`)), tool(t, "odd names/здесь", "a/b", props(`"a":{}`)),
		tool(t, "odd names/здесь", "openapi.json", props(`"a":{}`)), tool(t, "odd names/здесь", strings.Repeat("long", 20), props(`"a":{}`)),
		tool(t, "odd names/здесь", "..", props(`"a":{}`)), tool(t, "odd names/здесь", "", props(`"a":{}`)), tool(t, "odd names/здесь", "a\nb", props(`"a":{}`)),
	)
	return view(demo, graph, odd, server("empty"))
}

func TestWhole(t *testing.T) {
	d := New(Options{Version: "1.2.3"})
	doc := checkDocument(t, d.Whole(catalogue(t)))
	paths := doc["paths"].(map[string]any)
	var got []string
	for path, item := range paths {
		got = append(got, path+" "+item.(map[string]any)["post"].(map[string]any)["operationId"].(string))
	}
	slices.Sort(got)
	const odd = "/tools/odd%20names%2F%D0%B7%D0%B4%D0%B5%D1%81%D1%8C/"
	id := func(tool string) string { return OperationID("odd names/здесь", tool) }
	long := strings.Repeat("long", 20)
	want := []string{
		"/tools/demo/add demo__add", "/tools/demo/echo demo__echo", "/tools/demo/get-env demo__get-env", "/tools/demo/links demo__links",
		"/tools/graph/create_entities graph__create_entities", "/tools/graph/query graph__query",
		odd + "%7Bid%7D " + id("{id}"), odd + "a%0Ab " + id("a\nb"), odd + "a%2Fb " + id("a/b"), odd + long + " " + id(long),
		odd + "openapi.json " + id("openapi.json"), odd + "other " + id("other"),
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	info := doc["info"].(map[string]any)
	if info["title"] != "MCP Bridge" || info["version"] != "1.2.3" || info["description"] == "" {
		t.Errorf("info = %v", info)
	}
	tags := []any{
		map[string]any{"name": "demo"}, map[string]any{"name": "graph", "description": "Knowledge graph: What is known"}, map[string]any{"name": "odd names/здесь"},
	}
	if diff := cmp.Diff(tags, doc["tags"]); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestOperation(t *testing.T) {
	d := New(Options{DescriptionChars: 12})
	cat := catalogue(t)
	doc := checkDocument(t, d.Whole(cat))
	at := func(path string) map[string]any {
		return doc["paths"].(map[string]any)[path].(map[string]any)["post"].(map[string]any)
	}
	echo := at("/tools/demo/echo")
	want := map[string]any{
		"tags": []any{"demo"}, "summary": "Echo", "description": "Says it agai…",
		"x-mcp-read-only": true, "x-mcp-destructive": false, "x-mcp-idempotent": true, "x-mcp-open-world": false, "x-mcp-schema-sha256": strings.Repeat("0f", 32),
	}
	for k, v := range want {
		if diff := cmp.Diff(v, echo[k]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
	if echo["requestBody"].(map[string]any)["required"] != true {
		t.Errorf("requestBody = %v", echo["requestBody"])
	}
	var statuses []string
	for s := range echo["responses"].(map[string]any) {
		statuses = append(statuses, s)
	}
	slices.Sort(statuses)
	if diff := cmp.Diff([]string{"200", "400", "401", "403", "404", "406", "412", "413", "415", "422", "429", "500", "502", "503", "504"}, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	env := at("/tools/demo/get-env")
	if env["requestBody"] != nil || env["summary"] != "get-env" || env["x-mcp-read-only"] != nil {
		t.Errorf("get-env = %v", env)
	}
	if _, ok := env["description"]; ok {
		t.Error("get-env has a description")
	}
	schema := func(op map[string]any) any {
		return op["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
	}
	if diff := cmp.Diff(map[string]any{"$ref": "#/components/schemas/Content"}, schema(env)); diff != "" {
		t.Errorf("the answer of get-env (-want +got):\n%s", diff)
	}
	if s := schema(at("/tools/demo/add")).(map[string]any); s["type"] != "object" || s["$schema"] != nil {
		t.Errorf("the answer of add is %v", s)
	}
	if body := at("/tools/demo/links")["requestBody"].(map[string]any); body["required"] != nil {
		t.Errorf("the optional body is %v", body)
	}
}

func TestHandle(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	if d.Handle(cat, "nobody") != nil {
		t.Error("there is a document of nobody")
	}
	doc := checkDocument(t, d.Handle(cat, "demo"))
	if diff := cmp.Diff(map[string]any{"title": "demo", "version": "2.1.0", "description": "Say something.\n\nThen listen."}, doc["info"]); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	echo := doc["paths"].(map[string]any)["/echo"].(map[string]any)["post"].(map[string]any)
	if echo["operationId"] != "echo" {
		t.Errorf("operationId = %v", echo["operationId"])
	}
	// Two servers that call themselves the same are told apart by what they are here.
	graph := checkDocument(t, d.Handle(cat, "graph"))
	if diff := cmp.Diff(map[string]any{"title": "Knowledge graph", "version": "0.0.0", "description": "What is known"}, graph["info"]); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	for _, h := range []string{"odd names/здесь", "empty"} {
		checkDocument(t, d.Handle(cat, h))
	}
}

// The servers are relative to the document: clients find the tools behind any
// base path and any proxy.
func TestServers(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	for _, doc := range []*Document{d.Whole(cat), d.Handle(cat, "demo")} {
		var got struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal(doc.JSON().Body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Servers) != 1 || got.Servers[0].URL != "." {
			t.Errorf("servers = %v", got.Servers)
		}
	}
}

func TestDocumentOfNothing(t *testing.T) {
	doc := checkDocument(t, New(Options{}).Whole(view()))
	if len(doc["paths"].(map[string]any)) != 0 || len(doc["tags"].([]any)) != 0 {
		t.Errorf("paths %v, tags %v", doc["paths"], doc["tags"])
	}
}

// Tools that were never compiled are shown as what is known of them.
func TestToolWithoutPublication(t *testing.T) {
	bare := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}`)}
	checkDocument(t, New(Options{}).Whole(view(server("h", bare))))
}

func TestOperationIDsNeverCollide(t *testing.T) {
	ids := idSet{}
	a, b := &bridge.Tool{Handle: "h", Name: "a"}, &bridge.Tool{Handle: "h", Name: "b"}
	if x, y := ids.add("same", a), ids.add("same", b); x == y || !idForm.MatchString(y) {
		t.Errorf("%q and %q", x, y)
	}
}

func TestDocumentsAreKept(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	first := d.Whole(cat)
	demo := d.Handle(cat, "demo")
	if d.Whole(cat) != first || d.Handle(cat, "demo") != demo {
		t.Error("the same view has two documents")
	}
	// Another caller's view of the same tools, made anew for each request.
	again := bridge.NewSnapshot(7, true, cat.Servers)
	if d.Whole(again) != first {
		t.Error("an equal view has another document")
	}
	part := *cat.Server("demo")
	part.Tools = part.Tools[:1]
	fewer := d.Whole(view(&part, cat.Server("graph")))
	if fewer == first || bytes.Contains(fewer.JSON().Body, []byte("get-env")) {
		t.Error("a smaller view shows what is not in it")
	}
	if d.Handle(view(&part), "graph") != nil {
		t.Error("a server that is not in the view has a document")
	}
	renamed := *cat.Server("demo")
	renamed.Title = "New"
	if d.Handle(view(&renamed), "demo") == d.Handle(cat, "demo") {
		t.Error("a renamed server keeps its document")
	}
	// A list that was read again and is the same makes the same bytes.
	if a, b := first.JSON(), New(Options{}).Whole(catalogue(t)).JSON(); a.ETag != b.ETag || !bytes.Equal(a.Body, b.Body) {
		t.Error("the same tools make different documents")
	}
}

func TestCacheIsBounded(t *testing.T) {
	d := New(Options{})
	first := view(server("h0"))
	doc := d.Whole(first)
	for i := range maxDocuments - 1 {
		d.Whole(view(server(fmt.Sprint("x", i))))
	}
	if d.Whole(first) != doc {
		t.Error("a document went that there was room for")
	}
	d.Whole(view(server("one more")))
	if d.Whole(first) != doc {
		t.Error("the document that was used last went")
	}
	for i := range maxDocuments {
		d.Whole(view(server(fmt.Sprint("y", i))))
	}
	if n := len(d.cache.entries); n != maxDocuments || d.cache.recent.Len() != n {
		t.Errorf("%d documents are kept", n)
	}
	if d.Whole(first) == doc {
		t.Error("the document that was unused for longest stayed")
	}
}

// A catalogue that changes does not leave its former states behind.
func TestCacheLetsGoOfFormerTools(t *testing.T) {
	d := New(Options{})
	v := view(server("kept", tool(t, "kept", "t", ``)))
	d.Prepare(v)
	kept := d.Whole(v)
	for i := range 5 {
		h := fmt.Sprint("passing", i)
		d.Prepare(view(server(h, tool(t, h, "t", ``))))
		if d.Whole(v) != kept {
			t.Fatal("a document in use went")
		}
	}
	// The view in use, its server's document no more, and two states of two documents.
	if n := len(d.cache.entries); n != 5 || d.cache.recent.Len() != n {
		t.Errorf("%d documents are kept, want 5", n)
	}
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	d := New(Options{})
	for i := range 8 {
		doc := d.cache.get(uint64(i), nil, func() []byte { return []byte("{}") })
		if before := doc.size.Load(); before != 0 || len(doc.JSON().Body)+len(doc.YAML().Body) != int(doc.size.Load()) {
			t.Errorf("size %d, then %d", before, doc.size.Load())
		}
		doc.size.Store(maxDocumentBytes / 4)
	}
	if n := len(d.cache.entries); n != 5 { // four, and the one that was not rendered when it came
		t.Errorf("%d documents are kept, want 5", n)
	}
}

func TestEncodings(t *testing.T) {
	d := New(Options{}).Whole(catalogue(t))
	j, y := d.JSON(), d.YAML()
	if j.ContentType != "application/json" || y.ContentType != "application/yaml" {
		t.Errorf("types %s, %s", j.ContentType, y.ContentType)
	}
	if j.ETag == y.ETag || !strings.HasPrefix(j.ETag, `"`) || !strings.HasSuffix(y.ETag, `"`) {
		t.Errorf("tags %s, %s", j.ETag, y.ETag)
	}
}

// However many ask at once, a document is made once.
func TestMadeOnce(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	made := 0
	render := func() []byte { made++; return []byte("{}") }
	var wg, asked sync.WaitGroup
	asked.Add(20)
	for range 20 {
		wg.Go(func() {
			doc := d.cache.get(1, cat.Servers, render)
			doc.YAML()
			doc.JSON()
			asked.Done()
			asked.Wait() // what is not of the catalogue goes with it
			d.Prepare(cat)
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}

// What the document says of requests, a reader of its own says too.
func TestRequestsByTheDocument(t *testing.T) {
	doc := openapitest.Validate(t, New(Options{}).Whole(catalogue(t)).JSON().Body)
	tests := []struct {
		path, body string
		valid      bool
	}{
		{"/tools/demo/add", `{"a":1,"b":2}`, true},
		{"/tools/demo/add", `{"a":1}`, false},
		{"/tools/demo/add", `{"a":1,"b":2,"c":3}`, false},
		{"/tools/demo/get-env", ``, true},
		{"/tools/graph/query", `{"filter":{"and":[{"field":"x"}]}}`, true},
		{"/tools/graph/query", `{"filter":{"and":[{"field":1}]}}`, false},
	}
	for _, test := range tests {
		if err := doc.Request(test.path, test.body); (err == nil) != test.valid {
			t.Errorf("POST %s %s: %v, want valid: %v", test.path, test.body, err, test.valid)
		}
	}
}
