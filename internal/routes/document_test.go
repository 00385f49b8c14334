package routes

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpbridge/internal/bridge"
)

func TestDocuments(t *testing.T) {
	f := newFixture(newToolServer("demo", "add", "a/b"), newToolServer("files", "read"))
	c := f.serve(t)
	tests := []struct{ path, mediaType, has, lacks string }{
		{"/openapi.json", "application/json", `"/tools/demo/a%2Fb"`, ""},
		{"/openapi.yaml", "application/yaml", `/tools/files/read`, ""},
		{"/tools/demo/openapi.json", "application/json", `"/a%2Fb"`, "/read"},
		{"/tools/files/openapi.yaml", "application/yaml", `/read`, "/add"},
		{"/openapi.json?handles=files", "application/json", `"/tools/files/read"`, "/tools/demo"},
		{"/openapi.json?handles=", "application/json", `"paths":{}`, "/tools/"},
		{"/openapi-3.0.json", "application/json", `{"openapi":"3.0.3"`, `"examples"`},
		{"/openapi-3.0.yaml", "application/yaml", `openapi: "3.0.3"`, `examples`},
		{"/tools/demo/openapi-3.0.json", "application/json", `"/a%2Fb"`, "/read"},
		{"/tools/files/openapi-3.0.yaml", "application/yaml", `/read`, "/add"},
		{"/openapi.json?profile=flat", "application/json", `{"openapi":"3.1.0"`, `/schemas/Content"`},
		{"/tools/demo/openapi-3.0.json?profile=flat", "application/json", `{"openapi":"3.0.3"`, `/schemas/Content"`},
		{"/openapi-3.0.yaml?profile=flat&handles=files", "application/yaml", `/tools/files/read`, `/tools/demo`},
	}
	for _, tt := range tests {
		r := c.do("GET", tt.path, "", "Accept-Encoding: identity")
		if r.status != 200 || r.header.Get("Content-Type") != tt.mediaType || !strings.Contains(r.body, tt.has) || tt.lacks != "" && strings.Contains(r.body, tt.lacks) {
			t.Errorf("GET %s = %d %s %s", tt.path, r.status, r.header.Get("Content-Type"), r.body)
		}
		if tt.mediaType == "application/json" && !json.Valid([]byte(r.body)) {
			t.Errorf("GET %s is not JSON", tt.path)
		}
		if r.header.Get("Vary") != "Accept-Encoding" || r.header.Get("Cache-Control") != "private, no-cache" || r.header.Get("Content-Encoding") != "" {
			t.Errorf("GET %s: headers = %v", tt.path, r.header)
		}
	}
}

func TestUnknownProfile(t *testing.T) {
	c := newFixture().serve(t)
	for _, path := range []string{"/openapi.json?profile=wide", "/tools/demo/openapi-3.0.yaml?profile=Flat"} {
		c.do("GET", path, "").wantProblem(t, 400, bridge.Malformed)
	}
	c.do("GET", "/tools/nobody/openapi-3.0.json", "").wantProblem(t, 404, bridge.NotFound)
}

