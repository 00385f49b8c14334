package web

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// get sends a request to h and returns the answer, its body read.
func get(t *testing.T, h http.Handler, target string, header ...string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Result(), rec.Body.String()
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, "in the router's form")
}

var files = Assets(http.HandlerFunc(notFound))

func TestPage(t *testing.T) {
	p := Page{Title: `</title><script>alert("x")</script>`, Document: "openapi.json?handles=a%2Fb&x=\"", Assets: "../../docs/assets/"}
	resp, body := get(t, p, "/tools/a/docs")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status = %d", resp.StatusCode)
	}
	want := map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff",
		"Referrer-Policy":        "same-origin",
		"Cache-Control":          "no-cache",
	}
	for name, value := range want {
		if got := resp.Header.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	for _, want := range []string{
		`<title>&lt;/title&gt;&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;</title>`,
		`data-document="openapi.json?handles=a%2Fb&amp;x=&#34;"`,
		`src="../../docs/assets/docs.js"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s:\n%s", want, body)
		}
	}
	if n := strings.Count(body, "<script"); n != strings.Count(body, "<script defer src=") {
		t.Errorf("the page has a script without a source:\n%s", body)
	}
}

func TestPageTitleDefault(t *testing.T) {
	_, body := get(t, Page{}, "/docs")
	if !strings.Contains(body, "<title>API</title>") {
		t.Errorf("no default title:\n%s", body)
	}
}

func TestPageNotModified(t *testing.T) {
	resp, _ := get(t, Page{Title: "a"}, "/docs")
	tag := resp.Header.Get("ETag")
	if !strings.HasPrefix(tag, `"`) {
		t.Fatalf("ETag = %s, want a strong one", tag)
	}
	if resp, body := get(t, Page{Title: "a"}, "/docs", "If-None-Match", tag); resp.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("same page: status %d with %q, want 304", resp.StatusCode, body)
	}
	if resp, _ := get(t, Page{Title: "b"}, "/docs", "If-None-Match", tag); resp.StatusCode != http.StatusOK {
		t.Errorf("other page: status %d, want 200", resp.StatusCode)
	}
}

// Every reference on a page must lead to something below the place where a proxy
// may have put the bridge, whichever way the page was asked for.
func TestPageReferences(t *testing.T) {
	whole := Page{Document: "openapi.json", Assets: "docs/assets/"}
	handle := Page{Document: "openapi.json", Assets: "../../docs/assets/"}
	tests := []struct {
		page     Page
		at       string
		document string
	}{
		{whole, "/docs", "/openapi.json"},
		{whole, "/docs/", "/openapi.json"},
		{whole, "/mcp/docs", "/mcp/openapi.json"},
		{handle, "/tools/a%2Fb/docs", "/tools/a%2Fb/openapi.json"},
		{handle, "/tools/a/docs/", "/tools/a/openapi.json"},
		{handle, "/mcp/tools/a/docs", "/mcp/tools/a/openapi.json"},
	}
	reference := regexp.MustCompile(`(src|href|data-document)="([^"]*)"`)
	for _, test := range tests {
		t.Run(test.at, func(t *testing.T) {
			_, body := get(t, test.page, test.at)
			base, err := url.Parse(test.at)
			if err != nil {
				t.Fatal(err)
			}
			root, _, _ := strings.Cut(test.document, "/tools/")
			root = strings.TrimSuffix(root, "/openapi.json")
			var documents, loaded int
			for _, m := range reference.FindAllStringSubmatch(body, -1) {
				u, err := base.Parse(m[2])
				if err != nil {
					t.Fatal(err)
				}
				if u.EscapedPath() == test.document {
					documents++
					continue
				}
				loaded++
				if dir := path.Dir(u.Path); dir != root+"/docs/assets" {
					t.Errorf("%s is in %s, want %s/docs/assets", m[0], dir, root)
				}
				if resp, _ := get(t, files, u.String()); resp.StatusCode != http.StatusOK {
					t.Errorf("%s: status %d", m[0], resp.StatusCode)
				}
			}
			if documents != 2 || loaded != 5 {
				t.Errorf("%d references to the document and %d to assets, want 2 and 5:\n%s", documents, loaded, body)
			}
		})
	}
}

