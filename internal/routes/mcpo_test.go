package routes

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/openapi/openapitest"
)

// recorded is what mcpo answered, with one server behind it, and what that server sent.
type recorded struct {
	Tools     []recordedTool // those whose schema matters
	Exchanges []struct {
		Name   string
		Result string // of the tool; "" is a text that repeats the arguments
		Error  *struct {
			Code    int64
			Message string
			Data    json.RawMessage
		}
		Method, Path, Body, Type string
		MCPO                     recordedAnswer  // its own texts are "…"
		Ours                     *recordedAnswer // where it is another
	}
}

type recordedTool struct {
	Name          string
	Input, Output json.RawMessage
}

type recordedAnswer struct {
	Status    int
	Body, Why string
}

func readRecorded(t *testing.T) recorded {
	t.Helper()
	b, err := os.ReadFile("testdata/mcpo.json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recorded
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// fixture returns a bridge in front of the same server.
func (rec recorded) fixture() *fixture {
	srv := newToolServer("facts")
	tools := map[string]recordedTool{}
	for _, tool := range rec.Tools {
		tools[tool.Name] = tool
	}
	for _, e := range rec.Exchanges {
		name := strings.TrimPrefix(e.Path, "/facts/")
		if (e.Result != "" || e.Error != nil) && tools[name].Name == "" {
			tools[name] = recordedTool{Name: name, Input: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)}
		}
	}
	for _, tool := range tools {
		t := newTool("facts", tool.Name, string(tool.Input))
		t.Output = tool.Output
		if err := openapi.NewSchemas(nil).Compile(t); err != nil {
			panic(err)
		}
		srv.Tools = append(srv.Tools, t)
	}
	f := newFixture(srv)
	f.opts.MCPO = true
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		for _, e := range rec.Exchanges {
			switch {
			case e.Path != "/facts/"+r.Tool.Name:
			case e.Error != nil: // as internal/mcp has it
				m := map[string]any{"upstream_code": e.Error.Code, "upstream_message": e.Error.Message}
				if e.Error.Data != nil {
					m["upstream_data"] = e.Error.Data
				}
				return nil, &bridge.Error{Kind: bridge.UpstreamError, Op: "test", Msg: "error " + e.Error.Message, Members: m}
			case e.Result != "":
				return newResult(e.Result), nil
			}
		}
		text, err := json.Marshal("args: " + string(r.Args))
		return newResult(`{"content":[{"type":"text","text":` + string(text) + `}]}`), err
	}
	return f
}

// Ours answers what mcpo answered, or what the record says and why; and all of
// that is in the document.
func TestMCPORecorded(t *testing.T) {
	rec := readRecorded(t)
	c := rec.fixture().serve(t)
	doc := openapitest.Validate(t, []byte(c.do("GET", "/mcpo/facts/openapi.json", "").body))
	for _, e := range rec.Exchanges {
		t.Run(e.Name, func(t *testing.T) {
			r := c.do(e.Method, "/mcpo"+e.Path, e.Body, "Content-Type: "+e.Type)
			if got := r.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type = %q", got)
			}
			if e.Ours == nil {
				var got, want any
				if err := errors.Join(json.Unmarshal([]byte(r.body), &got), json.Unmarshal([]byte(e.MCPO.Body), &want)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" || r.status != e.MCPO.Status {
					t.Errorf("status %d, want %d; body (-mcpo +ours):\n%s", r.status, e.MCPO.Status, diff)
				}
			} else {
				if r.status != e.Ours.Status || r.body != e.Ours.Body {
					t.Errorf("answer = %d %s\nwant %d %s (%s)", r.status, r.body, e.Ours.Status, e.Ours.Body, e.Ours.Why)
				}
				if e.Ours.Why == "messages are ours" && (r.status != e.MCPO.Status || !cmp.Equal(places(r.body), places(e.MCPO.Body))) {
					t.Errorf("more than the messages differs: %d %s", e.MCPO.Status, e.MCPO.Body)
				}
			}
			path, ok := strings.CutPrefix(e.Path, "/facts/")
			if !ok || e.Method != "POST" || path == "nope" || strings.HasSuffix(path, "/") {
				return
			}
			if err := doc.Answer("/"+strings.ReplaceAll(path, "/", "%2F"), r.status, "application/json", r.body); err != nil {
				t.Errorf("the document does not have %d %s: %v", r.status, r.body, err)
			}
		})
	}
}

