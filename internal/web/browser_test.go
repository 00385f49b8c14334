package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/web"
	"mcpbridge/internal/web/webtest"
)

// document is what the bridge's documents look like: one tag per handle, relative
// server, schemas by reference, a security scheme.
const document = `{
  "openapi": "3.1.0",
  "info": {"title": "Echo <b>server</b>", "version": "1.2.3", "description": "Says **again** what it is told."},
  "servers": [{"url": "."}],
  "security": [{"key": []}],
  "tags": [{"name": "echo"}, {"name": "other"}],
  "paths": {
    "/echo": {"post": {
      "operationId": "echo__say", "tags": ["echo"], "summary": "Say it again",
      "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/echo.say.in"}}}},
      "responses": {"200": {"description": "The same", "content": {"application/json": {"schema": {"type": "object"}}}}}
    }},
    "/picture": {"post": {
      "operationId": "other__picture", "tags": ["other"], "summary": "A picture",
      "responses": {"200": {"description": "One dot", "content": {"image/png": {}}}}
    }}
  },
  "components": {
    "schemas": {"echo.say.in": {
      "type": "object", "required": ["message"], "additionalProperties": false,
      "properties": {"message": {"type": ["string", "null"], "examples": ["hello"]}, "parts": {"type": "array", "prefixItems": [{"const": 1}]}}
    }},
    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}
  }
}`

// serveDocs serves the bridge's two kinds of page below prefix, as a proxy on a
// sub-path would show them, with tools that answer what they are sent.
func serveDocs(t *testing.T, prefix string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	spec := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, document)
	}
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}
	mux.Handle("GET "+prefix+"/docs/assets/{name}", web.Assets(http.NotFoundHandler()))
	mux.Handle("GET "+prefix+"/docs", web.Page{Title: "All tools", Document: "openapi.json", Assets: "docs/assets/"})
	mux.HandleFunc("GET "+prefix+"/openapi.json", spec)
	mux.HandleFunc("POST "+prefix+"/echo", echo)
	mux.HandleFunc("POST "+prefix+"/picture", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Write(dot)
	})
	mux.HandleFunc("GET "+prefix+"/tools/{handle}/docs", func(w http.ResponseWriter, r *http.Request) {
		web.Page{Title: r.PathValue("handle"), Document: "openapi.json", Assets: "../../docs/assets/"}.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET "+prefix+"/tools/{handle}/openapi.json", spec)
	mux.HandleFunc("POST "+prefix+"/tools/{handle}/echo", echo)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// dot is a PNG of one pixel.
var dot = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")

// wantClean fails the test for anything that a page must never do.
func wantClean(t *testing.T, r *webtest.Report) {
	t.Helper()
	if len(r.Foreign) > 0 {
		t.Errorf("the page asked other hosts: %q", r.Foreign)
	}
	if len(r.Faults) > 0 {
		t.Errorf("the browser complained:\n%s", strings.Join(r.Faults, "\n"))
	}
	for _, q := range r.Requests {
		if q.Status != http.StatusOK && !strings.HasPrefix(q.URL, "data:") && !strings.HasPrefix(q.URL, "blob:") {
			t.Errorf("%s %s = %d", q.Method, q.URL, q.Status)
		}
	}
}

// shown has the answers that a tool may give, and how the page must show them:
// laid out, and otherwise as they came; no digit changes, no order of keys, nothing
// inside strings. What is not JSON stays as it is.
var shown = []struct{ name, answer, want string }{
	{"text", `{"message": "grüße", "n": 9007199254740993}`, "{\n  \"message\": \"grüße\",\n  \"n\": 9007199254740993\n}"},
	{"numbers", `[1.10,1e400,-0,12345678901234567890]`, "[\n  1.10,\n  1e400,\n  -0,\n  12345678901234567890\n]"},
	{"strings", `{"b":"{[,: \"\\","a":"\u00e9 \n"}`, "{\n  \"b\": \"{[,: \\\"\\\\\",\n  \"a\": \"\\u00e9 \\n\"\n}"},
	{"empty", ` { "a" : [ ] , "1" : { } , "b" : [ [ null ] ] } `, "{\n  \"a\": [],\n  \"1\": {},\n  \"b\": [\n    [\n      null\n    ]\n  ]\n}"},
	{"scalar", `true`, "true"},
	{"broken", `{"a":`, "can't parse JSON.  Raw result:\n\n{\"a\":"},
}

func TestDocsInBrowser(t *testing.T) {
	tests := []struct {
		name, prefix, page string
		title, call        string
		dark               bool
	}{
		{name: "whole", page: "/docs", title: "All tools", call: "/echo"},
		{name: "handle", page: "/tools/a%2Fb%3Cx%3E/docs", title: "a/b<x>", call: "/tools/a%2Fb%3Cx%3E/echo", dark: true},
		{name: "behind a proxy", prefix: "/mcp", page: "/mcp/tools/files/docs", title: "files", call: "/mcp/tools/files/echo"},
	}
	var calls []webtest.Call
	for _, s := range shown {
		calls = append(calls, webtest.Call{Operation: "echo__say", Body: &s.answer})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			srv := serveDocs(t, test.prefix)
			r := webtest.Swagger(t, webtest.Options{
				URL:        srv.URL + test.page,
				Calls:      calls,
				Authorize:  "top secret",
				Dark:       test.dark,
				Screenshot: filepath.Join(t.ArtifactDir(), "page.png"),
			})
			wantClean(t, r)
			if r.Title != test.title {
				t.Errorf("title = %q, want %q", r.Title, test.title)
			}
			if want := "Echo <b>server</b>"; r.Heading != want {
				t.Errorf("heading = %q, want %q", r.Heading, want)
			}
			if diff := cmp.Diff([]string{"echo__say", "other__picture"}, r.Operations); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			for i, x := range r.Answers {
				if x.Method != http.MethodPost || x.URL != srv.URL+test.call || x.Status != http.StatusOK {
					t.Errorf("%s: %s %s = %d, want POST %s = 200", shown[i].name, x.Method, x.URL, x.Status, test.call)
				}
				if got := x.Headers["authorization"]; got != "Bearer top secret" {
					t.Errorf("%s: Authorization = %q", shown[i].name, got)
				}
				if x.Body != shown[i].answer {
					t.Errorf("%s: sent %s, want %s", shown[i].name, x.Body, shown[i].answer)
				}
				if diff := cmp.Diff(shown[i].want, x.Shown); diff != "" {
					t.Errorf("%s: shown (-want +got):\n%s", shown[i].name, diff)
				}
			}
			if len(r.Answers) != len(shown) {
				t.Errorf("%d answers to %d calls", len(r.Answers), len(shown))
			}
		})
	}
}

