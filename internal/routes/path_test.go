package routes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// names are tools' names that paths, routers and patterns could take for something else.
var names = []string{
	"echo", "a/b", "a/b/c", "/", "x/", "{id}", "{", "*", "a b", " ", "a+b", "ü", "☃", "日本", "%25", "a%2Fb", "%", "100%",
	"..", ".", "a..b", "a:b", "a?b", "a#b", "a;b", "a=b&c", "a\\b", "docs", "openapi.json", "openapi.yaml", "openapi-3.0.json", "assets", "tool", `"quoted"`, "<b>", "~", "@type",
}

// newNamesFixture returns a fixture whose server "n" has all of these tools, each of which answers with its name.
func newNamesFixture(names ...string) *fixture {
	f := newFixture(newToolServer("n", names...))
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		return newResult(`{"structuredContent":` + string(raw.AppendQuote(nil, r.Tool.Name)) + `}`), nil
	}
	return f
}

func quoted(s string) string { return string(raw.AppendQuote(nil, s)) }

func TestNamesInPaths(t *testing.T) {
	c := newNamesFixture(append(names, "")...).serve(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if name != "." && name != ".." { // those a client takes as steps; TestPathsAsSent has them
				c.do("POST", "/tools/n/"+url.PathEscape(name), `{}`).wantOK(t, quoted(name))
				c.do("POST", "/tools/n/"+url.PathEscape(name)+"/", `{}`).wantOK(t, quoted(name))
			}
			c.do("POST", "/tools/n?tool="+url.QueryEscape(name), `{}`).wantOK(t, quoted(name))
			c.do("POST", "/tools/n/?tool="+url.QueryEscape(name), `{}`).wantOK(t, quoted(name))
		})
	}
	c.do("POST", "/tools/n?tool=", `{}`).wantOK(t, `""`)
}

// TestPathsAsSent has the paths that net/http's client would tidy up, on a bare connection.
func TestPathsAsSent(t *testing.T) {
	c := newNamesFixture(names...).serve(t)
	tests := []struct {
		path   string
		status int
		want   string // the whole body, if the status is 200, or the problem's code
	}{
		{"/tools/n/..", 200, `".."`},
		{"/tools/n/.", 200, `"."`},
		{"/tools/n/%2E%2E", 200, `".."`},
		{"/tools/n/{id}", 200, `"{id}"`},
		{"/tools/n/%7Bid%7D", 200, `"{id}"`},
		{"/tools/n/%7bid}", 200, `"{id}"`},
		{"/tools/n/a%2Fb", 200, `"a/b"`},
		{"/tools/n/a%2fb", 200, `"a/b"`},
		{"/tools/n/a%2Fb/", 200, `"a/b"`},
		{"/tools/n/x%2F", 200, `"x/"`},
		{"/tools/n/%2F", 200, `"/"`},
		{"/tools/n/%65cho", 200, `"echo"`},
		{"/tools/n/%2525", 200, `"%25"`},
		{"/tools/n/a%252Fb", 200, `"a%2Fb"`},
		{"/tools/n/%25", 200, `"%"`},
		{"/tools/n/*", 200, `"*"`},
		{"/tools/n/\xc3\xbc", 200, `"ü"`},
		{"/tools/n/a/b", 404, "not-found"},
		{"/tools/n//", 404, "not-found"},
		{"/tools//echo", 404, "not-found"},
		{"/tools//", 404, "not-found"},
		{"//tools/n/echo", 404, "not-found"},
		{"/tools/n/../n/echo", 404, "not-found"},
		{"/tools/%6E/echo", 200, `"echo"`},
		{"/tools/n/echo%00", 404, "not-found"},
		{"/tools/n", 400, "malformed-request"},
		{"/tools/n/", 400, "malformed-request"},
		{"/tools/n?tool=echo&tool=x", 400, "malformed-request"},
		{"/tools/n?tool=%zz", 400, "malformed-request"},
		{"/tools/n/echo?a;b", 400, "malformed-request"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			r := c.raw("POST " + tt.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
			if tt.status == 200 {
				r.wantOK(t, tt.want)
				return
			}
			r.wantProblem(t, tt.status, bridge.Kind(tt.want))
		})
	}
}

// raw sends bytes on a connection of its own and reads one answer.
func (c *client) raw(request string) response {
	c.t.Helper()
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		c.t.Fatal(err)
	}
	return c.readAnswer(bufio.NewReader(conn), strings.HasPrefix(request, "HEAD"))
}

