package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/redistest"
)

// onEveryStore runs a test over each store, with a bridge that has these servers.
func onEveryStore(t *testing.T, servers func() map[string]server, test func(t *testing.T, p *process)) {
	t.Run("memory", func(t *testing.T) {
		p := start(t, servers(), nil)
		p.ready()
		test(t, p)
	})
	for name, url := range map[string]func(t *testing.T) string{"redis": func(t *testing.T) string { return redistest.Start(t).URL() }, "cluster": redisCluster} {
		t.Run(name, func(t *testing.T) {
			p := start(t, servers(), map[string]any{"artifacts": map[string]any{"store": url(t)}})
			p.ready()
			test(t, p)
		})
	}
}

// artifact calls a tool and returns the path of what it returned, having read it there once.
func (p *process) artifact(handle, tool, args string) (path string, res response) {
	p.t.Helper()
	res = p.call(handle, tool, args, 200)
	ref := res.Header.Get("Artifact-Ref")
	if ref == "" {
		p.t.Fatalf("%s/%s: no artifact: %v", handle, tool, res.Header)
	}
	at, err := res.Request.URL.Parse(res.Header.Get("Content-Location"))
	if err != nil || at.Path != "/artifacts/"+ref {
		p.t.Errorf("Content-Location: %s leads to %v, %v", res.Header.Get("Content-Location"), at, err)
	}
	if again := p.get("/artifacts/" + ref); !bytes.Equal(again.body, res.body) || again.StatusCode != http.StatusOK {
		p.t.Errorf("%s/%s: the artifact is not the answer: %d %.300s", handle, tool, again.StatusCode, again.body)
	}
	return "/artifacts/" + ref, res
}

