package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcptest"
)

// An offer is what tests need of the lists beside tools.
type offer struct {
	Resources []struct {
		URI, Name string
		MediaType string `json:"media_type"`
		Size      json.RawMessage
		Links     struct{ Content string }
	}
	Templates []struct {
		URITemplate string `json:"uri_template"`
	}
	Prompts []struct {
		Name      string
		Arguments []struct {
			Name     string
			Required bool
		}
		Links struct{ Get string }
	}
	Total     int
	Next      string
	LastError string `json:"last_error"`
	Skipped   []struct{ Name, Reason string }
}

func (p *process) offer(path string) (o offer) {
	p.t.Helper()
	decode(p.t, p.get(path), &o)
	return o
}

func (p *process) read(handle, uri string, header ...string) response {
	p.t.Helper()
	return p.do("GET", "/resources/"+url.PathEscape(handle)+"/content?uri="+url.QueryEscape(uri), "", header...)
}

// What real servers have beside tools is listed, read, got and completed.
func TestResourcesOfRealServers(t *testing.T) {
	mcptest.NoLeaks(t)
	p := start(t, map[string]server{
		"every": npm("everything"), "memory": npm("memory"), "files": npm("filesystem", t.TempDir()),
		"demo": {"command": "bridge", "args": []string{"demo"}},
	}, nil)
	p.ready()
	every := p.offer("/resources/every")
	if len(every.Resources) < 5 || len(every.Templates) != 2 || every.LastError != "" || len(every.Skipped) != 0 {
		t.Errorf("everything offers %+v", every)
	}
	var paged []string
	for at := "?limit=2"; at != ""; {
		page := p.offer("/resources/every" + at)
		for _, r := range page.Resources {
			paged = append(paged, r.URI)
		}
		for _, r := range page.Templates {
			paged = append(paged, r.URITemplate)
		}
		at = page.Next
	}
	if len(paged) != every.Total || !slices.Contains(paged, every.Resources[0].URI) {
		t.Errorf("page by page: %q of %d", paged, every.Total)
	}
	for _, r := range every.Resources {
		list := url.URL{Path: "/resources/every"}
		link, err := list.Parse(r.Links.Content)
		if err != nil {
			t.Fatal(err)
		}
		res := p.get(link.String())
		if res.StatusCode != 200 || r.MediaType != "" && !strings.HasPrefix(res.Header.Get("Content-Type"), r.MediaType) || len(res.body) == 0 {
			t.Errorf("%s: %d %s %.100s", r.URI, res.StatusCode, res.Header.Get("Content-Type"), res.body)
		}
	}
	blob := p.read("every", "demo://resource/dynamic/blob/1")
	var whole struct {
		Contents []struct{ Blob, MimeType string }
	}
	decode(t, p.read("every", "demo://resource/dynamic/blob/1", "Accept", "application/json"), &whole)
	want, err := base64.StdEncoding.DecodeString(whole.Contents[0].Blob)
	if err != nil || blob.StatusCode != 200 || len(blob.body) == 0 || len(blob.body) > 2*len(want) || blob.Header.Get("Content-Type") != whole.Contents[0].MimeType {
		t.Errorf("a blob: %d %s %.100s, as sent %+v", blob.StatusCode, blob.Header.Get("Content-Type"), blob.body, whole)
	}
	if res := p.read("memory", "memory://knowledge-graph"); res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" || !json.Valid(res.body) {
		t.Errorf("memory: %d %s", res.StatusCode, res.body)
	}
	note := p.read("demo", "demo://notes/arch")
	if note.Header.Get("Content-Type") != "text/markdown; charset=utf-8" || !strings.HasPrefix(string(note.body), "# Arch") || note.Header.Get("Artifact-Ref") == "" {
		t.Errorf("demo: %v %.100s", note.Header, note.body)
	}
	if part := p.do("GET", "/artifacts/"+note.Header.Get("Artifact-Ref")+"/contents/0/text", "", "Accept", "text/plain"); string(part.body) != string(note.body) {
		t.Errorf("the artifact has %.100s", part.body)
	}
	if o := p.offer("/resources/files"); o.Total != 0 || o.LastError != "" {
		t.Errorf("filesystem, which has none: %+v", o)
	}
	wantProblem(t, p.read("files", "x:y"), 404, "not-found", "")
	for _, handle := range []string{"every", "memory", "demo"} {
		wantProblem(t, p.read(handle, "nope://x"), 404, "not-found", "not found")
	}

	prompts := p.offer("/prompts/every")
	if len(prompts.Prompts) != 4 || prompts.Total != 4 {
		t.Errorf("everything's prompts: %+v", prompts)
	}
	for prompt, args := range map[string]string{
		"simple-prompt": "", "args-prompt": `{"city":"Ulm"}`, "completable-prompt": `{"department":"Sales","name":"David"}`, "resource-prompt": `{"resourceType":"Text","resourceId":"1"}`,
	} {
		var got struct{ Messages []json.RawMessage }
		if decode(t, p.do("POST", "/prompts/every/"+prompt, args), &got); len(got.Messages) == 0 {
			t.Errorf("%s: no messages", prompt)
		}
	}
	wantProblem(t, p.do("POST", "/prompts/every/args-prompt", `{"state":"BW"}`), 422, "invalid-arguments", "city")
	wantProblem(t, p.do("POST", "/prompts/every/resource-prompt", `{"resourceType":"Text","resourceId":"-"}`), 502, "upstream-error", "")
	wantProblem(t, p.do("POST", "/prompts/every/nope", ``), 404, "not-found", "no prompt")

	for body, want := range map[string][]string{
		`{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`:                                         {"Sales", "Support"},
		`{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"name","value":""},"context":{"arguments":{"department":"Sales"}}}`: {"David", "Eve", "Frank"},
		`{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"7"}}`:                 {"7"},
	} {
		var got struct{ Completion struct{ Values []string } }
		decode(t, p.do("POST", "/complete/every", body), &got)
		if diff := cmp.Diff(want, got.Completion.Values); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	wantProblem(t, p.do("POST", "/complete/every", `{"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"a","value":""}}`), 422, "invalid-arguments", "nope")
	wantProblem(t, p.do("POST", "/complete/files", `{"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"a","value":""}}`), 404, "not-found", "")

	var srv struct {
		Resources int `json:"resource_count"`
		Templates int `json:"template_count"`
		Prompts   int `json:"prompt_count"`
	}
	decode(t, p.get("/tools/every"), &srv)
	if srv.Resources != len(every.Resources) || srv.Templates != 2 || srv.Prompts != 4 {
		t.Errorf("the counts are %+v", srv)
	}
}

