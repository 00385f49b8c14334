package routes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

// A kept is a server, and a reference to what a call there has returned.
type kept struct {
	*client
	f   *fixture
	ref string
}

// keep makes a call that returns this result, over a keeper of its own with this way to tell callers apart:
// the header Caller names the user.
func keep(t *testing.T, result string, more ...func(*artifacts.Options)) kept {
	t.Helper()
	f := newFixture().returns(result)
	o := artifacts.Options{Store: artifacts.NewMemory(16 << 20)}
	for _, m := range more {
		m(&o)
	}
	f.opts.Artifacts = artifacts.New(o)
	f.opts.Caller = func(r *http.Request) (bridge.Caller, error) {
		user := r.Header.Get("Caller")
		return bridge.Caller{ID: user, User: user, Scopes: bridge.ScopeCall}, nil
	}
	c := f.serve(t)
	return kept{c, f, c.do("POST", "/tools/demo/echo", "").header.Get("Artifact-Ref")}
}

// get reads the artifact; what is behind its reference.
func (k kept) get(behind string, headers ...string) response {
	k.t.Helper()
	return k.do("GET", "/artifacts/"+k.ref+behind, "", headers...)
}

// exact is data with what careless programs change.
const exact = `{"z":9007199254740993,"price":1.10, "a":1e400,"":{"":"empty"},"a/b":"slash","m~n":"tilde","~1":"odd","list":[10,[20,21],"x"],"01":"digits","grüße":"é\u00e9","null":null}`

func TestArtifactIsExact(t *testing.T) {
	whole := `{"structuredContent":` + exact + `,"content":[{"type":"text","text":"hi"}],"_meta":{"k":1}}`
	k := keep(t, whole)
	r := k.get("")
	r.wantOK(t, exact)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Vary": "Accept", "Artifact-Ref": k.ref, "Artifact-Type": "mcp",
		"Content-Length": strconv.Itoa(len(exact)), "X-Content-Type-Options": "nosniff",
		"Link": `<?view=result>; rel="alternate"; title="the whole result"`,
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	k.get("?view=data").wantOK(t, exact)
	k.get("?view=result").wantOK(t, whole)
	k.get("?view=result&pointer=/_meta/k").wantOK(t, "1")
	if link := k.get("?view=result").header.Get("Link"); link != "" {
		t.Errorf("the whole result links to %s", link)
	}
	// The references that the documents know, in the path as people and programs write them.
	for _, ref := range []string{k.ref, "artifact:" + k.ref, "%C2%ABartifact:" + k.ref + "%C2%BB", "«artifact:" + k.ref + "»", strings.Replace(k.ref, "~", "%7E", 1)} {
		k.do("GET", "/artifacts/"+ref, "").wantOK(t, exact)
		k.do("GET", "/artifacts/"+ref+"/price", "").wantOK(t, "1.10")
	}
}

func TestPointers(t *testing.T) {
	k := keep(t, `{"structuredContent":`+exact+`}`)
	for _, tt := range []struct{ pointer, path, want string }{
		{"/z", "/z", "9007199254740993"},
		{"/price", "/%70rice", "1.10"},
		{"/a", "/a", "1e400"},
		{"/", "/", `{"":"empty"}`},
		{"//", "//", `"empty"`},
		{"/a~1b", "/a~1b", `"slash"`},
		{"/a~1b", "/a%2Fb", `"slash"`},
		{"/a~1b", "/a%7E1b", `"slash"`},
		{"/m~0n", "/m~0n", `"tilde"`},
		{"/~01", "/~01", `"odd"`},
		{"/list/0", "/list/0", "10"},
		{"/list/1/1", "/list/1/1", "21"},
		{"/list", "/list", `[10,[20,21],"x"]`},
		{"/01", "/01", `"digits"`},
		{"/grüße", "/gr%C3%BC%C3%9Fe", `"é\u00e9"`},
		{"/null", "/null", "null"},
	} {
		k.get("?pointer="+url.QueryEscape(tt.pointer)).wantOK(t, tt.want)
		k.get(tt.path).wantOK(t, tt.want)
	}
	k.get("?pointer=").wantOK(t, exact)
}