// A document that is not for everybody is asked for with the reader's key, which
// calls then have too.
func TestDocsBehindAKey(t *testing.T) {
	srv := serveDocs(t, "")
	inner := srv.Config.Handler
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/docs") && r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	body := `{}`
	r := webtest.Swagger(t, webtest.Options{
		URL: srv.URL + "/docs", Keys: []string{"wrong", " right "}, Calls: []webtest.Call{{Operation: "echo__say", Body: &body}},
		Screenshot: filepath.Join(t.ArtifactDir(), "key.png"),
	})
	if len(r.Answers) != 1 || r.Answers[0].Status != http.StatusOK || r.Answers[0].Headers["authorization"] != "Bearer right" {
		t.Errorf("answers: %+v", r.Answers)
	}
	if len(r.Foreign) > 0 {
		t.Errorf("the page asked other hosts: %q", r.Foreign)
	}
	for _, f := range r.Faults {
		if !strings.Contains(f, "401") { // the browser tells of each
			t.Errorf("the browser complained: %s", f)
		}
	}
}

// An image that a tool answers with is shown from a blob URL, which the page's
// policy has to allow; an operation without a body sends none.
func TestDocsShowImage(t *testing.T) {
	srv := serveDocs(t, "")
	r := webtest.Swagger(t, webtest.Options{URL: srv.URL + "/docs", Calls: []webtest.Call{{Operation: "other__picture"}}})
	wantClean(t, r)
	if !slices.ContainsFunc(r.Requests, func(q webtest.Request) bool { return strings.HasPrefix(q.URL, "blob:") }) {
		t.Errorf("no image was drawn; the answer: %+v", r.Answers)
	}
	if body := r.Answers[0].Body; body != "" {
		t.Errorf("sent %q, want no body", body)
	}
}

// The report has to notice what it is there to notice.
func TestDriverNoticesFaults(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/docs/assets/{name}", web.Assets(http.NotFoundHandler()))
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "style-src 'self'")
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<div id="swagger-ui" data-document="/openapi.json"></div><p style="color: red">
			<img src="http://elsewhere.invalid/dot.png"><script src="docs/assets/swagger-ui-bundle.js"></script>
			<script src="docs/assets/docs.js"></script><script>throw new Error("broken")</script>`)
	})
	mux.HandleFunc("/openapi.json", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, document) })
	srv := httptest.NewServer(mux)
	defer srv.Close()

	r := webtest.Swagger(t, webtest.Options{URL: srv.URL + "/bad"})
	if diff := cmp.Diff([]string{"http://elsewhere.invalid/dot.png"}, r.Foreign); diff != "" {
		t.Errorf("foreign (-want +got):\n%s", diff)
	}
	faults, err := json.Marshal(r.Faults)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"policy: style-src", "exception: broken", "request: GET http://elsewhere.invalid/dot.png"} {
		if !strings.Contains(string(faults), want) {
			t.Errorf("faults %s do not tell of %q", faults, want)
		}
	}
}