// A server whose lists are partly nonsense, whose answers are odd, large or late.
func TestOddResources(t *testing.T) {
	mcptest.NoLeaks(t)
	p := start(t, map[string]server{"odd": mode(t, mcptest.Offers)}, map[string]any{"limits": map[string]any{"resultBytes": "1MiB"}})
	p.ready()
	o := p.offer("/resources/odd")
	if len(o.Resources) != 3 || string(o.Resources[0].Size) != "1e1" || len(o.Templates) != 1 || len(o.Skipped) != 4 || o.LastError != "" {
		t.Errorf("odd offers %+v", o)
	}
	if o := p.offer("/prompts/odd"); len(o.Prompts) != 2 || len(o.Skipped) != 2 || o.Prompts[1].Links.Get != "../prompts/odd/say%20it%2Floud" {
		t.Errorf("odd offers %+v", o)
	}
	if res := p.read("odd", "test:exact"); res.StatusCode != 200 || string(res.body) != mcptest.ExactContents {
		t.Errorf("two contents: %s", res.body)
	}
	if res := p.do("POST", "/prompts/odd/exact", ""); res.StatusCode != 200 || string(res.body) != mcptest.ExactPrompt {
		t.Errorf("a prompt: %s", res.body)
	}
	if res := p.do("POST", "/prompts/odd/say%20it%2Floud", "{\n\"what\":\"\\u0041\" }"); !strings.Contains(string(res.body), `"name":"say it/loud","arguments":{ "what":"\u0041" }}}`) {
		t.Errorf("arguments: %s", res.body)
	}
	body := "{\"argument\":{\"name\":\"\\u0061\",\"value\":\"\"},\r\n \"ref\":{\"type\":\"ref/prompt\",\"name\":\"exact\",\"n\":1.10}}"
	if res := p.do("POST", "/complete/odd", body); !strings.Contains(string(res.body), `,"argument":{"name":"\u0061","value":""},   "ref":{"type":"ref/prompt","name":"exact","n":1.10}}`) {
		t.Errorf("a completion: %s", res.body)
	}
	if res := p.read("odd", "test:png"); res.Header.Get("Content-Type") != "image/png" || res.Header.Get("Content-Disposition") != "" || base64.StdEncoding.EncodeToString(res.body) != pngData {
		t.Errorf("an image: %v", res.Header)
	}
	if res := p.read("odd", "test:type"); res.Header.Get("Content-Type") != "application/octet-stream" || res.Header.Get("Set-Cookie") != "" || string(res.body) != "<b>" {
		t.Errorf("a type of two lines: %v %s", res.Header, res.body)
	}
	if res := p.read("odd", "test:huge/900000"); res.StatusCode != 200 || len(res.body) != 900000 {
		t.Errorf("large: %d, %d bytes", res.StatusCode, len(res.body))
	}
	wantProblem(t, p.read("odd", "test:huge/2000000"), 502, "result-too-large", "")
	wantProblem(t, p.read("odd", "test:nonsense"), 502, "upstream-error", "contents")
	wantProblem(t, p.read("odd", "test:none"), 404, "not-found", "Resource not found")
	wantProblem(t, p.read("odd", "a\"\r\n{}"), 404, "not-found", "Resource not found")
	wantProblem(t, p.read("odd", strings.Repeat("u", 5000)), 404, "not-found", "Resource not found")
	wantProblem(t, p.read("none", "test:html"), 404, "not-found", "no server")
	wantProblem(t, p.do("POST", "/prompts/odd/say%20it%2Floud", `{"what":""}`), 422, "invalid-arguments", "nothing to say")
	wantProblem(t, p.do("POST", "/prompts/odd/exact", `{"x":"`+strings.Repeat("x", 5<<20)+`"}`), 413, "request-too-large", "")
	wantProblem(t, p.do("POST", "/prompts/odd/exact", `x=1`, "Content-Type", "text/plain"), 415, "unsupported-media-type", "")

	// Who waits no longer has the server told so, and the connection lives on.
	wantProblem(t, p.read("odd", "test:hang", "Prefer", "wait=1"), 504, "deadline-exceeded", "")
	if ids := text(t, p.call("odd", "cancelled", `{"count":1}`, 200)); len(ids) < 5 {
		t.Errorf("cancelled were %s", ids)
	}
	// The list is read anew when the server says that it has changed.
	if res := p.read("odd", "test:change"); string(res.body) != `{"contents":[]}` {
		t.Errorf("change: %s", res.body)
	}
	until(t, "the new resource is listed", func() bool {
		for _, r := range p.offer("/resources/odd").Resources {
			if r.URI == "test:new/0" {
				return true
			}
		}
		return false
	})
	for line := range strings.Lines(p.log()) {
		if strings.Contains(line, `"msg":"call"`) && strings.Contains(line, "test:") {
			t.Errorf("the log has a URI: %s", line)
		}
	}
}

