package routes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
)

// newOfferFixture returns a fixture whose server "demo" has resources, templates and prompts. Each
// request is answered with what answer says of its method; got is the last one.
func newOfferFixture(answer map[bridge.Method]string) (*fixture, *bridge.Request) {
	srv := newToolServer("demo", "add")
	srv.Target = srv.Tools[0].Target
	for _, uri := range []string{"demo://a", "demo://b?x=1&y", "demo://c"} {
		srv.Resources = append(srv.Resources, &bridge.Resource{
			URI: uri, Name: uri[7:8], MediaType: "text/plain", Raw: json.RawMessage(`{"size":1e3,"annotations":{"z":1,"a":1.10}}`),
		})
	}
	srv.Templates = []*bridge.Resource{{URI: "demo://{id}", Name: "any", Title: "Any", Description: "Of all.", MediaType: "text/html", Raw: json.RawMessage(`{}`)}}
	srv.Prompts = []*bridge.Prompt{
		{Name: "a/b", Raw: json.RawMessage(`{"name":"a\/b","arguments":[{"name":"who","required":true}]}`), Required: []string{"who"}},
		{Name: "free", Title: "Free", Raw: json.RawMessage(`{"name":"free"}`)},
	}
	srv.SkippedResources = []bridge.Skipped{{Reason: "entry 3 of the list has no uri"}}
	srv.PromptsError = "prompts/list goes in circles"
	f := newFixture(srv, newToolServer("files", "read"))
	got := new(bridge.Request)
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		*got = r
		return r.Method.Parse([]byte(answer[r.Method]))
	}
	return f, got
}

func TestListResources(t *testing.T) {
	f, _ := newOfferFixture(nil)
	c := f.serve(t)
	c.do("GET", "/resources/demo?limit=2", "").wantOK(t, `{"resources":[`+
		`{"uri":"demo://a","name":"a","media_type":"text/plain","size":1e3,"annotations":{"z":1,"a":1.10},"links":{"content":"../resources/demo/content?uri=demo%3A%2F%2Fa"}},`+
		`{"uri":"demo://b?x=1&y","name":"b","media_type":"text/plain","size":1e3,"annotations":{"z":1,"a":1.10},"links":{"content":"../resources/demo/content?uri=demo%3A%2F%2Fb%3Fx%3D1%26y"}}],`+
		`"templates":[],"total":4,"next":"?cursor=eyJoIjoiIiwidCI6InJkZW1vOi8vYj94PTFcdTAwMjZ5IiwiaSI6MX0&limit=2","state":"ready","skipped":[{"name":"","reason":"entry 3 of the list has no uri"}]}`)
	var got []string
	pages := 0
	for at := "?limit=1"; at != ""; pages++ {
		r := c.do("GET", "/resources/demo"+at, "")
		var p ResourceList
		if err := json.Unmarshal([]byte(r.body), &p); err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Resources {
			got = append(got, e.URI)
		}
		for _, e := range p.Templates {
			got = append(got, e.URITemplate)
		}
		want := ""
		if p.Next != "" {
			want = "<" + p.Next + `>; rel="next"`
		}
		if link := r.header.Get("Link"); link != want {
			t.Errorf("Link = %q, want %q", link, want)
		}
		at = p.Next
	}
	if want := []string{"demo://a", "demo://b?x=1&y", "demo://c", "demo://{id}"}; !slices.Equal(got, want) || pages != 4 {
		t.Errorf("%d pages of %q, want 4 of %q", pages, got, want)
	}
	c.do("GET", "/resources/files", "").wantOK(t, `{"resources":[],"templates":[],"total":0,"state":"ready","skipped":[]}`)
	c.do("GET", "/resources/demo?cursor=x", "").wantProblem(t, 400, bridge.Malformed)
	c.do("GET", "/resources/demo?limit=0", "").wantProblem(t, 400, bridge.Malformed)
	c.do("GET", "/resources/none", "").wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/resources/demo", "{}").wantProblem(t, 405, MethodNotAllowed)
}