func TestAssetEncodings(t *testing.T) {
	const target = "/docs/assets/swagger-ui.css"
	plain, text := get(t, files, target)
	if plain.StatusCode != http.StatusOK || plain.Header.Get("Content-Encoding") != "" {
		t.Fatalf("plain: status %d, encoding %q", plain.StatusCode, plain.Header.Get("Content-Encoding"))
	}
	if !strings.Contains(text, ".swagger-ui") {
		t.Fatalf("plain: not the style sheet: %.80q", text)
	}
	zipped, packed := get(t, files, target, "Accept-Encoding", "br, gzip;q=0.5")
	if got := zipped.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("encoding = %q, want gzip", got)
	}
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if string(unpacked) != text {
		t.Error("the two encodings hold different files")
	}
	for _, resp := range []*http.Response{plain, zipped} {
		if got := resp.Header.Get("Vary"); got != "Accept-Encoding" {
			t.Errorf("Vary = %q", got)
		}
		if got := resp.Header.Get("Content-Type"); got != "text/css; charset=utf-8" {
			t.Errorf("Content-Type = %q", got)
		}
		if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("X-Content-Type-Options = %q", got)
		}
		if got := resp.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("Content-Security-Policy = %q", got)
		}
	}
	// A cache must not take one encoding's tag for the other's bytes.
	a, b := plain.Header.Get("ETag"), zipped.Header.Get("ETag")
	if a == b {
		t.Fatalf("both encodings have the tag %s", a)
	}
	tests := []struct {
		accept, tag string
		want        int
	}{
		{"identity", a, http.StatusNotModified},
		{"identity", b, http.StatusOK},
		{"gzip", b, http.StatusNotModified},
		{"gzip", a, http.StatusOK},
	}
	for _, test := range tests {
		resp, body := get(t, files, target, "Accept-Encoding", test.accept, "If-None-Match", test.tag)
		if resp.StatusCode != test.want || (test.want == http.StatusNotModified) != (body == "") {
			t.Errorf("%s, If-None-Match %s: status %d with %d bytes, want %d", test.accept, test.tag, resp.StatusCode, len(body), test.want)
		}
	}
}

// What the client sees over a real connection, where lengths and encodings have
// to agree: a HEAD, a part, and a condition that fails.
func TestAssetOverHTTP(t *testing.T) {
	srv := httptest.NewServer(files)
	defer srv.Close()
	tests := []struct {
		method, name, value string
		status, length      int
	}{
		{http.MethodHead, "", "", http.StatusOK, 0},
		{http.MethodGet, "Range", "bytes=0-9", http.StatusPartialContent, 10},
		{http.MethodGet, "Range", "bytes=99999999-", http.StatusRequestedRangeNotSatisfiable, -1},
		{http.MethodGet, "If-Match", `"other"`, http.StatusPreconditionFailed, 0},
	}
	for _, test := range tests {
		for _, encoding := range []string{"gzip", "identity"} {
			t.Run(fmt.Sprintf("%s %s %s", test.method, test.value, encoding), func(t *testing.T) {
				req, err := http.NewRequestWithContext(t.Context(), test.method, srv.URL+"/swagger-ui-bundle.js", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept-Encoding", encoding)
				if test.name != "" {
					req.Header.Set(test.name, test.value)
				}
				resp, err := srv.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != test.status || test.length >= 0 && len(body) != test.length {
					t.Errorf("status %d with %d bytes, want %d with %d", resp.StatusCode, len(body), test.status, test.length)
				}
			})
		}
	}
}

func TestAssetPlain(t *testing.T) {
	resp, body := get(t, files, "/docs/assets/favicon-32x32.png", "Accept-Encoding", "gzip")
	if resp.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(body, "\x89PNG") {
		t.Errorf("encoding %q, body %.8q; want the image as it is", resp.Header.Get("Content-Encoding"), body)
	}
	if got := resp.Header.Get("Content-Type"); got != "image/png" {
		t.Errorf("Content-Type = %q", got)
	}
}

func TestAssetUnknown(t *testing.T) {
	for _, target := range []string{"/", "/docs/assets/", "/docs/assets/nothing.js", "/docs/assets/swagger-ui.css.gz", "/docs/assets/..", "/docs/assets/static"} {
		resp, body := get(t, files, target)
		if resp.StatusCode != http.StatusNotFound || body != "in the router's form" {
			t.Errorf("%s: %d %.40q, want the router's 404", target, resp.StatusCode, body)
		}
	}
}

// The licence of Swagger UI asks that these go wherever it goes; the files are
// what a page needs, and each of them can be read.
func TestAssetList(t *testing.T) {
	got := make(map[string]string)
	for name, a := range assets() {
		got[name] = a.mediaType
		if !a.zipped {
			continue
		}
		if _, err := unzip(a.data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const text, script, style = "text/plain; charset=utf-8", "text/javascript; charset=utf-8", "text/css; charset=utf-8"
	want := map[string]string{
		"LICENSE": text, "NOTICE": text, "swagger-ui-bundle.js.LICENSE.txt": text,
		"swagger-ui-bundle.js": script, "swagger-ui.css": style, "favicon-32x32.png": "image/png",
		"docs.js": script, "docs.css": style,
		"console.js": script, "console-stream.js": script, "console-words.js": script, "console-draw.js": script, "console.css": style,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assets (-want +got):\n%s", diff)
	}
}

func TestAssetDamaged(t *testing.T) {
	for _, data := range []string{"not gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"} {
		resp, _ := get(t, &asset{data: []byte(data), zipped: true}, "/x.js")
		if resp.StatusCode != http.StatusInternalServerError {
			t.Errorf("%q: status %d, want 500", data, resp.StatusCode)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	tests := []struct {
		lines []string
		want  bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"deflate, gzip ; q = 0.1"}, true},
		{[]string{"deflate", "gzip"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000, *"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"br"}, false},
		{[]string{"gzip;q=high"}, false},
		{[]string{"gzip;level=9"}, true},
		{[]string{"notgzip"}, false},
	}
	for _, test := range tests {
		if got := acceptsGzip(http.Header{"Accept-Encoding": test.lines}); got != test.want {
			t.Errorf("acceptsGzip(%q) = %t, want %t", test.lines, got, test.want)
		}
	}
}