// A page that a server has among its resources does not run in our origin.
func TestForeignResourceDoesNotRun(t *testing.T) {
	p := start(t, map[string]server{"odd": mode(t, mcptest.Offers)}, nil)
	p.ready()
	const at = "/resources/odd/content?uri=test:html"
	res := p.do("GET", at, "", "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	if res.Header.Get("Content-Type") != "text/html; charset=utf-8" || res.Header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" ||
		res.Header.Get("Content-Disposition") != "attachment" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers = %v", res.Header)
	}
	for _, r := range visit(t, p.base+"/docs", p.base+at) {
		if strings.Contains(r, "/ran-") {
			t.Errorf("it ran: %s", r)
		}
	}
}

// Keys decide about resources and prompts as they do about tools.
func TestResourcesByKey(t *testing.T) {
	all, allEntry := newKey(t, "all", nil)
	some, someEntry := newKey(t, "some", map[string]any{"allow": []string{"odd/test:*", "odd/exact"}, "deny": []string{"*/test:png"}})
	tools, toolsEntry := newKey(t, "tools", map[string]any{"allow": []string{"odd/echo"}})
	p := start(t, map[string]server{"odd": mode(t, mcptest.Offers)}, map[string]any{"auth": map[string]any{"keys": []any{allEntry, someEntry, toolsEntry}}})
	until(t, "the server is there", func() bool { return len(p.names("X-API-Key", all)) > 0 })
	for _, tt := range []struct {
		key                              string
		tools, html, png, exact, prompts int
	}{
		{all, 1, 200, 200, 200, 2},
		{some, 0, 200, 404, 200, 1},
		{tools, 1, 404, 404, 404, 0},
	} {
		h := []string{"X-API-Key", tt.key}
		if got := len(p.names(h...)); (got > 0) != (tt.tools > 0) {
			t.Errorf("%d tools", got)
		}
		for uri, want := range map[string]int{"test:html": tt.html, "test:png": tt.png} {
			if res := p.read("odd", uri, h...); res.StatusCode != want {
				t.Errorf("%s: %d, want %d", uri, res.StatusCode, want)
			}
		}
		if res := p.do("POST", "/prompts/odd/exact", "", h...); res.StatusCode != tt.exact {
			t.Errorf("the prompt: %d, want %d", res.StatusCode, tt.exact)
		}
		var o offer
		if decode(t, p.do("GET", "/prompts/odd", "", h...), &o); len(o.Prompts) != tt.prompts {
			t.Errorf("the prompts are %+v, want %d", o.Prompts, tt.prompts)
		}
	}
	if res := p.read("odd", "test:html"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", res.StatusCode)
	}
}