// answer has the server answer these very bytes.
func answer(result string) string {
	b, err := json.Marshal(map[string]string{"result": result})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestArtifacts(t *testing.T) {
	servers := func() map[string]server {
		return map[string]server{"everything": npm("everything", "stdio"), "ok": mode(t, "ok"), "exact": mode(t, "exact"), "results": mode(t, "results")}
	}
	onEveryStore(t, servers, func(t *testing.T, p *process) {
		// Text and image in one result of a real server: both are there, and the image is a PNG.
		path, res := p.artifact("everything", "get-tiny-image", "")
		var blocks struct {
			Content []struct{ Type, Text, Data, MimeType string }
		}
		decode(t, res, &blocks)
		texts, images := 0, 0
		for i, b := range blocks.Content {
			at := fmt.Sprintf("%s/content/%d", path, i)
			switch b.Type {
			case "text":
				texts++
				if got := p.do("GET", at+"/text", "", "Accept", "text/plain"); string(got.body) != b.Text {
					t.Errorf("%s/text = %s", at, got.body)
				}
			case "image":
				images++
				want, err := base64.StdEncoding.DecodeString(b.Data)
				if err != nil {
					t.Fatal(err)
				}
				for _, got := range []response{p.get(at + "?format=raw"), p.do("GET", at, "", "Accept", "image/png, application/json;q=0.5"), p.get(path + "?format=raw&pointer=" + url.QueryEscape(fmt.Sprintf("/content/%d", i)))} {
					if !bytes.Equal(got.body, want) || got.Header.Get("Content-Type") != "image/png" || !bytes.HasPrefix(got.body, []byte("\x89PNG")) {
						t.Errorf("%s: %d %s %.50q", at, got.StatusCode, got.Header.Get("Content-Type"), got.body)
					}
				}
				if got := p.do("GET", at+"?format=raw", "", "Range", "bytes=1-3"); got.StatusCode != http.StatusPartialContent || string(got.body) != "PNG" {
					t.Errorf("bytes 1-3 of %s: %d %q", at, got.StatusCode, got.body)
				}
				wantProblem(t, p.do("GET", at+"?format=raw", "", "Range", "bytes=10000000-"), http.StatusRequestedRangeNotSatisfiable, "range-not-satisfiable", "")
			}
		}
		if texts == 0 || images == 0 {
			t.Errorf("blocks = %s", res.body)
		}

		// No kind of block is lost, nothing is filtered, no digit is changed.
		for _, call := range [][2]string{{"exact", "numbers"}, {"exact", "unknown_blocks"}, {"exact", "surrogate"}, {"results", "structured_empty_content"}, {"results", "structured_extra"}, {"results", "structured_list"}, {"results", "no_content"}, {"results", "all_blocks"}} {
			p.artifact(call[0], call[1], "")
		}
		path, _ = p.artifact("exact", "numbers", "")
		for pointer, want := range map[string]string{"/z": "9007199254740993", "/price": "1.10", "/a": "1e400", "/A~1b": `"\u00e9\/"`, "/nested/b/0": "1.0"} {
			if got := p.get(path + "?pointer=" + url.QueryEscape(pointer)); string(got.body) != want {
				t.Errorf("%s = %s, want %s", pointer, got.body, want)
			}
		}

		// A failure is kept too.
		res = p.call("ok", "fail", `{"message":"disk full"}`, http.StatusUnprocessableEntity)
		var failed struct {
			Detail, Artifact string
			Ref              string `json:"artifact_ref"`
		}
		if err := json.Unmarshal(res.body, &failed); err != nil || !strings.Contains(failed.Detail, "disk full") {
			t.Errorf("problem = %s", res.body)
		}
		at, err := res.Request.URL.Parse(failed.Artifact)
		if err != nil || at.Path != "/artifacts/"+failed.Ref {
			t.Errorf("artifact = %q: %v", failed.Artifact, err)
		}
		if got := p.get(at.Path + "/content/0/text"); string(got.body) != `"disk full"` {
			t.Errorf("what failed = %d %s", got.StatusCode, got.body)
		}

		// The whole result beside its data.
		res = p.call("ok", "answer", answer(`{"structuredContent":{"a":1.0},"content":[{"type":"text","text":"more"}],"_meta":{"k":[ 1 ]}}`), 200)
		link, _, _ := strings.Cut(strings.TrimPrefix(res.Header.Get("Link"), "<"), ">")
		whole, err := res.Request.URL.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.get(whole.RequestURI()); string(got.body) != `{"structuredContent":{"a":1.0},"content":[{"type":"text","text":"more"}],"_meta":{"k":[ 1 ]}}` {
			t.Errorf("%s = %s", whole, got.body)
		}

		testLong(t, p)
		testList(t, p)
	})
}

// testLong has summaries, slices and searches of a long result.
func testLong(t *testing.T, p *process) {
	item := func(i int) string {
		return fmt.Sprintf(`{"id":%d,"text":"%s needle %d"}`, i, strings.Repeat("hay ", 600), i)
	}
	items := []string{}
	for i := range 12 {
		items = append(items, item(i))
	}
	result := `{"structuredContent":{"items":[` + strings.Join(items, ",") + `]}}`
	path, whole := p.artifact("ok", "answer", answer(result))
	minimal := p.call("ok", "answer", answer(result), 200, "Prefer", "return=minimal")
	if minimal.Header.Get("Preference-Applied") != "return=minimal" || len(minimal.body) > len(whole.body)/10 {
		t.Errorf("minimal: %v, %d bytes of %d", minimal.Header, len(minimal.body), len(whole.body))
	}
	var summary struct {
		Items []struct {
			Ref   string `json:"@ref"`
			Bytes int    `json:"@bytes"`
		}
	}
	decode(t, p.get(path+"?view=summary"), &summary)
	if len(summary.Items) != 12 || summary.Items[3].Bytes != len(item(3)) {
		t.Fatalf("summary = %+v", summary)
	}
	if got := p.get("/artifacts/" + summary.Items[3].Ref); string(got.body) != item(3) {
		t.Errorf("a nested artifact = %d %.100s", got.StatusCode, got.body)
	}
	if got := p.get("/artifacts/" + summary.Items[3].Ref + "/text?view=summary"); !strings.HasPrefix(string(got.body), `"[SUMMARY: `) {
		t.Errorf("the summary of a text = %s", got.body)
	}

	var all []json.RawMessage
	next := path + "/items?limit=5"
	for n := 0; next != "" && n < 10; n++ {
		res := p.get(next)
		if res.Header.Get("Artifact-Total") != "12" {
			t.Errorf("Artifact-Total = %q", res.Header.Get("Artifact-Total"))
		}
		var part []json.RawMessage
		decode(t, res, &part)
		all = append(all, part...)
		link, rel, _ := strings.Cut(strings.TrimPrefix(res.Header.Get("Link"), "<"), ">")
		if next = ""; link != "" {
			at, err := res.Request.URL.Parse(link)
			if err != nil || rel != `; rel="next"` {
				t.Fatalf("Link = %q: %v", res.Header.Get("Link"), err)
			}
			next = at.RequestURI()
		}
	}
	if len(all) != 12 || string(all[11]) != item(11) {
		t.Errorf("%d items by slices", len(all))
	}

	var found struct {
		Matches []struct {
			Pointer, Excerpt, Link string
			Offset                 int
		}
		More bool
	}
	res := p.get(path + "?q=NEEDLE")
	decode(t, res, &found)
	if len(found.Matches) != 10 || !found.More || found.Matches[1].Pointer != "/items/1/text" || found.Matches[1].Offset != 2401 || !strings.Contains(found.Matches[1].Excerpt, "needle 1") {
		t.Errorf("found %s", res.body)
	}

	etag := p.get(path).Header.Get("ETag")
	if got := p.do("GET", path, "", "If-None-Match", etag); got.StatusCode != http.StatusNotModified || len(got.body) > 0 {
		t.Errorf("again with its tag: %d", got.StatusCode)
	}
}

// testList lists what there is, and forgets it.
func testList(t *testing.T, p *process) {
	path, _ := p.artifact("ok", "echo", `{"message":"last"}`)
	var list struct {
		Artifacts []struct {
			Ref, Handle, Tool string
			Links             struct{ Self string }
		}
		Next string
	}
	res := p.get("/artifacts?limit=2")
	decode(t, res, &list)
	if len(list.Artifacts) != 2 || list.Next == "" || "/artifacts/"+list.Artifacts[0].Ref != path || list.Artifacts[0].Tool != "echo" {
		t.Errorf("list = %s", res.body)
	}
	if got := p.do("DELETE", path, ""); got.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %d %s", got.StatusCode, got.body)
	}
	wantProblem(t, p.get(path), http.StatusNotFound, "not-found", "")
}