func TestPointersThatLeadNowhere(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a":{"b":[1,2],"c":"text"},"d":1}}`)
	for _, tt := range []struct {
		behind string
		want   map[string]any
	}{
		{"/x", map[string]any{"pointer": "/x", "resolved": "", "keys": []any{"a", "d"}, "keys_count": 2.0}},
		{"/a/x/y", map[string]any{"pointer": "/a/x/y", "resolved": "/a", "keys": []any{"b", "c"}, "keys_count": 2.0}},
		{"/a/b/2", map[string]any{"pointer": "/a/b/2", "resolved": "/a/b", "length": 2.0}},
		{"/a/b/-", map[string]any{"pointer": "/a/b/-", "resolved": "/a/b", "length": 2.0}},
		{"/a/b/00", map[string]any{"pointer": "/a/b/00", "resolved": "/a/b", "length": 2.0}},
		{"/a/b/-1", map[string]any{"pointer": "/a/b/-1", "resolved": "/a/b", "length": 2.0}},
		{"/a/b/99999999999999999999", map[string]any{"pointer": "/a/b/99999999999999999999", "resolved": "/a/b", "length": 2.0}},
		{"/a/c/0", map[string]any{"pointer": "/a/c/0", "resolved": "/a/c"}},
		{"/d/", map[string]any{"pointer": "/d/", "resolved": "/d"}},
		{"/", map[string]any{"pointer": "/", "resolved": "", "keys": []any{"a", "d"}, "keys_count": 2.0}},
	} {
		for _, behind := range []string{tt.behind, "?pointer=" + url.QueryEscape(tt.behind)} {
			p := k.get(behind).wantProblem(t, 404, bridge.NotFound)
			for _, name := range []string{"type", "title", "status", "detail", "code", "request_id"} {
				delete(p, name)
			}
			if diff := cmp.Diff(tt.want, p); diff != "" {
				t.Errorf("%s: members (-want +got):\n%s", behind, diff)
			}
		}
	}
	for _, bad := range []string{"?pointer=a", "?pointer=/~", "/~2", "?pointer=%23/a", "/a?pointer=/a", "/?pointer="} {
		k.get(bad).wantProblem(t, 400, bridge.Malformed)
	}
}

func TestBadReadings(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a":[1,2,3]}}`)
	for _, query := range []string{
		"?offset=-1", "?limit=-1", "?limit=x", "?limit=", "?offset=1.5", "?offset=+1", "?offset=0x1", "?view=nope", "?view=", "?format=json", "?lmit=3",
		"?pointer=/a&pointer=/a", "?q=", "?q=a&limit=0", "?q=a&limit=1001", "?q=a&offset=1", "?q=a&format=raw", "?q=a&view=summary",
		"?format=raw&view=summary", "?format=raw", "?pointer=%zz", "?a;b", "?pointer=/a/0&limit=1",
	} {
		r := k.get(query)
		r.wantProblem(t, 400, bridge.Malformed)
		for _, name := range []string{"ETag", "Expires"} {
			if v := r.header.Get(name); v != "" {
				t.Errorf("%s: a problem has %s: %s", query, name, v)
			}
		}
		if v := r.header.Get("Cache-Control"); v != "no-store" {
			t.Errorf("%s: Cache-Control = %s", query, v)
		}
	}
}