// places returns where the faults are that a refusal lists, or nil if it lists none.
func places(body string) []any {
	var f struct {
		Detail []struct{ Loc any }
	}
	if json.Unmarshal([]byte(body), &f) != nil {
		return nil
	}
	var locs []any
	for _, d := range f.Detail {
		locs = append(locs, d.Loc)
	}
	return locs
}

// With a key, mcpo answers 401 when there is none and 403 when it is wrong.
func TestMCPOKeys(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"hello"}]}`)
	f.opts.MCPO = true
	f.opts.Caller = func(r *http.Request) (bridge.Caller, error) {
		switch r.Header.Get("Authorization") {
		case "Bearer secret":
			return bridge.Caller{ID: "ci", Scopes: bridge.ScopeCall}, nil
		case "Bearer metrics":
			return bridge.Caller{ID: "prometheus", Scopes: bridge.ScopeMetrics}, nil
		case "":
			return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Op: "test", Msg: "A key is needed.", Err: identity.ErrNoCredential}
		default:
			return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Op: "test", Msg: "The key is wrong.", Err: errors.New("its hash")}
		}
	}
	calls := f.countCalls()
	c := f.serve(t)
	for _, path := range []string{"/mcpo/demo/echo", "/mcpo/demo/openapi.json", "/mcpo/openapi.json"} {
		method := map[bool]string{true: "GET", false: "POST"}[strings.HasSuffix(path, ".json")]
		r := c.do(method, path, "")
		if r.status != 401 || r.body != `{"detail":"A key is needed."}` || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s without a key = %d %v %s", path, r.status, r.header, r.body)
		}
		if r := c.do(method, path, "", "Authorization: Bearer no"); r.status != 403 || r.body != `{"detail":"The key is wrong."}` {
			t.Errorf("%s with a wrong key = %d %v %s", path, r.status, r.header, r.body)
		}
		if r := c.do(method, path, "", "Authorization: Bearer metrics"); r.status != 403 || !strings.Contains(r.body, `scope \"call\"`) {
			t.Errorf("%s without the scope = %d %v %s", path, r.status, r.header, r.body)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
	c.do("POST", "/mcpo/demo/echo", "{}", "Authorization: Bearer secret").wantOK(t, `"hello"`)
	// Elsewhere nothing has changed.
	c.do("POST", "/tools/demo/echo", "{}", "Authorization: Bearer no").wantProblem(t, 401, Unauthenticated)
	// The pages hold nothing that a key is for.
	if r := c.do("GET", "/mcpo/docs", ""); r.status != 200 {
		t.Errorf("the page = %d", r.status)
	}
}

// The keys of the configuration are taken as elsewhere, in both headers.
func TestMCPORealKeys(t *testing.T) {
	key := identity.NewKey()
	digest, err := identity.DigestOf(key)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture().returns(`{"content":[{"type":"text","text":"hello"}]}`)
	f.opts.MCPO, f.opts.Origins = true, []string{friend}
	f.opts.Caller = identity.New(identity.Options{Keys: []identity.Key{
		{ID: "ci", Hash: digest, Grant: identity.Grant{Scopes: bridge.ScopeCall}},
	}}, slog.New(slog.DiscardHandler)).Caller
	c := f.serve(t)
	for _, tt := range []struct {
		header string
		status int
	}{
		{"Accept: */*", 401},
		{"Authorization: Bearer " + key, 200},
		{"X-API-Key: " + key, 200},
		{"Authorization: Bearer " + key + "x", 403},
		{"X-API-Key: x", 403},
		{"Authorization: Basic dTpw", 403}, // a credential, though of no kind that is one here
	} {
		r := c.do("POST", "/mcpo/demo/echo", "{}", tt.header, "Origin: "+friend, "Sec-Fetch-Site: cross-site")
		if r.status != tt.status || r.status != 200 && !strings.HasPrefix(r.body, `{"detail":"`) || strings.Contains(r.body, key) {
			t.Errorf("with %s: %d %s, want %d", tt.header, r.status, r.body, tt.status)
		}
		if r.header.Get("Access-Control-Allow-Origin") != friend {
			t.Errorf("with %s: a page cannot read the answer", tt.header)
		}
	}
}

