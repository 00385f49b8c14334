package routes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// A fakeAdmin notes what it is asked.
type fakeAdmin struct {
	servers []AdminServer
	asked   []string
	created bool
	err     error
}

func (f *fakeAdmin) Servers() []AdminServer { return f.servers }

func (f *fakeAdmin) Put(_ context.Context, by bridge.Caller, key AdminKey, entry []byte, p Precondition) (AdminServer, bool, error) {
	f.asked = append(f.asked, fmt.Sprintf("put %q %s %q %t by %s", key, entry, p.Versions, p.New, by.ID))
	return AdminServer{Handle: key.Handle, User: key.User, Tenant: key.Tenant, Source: "redis", Version: "v2", Entry: json.RawMessage(`{"url":"http://x"}`)}, f.created, f.err
}

func (f *fakeAdmin) Delete(_ context.Context, by bridge.Caller, key AdminKey, p Precondition) error {
	f.asked = append(f.asked, fmt.Sprintf("delete %q %q by %s", key, p.Versions, by.ID))
	return f.err
}

func (f *fakeAdmin) Reset(by bridge.Caller, handle string) error {
	f.asked = append(f.asked, fmt.Sprintf("reset %q by %s", handle, by.ID))
	return f.err
}

func serveAdmin(t *testing.T, a *fakeAdmin) *client {
	t.Helper()
	f := newFixture()
	f.opts.Caller = callers
	f.opts.Admin = a
	return f.serve(t)
}

// Names arrive as they were meant, and preconditions as they were sent.
func TestAdminRequests(t *testing.T) {
	for _, tt := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"PUT", "/admin/servers/a", `{"url": "x"}`, nil, 200, `put {"a" "" ""} {"url": "x"} [] false by key`},
		{"PUT", "/admin/servers/a%2Fb%20c/", `{}`, []string{`If-Match: "v1", "v2"`}, 200, `put {"a/b c" "" ""} {} ["v1" "v2"] false by key`},
		{"PUT", "/admin/servers/a", `{}`, []string{`If-Match: *`}, 200, `put {"a" "" ""} {} ["*"] false by key`},
		{"PUT", "/admin/servers/a", `{}`, []string{`If-Match: W/"v1", nonsense, "`}, 200, `put {"a" "" ""} {} [] false by key`},
		{"PUT", "/admin/servers/a", `{}`, []string{`If-None-Match: *`}, 200, `put {"a" "" ""} {} [] true by key`},
		{"PUT", "/admin/users/u%2F1_2/servers/a?tenant=t%20x", `{}`, nil, 200, `put {"a" "u/1_2" "t x"} {} [] false by key`},
		{"PUT", "/admin/users/_service_/servers/%C3%A4", `{}`, nil, 200, `put {"ä" "_service_" ""} {} [] false by key`},
		{"DELETE", "/admin/servers/a", "", []string{`If-Match: "v1"`}, 204, `delete {"a" "" ""} ["v1"] by key`},
		{"DELETE", "/admin/users/u/servers/a?tenant=t", "", nil, 204, `delete {"a" "u" "t"} [] by key`},
		{"POST", "/admin/servers/reset/reset", "", nil, 204, `reset "reset" by key`},
	} {
		a := &fakeAdmin{}
		c := serveAdmin(t, a)
		r := c.do(tt.method, tt.path, tt.body, append(tt.header, "Scopes: admin")...)
		if r.status != tt.status || len(a.asked) != 1 || a.asked[0] != tt.want {
			t.Errorf("%s %s %q: %d %s; asked %q, want %q", tt.method, tt.path, tt.header, r.status, r.body, a.asked, tt.want)
		}
	}
}

func TestAdminAnswers(t *testing.T) {
	a := &fakeAdmin{created: true, servers: []AdminServer{
		{Handle: "a", Source: "file", Fingerprint: "f", Entry: json.RawMessage(`{"url":"<&>"}`)},
		{Handle: "a", Source: "redis", Version: "v1", Shadowed: true},
		{Handle: "a", User: "u", Source: "redis", Version: "v2"},
		{Handle: "b", Source: "redis", Version: "v3"},
	}}
	c := serveAdmin(t, a)
	get := func(path string, header ...string) response {
		t.Helper()
		return c.do("GET", path, "", append(header, "Scopes: admin")...)
	}
	const file = `{"handle":"a","source":"file","fingerprint":"f","entry":{"url":"<&>"}}`
	get("/admin/servers/a").wantOK(t, file)
	if r := get("/admin/servers/a"); r.header.Get("ETag") != "" {
		t.Errorf("a server of the file has the entity tag %s", r.header.Get("ETag"))
	}
	get("/admin/users/u/servers/a").wantOK(t, `{"handle":"a","user":"u","source":"redis","version":"v2"}`)
	if r := get("/admin/servers/b", `If-None-Match: "v3"`); r.status != 304 || r.header.Get("ETag") != `"v3"` {
		t.Errorf("known: %d %v", r.status, r.header)
	}
	get("/admin/users/u/servers/a?tenant=t").wantProblem(t, 404, bridge.NotFound)
	get("/admin/users/u/servers/b").wantProblem(t, 404, bridge.NotFound)
	list := get("/admin/servers")
	if list.status != 200 || !strings.HasPrefix(list.body, `{"servers":[`+file) {
		t.Errorf("list: %d %s", list.status, list.body)
	}
	if r := c.do("HEAD", "/admin/servers", "", "Scopes: admin"); r.status != 200 || r.body != "" || r.header.Get("ETag") != list.header.Get("ETag") {
		t.Errorf("HEAD: %d %q %v", r.status, r.body, r.header)
	}
	if r := c.do("PUT", "/admin/servers/n", `{}`, "Scopes: admin"); r.status != 201 || r.header.Get("ETag") != `"v2"` || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("PUT: %d %v", r.status, r.header)
	}
}