// Fifty megabytes of text are an artifact, and a field of it is fetched alone.
func TestHugeArtifact(t *testing.T) {
	onEveryStore(t, func() map[string]server { return map[string]server{"ok": with(mode(t, "ok"), "timeout", "5m")} }, func(t *testing.T, p *process) {
		const size = 50 << 20
		began := time.Now()
		res := p.call("ok", "huge", fmt.Sprintf(`{"bytes":%d}`, size), 200)
		took := time.Since(began)
		path := "/artifacts/" + res.Header.Get("Artifact-Ref")
		if res.Header.Get("Artifact-Ref") == "" || len(res.body) < size {
			t.Fatalf("%d bytes, headers %v", len(res.body), res.Header)
		}
		if again := p.get(path); !bytes.Equal(again.body, res.body) {
			t.Errorf("the artifact is not the answer: %d, %d bytes", again.StatusCode, len(again.body))
		}
		began = time.Now()
		if got := p.get(path + "/content/0/type"); string(got.body) != `"text"` {
			t.Errorf("its type = %d %.100s", got.StatusCode, got.body)
		}
		field := time.Since(began)
		got := p.get(path + "/content/0/text?offset=52428790&limit=100")
		if string(got.body) != `"xxxxxxxxxx"` || got.Header.Get("Artifact-Total") != "52428800" {
			t.Errorf("its end = %d %.200s, %v", got.StatusCode, got.body, got.Header)
		}
		text := p.do("GET", path+"/content/0/text", "", "Accept", "text/plain")
		if len(text.body) != size {
			t.Errorf("its text has %d bytes", len(text.body))
		}
		if s := p.get(path + "?view=summary"); len(s.body) > 1000 || !strings.Contains(string(s.body), "[SUMMARY: 52428800 chars]") {
			t.Errorf("its summary = %.2000s", s.body)
		}
		t.Logf("call %v (%s), short field %v", took, res.Header.Get("Server-Timing"), field)
	})
}