// One predicate: what a caller may not call is not there.
func TestMCPOPolicy(t *testing.T) {
	f := newFixture()
	f.opts.MCPO = true
	f.allows = func(handle, tool string) bool { return handle == "demo" && tool != "add" }
	calls := f.countCalls()
	c := f.serve(t)
	for _, path := range []string{"/mcpo/demo/add", "/mcpo/files/read", "/mcpo/nobody/x"} {
		if r := c.do("POST", path, "{}"); r.status != 404 || !strings.HasPrefix(r.body, `{"detail":"`) {
			t.Errorf("POST %s = %d %s", path, r.status, r.body)
		}
	}
	if calls.Load() != 0 {
		t.Error("a tool was called that is not there")
	}
	for path, want := range map[string]string{"/mcpo/openapi.json": "/demo/echo", "/mcpo/demo/openapi.json": "/echo"} {
		var doc struct{ Paths map[string]any }
		if err := json.Unmarshal([]byte(c.do("GET", path, "").body), &doc); err != nil || len(doc.Paths) != 1 || doc.Paths[want] == nil {
			t.Errorf("%s has %v: %v", path, doc.Paths, err)
		}
	}
	for _, path := range []string{"/mcpo/files/openapi.json", "/mcpo/files/docs", "/mcpo/nobody/openapi.json"} {
		if r := c.do("GET", path, ""); r.status != 404 || !strings.HasPrefix(r.body, `{"detail":"`) {
			t.Errorf("GET %s = %d %s", path, r.status, r.body)
		}
	}
}