func (c *client) readAnswer(rd *bufio.Reader, head bool) response {
	c.t.Helper()
	req := &http.Request{Method: http.MethodPost}
	if head {
		req.Method = http.MethodHead
	}
	res, err := http.ReadResponse(rd, req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(res.Body).WriteTo(&b); err != nil {
		c.t.Fatal(err)
	}
	if res.Close { // the header itself does not get here
		res.Header.Set("Connection", "close")
	}
	return response{res.StatusCode, res.Header, b.String()}
}

func TestLinksCanBeFollowed(t *testing.T) {
	f := newNamesFixture(append(names, "")...)
	for _, base := range []string{"", "/bridge", "/a/b"} {
		f.opts.BasePath = base
		c := f.serve(t)
		for _, from := range []string{"/tools", "/tools/", "/tools/n", "/tools/n/"} {
			var list ToolList
			if err := json.Unmarshal([]byte(c.do("GET", base+from, "").body), &list); err != nil {
				t.Fatal(err)
			}
			if got, want := len(list.Tools), len(names)+1; got != want {
				t.Fatalf("%s lists %d tools, want %d", from, got, want)
			}
			for _, tool := range list.Tools {
				c.do("POST", c.resolve(base+from, tool.Links.Call), `{}`).wantOK(t, quoted(tool.Name))
				self := c.do("GET", c.resolve(base+from, tool.Links.Self), "")
				if self.status != 200 || !strings.Contains(self.body, `"name":`+quoted(tool.Name)) {
					t.Errorf("GET %s = %d, does not describe %q", tool.Links.Self, self.status, tool.Name)
				}
			}
		}
	}
}

// resolve returns the path and query that a reference in the answer from path leads to.
func (c *client) resolve(path, ref string) string {
	c.t.Helper()
	base, err := url.Parse(c.url + path)
	if err != nil {
		c.t.Fatal(err)
	}
	u, err := base.Parse(ref)
	if err != nil {
		c.t.Fatalf("reference %q: %v", ref, err)
	}
	return u.RequestURI()
}

func TestPostGoesToToolsWithFixedNames(t *testing.T) {
	c := newNamesFixture("docs", "openapi.json").serve(t)
	c.do("POST", "/tools/n/docs", `{}`).wantOK(t, `"docs"`)
	c.do("POST", "/tools/n/docs/", `{}`).wantOK(t, `"docs"`)
	c.do("POST", "/tools/n/openapi.json", `{}`).wantOK(t, `"openapi.json"`)
	if r := c.do("GET", "/tools/n/docs", ""); !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Errorf("GET …/docs is %s, want a page", r.header.Get("Content-Type"))
	}
}

func TestTemplateNameDoesNotShadow(t *testing.T) {
	c := newNamesFixture("{id}", "other").serve(t)
	c.do("POST", "/tools/n/other", `{}`).wantOK(t, `"other"`)
	c.do("POST", "/tools/n/%7Bid%7D", `{}`).wantOK(t, `"{id}"`)
}

// FuzzNames: whatever two names are, the path that we link to carries them whole.
func FuzzNames(f *testing.F) {
	for _, n := range names {
		f.Add("n", n)
		f.Add(n, "t")
	}
	mux := chi.NewMux()
	var handle, tool string
	mux.Post("/tools/{handle}/{tool}", func(_ http.ResponseWriter, r *http.Request) {
		handle, tool = segment(r, "handle"), segment(r, "tool")
	})
	mux.Post("/tools/{handle}", func(_ http.ResponseWriter, r *http.Request) {
		handle, tool = segment(r, "handle"), r.URL.Query().Get("tool")
	})
	f.Fuzz(func(t *testing.T, h, n string) {
		if h == "" || h == "." || h == ".." {
			return // no handle is called so
		}
		handle, tool = "", ""
		base, err := url.Parse("http://localhost/")
		if err != nil {
			t.Fatal(err)
		}
		u, err := base.Parse(toolRef(h, n))
		if err != nil {
			t.Fatalf("the reference to %q %q: %v", h, n, err)
		}
		// As a server reads it off the connection.
		line := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\n\r\n", u.RequestURI())
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line)))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if handle != h || tool != n {
			t.Errorf("%s is %q %q, want %q %q", u.RequestURI(), handle, tool, h, n)
		}
	})
}
