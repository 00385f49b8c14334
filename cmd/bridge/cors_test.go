package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// A pageVisit is a page and what its script asks for.
type pageVisit struct {
	Page     string        `json:"page"`
	Requests []pageRequest `json:"requests"`
}

type pageRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Mode    string            `json:"mode,omitempty"`
}

// A pageAnswer is what the script could see of an answer; Error is set if nothing.
type pageAnswer struct {
	Status  int
	Type    string
	Headers map[string]string // by names in lower case
	Body    string
	Error   string
}

// browse has a browser open the pages, and returns what their scripts saw.
func browse(t *testing.T, visits ...pageVisit) [][]pageAnswer {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "../../testdata/npm/browser/fetch.mjs")
	cmd.Stdin = bytes.NewReader(mustJSON(map[string]any{"chromium": browser, "visits": visits}))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the browser: %v\n%s", err, stderr.Bytes())
	}
	var report struct{ Visits [][]pageAnswer }
	if err := json.Unmarshal(out, &report); err != nil || len(report.Visits) != len(visits) {
		t.Fatalf("the browser's report %q: %v", out, err)
	}
	for i, v := range visits {
		if len(report.Visits[i]) != len(v.Requests) {
			t.Fatalf("%d answers to the %d requests of %s", len(report.Visits[i]), len(v.Requests), v.Page)
		}
	}
	return report.Visits
}

// site serves an empty page, and returns the page's origin, which is of another site than 127.0.0.1.
func site(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>A page</title>")
	}))
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
}

// countCalls returns how many tools the log says that were called, and how many requests were refused.
func (p *process) countCalls() (calls, refused int) {
	for line := range strings.Lines(p.log()) {
		var l struct {
			Msg    string
			Status int
		}
		switch err := json.Unmarshal([]byte(line), &l); {
		case err != nil:
		case l.Msg == "call":
			calls++
		case l.Status == http.StatusForbidden:
			refused++
		}
	}
	return calls, refused
}

// The pages of the origins that the configuration names can call with a key, and
// read all of the answer, also when it is an error; others can do neither.
func TestCORSInBrowser(t *testing.T) {
	friend, stranger := site(t), site(t)
	p := start(t, map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}, map[string]any{
		"cors": map[string]any{"origins": []string{friend}}, "compat": map[string]any{"mcpo": true},
	})
	p.ready()
	key := map[string]string{"Authorization": "Bearer key", "Content-Type": "application/json", "Prefer": "wait=20", "Idempotency-Key": "k"}
	call := func(path, body string) pageRequest {
		return pageRequest{URL: p.base + path, Method: "POST", Headers: key, Body: body}
	}
	plain := func(method, path string) pageRequest {
		return pageRequest{URL: p.base + path, Method: method}
	}
	seen := browse(t, pageVisit{friend + "/", []pageRequest{
		call("/tools/demo/add", `{"a":40,"b":2}`),
		call("/tools/demo/add", `{"a":40}`),
		call("/tools/demo/nope", `{}`),
		call("/mcpo/demo/add", `{"a":40,"b":3}`),
		plain("GET", "/openapi.json"),
		plain("GET", "/nowhere"),
		plain("DELETE", "/artifacts/mcp~nothing"),
		{URL: p.base + "/tools/demo/add", Method: "POST", Headers: map[string]string{"X-Else": "1", "Content-Type": "application/json"}, Body: `{"a":1,"b":1}`},
	}})[0]

	sum, wrong, unknown, mcpo, doc, nowhere, gone, refused := seen[0], seen[1], seen[2], seen[3], seen[4], seen[5], seen[6], seen[7]
	if sum.Status != 200 || !strings.Contains(sum.Body, "42") || sum.Headers["artifact-ref"] == "" || sum.Headers["request-id"] == "" || sum.Headers["server-timing"] == "" {
		t.Errorf("a call: %+v", sum)
	}
	for name, a := range map[string]pageAnswer{"wrong arguments": wrong, "an unknown tool": unknown, "an unknown path": nowhere, "an unknown artifact": gone} {
		if a.Status < 400 || !strings.Contains(a.Body, `"code":"`) || a.Headers["content-type"] != "application/problem+json" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if mcpo.Status != 200 || !strings.Contains(mcpo.Body, "43") || mcpo.Headers["artifact-ref"] == "" {
		t.Errorf("a call as mcpo takes it: %+v", mcpo)
	}
	if doc.Status != 200 || doc.Headers["etag"] == "" {
		t.Errorf("the document: %d %v %s", doc.Status, doc.Headers, doc.Error)
	}
	if refused.Error == "" {
		t.Errorf("a header that is not for pages went through: %+v", refused)
	}
	calls, _ := p.countCalls()

	// With a key the browser asks first, and is told no. Without, and with nothing in
	// the body, it does not ask: the bridge itself refuses.
	blind := func(body string) pageRequest {
		return pageRequest{URL: p.base + "/tools/demo/add", Method: "POST", Mode: "no-cors", Body: body}
	}
	for i, a := range browse(t, pageVisit{stranger + "/", []pageRequest{
		call("/tools/demo/add", `{"a":40,"b":2}`), plain("POST", "/tools/demo/add"), plain("GET", "/tools"), plain("GET", "/nowhere"), blind(""), blind(`{"a":1,"b":1}`),
	}})[0] {
		if a.Error == "" && a.Type != "opaque" || a.Status != 0 || a.Body != "" {
			t.Errorf("a page of a stranger sees answer %d: %+v", i, a)
		}
	}
	if after, refused := p.countCalls(); after != calls || refused != 3 {
		t.Errorf("a page of a stranger made %d calls, and was refused %d times, want 3", after-calls, refused)
	}
}

// Without a word in the configuration no page of another origin calls, not even with an empty body.
func TestForeignPagesInBrowser(t *testing.T) {
	p := start(t, map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}, nil)
	p.ready()
	target := p.base + "/tools/demo/dice"
	for i, a := range browse(t, pageVisit{site(t) + "/", []pageRequest{
		{URL: target, Method: "POST"},
		{URL: target, Method: "POST", Mode: "no-cors"},
		{URL: target, Method: "POST", Mode: "no-cors", Headers: map[string]string{"Content-Type": "text/plain"}, Body: "{}"},
		{URL: target, Method: "POST", Headers: map[string]string{"Content-Type": "application/json"}, Body: "{}"},
	}})[0] {
		if a.Error == "" && a.Type != "opaque" {
			t.Errorf("a foreign page sees answer %d: %+v", i, a)
		}
	}
	if calls, refused := p.countCalls(); calls != 0 || refused != 3 {
		t.Errorf("%d calls, %d refused, want 0 and 3", calls, refused)
	}
	// A page of the bridge's own origin may.
	if a := browse(t, pageVisit{p.base + "/docs", []pageRequest{{URL: target, Method: "POST"}}})[0][0]; a.Status == 403 || a.Error != "" {
		t.Errorf("a page of ours: %+v", a)
	}
}