// A cursor still leads on when the entry that it names is gone.
func TestWindowAfterAChange(t *testing.T) {
	r, _ := http.NewRequest("GET", "/", nil)
	keys := []string{"a", "b", "c", "d"}
	in := &offerInput{Limit: 2}
	_, _, next, err := window(r, in, 4, func(i int) string { return keys[i] })
	if err != nil {
		t.Fatal(err)
	}
	keys = []string{"a", "c", "d"}
	in.Cursor = next[strings.Index(next, "=")+1:]
	from, to, more, err := window(r, in, 3, func(i int) string { return keys[i] })
	if got := keys[from:to]; err != nil || !slices.Equal(got, []string{"c", "d"}) || more != "" {
		t.Errorf("the second page is %q, more at %q (%v), want c and d", got, more, err)
	}
	in.Cursor = cursor{Index: 99}.String()
	if from, to, _, err := window(r, in, 3, func(i int) string { return keys[i] }); from != 3 || to != 3 || err != nil {
		t.Errorf("behind the end: %d to %d (%v)", from, to, err)
	}
	in.Cursor = cursor{Index: -5}.String()
	if from, _, _, err := window(r, in, 3, func(i int) string { return keys[i] }); from != 0 || err != nil {
		t.Errorf("before the beginning: %d (%v)", from, err)
	}
}

func TestReadResource(t *testing.T) {
	const json = "application/json"
	html := `{"contents":[{"uri":"demo://a","mimeType":"text/html; charset=utf-7","text":"<script>alert(1)<\/script>ü"}]}`
	png := `{"contents":[{"uri":"demo://a","mimeType":"image/png","blob":"AAH\/"}]}`
	doc := `{ "contents":[{"uri":"demo://a","mimeType":"application/json","text":"{\"n\":1.10}"}] ,"n":1e400}`
	two := `{"contents":[{"uri":"demo://a","text":"a"},{"uri":"demo://b","text":"b"}]}`
	tests := []struct {
		name, result, accept string
		mediaType, body      string
		attachment           bool
	}{
		{"a page", html, "", "text/html; charset=utf-8", "<script>alert(1)</script>ü", true},
		{"a page for a browser", html, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", "<script>alert(1)</script>ü", true},
		{"a page as its result", html, json, json, html, false},
		{"bytes", png, "*/*", "image/png", "\x00\x01\xff", false},
		{"bytes before JSON", png, "image/*, application/json;q=0.5", "image/png", "\x00\x01\xff", false},
		{"JSON before bytes", png, "image/*;q=0.5, application/json", json, png, false},
		{"JSON refused", png, "application/json;q=0, */*", "image/png", "\x00\x01\xff", false},
		{"a document", doc, "", json, `{"n":1.10}`, true},
		{"the result of a document", doc, json, json, doc, false},
		{"two contents", two, "text/plain", json, two, false},
		{"none", `{"contents":[]}`, "", json, `{"contents":[]}`, false},
		{"no type", `{"contents":[{"text":"x"}]}`, "", "text/plain; charset=utf-8", "x", false},
		{"a broken type", `{"contents":[{"mimeType":"a\r\nX: y","text":"x"}]}`, "", "text/plain; charset=utf-8", "x", false},
		{"half a type", `{"contents":[{"mimeType":"html","blob":"AA=="}]}`, "", "application/octet-stream", "\x00", true},
		{"a type that is none", `{"contents":[{"mimeType":5,"blob":"AA=="}]}`, "", "application/octet-stream", "\x00", true},
		{"an image with a script", `{"contents":[{"mimeType":"image/svg+xml","text":"<svg/>"}]}`, "", "image/svg+xml", "<svg/>", true},
		{"broken base64", `{"contents":[{"mimeType":"image/png","blob":"A"}]}`, "", json, `{"contents":[{"mimeType":"image/png","blob":"A"}]}`, false},
		{"a content that is none", `{"contents":[5]}`, "", json, `{"contents":[5]}`, false},
		{"neither text nor blob", `{"contents":[{"uri":"x"}]}`, "", json, `{"contents":[{"uri":"x"}]}`, false},
		{"an empty text", `{"contents":[{"text":""}]}`, "", "text/plain; charset=utf-8", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, got := newOfferFixture(map[bridge.Method]string{bridge.ReadResource: tt.result})
			c := f.serve(t)
			r := c.do("GET", "/resources/demo/content?uri=demo%3A%2F%2Fa%22", "", "Accept: "+tt.accept)
			if r.status != 200 || r.header.Get("Content-Type") != tt.mediaType || r.body != tt.body {
				t.Errorf("answer = %d %s %q, want %s %q", r.status, r.header.Get("Content-Type"), r.body, tt.mediaType, tt.body)
			}
			if string(got.Tool.Params) != `"uri":"demo://a\""` || got.Args != nil || got.Tool.Name != `demo://a"` {
				t.Errorf("params = %s%s for %q", got.Tool.Params, got.Args, got.Tool.Name)
			}
			if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Vary") != "Accept" || !strings.Contains(r.header.Get("Server-Timing"), "upstream;dur=") {
				t.Errorf("headers = %v", r.header)
			}
			whole := r.body == tt.result
			if csp := r.header.Get("Content-Security-Policy"); (csp == "sandbox; default-src 'none'") == whole {
				t.Errorf("Content-Security-Policy = %q", csp)
			}
			if d := r.header.Get("Content-Disposition"); (d == "attachment") != tt.attachment {
				t.Errorf("Content-Disposition = %q", d)
			}
			if head := c.do("HEAD", "/resources/demo/content?uri=x", "", "Accept: "+tt.accept); head.status != 200 || head.body != "" || head.header.Get("Content-Length") != r.header.Get("Content-Length") {
				t.Errorf("HEAD = %d %q, length %s", head.status, head.body, head.header.Get("Content-Length"))
			}
			tag := r.header.Get("ETag")
			if again := c.do("GET", "/resources/demo/content?uri=x", "", "Accept: "+tt.accept, "If-None-Match: "+tag); again.status != 304 || again.body != "" || tag == "" {
				t.Errorf("of what the caller has: %d %q, tag %s", again.status, again.body, tag)
			}
		})
	}
}