// Behind two bridges resources and prompts are what they are behind one, under the names that the inner one gives them.
func TestResourcesBehindBridge(t *testing.T) {
	servers := func() map[string]server {
		return map[string]server{"odd": mode(t, mcptest.Offers), "odd too": mode(t, mcptest.Offers), "demo": {"command": "bridge", "args": []string{"demo"}}}
	}
	test := func(t *testing.T, a *process) {
		a.ready()
		o := a.offer("/resources/b?limit=3")
		var all []string
		for {
			for _, r := range o.Resources {
				all = append(all, r.URI)
			}
			for _, r := range o.Templates {
				all = append(all, r.URITemplate)
			}
			if o.Next == "" {
				break
			}
			o = a.offer("/resources/b" + o.Next)
		}
		for _, uri := range []string{"bridge:odd:test:html", "bridge:odd+too:test:html", "bridge:demo:demo://notes/arch", "bridge:odd:test:huge/{bytes}"} {
			if !slices.Contains(all, uri) {
				t.Errorf("%s is not among %q", uri, all)
			}
		}
		if o.LastError != "" || len(o.Skipped) != 0 {
			t.Errorf("left out are %+v, %s", o.Skipped, o.LastError)
		}
		exact := strings.TrimSuffix(mcptest.ExactContents, " }")
		for _, uri := range []string{"bridge:odd:test:exact", "bridge:odd+too:test:exact"} {
			if res := a.read("b", uri); res.StatusCode != 200 || !strings.HasPrefix(string(res.body), exact+",") {
				t.Errorf("%s: %d %s", uri, res.StatusCode, res.body)
			}
		}
		if res := a.read("b", "bridge:odd:test:png"); res.Header.Get("Content-Type") != "image/png" || base64.StdEncoding.EncodeToString(res.body) != pngData {
			t.Errorf("an image: %v", res.Header)
		}
		if res := a.read("b", "demo://notes/arch"); !strings.HasPrefix(string(res.body), "# Arch") {
			t.Errorf("a note by the URI that its server has: %d %.100s", res.StatusCode, res.body)
		}
		wantProblem(t, a.read("b", "bridge:odd:test:none"), 404, "not-found", "Resource not found")
		wantProblem(t, a.read("b", "test:html"), 404, "not-found", "several servers")
		wantProblem(t, a.read("b", "bridge:none:test:html"), 404, "not-found", "unknown resource")

		if res := a.do("POST", "/prompts/b/odd__exact", ""); res.StatusCode != 200 || !strings.HasPrefix(string(res.body), strings.TrimSuffix(mcptest.ExactPrompt, " }")) {
			t.Errorf("a prompt: %d %s", res.StatusCode, res.body)
		}
		var loud string
		for _, p := range a.offer("/prompts/b").Prompts {
			if strings.HasPrefix(p.Name, "odd_too__say") {
				loud = p.Name
			}
		}
		if res := a.do("POST", "/prompts/b/"+url.PathEscape(loud), `{"what":"x"}`); !strings.Contains(string(res.body), `,"name":"say it/loud","arguments":{"what":"x"}}`) {
			t.Errorf("%q: %s", loud, res.body)
		}
		wantProblem(t, a.do("POST", "/prompts/b/"+url.PathEscape(loud), `{"what":""}`), 422, "invalid-arguments", "nothing to say")
		body := `{"ref":{"type":"ref/resource","uri":"bridge:odd:test:huge/{bytes}"},"argument":{"name":"bytes","value":"1"}}`
		if res := a.do("POST", "/complete/b", body); !strings.Contains(string(res.body), `"ref":{"type":"ref/resource","uri":"test:huge/{bytes}"}`) {
			t.Errorf("a completion: %s", res.body)
		}
		if res := a.read("b", "bridge:odd:test:change"); res.StatusCode != 200 {
			t.Errorf("change: %d %s", res.StatusCode, res.body)
		}
		until(t, "the new resource is listed through both", func() bool {
			for _, r := range a.offer("/resources/b").Resources {
				if r.URI == "bridge:odd:test:new/0" {
					return true
				}
			}
			return false
		})
	}
	for name, protocol := range map[string]string{"modern": "auto", "sessions": "2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, servers(), nil)
			b.ready()
			test(t, start(t, map[string]server{"b": {"url": b.base + "/mcp", "protocol": protocol}}, nil))
		})
	}
	t.Run("stdio", func(t *testing.T) {
		test(t, start(t, map[string]server{"b": published(t, servers())}, nil))
	})
}