// Only the scope admin will do, and what cannot be read never reaches the administration.
func TestAdminRefuses(t *testing.T) {
	a := &fakeAdmin{}
	c := serveAdmin(t, a)
	for _, request := range [][2]string{
		{"GET", "/admin/servers"},
		{"GET", "/admin/servers/a"},
		{"PUT", "/admin/servers/a"},
		{"DELETE", "/admin/servers/a"},
		{"POST", "/admin/servers/a/reset"},
		{"GET", "/admin/users/u/servers/a"},
		{"PUT", "/admin/users/u/servers/a"},
		{"DELETE", "/admin/users/u/servers/a"},
	} {
		body := ""
		if request[0] == "PUT" {
			body = "{}"
		}
		c.do(request[0], request[1], body, "Scopes: call,metrics").wantProblem(t, 403, bridge.Forbidden)
		c.do(request[0], request[1], body).wantProblem(t, 401, Unauthenticated)
		c.do(request[0], request[1], body, "Scopes: admin", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site")
	}
	a.asked = nil
	for _, tt := range []struct {
		method, path, body string
		header             string
		status             int
		kind               bridge.Kind
	}{
		{"PUT", "/admin/servers/a", "", "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/servers/a", "[]", "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/servers/a", `{"a":1,"a":2}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/servers/a", `{} {}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/servers/a", `{}`, "Content-Type: text/plain", 415, UnsupportedMediaType},
		{"PUT", "/admin/servers/a", `{"a":"` + strings.Repeat("x", 5<<20) + `"}`, "Scopes: admin", 413, TooLarge},
		{"PUT", "/admin/servers/a?tenant=x", `{}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/users/u/servers/a?x", `{}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/users/a%0Ab/servers/a", `{}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/users/u/servers/a?tenant=%00", `{}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/users/u/servers/a?tenant=%zz", `{}`, "Scopes: admin", 400, bridge.Malformed},
		{"PUT", "/admin/servers/a", `{}`, `If-None-Match: "x"`, 400, bridge.Malformed},
		{"DELETE", "/admin/servers/a", "", "If-None-Match: *", 400, bridge.Malformed},
		{"GET", "/admin/servers/a?x=1", "", "Scopes: admin", 400, bridge.Malformed},
		{"POST", "/admin/servers/a", "{}", "Scopes: admin", 405, MethodNotAllowed},
		{"GET", "/admin/servers/a/reset", "", "Scopes: admin", 405, MethodNotAllowed},
		{"PUT", "/admin/servers/", "{}", "Scopes: admin", 405, MethodNotAllowed},
	} {
		r := c.do(tt.method, tt.path, tt.body, tt.header, "Scopes: admin")
		r.wantProblem(t, tt.status, tt.kind)
	}
	if diff := cmp.Diff([]string(nil), a.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}

	a.err = &bridge.Error{Kind: PreconditionFailed, Msg: "Another.", Members: map[string]any{"version": "v9"}}
	if p := c.do("PUT", "/admin/servers/a", "{}", "Scopes: admin").wantProblem(t, 412, PreconditionFailed); p["version"] != "v9" {
		t.Errorf("problem = %v", p)
	}
	c.do("DELETE", "/admin/servers/a", "", "Scopes: admin").wantProblem(t, 412, PreconditionFailed)
	c.do("POST", "/admin/servers/a/reset", "", "Scopes: admin").wantProblem(t, 412, PreconditionFailed)

	none := newFixture()
	none.opts.Caller = callers
	none.serve(t).do("GET", "/admin/servers", "", "Scopes: admin").wantProblem(t, 404, bridge.NotFound)
}

// The configuration's section of /status is for those who may change it.
func TestStatusConfigIsForAdmins(t *testing.T) {
	f := newFixture()
	f.opts.Caller = callers
	f.opts.Status = func() Status {
		return Status{Config: &ConfigStatus{Sources: []string{"file"}, Errors: []string{"line 1"}}}
	}
	c := f.serve(t)
	if r := c.do("GET", "/status", "", "Scopes: admin"); !strings.Contains(r.body, `"errors":["line 1"]`) {
		t.Errorf("for an admin: %d %s", r.status, r.body)
	}
	if r := c.do("GET", "/status", "", "Scopes: call"); r.status != 200 || strings.Contains(r.body, "config") {
		t.Errorf("for another: %d %s", r.status, r.body)
	}
}