// Whatever goes wrong under /mcpo has its form.
func TestMCPOErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		step    string
		err     error
		headers []string
		body    string
		status  int
		want    string
	}{
		{"a foreign page", "", nil, []string{"Origin: https://evil.example"}, "{}", 403, `{"detail":"A page of another origin may not make calls here; cors.origins in the configuration would allow it."}`},
		{"a foreign host", "", nil, []string{"Host: evil.example"}, "{}", 403, `{"detail":"The bridge does not answer for the host name`},
		{"a preference", "", nil, []string{"Prefer: wait=x"}, "{}", 400, `{"detail":"In Prefer, wait must be`},
		{"compressed", "", nil, []string{"Content-Encoding: gzip"}, "{}", 415, `{"detail":"The body must not be compressed."}`},
		{"too large", "", nil, nil, `{"a":"` + strings.Repeat("x", 200) + `"}`, 413, `{"detail":"The body is larger`},
		{"two keys", "", nil, nil, `{"a":1,"a":2}`, 422, `{"detail":[{"type":"json_invalid","loc":["body",`},
		{"over the rate", "budget", &bridge.Error{Kind: bridge.RateLimited, Op: "test", Msg: "Slow down.", RetryAfter: 1500e6}, nil, "{}", 429, `{"detail":"Slow down."}`},
		{"a full line", "gate", &bridge.Error{Kind: bridge.Overloaded, Op: "test", Msg: "All is full.", RetryAfter: 1500e6}, nil, "{}", 503, `{"detail":{"message":"All is full."}}`},
		{"no connection", "connect", &bridge.Error{Kind: bridge.Unavailable, Op: "test", Msg: "Not there.", Err: errors.New("secret")}, nil, "{}", 503, `{"detail":{"message":"Not there."}}`},
		{"a broken answer", "connect", &bridge.Error{Kind: bridge.UpstreamError, Op: "test", Msg: "Not JSON."}, nil, "{}", 502, `{"detail":{"message":"Not JSON."}}`},
		{"a bug", "connect", errors.New("secret"), nil, "{}", 500, `{"detail":{"message":"The bridge has a fault."}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			f.opts.MCPO, f.opts.RequestBytes = true, 100
			if tt.step != "" {
				f.fails[tt.step] = tt.err
			}
			r := f.serve(t).do("POST", "/mcpo/demo/echo", tt.body, tt.headers...)
			if r.status != tt.status || !strings.HasPrefix(r.body, tt.want) || r.header.Get("Content-Type") != "application/json" || strings.Contains(r.body, "secret") {
				t.Errorf("answer = %d %s %s, want %d %s", r.status, r.header.Get("Content-Type"), r.body, tt.status, tt.want)
			}
			if r.header.Get("Request-Id") == "" || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", r.header)
			}
			if tt.status == 429 || tt.name == "a full line" {
				if got := r.header.Get("Retry-After"); got != "2" {
					t.Errorf("Retry-After = %q, want 2", got)
				}
			}
		})
	}
}

func TestMCPOPanic(t *testing.T) {
	f := newFixture()
	f.opts.MCPO = true
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { panic("secret") }
	r := f.serve(t).do("POST", "/mcpo/demo/echo", "{}")
	if r.status != 500 || r.body != `{"detail":{"message":"The bridge has a fault."}}` {
		t.Errorf("answer = %d %s", r.status, r.body)
	}
}

// A checker that does not list its findings is quoted as it is.
func TestMCPOArgumentsWithoutList(t *testing.T) {
	f := newFixture()
	f.opts.MCPO = true
	f.fails["connect"] = &bridge.Error{Kind: bridge.InvalidArguments, Op: "test", Msg: "Not right."}
	r := f.serve(t).do("POST", "/mcpo/demo/echo", "{}")
	if r.status != 422 || r.body != `{"detail":[{"type":"value_error","loc":["body"],"msg":"Not right."}]}` {
		t.Errorf("answer = %d %s", r.status, r.body)
	}
}

// A fault stands where it is, whatever the names on the way are.
func TestMCPOPlaces(t *testing.T) {
	s := newToolServer("s")
	s.Tools = append(s.Tools, newTool("s", "t", `{"type":"object","properties":{
		"a/b":{"type":"object","properties":{"~":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},"0":{"type":"object","required":["\"q\"/é"]}}}},
		"additionalProperties":false}`))
	f := newFixture(s)
	f.opts.MCPO = true
	c := f.serve(t)
	for body, want := range map[string]string{
		`{"a/b":{"~":[[1],[2,"x"]]}}`: `["body","a/b","~",1,1]`,
		`{"a/b":{"0":{}}}`:            `["body","a/b","0","\"q\"/é"]`,
		`{"a/b":{"0":1}}`:             `["body","a/b","0"]`,
		`{"~1/":1}`:                   `["body","~1/"]`,
	} {
		r := c.do("POST", "/mcpo/s/t", body)
		if r.status != 422 && r.status != 200 || r.status == 422 && !strings.Contains(r.body, `"loc":`+want+`,`) {
			t.Errorf("%s = %d %s, want a fault at %s", body, r.status, r.body, want)
		}
	}
}

// What is kept can be fetched, also when the tool failed; and an answer is never
// said to be at the artifact's address, which has other bytes.
func TestMCPOArtifacts(t *testing.T) {
	for result, status := range map[string]int{
		`{"content":[{"type":"text","text":"one"},{"type":"text","text":"2"}]}`: 200,
		`{"content":[{"type":"text","text":"no"}],"isError":true}`:              500,
	} {
		f := newFixture().returns(result)
		f.opts.MCPO, f.opts.BasePath = true, "/base"
		f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
		c := f.serve(t)
		const at = "/base/mcpo/demo/echo"
		r := c.do("POST", at, "{}", "Prefer: wait=5")
		ref := r.header.Get("Artifact-Ref")
		if r.status != status || ref == "" || r.header.Get("Content-Location") != "" || r.header.Get("Preference-Applied") != "wait=5" || r.header.Get("Server-Timing") == "" {
			t.Fatalf("call = %d %v", r.status, r.header)
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Link"), "<"), ">")
		if got := c.do("GET", c.resolve(at, link), ""); got.status != 200 || got.body != result {
			t.Errorf("%s = %d %s, want the whole result", link, got.status, got.body)
		}
	}
}

// An artifact that nobody can fetch is not spoken of.
func TestMCPOWithoutArtifacts(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"x"}]}`)
	f.opts.MCPO = true
	f.keep = &bridge.Artifact{Ref: "mcp~x", Type: "mcp"}
	r := f.serve(t).do("POST", "/mcpo/demo/echo", "{}")
	if r.header.Get("Artifact-Ref") != "" || r.header.Get("Link") != "" {
		t.Errorf("headers = %v", r.header)
	}
	r.wantOK(t, `"x"`)
}