// HTML and SVG from a stranger do not run in our origin, however a browser comes to them.
func TestForeignPagesDoNotRun(t *testing.T) {
	const script = `fetch('/ran-' + document.domain); new Image().src = '/ran-as-image'`
	pages := map[string]string{
		"text/html":     `<!doctype html><body><script>` + script + `</script>`,
		"image/svg+xml": `<svg xmlns="http://www.w3.org/2000/svg"><script>` + script + `</script></svg>`,
	}
	ran := func(requests []string) bool {
		for _, r := range requests {
			if strings.Contains(r, "/ran-") {
				return true
			}
		}
		return false
	}
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	for mediaType, page := range pages {
		// Where nothing is done against it, it runs: the browser would tell us.
		bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/suspect" {
				w.Header().Set("Content-Type", mediaType)
				_, _ = w.Write([]byte(page))
			}
		}))
		if requests := visit(t, bare.URL, bare.URL+"/suspect"); !ran(requests) {
			t.Errorf("%s does not run anywhere: %q", mediaType, requests)
		}
		bare.Close()

		blob := base64.StdEncoding.EncodeToString([]byte(page))
		path, _ := p.artifact("ok", "answer", answer(`{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"`+mediaType+`","blob":"`+blob+`"}},{"type":"text","text":`+string(mustJSON(page))+`}]}`))
		for _, behind := range []string{"/content/0?format=raw", "/content/1/text?format=raw", ""} {
			got := p.get(path + behind)
			h := got.Header
			if strings.Contains(behind, "raw") && !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: headers %v", behind, h)
			}
			if requests := visit(t, p.base+"/docs", p.base+path+behind); ran(requests) {
				t.Errorf("%s %s ran: %q", mediaType, behind, requests)
			}
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// visit has a browser come to the suspect alone and on the page, and returns all that it asked for.
func visit(t *testing.T, page, suspect string) []string {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "../../testdata/npm/browser/visit.mjs")
	cmd.Stdin = bytes.NewReader(mustJSON(map[string]any{"chromium": browser, "page": page, "suspect": suspect, "settle": 500}))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the browser: %v\n%s", err, stderr.Bytes())
	}
	var report struct{ Requests []string }
	if err := json.Unmarshal(out, &report); err != nil || len(report.Requests) == 0 {
		t.Fatalf("the browser's report %q: %v", out, err)
	}
	return report.Requests
}

// A type from the configuration is what a result that names it becomes, if it fits.
func TestConfiguredType(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"artifacts": map[string]any{
		"ttl": "2h", "types": map[string]any{"recipe": map[string]any{"type": "object", "required": []string{"steps"}}},
	}})
	p.ready()
	for payload, want := range map[string]string{`"steps":["stir"]`: "recipe", `"stages":1`: "mcp"} {
		res := p.call("ok", "answer", answer(`{"structuredContent":{"artifact_ref":"«artifact:recipe~`+want+`1»",`+payload+`},"content":[]}`), 200)
		if got := res.Header.Get("Artifact-Type"); got != want {
			t.Errorf("%s: Artifact-Type = %q, want %q", payload, got, want)
		}
		at := p.get("/artifacts/" + res.Header.Get("Artifact-Ref"))
		expires, err := http.ParseTime(at.Header.Get("Expires"))
		if left := time.Until(expires); err != nil || at.StatusCode != 200 || left < 119*time.Minute || left > 2*time.Hour {
			t.Errorf("%s: %d, Expires: %s", payload, at.StatusCode, at.Header.Get("Expires"))
		}
	}
}