func TestReadResourceKept(t *testing.T) {
	f, _ := newOfferFixture(map[bridge.Method]string{bridge.ReadResource: `{"contents":[{"text":"x"}],"_meta":{"n":1.10}}`, bridge.GetPrompt: `{"messages":[]}`})
	keeper := artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	f.opts.Artifacts = keeper
	c := f.serve(t)
	r := c.do("GET", "/resources/demo/content?uri=demo://a", "")
	ref := r.header.Get("Artifact-Ref")
	if r.body != "x" || ref == "" || r.header.Get("Content-Location") != "" {
		t.Errorf("answer = %q, artifact %q at %q", r.body, ref, r.header.Get("Content-Location"))
	}
	r = c.do("GET", "/resources/demo/content?uri=demo://a", "", "Accept: application/json")
	if at := r.header.Get("Content-Location"); at != "../../artifacts/"+r.header.Get("Artifact-Ref") {
		t.Errorf("Content-Location = %q", at)
	}
	if again := c.do("GET", "/artifacts/"+r.header.Get("Artifact-Ref"), ""); again.body != r.body {
		t.Errorf("the artifact is %s, the answer was %s", again.body, r.body)
	}
	if part := c.do("GET", "/artifacts/"+ref+"/contents/0/text", "", "Accept: text/plain"); part.body != "x" {
		t.Errorf("the text in the artifact is %q", part.body)
	}
	if r := c.do("POST", "/prompts/demo/free", ""); r.header.Get("Artifact-Ref") != "" || r.status != 200 {
		t.Errorf("a prompt: %d, kept as %q", r.status, r.header.Get("Artifact-Ref"))
	}
}

