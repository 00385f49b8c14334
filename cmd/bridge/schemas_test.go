package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/openapi/openapitest"
	"mcpbridge/internal/web/webtest"
)

// documents are the documents in a directory, in JSON.
var documents = []string{"openapi.json", "openapi-3.0.json", "openapi.json?profile=flat", "openapi-3.0.json?profile=flat"}

// operations returns the operations of the document at path, which must be a valid one.
func (p *process) operations(path string) map[string]string { // :: operationId -> path
	p.t.Helper()
	res := p.get(path)
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	decode(p.t, res, &doc)
	openapitest.Validate(p.t, res.body)
	ids := map[string]string{}
	for path, item := range doc.Paths {
		for _, op := range item {
			if other, taken := ids[op.OperationID]; taken {
				p.t.Errorf("%s and %s have the operationId %s", path, other, op.OperationID)
			}
			ids[op.OperationID] = path
		}
	}
	return ids
}

// A schema that nobody can use costs its own tool at most, which says why; nothing
// that a schema refers to is fetched.
func TestBadSchemas(t *testing.T) {
	var fetched atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	defer elsewhere.Close()
	p := start(t, map[string]server{"bad": mode(t, "schemas", "bad", elsewhere.URL+"/x.json")}, nil)
	p.ready()

	skipped := map[string]string{ // :: tool -> what the reason for leaving it out says
		"true": "describes no object", "list": "describes no object", "text": "describes no object", "large": "larger than", "deep": "levels deep",
	}
	unchecked := map[string]string{"remote": "not followed", "pattern": "regex"} // :: tool -> what the reason for not checking says
	var page struct {
		State   string
		Tools   []struct{ Name, Unchecked string }
		Skipped []struct{ Name, Reason string }
	}
	decode(t, p.get("/tools/bad"), &page)
	if page.State != "ready" {
		t.Errorf("the server is %s", page.State)
	}
	for _, s := range page.Skipped {
		if want, ok := skipped[s.Name]; !ok || !strings.Contains(s.Reason, want) {
			t.Errorf("%s is left out because %q, want %q", s.Name, s.Reason, want)
		}
	}
	if len(page.Skipped) != len(skipped) {
		t.Errorf("%d tools are left out, want %d", len(page.Skipped), len(skipped))
	}
	var served []string
	for _, tool := range page.Tools {
		served = append(served, tool.Name)
		if want := unchecked[tool.Name]; !strings.Contains(tool.Unchecked, want) || want == "" && tool.Unchecked != "" {
			t.Errorf("%s is unchecked because %q, want %q", tool.Name, tool.Unchecked, want)
		}
	}

	for _, tool := range mcptest.BadSchemaTools("") {
		if skipped[tool.Name] != "" {
			p.problem("bad", tool.Name, `{"note":"n"}`, 404, "not-found", "left out")
			continue
		}
		if !slices.Contains(served, tool.Name) {
			t.Errorf("%q is not in the list", tool.Name)
		}
		if res := p.call("bad", tool.Name, `{"note":"n"}`, 200, "Accept", "text/plain"); string(res.body) != `{"note":"n"}` {
			t.Errorf("%q got %q", tool.Name, res.body)
		}
	}
	p.problem("bad", "good", `{"x":"no integer"}`, 422, "invalid-arguments", "x")
	p.problem("bad", "doubling", `{"x":"no object"}`, 422, "invalid-arguments", "x")
	p.call("bad", "pattern", `{"x":5}`, 200)
	p.call("bad", "remote", `{"x":5}`, 200)

	for _, d := range documents {
		for path, good := range map[string]string{"/" + d: "bad__good", "/tools/bad/" + d: "good"} {
			if ids := p.operations(path); len(ids) != len(served) || ids[good] == "" {
				t.Errorf("%s has the operations %v, want %d, and %s", path, ids, len(served), good)
			}
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("what a schema refers to was fetched %d times", n)
	}
}

// Trials S: what reaches a server is what was sent, and what its schema refuses is refused.
func TestTrialsS(t *testing.T) {
	p := start(t, map[string]server{"s": mode(t, "schemas"), "six": mode(t, "bad-schema")}, nil)
	p.ready()
	const same = "" // as it was sent
	for _, row := range []struct {
		trial, tool, args string
		status            int
		want              string // what arrives, or what the problem says
	}{
		{"S1", "s1_ref_property", `{"from":"a","to":"b"}`, 200, same},
		{"S1", "s1_ref_property", `{"to":5}`, 422, "to"},
		{"S2", "s2_definitions", `{"zone":"utc"}`, 200, same},
		{"S2", "s2_definitions", `{"zone":"mars"}`, 422, "zone"},
		{"S3", "s3_recursive", `{"root":{"name":"a","children":[{"name":"b"}]}}`, 200, same},
		{"S3", "s3_recursive", `{"root":{"name":"a","children":[{}]}}`, 422, "name"},
		{"S3", "s3_recursive_root", `{"name":"a","children":[{"name":"b"}]}`, 200, same},
		{"S3", "s3_recursive_root", `{"name":"a","children":[5]}`, 422, "children"},
		{"S4", "s4_enum", `{"mode":"slow"}`, 200, same},
		{"S4", "s4_enum", `{"mode":"medium"}`, 422, "mode"},
		{"S5", "s5_tuple", `{"pair":[1.50,"a"]}`, 200, same},
		{"S5", "s5_tuple", `{"pair":["a",1]}`, 422, "pair"},
		{"S6", "s6_anything", `{"x":null,"a":[1,"x"],"b":[true],"c":[{}]}`, 200, same},
		{"S7", "s7_property_names", `{"__top":"1","_id":"2","$filter":"3","a-b":"4","x.y":"5","@type":"6","from":"7","größe":"8","名前":"9"}`, 200, same},
		{"S7", "s7_property_names", `{"$filter":3}`, 422, "$filter"},
		{"S8", "s8_optional_integer", `{"query": "\u0071","limit":null }`, 200, `{"query": "\u0071" }`},
		{"S8", "s8_optional_integer", `{"limit" : null, "query":"q"}`, 200, `{"query":"q"}`},
		{"S8", "s8_optional_integer", `{"query":null}`, 422, "query"},
		{"S9", "s9_additional", `{"known":"a","other":1.10}`, 200, same},
		{"S10", "s10_open", `{"k":1}`, 200, same},
		{"S11", "s11_empty", ``, 200, `{}`},
		{"S11", "s11_none", ``, 200, `{}`},
		{"S11", "s11_null", ``, 200, `{}`},
		{"S13", "s13_undeclared_required", `{"a":"x","b":[1]}`, 200, same},
		{"S13", "s13_undeclared_required", `{"b":null}`, 422, "a"},
		{"S13", "s13_undeclared_required", `{"a":"x"}`, 422, "b"},
		{"S14", "s14_default", ``, 200, `{}`},
		{"S14", "s14_default", `{"unit":"px"}`, 200, same},
		{"S15", "s15_nullable", `{"note":null}`, 200, same},
		{"S15", "s15_exclusive", `{"n":10}`, 200, same},
		{"S15", "s15_exclusive", `{"n":0}`, 422, "n"},
		{"S16", "s16_ref_siblings", `{"id":"abc"}`, 200, same},
		{"S16", "s16_ref_siblings", `{"id":"ab"}`, 422, "id"},
		{"S16", "s16_ref_siblings", `{"id":"abcdefghi"}`, 422, "id"},
		{"S16", "s16_ref_siblings_draft7", `{"id":"ab"}`, 200, same},
	} {
		t.Run(row.trial, func(t *testing.T) {
			p := &process{t: t, base: p.base}
			if row.status != 200 {
				p.problem("s", row.tool, row.args, row.status, "invalid-arguments", row.want)
				return
			}
			want := row.want
			if want == same {
				want = row.args
			}
			if res := p.call("s", row.tool, row.args, 200, "Accept", "text/plain"); string(res.body) != want {
				t.Errorf("%s(%s): %q arrived, want %q", row.tool, row.args, res.body, want)
			}
		})
	}
	for _, d := range documents {
		if got, want := len(p.operations("/"+d)), len(mcptest.SchemaTools)+5; got != want { // S12: five of six
			t.Errorf("%s has %d operations, want %d", d, got, want)
		}
	}
	var doc struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema json.RawMessage }
				}
			}
		}
	}
	decode(t, p.get("/openapi.json"), &doc)
	for tool, want := range map[string]string{
		"s4_enum":     `{"type":"object","properties":{"mode":{"type":"string","enum":["fast","slow"]}}}`,
		"s5_tuple":    `{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]}}}`,
		"s10_open":    `{"type":"object","additionalProperties":true}`,
		"s14_default": `{"type":"object","properties":{"size":{"type":"integer","default":10},"unit":{"type":"string","default":"px"}}}`,
	} {
		if got := doc.Paths["/tools/s/"+tool].Post.RequestBody.Content["application/json"].Schema; string(got) != want {
			t.Errorf("%s takes %s, want %s", tool, got, want)
		}
	}
}