func TestSlices(t *testing.T) {
	k := keep(t, `{"structuredContent":{"text":"aéü😀e","list":[ 0, 1 ,2,3],"map":{"a":1,"b":{"c":2},"d":3},"none":[]}}`)
	for _, tt := range []struct{ query, body, next, total string }{
		{"pointer=/text&offset=1&limit=2", `"éü"`, "?limit=2&offset=3&pointer=%2Ftext", "5"},
		{"pointer=/text&offset=3", `"😀e"`, "", "5"},
		{"pointer=/text&limit=5", `"aéü😀e"`, "", "5"},
		{"pointer=/list&limit=3", `[ 0, 1 ,2]`, "?limit=3&offset=3&pointer=%2Flist", "4"},
		{"pointer=/list&offset=3&limit=3", `[3]`, "", "4"},
		{"pointer=/list&offset=4", `[]`, "", "4"},
		{"pointer=/list&offset=99999999999999999999999&limit=99999999999999999999999", `[]`, "", "4"},
		{"pointer=/list&offset=9223372036854775807&limit=9223372036854775807", `[]`, "", "4"},
		{"pointer=/list&limit=0", `[]`, "", "4"},
		{"pointer=/map&offset=1&limit=1", `{"b":{"c":2}}`, "?limit=1&offset=2&pointer=%2Fmap", "3"},
		{"pointer=/none&limit=1", `[]`, "", "0"},
		{"view=result&pointer=/structuredContent/list&limit=1", `[ 0]`, "?limit=1&offset=1&pointer=%2FstructuredContent%2Flist&view=result", "4"},
	} {
		r := k.get("?" + tt.query)
		if r.status != 200 || compact(r.body) != compact(tt.body) {
			t.Errorf("%s = %d %s, want %s", tt.query, r.status, r.body, tt.body)
		}
		if got := r.header.Get("Artifact-Total"); got != tt.total {
			t.Errorf("%s: Artifact-Total = %q, want %q", tt.query, got, tt.total)
		}
		want := ""
		if tt.next != "" {
			want = "<" + tt.next + `>; rel="next"`
		}
		if got := r.header.Get("Link"); got != want {
			t.Errorf("%s: Link = %q, want %q", tt.query, got, want)
		}
	}
	// Whoever follows the links has all of it in the end.
	var all []int
	for path := "/artifacts/" + k.ref + "/list?limit=3"; path != ""; {
		r := k.do("GET", path, "")
		var part []int
		if err := json.Unmarshal([]byte(r.body), &part); err != nil {
			t.Fatalf("%s: %v: %s", path, err, r.body)
		}
		all = append(all, part...)
		link, _, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Link"), "<"), ">")
		if link == "" {
			break
		}
		path = k.resolve(path, link)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3}, all); diff != "" {
		t.Errorf("the slices joined (-want +got):\n%s", diff)
	}
}

func compact(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestEntityTags(t *testing.T) {
	k := keep(t, blocks())
	seen := map[string]string{}
	for _, behind := range []string{
		"", "?view=result", "?view=summary", "/content", "/content?view=summary", "/content?limit=1", "/content?limit=2", "/content?offset=1", "/content/1", "/content/1?format=raw", "/content/0/text", "/content/0/text?format=raw", "?q=h", "?q=hi", "/content?q=h",
	} {
		r := k.get(behind)
		etag := r.header.Get("ETag")
		if before, ok := seen[etag]; ok || !strings.HasPrefix(etag, `"`) {
			t.Errorf("%q has the tag %s, as %q has", behind, etag, before)
		}
		seen[etag] = behind
		cached := k.get(behind, "If-None-Match: W/"+etag)
		if cached.status != 304 || cached.body != "" || cached.header.Get("ETag") != etag {
			t.Errorf("%q again = %d %v", behind, cached.status, cached.header)
		}
		cc := r.header.Get("Cache-Control")
		summary := strings.Contains(behind, "summary")
		if !strings.HasPrefix(cc, "private, max-age=35") || strings.Contains(cc, "immutable") == summary {
			t.Errorf("%q: Cache-Control = %q", behind, cc)
		}
		if cached.header.Get("Cache-Control") == "" || cached.header.Get("Vary") != "Accept" {
			t.Errorf("%q: 304 with %v", behind, cached.header)
		}
		expires, err := time.Parse(http.TimeFormat, r.header.Get("Expires"))
		if left := time.Until(expires); err != nil || left < 50*time.Minute || left > time.Hour {
			t.Errorf("%q: Expires = %q", behind, r.header.Get("Expires"))
		}
		head := k.do("HEAD", "/artifacts/"+k.ref+behind, "")
		for _, name := range []string{"Content-Length", "Content-Type", "ETag", "Artifact-Ref", "Artifact-Total", "Link"} {
			if g, h := r.header.Get(name), head.header.Get(name); g != h {
				t.Errorf("HEAD %s: %s = %q, and %q for GET", behind, name, h, g)
			}
		}
		if head.status != 200 || head.body != "" {
			t.Errorf("HEAD %s = %d %q", behind, head.status, head.body)
		}
	}
	if a, b := k.get("/content/1").header.Get("ETag"), k.get("/content/1", "Accept: image/png").header.Get("ETag"); a == b {
		t.Errorf("JSON and bytes have the same tag %s", a)
	}
}

func TestSummaryAndNested(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	k := keep(t, `{"structuredContent":{"long":"`+long+`","n":1.10,"deep":{"text":"`+long+`"}}}`)
	r := k.get("?view=summary")
	var got struct {
		Long string
		N    json.RawMessage
		Deep struct {
			Ref   string `json:"@ref"`
			Bytes int    `json:"@bytes"`
		}
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("summary = %d %s: %v", r.status, r.body, err)
	}
	if !strings.HasPrefix(got.Long, "[SUMMARY: 5000 chars] word word") || string(got.N) != "1.10" || got.Deep.Ref != k.ref+".1" || got.Deep.Bytes != len(long)+11 {
		t.Errorf("summary = %s", r.body)
	}
	if a := k.get("?view=summary", "Accept: text/plain"); a.body != r.body {
		t.Errorf("as text: %s", a.body)
	}
	nested := k.do("GET", "/artifacts/"+got.Deep.Ref, "")
	nested.wantOK(t, `{"text":"`+long+`"}`)
	if nested.header.Get("Artifact-Parent") != k.ref || nested.header.Get("Artifact-Ref") != got.Deep.Ref {
		t.Errorf("headers of a nested artifact: %v", nested.header)
	}
	k.do("GET", "/artifacts/"+got.Deep.Ref+"/text?offset=5&limit=4", "").wantOK(t, `"word"`)
	k.get("/deep/text?offset=5&limit=4").wantOK(t, `"word"`)
	k.do("DELETE", "/artifacts/"+got.Deep.Ref, "").wantProblem(t, 400, bridge.Malformed)
	k.do("GET", "/artifacts/"+k.ref+".2", "").wantProblem(t, 404, bridge.NotFound)
}

func TestSearchInAnArtifact(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a/b":["no","The Needle, é"],"c":{"d":"needle needle"}},"content":[{"type":"text","text":"needle"}]}`)
	want := func(behind string, more bool, places ...string) {
		t.Helper()
		r := k.get(behind)
		var got SearchAnswer
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%s = %d %s", behind, r.status, r.body)
		}
		var found []string
		for _, m := range got.Matches {
			found = append(found, fmt.Sprintf("%s@%d", m.Pointer, m.Offset))
			path := k.resolve("/artifacts/"+k.ref+behind, m.Link)
			if at := k.do("GET", path, ""); !strings.Contains(strings.ToLower(at.body), "needle") {
				t.Errorf("%s: %s = %d %s", behind, path, at.status, at.body)
			}
		}
		if diff := cmp.Diff(places, found); diff != "" || got.More != more {
			t.Errorf("%s: more = %v, places (-want +got):\n%s", behind, got.More, diff)
		}
	}
	want("?q=NEEDLE", false, "/a~1b/1@4", "/c/d@0", "/c/d@7")
	want("?q=needle&limit=2", true, "/a~1b/1@4", "/c/d@0")
	want("/c?q=needle", false, "/c/d@0", "/c/d@7")
	want("?q=needle&view=result&pointer=/content", false, "/content/0/text@0")
	k.get("?q=nothing").wantOK(t, `{"matches":[],"more":false}`)
}