func TestReadResourceRefused(t *testing.T) {
	f, _ := newOfferFixture(nil)
	f.allows = func(_, name string) bool { return !strings.Contains(name, "secret") }
	c := f.serve(t)
	for _, q := range []string{"", "?uri=", "?uri=a&uri=b", "?uri=a&x=1", "?uri=demo://b?x=1&y", "?uri=%zz", "?uri=a;b"} {
		c.do("GET", "/resources/demo/content"+q, "").wantProblem(t, 400, bridge.Malformed)
	}
	c.do("GET", "/resources/demo/content?uri=a", "", "Prefer: wait=x").wantProblem(t, 400, bridge.Malformed)
	c.do("GET", "/resources/none/content?uri=a", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/resources/files/content?uri=a", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/resources/demo/content?uri=demo://secret", "").wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/resources/demo/content?uri=a", "{}").wantProblem(t, 405, MethodNotAllowed)
	for _, line := range f.logLines(t) {
		if text := fmt.Sprint(line); strings.Contains(text, "secret") {
			t.Errorf("the log has the URI: %s", text)
		}
	}
}

func TestAskFails(t *testing.T) {
	failed := errors.New("cut")
	for _, tt := range []struct {
		err    error
		status int
		code   bridge.Kind
	}{
		{&bridge.Error{Kind: bridge.NotFound, Msg: "no such resource", Members: map[string]any{"upstream_code": -32002}}, 404, bridge.NotFound},
		{&bridge.Error{Kind: bridge.InvalidArguments, Msg: "no"}, 422, bridge.InvalidArguments},
		{&bridge.Error{Kind: bridge.UpstreamError, Msg: "no"}, 502, bridge.UpstreamError},
		{&bridge.Error{Kind: bridge.DeadlineExceeded, Msg: "no"}, 504, bridge.DeadlineExceeded},
		{failed, 500, bridge.Internal},
	} {
		f, _ := newOfferFixture(nil)
		f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return nil, tt.err }
		c := f.serve(t)
		c.do("GET", "/resources/demo/content?uri=a", "").wantProblem(t, tt.status, tt.code)
		c.do("POST", "/prompts/demo/free", "").wantProblem(t, tt.status, tt.code)
		c.do("POST", "/complete/demo", `{"ref":{"type":"ref/prompt","name":"free"},"argument":{"name":"a","value":""}}`).wantProblem(t, tt.status, tt.code)
	}
	for _, step := range []string{"budget", "breaker", "connect", "gate"} {
		f, _ := newOfferFixture(nil)
		f.fails[step] = &bridge.Error{Kind: bridge.Overloaded, Msg: step}
		f.serve(t).do("GET", "/resources/demo/content?uri=a", "").wantProblem(t, 503, bridge.Overloaded)
	}
}