// Trials N: names, and addresses before and behind the bridge. TestNames has N2 and N3.
func TestTrialsN(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{} // :: path at the server -> true, guarded by mu
	upstream := mcptest.Start(t, mcptest.HTTPOK)
	target := &url.URL{Scheme: "http", Host: upstream.Addr}
	asGiven := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.In.URL.Path] = true
		r.SetURL(target)
		r.Out.URL.Path = "/mcp"
	}})
	t.Cleanup(asGiven.Close) // after the bridge, which keeps a stream open
	p := start(t, map[string]server{
		"names": mode(t, "names"), "one": mode(t, "ok"), "two": mode(t, "ok"), "slash": {"url": asGiven.URL + "/with/"}, "none": {"url": asGiven.URL + "/without"},
	}, nil)
	p.ready()

	t.Run("N1", func(t *testing.T) {
		for path, want := range map[string]string{"/openapi.json": "names__firecrawl_search", "/tools/names/openapi.json": "firecrawl_search"} {
			if ids := p.operations(path); ids[want] == "" {
				t.Errorf("%s has no operation %s: %v", path, want, ids)
			}
		}
	})
	t.Run("N4", func(t *testing.T) {
		for _, handle := range []string{"slash", "none"} {
			if res := p.call(handle, "echo", `{"message":"hi"}`, 200, "Accept", "text/plain"); string(res.body) != "hi" {
				t.Errorf("%s: echo = %q", handle, res.body)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != 2 || !asked["/with/"] || !asked["/without"] {
			t.Errorf("the servers were asked at %v, want /with/ and /without", asked)
		}
	})
	t.Run("N5", func(t *testing.T) { behindProxy(t, p) })
	t.Run("N6", func(t *testing.T) {
		for _, handle := range []string{"one", "two"} {
			var doc struct{ Info struct{ Title string } }
			decode(t, p.get("/tools/"+handle+"/openapi.json"), &doc)
			if doc.Info.Title != handle {
				t.Errorf("the title of %s is %q", handle, doc.Info.Title)
			}
		}
	})
	t.Run("N7", func(t *testing.T) {
		long := strings.Repeat("long_name_", 7)
		var found []string
		for id, path := range p.operations("/openapi.json") {
			if len(id) > 64 {
				t.Errorf("%s has the operationId %s", path, id)
			}
			if path == "/tools/names/"+long {
				found = append(found, id)
			}
		}
		if len(found) != 1 || !strings.HasPrefix(found[0], "names__long_name_") {
			t.Errorf("the operationId of the long name is %q", found)
		}
	})
	t.Run("N8", func(t *testing.T) {
		all, one := p.operations("/openapi.json"), p.operations("/tools/one/openapi.json")
		if all["one__echo"] != "/tools/one/echo" || one["echo"] != "/echo" {
			t.Errorf("echo is %q in the whole document and %q in the server's", all["one__echo"], one["echo"])
		}
	})
}

// behindProxy reads and calls the bridge through a proxy at /mcp/ that takes this
// away from the path, as hosts and browsers do: by what the documents say.
func behindProxy(t *testing.T, p *process) {
	target, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp/", http.StripPrefix("/mcp", httputil.NewSingleHostReverseProxy(target)))
	proxy := httptest.NewServer(mux)
	defer proxy.Close()
	q := &process{t: t, base: proxy.URL}
	for document, path := range map[string]string{
		"/mcp/openapi.json": "/tools/one/echo", "/mcp/openapi-3.0.json": "/tools/one/echo", "/mcp/tools/one/openapi.json": "/echo", "/mcp/tools/one/openapi.json?profile=flat": "/echo",
	} {
		var doc struct {
			Servers []struct{ URL string }
			Paths   map[string]any
		}
		decode(t, q.get(document), &doc)
		if len(doc.Servers) != 1 || doc.Paths[path] == nil {
			t.Fatalf("%s has the servers %v and the paths %v", document, doc.Servers, doc.Paths)
		}
		base, err := url.Parse(proxy.URL + document)
		if err != nil {
			t.Fatal(err)
		}
		at, err := base.Parse(doc.Servers[0].URL)
		if err != nil {
			t.Fatal(err)
		}
		call := strings.TrimSuffix(at.Path, "/") + path
		if res := q.do("POST", call, `{"message":"hi"}`, "Accept", "text/plain"); res.StatusCode != 200 || string(res.body) != "hi" {
			t.Errorf("%s leads to %s: %d %.300s", document, call, res.StatusCode, res.body)
		}
	}
	body := `{"message": "hi"}`
	for page, operation := range map[string]string{"/mcp/docs": "one__echo", "/mcp/tools/one/docs": "echo"} {
		r := webtest.Swagger(t, webtest.Options{URL: proxy.URL + page, Calls: []webtest.Call{{Operation: operation, Body: &body}}})
		if len(r.Foreign) > 0 || len(r.Faults) > 0 || len(r.Answers) != 1 || r.Answers[0].Status != 200 || !strings.Contains(r.Answers[0].Shown, "hi") {
			t.Errorf("%s: %+v", page, r)
		}
	}
}

// bridge openapi writes what the server serves, byte for byte, in every form.
func TestOpenAPICommandWritesWhatIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.json")
	b, err := json.Marshal(map[string]any{
		"mcpServers": map[string]server{"s": mode(t, "schemas"), "names": mode(t, "names")}, "bridge": map[string]any{"listen": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(b))
	p := startArgs(t, "serve", "--config", path)
	p.ready()
	seen := map[string]string{} // :: document -> its address
	for _, handle := range []string{"", "s"} {
		for _, version := range []string{"3.1", "3.0"} {
			for _, profile := range []string{"", "flat"} {
				for _, ext := range []string{"json", "yaml"} {
					args := []string{"openapi", "--config", path, "--version", version}
					address := "/openapi"
					if handle != "" {
						args, address = append(args, handle), "/tools/"+handle+"/openapi"
					}
					if version == "3.0" {
						address += "-3.0"
					}
					address += "." + ext
					if ext == "yaml" {
						args = append(args, "--yaml")
					}
					if profile != "" {
						args, address = append(args, "--profile", profile), address+"?profile="+profile
					}
					var stderr bytes.Buffer
					cmd := exec.CommandContext(t.Context(), "bridge", args...)
					cmd.Stderr = &stderr
					written, err := cmd.Output()
					if err != nil {
						t.Fatalf("%v: %v\n%s", args, err, stderr.Bytes())
					}
					served := p.get(address)
					if served.StatusCode != 200 || !bytes.Equal(written, served.body) {
						t.Errorf("%v writes %d bytes, %s has %d with status %d, and they differ", args, len(written), address, len(served.body), served.StatusCode)
					}
					if other, twice := seen[string(written)]; twice {
						t.Errorf("%s and %s are the same", address, other)
					}
					seen[string(written)] = address
				}
			}
		}
	}
}