func TestOthersArtifacts(t *testing.T) {
	k := keep(t, `{"structuredContent":{"mine":1}}`)
	for _, ref := range []string{k.ref, k.ref + ".1", "mcp~aaaaaaaaaaaaaaaaaaaaaaaaaa", "mcp~", "~", "x", "mcp", "%00", "mcp~a%2F..", "%C2%AB", "«artifact:" + k.ref, "mcp~a.0", "MCP~A", "..%2Fx", strings.Repeat("a", 5000), "%FF%FE", k.ref + "%20", k.ref + "."} {
		for _, request := range [][2]string{{"GET", ref}, {"HEAD", ref}, {"DELETE", ref}, {"GET", ref + "?pointer=/mine"}, {"GET", ref + "/mine"}} {
			r := k.do(request[0], "/artifacts/"+request[1], "", "Caller: eve")
			if r.status != 404 {
				t.Errorf("%s %.100q = %d %s", request[0], request[1], r.status, r.body)
			} else if request[0] != "HEAD" {
				r.wantProblem(t, 404, bridge.NotFound)
			}
			if strings.Contains(r.body, "mine\":1") {
				t.Errorf("%s %q leaks", request[0], request[1])
			}
		}
	}
	k.do("GET", "/artifacts", "", "Caller: eve").wantOK(t, `{"artifacts":[]}`)
	k.get("").wantOK(t, `{"mine":1}`)
	k.do("GET", "/artifacts//mine", "").wantProblem(t, 404, bridge.NotFound)
}