func TestReadResourceInTime(t *testing.T) {
	f, _ := newOfferFixture(nil)
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Second || r.Idle != 0 {
			t.Errorf("the deadline is %v, idle %v", end, r.Idle)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := f.serve(t).do("GET", "/resources/demo/content?uri=a", "", "Prefer: wait=1")
	r.wantProblem(t, 504, bridge.DeadlineExceeded)
	if got := r.header.Get("Preference-Applied"); got != "wait=1" {
		t.Errorf("Preference-Applied = %q", got)
	}
}

func TestPrompts(t *testing.T) {
	const result = `{ "messages":[], "n":9007199254740993 }`
	f, got := newOfferFixture(map[bridge.Method]string{bridge.GetPrompt: result})
	c := f.serve(t)
	c.do("GET", "/prompts/demo?limit=1", "").wantOK(t, `{"prompts":[{"name":"a/b","arguments":[{"name":"who","required":true}],"links":{"get":"../prompts/demo/a%2Fb"}}],`+
		`"total":2,"next":"?cursor=eyJoIjoiIiwidCI6ImEvYiIsImkiOjB9&limit=1","state":"ready","last_error":"prompts/list goes in circles","skipped":[]}`)
	c.do("GET", "/prompts/none", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/prompts/demo?cursor=_", "").wantProblem(t, 400, bridge.Malformed)

	c.do("POST", "/prompts/demo/a%2Fb", "{\"who\":\n\"x\"}").wantOK(t, result)
	if params := string(got.Tool.Params) + string(got.Args); params != `"name":"a\/b","arguments":{"who": "x"}` || got.Method != bridge.GetPrompt {
		t.Errorf("%s with %s", got.Method, params)
	}
	c.do("POST", "/prompts/demo/free", "").wantOK(t, result)
	if params := string(got.Tool.Params) + string(got.Args); params != `"name":"free","arguments":{}` {
		t.Errorf("params = %s", params)
	}
	c.do("POST", "/prompts/demo?prompt=a/b", `{"who":""}`).wantOK(t, result)
	c.do("POST", "/prompts/demo/?prompt=a%2Fb", `{"who":""}`).wantOK(t, result)
	for _, q := range []string{"", "?prompt=", "?prompt=a&prompt=b", "?prompt=free&who=x", "?%zz"} {
		c.do("POST", "/prompts/demo"+q, "{}").wantProblem(t, 400, bridge.Malformed)
	}
	if got := promptRef("a b", ".."); got != "prompts/a%20b?prompt=.." {
		t.Errorf("the reference of .. is %s", got)
	}
	p := c.do("POST", "/prompts/demo/a%2Fb", `{"x/y":5,"z":null}`).wantProblem(t, 422, bridge.InvalidArguments)
	want := []any{
		map[string]any{"pointer": "/x~1y", "message": "must be a string: the arguments of prompts are texts"},
		map[string]any{"pointer": "/z", "message": "must be a string: the arguments of prompts are texts"},
		map[string]any{"pointer": "", "message": `the argument "who" is required`},
	}
	if diff := cmp.Diff(want, p["errors"]); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	for _, body := range []string{`[]`, `{"who":"a","who":"b"}`, `{`, `{} {}`, "{\"who\":\"\xff\"}"} {
		c.do("POST", "/prompts/demo/a%2Fb", body).wantProblem(t, 400, bridge.Malformed)
	}
	c.do("POST", "/prompts/demo/free", "a=b", "Content-Type: application/x-www-form-urlencoded").wantProblem(t, 415, UnsupportedMediaType)
	// Its list could not be read, so it may have others.
	c.do("POST", "/prompts/demo/other", "").wantProblem(t, 502, bridge.UpstreamError)
	c.do("POST", "/prompts/files/other", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/prompts/demo/free", "").wantProblem(t, 405, MethodNotAllowed)
}

func TestComplete(t *testing.T) {
	const result = `{"completion":{"values":["a"],"total":1.0}}`
	f, got := newOfferFixture(map[bridge.Method]string{bridge.Complete: result})
	f.allows = func(_, name string) bool { return name != "secret" }
	c := f.serve(t)
	c.do("POST", "/complete/demo", "\n{ \"argument\":{\"name\":\"who\",\"value\":\"}\"},\r\n\"ref\":{\"type\":\"ref/prompt\",\"name\":\"a/b\"},\"context\":{\"arguments\":{\"n\":1.10}} }\n").wantOK(t, result)
	if params := string(got.Tool.Params) + string(got.Args); params != ` "argument":{"name":"who","value":"}"},  "ref":{"type":"ref/prompt","name":"a/b"},"context":{"arguments":{"n":1.10}} ` {
		t.Errorf("params = %q", params)
	}
	c.do("POST", "/complete/demo", `{"ref":{"type":"ref/resource","uri":"demo://{id}"},"argument":{"name":"id","value":""}}`).wantOK(t, result)
	for _, body := range []string{
		`{}`, ``, `{"ref":{"type":"ref/tool","name":"add"},"argument":{"name":"a","value":""}}`,
		`{"ref":{"type":"ref/prompt","name":"x"}}`, `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}}`,
		`{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""},"context":5}`,
		`{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""},"_meta":{}}`,
	} {
		if p := c.do("POST", "/complete/demo", body).wantProblem(t, 422, bridge.InvalidArguments); len(p["errors"].([]any)) == 0 {
			t.Errorf("%s: %v", body, p)
		}
	}
	for _, body := range []string{`[]`, `{"ref":{},"ref":{}}`, `5`} {
		c.do("POST", "/complete/demo", body).wantProblem(t, 400, bridge.Malformed)
	}
	c.do("POST", "/complete/demo", `{"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":""}}`).wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/complete/files", `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}}`).wantProblem(t, 404, bridge.NotFound)
}

func TestOfferIsFiltered(t *testing.T) {
	f, _ := newOfferFixture(nil)
	f.allows = func(_, name string) bool { return name == "demo://c" || name == "demo://{id}" || name == "free" }
	c := f.serve(t)
	var p ServerPage
	if err := json.Unmarshal([]byte(c.do("GET", "/tools/demo", "").body), &p); err != nil {
		t.Fatal(err)
	}
	if p.ToolCount != 0 || p.ResourceCount != 1 || p.TemplateCount != 1 || p.PromptCount != 1 {
		t.Errorf("%d tools, %d resources, %d templates, %d prompts", p.ToolCount, p.ResourceCount, p.TemplateCount, p.PromptCount)
	}
	c.do("GET", "/prompts/demo", "").wantOK(t, `{"prompts":[{"name":"free","title":"Free","links":{"get":"../prompts/demo/free"}}],"total":1,"state":"ready","last_error":"prompts/list goes in circles","skipped":[]}`)
	c.do("POST", "/prompts/demo/a%2Fb", `{"who":"x"}`).wantProblem(t, 502, bridge.UpstreamError)
}

// What a server asks before it answers makes a job also of a read and of a prompt.
func TestResourcesAsk(t *testing.T) {
	f, _ := newOfferFixture(nil)
	f.withJobs(t, jobs.Options{})
	f.snap.Server("demo").Target.Asks = true
	quiet := false
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		said := "unasked"
		if !quiet {
			replies, err := r.Ask(ctx, []bridge.Question{{ID: "q", Mode: "form", Message: "Which?"}})
			if err != nil {
				return nil, err
			}
			said = replies["q"].Action
		}
		answer := map[bridge.Method]string{
			bridge.ReadResource: `{"contents":[{"uri":"demo://a","mimeType":"text/markdown","text":"` + said + `"}]}`,
			bridge.GetPrompt:    `{"messages":[],"said":"` + said + `"}`,
		}[r.Method]
		return r.Method.Parse([]byte(answer))
	}
	c := f.serve(t)
	for _, tt := range []struct {
		method, path string
		asks         bridge.Method
		names, up    string
		data         string
	}{
		{"GET", "/resources/demo/content?uri=demo://a", bridge.ReadResource, "demo://a", "../../", `{"contents":[{"uri":"demo://a","mimeType":"text/markdown","text":"decline"}]}`},
		{"POST", "/prompts/demo/free", bridge.GetPrompt, "free", "../../", `{"messages":[],"said":"decline"}`},
	} {
		r := c.do(tt.method, tt.path, "")
		j := jobOf(t, r)
		if r.status != 202 || j.State != jobs.InputRequired || j.Method != tt.asks || j.Tool != tt.names || len(j.Requests) != 1 || r.header.Get("Location") != tt.up+"jobs/"+j.ID {
			t.Fatalf("%s: %d %s %v", tt.path, r.status, r.body, r.header)
		}
		if r := c.do("POST", "/jobs/"+j.ID+"/input", `{"action":"decline"}`); r.status != 204 {
			t.Fatalf("input: %d %s", r.status, r.body)
		}
		if j = until(t, c, j.ID, jobs.Done); string(j.Result.Data) != tt.data {
			t.Errorf("%s: result %s, want %s", tt.path, j.Result.Data, tt.data)
		}
	}
	// One that asks nothing is answered as ever, within its time.
	quiet = true
	r := c.do("GET", "/resources/demo/content?uri=demo://a", "", "Prefer: wait=9")
	r.wantOK(t, "unasked")
	if r.header.Get("Content-Type") != "text/markdown; charset=utf-8" || r.header.Get("Vary") != "Accept" || r.header.Get("Preference-Applied") != "wait=9" || r.header.Get("Server-Timing") == "" {
		t.Errorf("headers = %v", r.header)
	}
	c.do("POST", "/prompts/demo/free", "").wantOK(t, `{"messages":[],"said":"unasked"}`)
	for _, line := range f.logLines(t) {
		if text := fmt.Sprint(line); strings.Contains(text, "demo://") {
			t.Errorf("the log has the URI: %s", text)
		}
	}
}