// The bytes of what a server sent come through: every digit, escape and space.
func TestMCPOExactBytes(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"{\"a\" : [1.10,1e400, -0],\"a\":9007199254740993}"}]}`:    `{"a" : [1.10,1e400, -0],"a":9007199254740993}`,
		`{"content":[{"type":"text","text":"caf\u00e9 \ud800 \/"}]}`:                                  `"caf\u00e9 \ud800 \/"`,
		`{"content":[{"type":"image","data":"AA\/A","mimeType":"image/x-\"quoted\""}]}`:               `"data:image/x-\"quoted\";base64,AA\/A"`,
		`{"content":[{"type":"audio","data":"AAAA"}]}`:                                                `"data:application/octet-stream;base64,AAAA"`,
		`{"content":[{"type":"resource","resource":{"uri":"x:y","text":"a \u0041"}}]}`:                `"a \u0041"`,
		`{"content":[{"type":"resource","resource":{"uri":"x:y"}}, 7 , {"type":"new","n":1.0} ,"s"]}`: `[{"type":"resource","resource":{"uri":"x:y"}},7,{"type":"new","n":1.0},"s"]`,
		`{"content":[{"type":"text","text":5}]}`:                                                      `{"type":"text","text":5}`,
		`{"structuredContent":{"n" : 1.0}}`:                                                           `{"n" : 1.0}`,
		`{}`:                                                                                          `[]`,
	} {
		f := newFixture().returns(result)
		f.opts.MCPO = true
		f.serve(t).do("POST", "/mcpo/demo/echo", "{}").wantOK(t, want)
	}
}

func TestMCPOToolError(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for result, want := range map[string]string{
		`{"isError":true,"content":[{"type":"text","text":"` + long + `"}]}`:                                                  `{"detail":{"message":"` + long + `"}}`,
		`{"isError":true,"content":[{"type":"text","text":"no"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`:      `{"detail":{"message":"no","data":["no","data:audio/wav;base64,AAAA"]}}`,
		`{"isError":true,"content":[],"structuredContent":{"code":1.0}}`:                                                      `{"detail":{"message":"The tool reported an error without a text.","data":{"code":1.0}}}`,
		`{"isError":true,"content":[{"type":"resource","resource":{"uri":"x:y","text":"in"}},{"type":"text","text":"side"}]}`: `{"detail":{"message":"in\u000aside"}}`,
	} {
		f := newFixture().returns(result)
		f.opts.MCPO = true
		r := f.serve(t).do("POST", "/mcpo/demo/echo", "{}")
		if r.status != 500 || r.body != want {
			t.Errorf("answer = %d %.200s, want 500 %.200s", r.status, r.body, want)
		}
	}
}

// A result that breaks its schema is an error where that is checked strictly; it
// is logged and answered otherwise.
func TestMCPOOutputSchema(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := newFixture().returns(`{"content":[{"type":"text","text":"x"}]}`)
		f.opts.MCPO = true
		tool := f.snap.Server("demo").Tool("echo")
		tool.Output, tool.Target.Strict = json.RawMessage(`{"type":"object"}`), strict
		r := f.serve(t).do("POST", "/mcpo/demo/echo", "{}")
		if !strict {
			r.wantOK(t, `"x"`)
		} else if r.status != 502 || !strings.HasPrefix(r.body, `{"detail":{"message":"The tool ran, but`) {
			t.Errorf("answer = %d %s", r.status, r.body)
		}
		if lines := f.logLines(t); strict && lines[0]["code"] != "invalid-result" || !strict && lines[0]["breach"] == nil {
			t.Errorf("log = %v", lines)
		}
	}
}

func TestMCPODocuments(t *testing.T) {
	f := newFixture()
	f.opts.MCPO = true
	c := f.serve(t)
	for path, want := range map[string]string{
		"/mcpo/openapi.json":                   `"operationId":"demo__echo"`,
		"/mcpo/openapi.json?profile=flat":      `"operationId":"demo__echo"`,
		"/mcpo/demo/openapi.json":              `"operationId":"tool_echo_post"`,
		"/mcpo/demo/openapi.json?profile=flat": `"operationId":"tool_echo_post"`,
	} {
		r := c.do("GET", path, "")
		if r.status != 200 || !strings.Contains(r.body, want) || r.header.Get("ETag") == "" {
			t.Errorf("GET %s = %d %.300s", path, r.status, r.body)
		}
		if again := c.do("GET", path, "", "If-None-Match: "+r.header.Get("ETag")); again.status != 304 {
			t.Errorf("GET %s again = %d", path, again.status)
		}
	}
	for _, path := range []string{"/mcpo/openapi.json", "/mcpo/demo/openapi.json"} {
		for _, q := range []string{"?profile=round", "?a=%zz"} {
			if r := c.do("GET", path+q, ""); r.status != 400 || !strings.HasPrefix(r.body, `{"detail":"`) {
				t.Errorf("GET %s%s = %d %s", path, q, r.status, r.body)
			}
		}
	}
	if r := c.do("GET", "/mcpo/openapi.json?handles=files", ""); strings.Contains(r.body, "demo__echo") || !strings.Contains(r.body, "files__read") {
		t.Errorf("narrowed: %s", r.body)
	}
	for _, path := range []string{"/mcpo/docs", "/mcpo/docs/", "/mcpo/demo/docs"} {
		r := c.do("GET", path, "")
		if r.status != 200 {
			t.Fatalf("GET %s = %d", path, r.status)
		}
		for _, ref := range hrefs(r.body) {
			at := c.resolve(path, ref)
			if got := c.do("GET", at, "").status; got != 200 {
				t.Errorf("%s on the page at %s = %d", ref, path, got)
			}
			if strings.HasSuffix(ref, ".json") && !strings.HasPrefix(at, "/mcpo/") {
				t.Errorf("the page at %s shows %s", path, at)
			}
		}
	}
}

func TestMCPOColdStart(t *testing.T) {
	f := newFixture(&bridge.Server{Handle: "demo", State: bridge.Connecting})
	f.snap = bridge.NewSnapshot(1, false, f.snap.Servers)
	f.opts.MCPO = true
	c := f.serve(t)
	for _, path := range []string{"/mcpo/openapi.json", "/mcpo/demo/openapi.json"} {
		if r := c.do("GET", path, ""); r.status != 503 || r.header.Get("Retry-After") != "1" || !strings.HasPrefix(r.body, `{"detail":{"message":"`) {
			t.Errorf("GET %s = %d %v %s", path, r.status, r.header, r.body)
		}
	}
}

func TestMCPOPaths(t *testing.T) {
	s := newToolServer("a/b", "c/d", "docs", "e")
	f := newFixture(s)
	f.opts.MCPO, f.opts.BasePath = true, "/base"
	c := f.serve(t)
	for _, path := range []string{"/mcpo/a%2Fb/c%2Fd", "/mcpo/a%2Fb/c/d", "/mcpo/a%2Fb/docs", "/mcpo/a%2Fb/e/", "/mcpo/a%2Fb/e?dry_run=1&x=y"} {
		if r := c.do("POST", "/base"+path, ""); r.status != 200 || r.body != "[]" {
			t.Errorf("POST %s = %d %s", path, r.status, r.body)
		}
	}
	for _, path := range []string{"/mcpo", "/mcpo/", "/mcpo/a%2Fb", "/mcpo//e", "/mcpo/a%2Fb/"} {
		for _, method := range []string{"GET", "POST"} {
			if r := c.do(method, "/base"+path, ""); r.status != 404 && r.status != 405 || !strings.HasPrefix(r.body, `{"detail":"`) {
				t.Errorf("%s %s = %d %s", method, path, r.status, r.body)
			}
		}
	}
	// Only that tree has that form.
	if r := c.do("POST", "/base/mcpoo/e", ""); r.status != 404 || !strings.Contains(r.body, "/problems/not-found") {
		t.Errorf("outside = %d %s", r.status, r.body)
	}
}

func TestNoMCPO(t *testing.T) {
	c := newFixture().serve(t)
	c.do("POST", "/mcpo/demo/echo", "{}").wantProblem(t, 404, bridge.NotFound)
	for _, path := range []string{"/mcpo/openapi.json", "/mcpo/docs", "/mcpo/demo/docs"} {
		c.do("GET", path, "").wantProblem(t, 404, bridge.NotFound)
	}
}