func TestArtifactExpires(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a":1}}`, func(o *artifacts.Options) { o.TTL = time.Millisecond })
	for deadline := time.Now().Add(10 * time.Second); k.get("").status != 404; {
		if time.Now().After(deadline) {
			t.Fatal("it does not expire")
		}
	}
	k.get("").wantProblem(t, 404, bridge.NotFound)
	k.do("DELETE", "/artifacts/"+k.ref, "").wantProblem(t, 404, bridge.NotFound)
}

func TestListAndDelete(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a":1},"content":[{"type":"text","text":"x"}]}`)
	refs := []string{k.ref}
	for range 4 {
		refs = append([]string{k.do("POST", "/tools/demo/add", "").header.Get("Artifact-Ref")}, refs...)
	}
	var got []string
	for path := "/artifacts/?limit=2"; path != ""; {
		r := k.do("GET", path, "")
		var list ArtifactList
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != 200 {
			t.Fatalf("%s = %d %s", path, r.status, r.body)
		}
		for _, a := range list.Artifacts {
			got = append(got, a.Ref)
			k.do("GET", k.resolve(path, a.Links.Self), "").wantOK(t, `{"a":1}`)
			if whole := k.do("GET", k.resolve(path, a.Links.Result), ""); !strings.Contains(whole.body, "content") {
				t.Errorf("links.result leads to %s", whole.body)
			}
			if a.Type != "mcp" || a.Handle != "demo" || a.Size != 7 || a.Parent != "" || a.Expires.Sub(a.Created) != time.Hour {
				t.Errorf("a list says %+v", a)
			}
		}
		wantLink := ""
		if list.Next != "" {
			wantLink = "<" + list.Next + `>; rel="next"`
		}
		if link := r.header.Get("Link"); link != wantLink {
			t.Errorf("Link = %q, want %q", link, wantLink)
		}
		if list.Next == "" {
			break
		}
		path = k.resolve(path, list.Next)
	}
	if diff := cmp.Diff(refs, got); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"?limit=0", "?limit=1001", "?limit=x", "?cursor=%21"} {
		k.do("GET", "/artifacts"+bad, "").wantProblem(t, 400, bridge.Malformed)
	}
	for _, behind := range []string{"/", "/a"} {
		r := k.do("DELETE", "/artifacts/"+k.ref+behind, "")
		r.wantProblem(t, 405, MethodNotAllowed)
		if r.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("DELETE %s: Allow = %q", behind, r.header.Get("Allow"))
		}
	}
	if r := k.do("DELETE", "/artifacts/"+k.ref, ""); r.status != 204 || r.body != "" {
		t.Errorf("DELETE = %d %s", r.status, r.body)
	}
	k.get("").wantProblem(t, 404, bridge.NotFound)
	if r := k.do("POST", "/artifacts/"+k.ref, "{}"); r.status != 405 || r.header.Get("Allow") != "GET, HEAD, DELETE" {
		t.Errorf("POST = %d, Allow %q", r.status, r.header.Get("Allow"))
	}
}

func TestNoArtifacts(t *testing.T) {
	c := newFixture().serve(t)
	c.do("GET", "/artifacts", "").wantOK(t, `{"artifacts":[]}`)
	c.do("GET", "/artifacts/mcp~abc", "").wantProblem(t, 404, bridge.NotFound)
	c.do("DELETE", "/artifacts/mcp~abc", "").wantProblem(t, 404, bridge.NotFound)
}

func TestArtifactsNeedACaller(t *testing.T) {
	k := keep(t, `{"structuredContent":{"a":1}}`)
	f := newFixture()
	f.opts.Artifacts = k.f.opts.Artifacts
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated}
	}
	c := f.serve(t)
	for _, request := range [][2]string{{"GET", "/artifacts"}, {"GET", "/artifacts/" + k.ref}, {"GET", "/artifacts/" + k.ref + "/a"}, {"DELETE", "/artifacts/" + k.ref}} {
		c.do(request[0], request[1], "").wantProblem(t, 401, Unauthenticated)
	}
}