func TestDocumentEncodings(t *testing.T) {
	c := newFixture().serve(t)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/tools/demo/openapi.json", "/tools/demo/openapi.yaml", "/openapi-3.0.json", "/tools/demo/openapi-3.0.yaml", "/openapi.json?profile=flat"} {
		plain := c.do("GET", path, "", "Accept-Encoding: identity")
		zipped := c.do("GET", path, "", "Accept-Encoding: br, gzip;q=0.5")
		if zipped.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("GET %s: headers = %v", path, zipped.header)
		}
		zr, err := gzip.NewReader(strings.NewReader(zipped.body))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(zr); err != nil || string(b) != plain.body {
			t.Errorf("GET %s: the compressed document is another one, %v", path, err)
		}
		pt, zt := plain.header.Get("ETag"), zipped.header.Get("ETag")
		if pt == "" || zt == "" || pt == zt || strings.HasPrefix(pt, "W/") || strings.HasPrefix(zt, "W/") {
			t.Errorf("GET %s: tags %s and %s", path, pt, zt)
		}
		for _, tt := range []struct {
			encoding, tag string
			status        int
		}{
			{"identity", pt, 304},
			{"gzip", zt, 304},
			{"identity", zt, 200},
			{"gzip", pt, 200},
			{"gzip", `"x", ` + zt, 304},
			{"identity", "W/" + pt, 304},
			{"gzip", "*", 304},
		} {
			if got := c.do("GET", path, "", "Accept-Encoding: "+tt.encoding, "If-None-Match: "+tt.tag).status; got != tt.status {
				t.Errorf("GET %s in %s with %s = %d, want %d", path, tt.encoding, tt.tag, got, tt.status)
			}
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	tests := []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip; q=0.001"}, true},
		{[]string{"gzip;q=x"}, false},
		{[]string{"br"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"identity"}, false},
		{[]string{"deflate", "gzip"}, true},
	}
	for _, tt := range tests {
		if got := acceptsGzip(http.Header{"Accept-Encoding": tt.values}); got != tt.want {
			t.Errorf("acceptsGzip(%q) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestColdStart(t *testing.T) {
	connecting := &bridge.Server{Handle: "slow", Title: "slow", State: bridge.Connecting}
	failed := &bridge.Server{Handle: "down", Title: "down", State: bridge.Failed}
	again := newToolServer("again", "t") // answered before, connecting anew
	again.State = bridge.Connecting
	f := newFixture()
	f.snap = bridge.NewSnapshot(1, false, []*bridge.Server{newToolServer("demo", "echo"), connecting, failed, again})
	c := f.serve(t)
	for path, want := range map[string]int{
		"/openapi.json": 503, "/openapi.yaml": 503, "/tools/slow/openapi.json": 503, "/tools/slow/openapi.yaml": 503,
		"/openapi-3.0.json": 503, "/tools/slow/openapi-3.0.yaml": 503, "/openapi-3.0.json?handles=demo": 200, "/tools/demo/openapi-3.0.json": 200,
		"/openapi.json?handles=demo": 200, "/openapi.json?handles=demo,slow": 503, "/openapi.json?handles=down": 200,
		"/tools/demo/openapi.json": 200, "/tools/down/openapi.json": 200, "/tools/again/openapi.yaml": 200, "/tools": 200, "/tools/slow": 200, "/docs": 200,
	} {
		r := c.do("GET", path, "")
		if r.status != want {
			t.Errorf("GET %s = %d, want %d", path, r.status, want)
		}
		if want == 503 {
			r.wantProblem(t, 503, bridge.NotReady)
			if r.header.Get("Retry-After") != "1" || r.header.Get("ETag") != "" {
				t.Errorf("GET %s: headers = %v", path, r.header)
			}
		}
	}
	c.do("POST", "/tools/demo/echo", "").wantOK(t, `{"content":[]}`)
	c.do("POST", "/tools/slow/t", "").wantProblem(t, 503, bridge.NotReady)
	f.snap = bridge.NewSnapshot(2, true, f.snap.Servers)
	if r := c.do("GET", "/openapi.json", ""); r.status != 200 {
		t.Errorf("once it was waited for long enough, the document is %d", r.status)
	}
}

func TestPagesLoadOnlyOurs(t *testing.T) {
	f := newFixture(newToolServer("demo", "a"), newToolServer("odd/ü", "a"))
	for _, base := range []string{"", "/x"} {
		f.opts.BasePath = base
		c := f.serve(t)
		for _, path := range []string{"/docs", "/docs/", "/tools/demo/docs", "/tools/demo/docs/", "/tools/odd%2F%C3%BC/docs"} {
			path = base + path
			r := c.do("GET", path, "")
			if r.status != 200 || !strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Fatalf("GET %s = %d %v", path, r.status, r.header)
			}
			refs := hrefs(r.body)
			if len(refs) < 5 {
				t.Errorf("GET %s refers to %v", path, refs)
			}
			for _, ref := range refs {
				if strings.Contains(ref, "//") || strings.HasPrefix(ref, "/") {
					t.Errorf("%s refers to %s", path, ref)
				}
				if got := c.do("GET", c.resolve(path, ref), "").status; got != 200 {
					t.Errorf("%s on %s = %d", ref, path, got)
				}
			}
		}
	}
}

func TestHealth(t *testing.T) {
	f := newFixture()
	ready := false
	f.opts.Ready = func() bool { return ready }
	c := f.serve(t)
	c.do("GET", "/healthz", "").wantOK(t, `{"status":"ok"}`)
	r := c.do("GET", "/readyz", "")
	r.wantProblem(t, 503, bridge.NotReady)
	if r.header.Get("Retry-After") == "" || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers = %v", r.header)
	}
	ready = true
	r = c.do("GET", "/readyz", "")
	r.wantOK(t, `{"status":"ok"}`)
	if r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers = %v", r.header)
	}
}

func TestFrontPage(t *testing.T) {
	f := newFixture()
	f.opts.Version = "1.2.3<"
	r := f.serve(t).do("GET", "/", "")
	if r.status != 200 || !strings.Contains(r.body, "1.2.3&lt;") || !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("GET / = %d %v %s", r.status, r.header, r.body)
	}
}

func TestZipCache(t *testing.T) {
	var c zipCache
	big := bytes.Repeat([]byte("0123456789abcdef"), maxZipped/16/2)
	var wg sync.WaitGroup
	bodies := make([][]byte, 8)
	for i := range bodies {
		wg.Go(func() { bodies[i] = c.get("a", big) })
	}
	wg.Wait()
	for _, b := range bodies {
		if &b[0] != &bodies[0][0] {
			t.Error("the same body was compressed twice")
		}
	}
	c.get("b", big)
	c.get("a", big) // used again, so b goes first
	c.get("c", big)
	if _, ok := c.entries["b"]; ok || len(c.entries) != 2 || c.recent.Len() != 2 || c.bytes > maxZipped {
		t.Errorf("%d entries of %d bytes are kept", len(c.entries), c.bytes)
	}
	if &c.get("a", big)[0] != &bodies[0][0] {
		t.Error("the one in use was dropped")
	}
	// One that is too big for all is kept until the next comes.
	c.get("d", append(big, append(big, 'x')...))
	if len(c.entries) != 1 {
		t.Errorf("%d entries are kept", len(c.entries))
	}
}
