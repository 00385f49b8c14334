package routes

import (
	"net/http"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

func TestHost(t *testing.T) {
	tests := []struct {
		name      string
		loopback  bool
		hosts     []string
		ok, wrong []string
	}{
		{
			name: "loopback", loopback: true,
			ok:    []string{"localhost", "localhost:8080", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:8080", "127.9.9.9", "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]:80"},
			wrong: []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[fe80::1]", "127.1", "bridge.test", "localhost:x:y", "2130706433"},
		},
		{
			name: "loopback with hosts", loopback: true, hosts: []string{"Bridge.Test", "other.test:8443"},
			ok:    []string{"localhost", "127.0.0.1", "bridge.test", "BRIDGE.TEST:1", "bridge.test.", "other.test:8443"},
			wrong: []string{"other.test", "other.test:1", "evil.example", "x.bridge.test"},
		},
		{
			name: "elsewhere with hosts", hosts: []string{"bridge.test"},
			ok:    []string{"bridge.test", "bridge.test:80"},
			wrong: []string{"localhost", "127.0.0.1", "evil.example"},
		},
		{
			name: "elsewhere", ok: []string{"bridge.test", "evil.example", "localhost", "10.0.0.1:80"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			f.opts.Loopback, f.opts.Hosts = tt.loopback, tt.hosts
			calls := f.countCalls()
			c := f.serve(t)
			for _, host := range tt.ok {
				c.do("POST", "/tools/demo/echo", "", "Host: "+host).wantOK(t, `{"content":[]}`)
			}
			for _, host := range tt.wrong {
				for _, path := range []string{"/tools/demo/echo", "/nope"} {
					c.do("POST", path, "", "Host: "+host).wantProblem(t, 403, bridge.Forbidden)
				}
				for _, path := range []string{"/", "/tools", "/openapi.json", "/docs", "/docs/assets/docs.js"} {
					c.do("GET", path, "", "Host: "+host).wantProblem(t, 403, bridge.Forbidden)
				}
				for _, path := range []string{"/healthz", "/readyz"} {
					c.do("GET", path, "", "Host: "+host).wantOK(t, `{"status":"ok"}`)
				}
			}
			if n := int(calls.Load()); n != len(tt.ok) {
				t.Errorf("the tool was called %d times, want %d", n, len(tt.ok))
			}
		})
	}
}

func TestRequestWithoutHost(t *testing.T) {
	c := newFixture().serve(t)
	c.raw("POST /tools/demo/echo HTTP/1.0\r\n\r\n").wantProblem(t, 403, bridge.Forbidden)
	c.raw("POST /tools/demo/echo HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n").wantProblem(t, 403, bridge.Forbidden)
	// The name in an absolute request line goes before Host.
	c.raw("POST http://evil.example/tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").wantProblem(t, 403, bridge.Forbidden)
}

func TestOrigin(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	for _, headers := range [][]string{
		{"Origin: https://evil.example"},
		{"Origin: null"},
		{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: same-site"},
		{"Origin: http://localhost:1", "Sec-Fetch-Site: same-site"},
	} {
		for _, body := range []string{"", "{}"} {
			c.do("POST", "/tools/demo/echo", body, headers...).wantProblem(t, 403, bridge.Forbidden)
			c.do("POST", "/tools/demo?tool=echo", body, headers...).wantProblem(t, 403, bridge.Forbidden)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
	for _, headers := range [][]string{
		nil,
		{"Origin: http://" + c.addr},
		{"Origin: http://" + c.addr, "Sec-Fetch-Site: same-origin"},
		{"Sec-Fetch-Site: none"},
		// Behind a proxy that changes Host the browser's own word counts.
		{"Origin: https://bridge.example.com", "Sec-Fetch-Site: same-origin"},
	} {
		c.do("POST", "/tools/demo/echo", "", headers...).wantOK(t, `{"content":[]}`)
	}
	// To read, the browser itself asks for leave that it does not get.
	r := c.do("GET", "/tools", "", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site")
	if r.status != http.StatusOK || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("GET /tools from elsewhere = %d %v", r.status, r.header)
	}
	c.do("OPTIONS", "/tools/demo/echo", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST").wantProblem(t, 405, MethodNotAllowed)
}

func TestBasePath(t *testing.T) {
	f := newFixture()
	f.opts.BasePath = "/a/bridge/"
	c := f.serve(t)
	c.do("POST", "/a/bridge/tools/demo/echo", "").wantOK(t, `{"content":[]}`)
	c.do("POST", "/a/bridge/tools/demo/%65cho", "").wantOK(t, `{"content":[]}`)
	for _, path := range []string{"/", "/tools", "/a", "/a/", "/a/bridgehead/tools", "/b/bridge/tools", "/a/bridge/a/bridge/tools"} {
		r := c.do("GET", path, "")
		if r.status != 404 || !strings.Contains(r.body, `"type":"/a/bridge/problems/not-found"`) {
			t.Errorf("GET %s = %d %s", path, r.status, r.body)
		}
	}
	if r := c.do("GET", "/a/bridge/problems/not-found", ""); r.status != 200 {
		t.Errorf("the type of a problem leads to %d", r.status)
	}
	for _, path := range []string{"/a/bridge", "/a/bridge/"} {
		r := c.do("GET", path, "")
		if r.status != 200 {
			t.Fatalf("GET %s = %d", path, r.status)
		}
		for _, ref := range hrefs(r.body) {
			if got := c.do("GET", c.resolve(path, ref), "").status; got != 200 {
				t.Errorf("%s on the page at %s = %d", ref, path, got)
			}
		}
	}
}

// hrefs returns the references of the links, scripts and styles of a page.
func hrefs(page string) []string {
	var refs []string
	for _, attr := range []string{` href="`, ` src="`, ` data-document="`} {
		for _, part := range strings.Split(page, attr)[1:] {
			ref, _, _ := strings.Cut(part, `"`)
			refs = append(refs, ref)
		}
	}
	return refs
}
