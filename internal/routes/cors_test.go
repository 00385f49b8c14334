package routes

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

const (
	friend   = "https://app.example.com"
	stranger = "https://evil.example"
)

// corsNames returns the names of the answer's headers that belong to CORS.
func corsNames(r response) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range r.header {
			if strings.HasPrefix(name, "Access-Control-") && !yield(name) {
				return
			}
		}
	})
}

// varies reports whether the answer says that it depends on this request header.
func varies(r response, name string) bool {
	for _, line := range r.header.Values("Vary") {
		for v := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(v), name) {
				return true
			}
		}
	}
	return false
}

func TestCORSAnswers(t *testing.T) {
	f := newFixture()
	f.opts.Origins, f.opts.BasePath = []string{"http://localhost:3000", friend}, "/base"
	refused := &bridge.Error{Kind: Unauthenticated, Op: "test", Msg: "No key."}
	f.opts.Caller = func(r *http.Request) (bridge.Caller, error) {
		if r.Header.Get("Authorization") == "" {
			return bridge.Caller{}, refused
		}
		return bridge.Caller{Scopes: bridge.ScopeCall}, nil
	}
	c := f.serve(t)
	const key = "Authorization: Bearer k"
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"a call", "POST", "/base/tools/demo/echo", "{}", []string{key}, 200},
		{"a document", "GET", "/base/openapi.json", "", []string{key, "Accept-Encoding: gzip"}, 200},
		{"a page", "GET", "/base/docs", "", nil, 200},
		{"an empty answer", "POST", "/base/tools/demo/echo?dry_run=1", "{}", []string{key}, 204},
		{"not modified", "GET", "/base/docs", "", []string{"If-None-Match: *"}, 304},
		{"no key", "POST", "/base/tools/demo/echo", "{}", nil, 401},
		{"a wrong host", "GET", "/base/tools", "", []string{key, "Host: evil.example"}, 403},
		{"no such tool", "POST", "/base/tools/demo/nope", "{}", []string{key}, 404},
		{"no such path", "GET", "/base/nope", "", nil, 404},
		{"outside of the base path", "GET", "/elsewhere", "", nil, 404},
		{"a wrong method", "PUT", "/base/tools", "", nil, 405},
		{"a wrong type", "POST", "/base/tools/demo/echo", "{}", []string{key, "Content-Type: text/plain"}, 415},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := c.do(tt.method, tt.path, tt.body, append(tt.headers, "Origin: "+friend, "Sec-Fetch-Site: cross-site")...)
			if r.status != tt.status || r.header.Get("Access-Control-Allow-Origin") != friend || !varies(r, "Origin") {
				t.Errorf("answer = %d %v, want %d that allows %s and varies by Origin", r.status, r.header, tt.status, friend)
			}
			for _, name := range []string{"Artifact-Ref", "Request-Id", "Retry-After", "WWW-Authenticate", "Mcp-Session-Id", "Content-Range"} {
				if !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), name) {
					t.Errorf("a page cannot read %s: %q", name, r.header.Get("Access-Control-Expose-Headers"))
				}
			}
			for _, origin := range []string{stranger, "null", "https://app.example.com.evil.example", "http://app.example.com", "https://app.example.com:8443"} {
				r := c.do(tt.method, tt.path, tt.body, append(tt.headers, "Origin: "+origin, "Sec-Fetch-Site: cross-site")...)
				if got := r.header.Get("Access-Control-Allow-Origin"); got != "" || !varies(r, "Origin") {
					t.Errorf("%s is allowed by %q, Vary %q", origin, got, r.header.Values("Vary"))
				}
			}
			if r := c.do(tt.method, tt.path, tt.body, tt.headers...); r.status != tt.status || r.header.Get("Access-Control-Allow-Origin") != "" || !varies(r, "Origin") {
				t.Errorf("without an origin: %d %v", r.status, r.header)
			}
		})
	}
}