// The call's own answer, in its summary.
func TestPreferMinimal(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	k := keep(t, `{"structuredContent":{"long":"`+long+`"},"content":[{"type":"text","text":"short"}]}`)
	call := func(headers ...string) response { return k.do("POST", "/tools/demo/echo", "", headers...) }
	for prefer, applied := range map[string]string{
		"return=minimal": "return=minimal", "wait=5, return=minimal": "wait=5, return=minimal", `Return="Minimal"`: "return=minimal",
	} {
		r := call("Prefer: " + prefer)
		if r.status != 200 || !strings.HasPrefix(r.body, `{"long":"[SUMMARY: 5000 chars] word`) || r.header.Get("Preference-Applied") != applied {
			t.Errorf("%s: %d %q %s", prefer, r.status, r.header.Get("Preference-Applied"), r.body)
		}
		location := r.header.Get("Content-Location")
		k.do("GET", k.resolve("/tools/demo/echo", location), "").wantOK(t, r.body)
		if r.header.Get("Content-Length") != strconv.Itoa(len(r.body)) || r.header.Get("Vary") != "Accept, Prefer" || !strings.Contains(r.header.Get("Link"), "view=result") {
			t.Errorf("%s: headers %v", prefer, r.header)
		}
	}
	r := call("Prefer: return=representation")
	r.wantOK(t, `{"long":"`+long+`"}`)
	if r.header.Get("Preference-Applied") != "" {
		t.Errorf("Preference-Applied = %q", r.header.Get("Preference-Applied"))
	}
	k.do("GET", k.resolve("/tools/demo/echo", r.header.Get("Content-Location")), "").wantOK(t, r.body)
	call("Prefer: return=minimal", "Accept: text/plain").wantOK(t, "short")

	// Without an artifact there is no summary.
	k.f.keep = &bridge.Artifact{Ref: "mcp~gone", Type: "mcp"}
	if r := call("Prefer: return=minimal, wait=5"); len(r.body) < 5000 || r.header.Get("Preference-Applied") != "wait=5" {
		t.Errorf("without an artifact: %d %v", len(r.body), r.header)
	}
}

func TestArtifactsUnderABasePath(t *testing.T) {
	k := keep(t, `{"structuredContent":{"list":[1,2]},"content":[{"type":"text","text":"needle"}]}`)
	k.f.opts.BasePath = "/some/base"
	c := k.f.serve(t)
	r := c.do("POST", "/some/base/tools/demo/echo", "")
	at := c.resolve("/some/base/tools/demo/echo", r.header.Get("Content-Location"))
	if want := "/some/base/artifacts/" + r.header.Get("Artifact-Ref"); at != want {
		t.Fatalf("Content-Location leads to %s, want %s", at, want)
	}
	c.do("GET", at, "").wantOK(t, `{"list":[1,2]}`)
	c.do("GET", at+"/list/1", "").wantOK(t, "2")
	next := c.do("GET", at+"/list?limit=1", "")
	link, _, _ := strings.Cut(strings.TrimPrefix(next.header.Get("Link"), "<"), ">")
	c.do("GET", c.resolve(at+"/list", link), "").wantOK(t, "[2]")
	var found SearchAnswer
	if err := json.Unmarshal([]byte(c.do("GET", at+"/content/0?view=result&q=needle", "").body), &found); err != nil || len(found.Matches) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	c.do("GET", c.resolve(at+"/content/0", found.Matches[0].Link), "").wantOK(t, `"needle"`)
	if r := c.do("GET", strings.TrimPrefix(at, "/some/base"), ""); r.status != 404 {
		t.Errorf("outside the base path: %d %s", r.status, r.body)
	}
}

// Whatever the keys are, the path form is the pointer.
func FuzzPathPointer(f *testing.F) {
	for _, s := range [][2]string{{"a", "0"}, {"", ""}, {"a/b", "m~n"}, {"~1", "%2F"}, {"..", "."}, {"é\x00", "\xff"}, {"a b", "?#"}} {
		f.Add(s[0], s[1])
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	f.Fuzz(func(t *testing.T, a, b string) {
		want := "/" + escape.Replace(a) + "/" + escape.Replace(b)
		r, err := http.NewRequest("GET", "http://localhost/artifacts/mcp~x/"+url.PathEscape(escape.Replace(a))+"/"+url.PathEscape(escape.Replace(b)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := pathPointer(r); got != want || !ok {
			t.Errorf("%q, %q: pointer %q, want %q", a, b, got, want)
		}
		// A slash within a key may be escaped for the path alone.
		r.URL, err = url.Parse("http://localhost/artifacts/mcp~x/" + url.PathEscape(strings.ReplaceAll(a, "~", "~0")) + "/" + url.PathEscape(escape.Replace(b)))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := pathPointer(r); got != want {
			t.Errorf("%q, %q with %%2F: pointer %q, want %q", a, b, got, want)
		}
	})
}