func TestCORSExposesWhatIsAnswered(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"x"}],"_meta":{"a":1}}`)
	f.opts.Origins = []string{friend}
	f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	c := f.serve(t)
	exposed := map[string]bool{}
	for name := range strings.SplitSeq(corsExposed, ", ") {
		exposed[http.CanonicalHeaderKey(name)] = true
	}
	// What the Fetch standard lets every page read, and what is not for pages.
	for _, name := range []string{"Cache-Control", "Content-Language", "Content-Length", "Content-Type", "Expires", "Last-Modified", "Pragma"} {
		exposed[name] = true
	}
	for _, name := range []string{"Vary", "Date", "X-Content-Type-Options", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Accept-Ranges", "Content-Security-Policy"} {
		exposed[name] = true
	}
	call := c.do("POST", "/tools/demo/echo", "{}", "Origin: "+friend, "Prefer: wait=5")
	if call.status != 200 || call.header.Get("Artifact-Ref") == "" || call.header.Get("Link") == "" {
		t.Fatalf("call = %d %v", call.status, call.header)
	}
	read := c.do("GET", "/artifacts/"+call.header.Get("Artifact-Ref"), "", "Origin: "+friend)
	if read.status != 200 {
		t.Fatalf("read = %d %s", read.status, read.body)
	}
	for _, r := range []response{call, read, c.do("GET", "/artifacts", "", "Origin: "+friend)} {
		for name := range r.header {
			if !exposed[name] {
				t.Errorf("a page cannot read %s", name)
			}
		}
	}
}

func TestCORSPreflight(t *testing.T) {
	f := newFixture()
	f.opts.Origins, f.opts.BasePath = []string{friend}, "/base"
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		t.Error("the question ahead of a request was taken for a request")
		return bridge.Caller{Scopes: bridge.ScopeCall}, nil
	}
	c := f.serve(t)
	ask := func(origin, path, headers string, more ...string) response {
		return c.do("OPTIONS", path, "", append(more, "Origin: "+origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: "+headers)...)
	}
	const all = "authorization,x-api-key,content-type,accept,prefer,if-match,if-none-match,idempotency-key,last-event-id,mcp-session-id,mcp-protocol-version,range,request-id,traceparent"
	// Of the host nothing can be known that the request itself will not be refused for.
	for _, path := range []string{"/base/tools/demo/echo", "/base/mcp", "/base/nope", "/outside", "/base/tools/demo/echo"} {
		r := ask(friend, path, all)
		if r.status != 204 || r.body != "" || r.header.Get("Access-Control-Allow-Origin") != friend || r.header.Get("Access-Control-Max-Age") != "7200" {
			t.Fatalf("preflight of %s = %d %v", path, r.status, r.header)
		}
		if got := strings.ReplaceAll(r.header.Get("Access-Control-Allow-Headers"), " ", ""); got != all {
			t.Errorf("may be sent: %s, want %s", got, all)
		}
		for _, m := range []string{"GET", "POST", "PUT", "DELETE"} {
			if !strings.Contains(r.header.Get("Access-Control-Allow-Methods"), m) {
				t.Errorf("methods = %q, want %s among them", r.header.Get("Access-Control-Allow-Methods"), m)
			}
		}
		if !varies(r, "Origin") || !varies(r, "Access-Control-Request-Headers") {
			t.Errorf("Vary = %q", r.header.Values("Vary"))
		}
		if r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("cookies are asked for")
		}
	}
	for _, tt := range []struct{ asked, want string }{
		{"", ""},
		{"Authorization", "authorization"},
		{"cookie, x-api-key", "x-api-key"},
		{"mcp-\tx, mcp-a(b, mcp-ok", "mcp-ok"},
		{"x-forwarded-for,host", ""},
		{strings.Repeat("prefer,", 3), "prefer, prefer, prefer"},
	} {
		if got := ask(friend, "/base/tools", tt.asked).header.Get("Access-Control-Allow-Headers"); got != tt.want {
			t.Errorf("of %q may be sent %q, want %q", tt.asked, got, tt.want)
		}
	}
	for _, origin := range []string{stranger, "null", ""} {
		if r := ask(origin, "/base/tools/demo/echo", "authorization"); r.status != 405 || corsNames(r) != nil {
			t.Errorf("the preflight of %q = %d %v", origin, r.status, r.header)
		}
	}
	// Without the method that is asked for it is no preflight.
	if r := c.do("OPTIONS", "/base/tools", "", "Origin: "+friend); r.status != 405 || r.header.Get("Access-Control-Allow-Origin") != friend {
		t.Errorf("OPTIONS = %d %v", r.status, r.header)
	}
}

// Pages that are allowed may call; all others stay refused, with and without a body.
func TestCORSAndOrigin(t *testing.T) {
	for _, tt := range []struct {
		name           string
		origins        []string
		allowed, wrong []string
	}{
		{"none", nil, nil, []string{friend, stranger, "null"}},
		{"named", []string{friend, "http://localhost:3000"}, []string{friend, "http://localhost:3000"}, []string{stranger, "null", "http://localhost:3001", "http://localhost", friend + "/", "HTTPS://APP.EXAMPLE.COM"}},
		{"every", []string{"*"}, []string{friend, stranger, "null"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			f.opts.Origins = tt.origins
			calls := f.countCalls()
			c := f.serve(t)
			for _, origin := range tt.allowed {
				for _, body := range []string{"", "{}"} {
					c.do("POST", "/tools/demo/echo", body, "Origin: "+origin, "Sec-Fetch-Site: cross-site").wantOK(t, `{"content":[]}`)
				}
			}
			if n, want := int(calls.Load()), 2*len(tt.allowed); n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
			before := calls.Load()
			for _, origin := range tt.wrong {
				for _, body := range []string{"", "{}"} {
					c.do("POST", "/tools/demo/echo", body, "Origin: "+origin, "Sec-Fetch-Site: cross-site").wantProblem(t, 403, bridge.Forbidden)
				}
			}
			// Browsers name the origin of every POST; what comes without one is not CORS.
			c.do("POST", "/tools/demo/echo", "", "Sec-Fetch-Site: cross-site").wantProblem(t, 403, bridge.Forbidden)
			if calls.Load() != before {
				t.Error("a page that is not allowed has called")
			}
		})
	}
}

func TestCORSForEverybody(t *testing.T) {
	f := newFixture()
	f.opts.Origins = []string{"*"}
	c := f.serve(t)
	for _, headers := range [][]string{nil, {"Origin: " + stranger}, {"Origin: null"}} {
		r := c.do("GET", "/tools", "", headers...)
		if got := r.header.Get("Access-Control-Allow-Origin"); r.status != 200 || got != "*" || varies(r, "Origin") {
			t.Errorf("with %q: %d, allowed %q, Vary %q", headers, r.status, got, r.header.Values("Vary"))
		}
	}
	r := c.do("OPTIONS", "/tools/demo/echo", "", "Origin: "+stranger, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
	if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight = %d %v", r.status, r.header)
	}
}

func TestNoCORS(t *testing.T) {
	c := newFixture().serve(t)
	for _, method := range []string{"GET", "OPTIONS"} {
		r := c.do(method, "/tools", "", "Origin: "+friend, "Access-Control-Request-Method: POST")
		if names := corsNames(r); names != nil || varies(r, "Origin") {
			t.Errorf("%s: %q, Vary %q", method, names, r.header.Values("Vary"))
		}
	}
}
