package routes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

// TestKinds has every kind of error that a call can end with.
func TestKinds(t *testing.T) {
	tests := []struct {
		kind   bridge.Kind
		status int
		level  string
	}{
		{bridge.Malformed, 400, "INFO"},
		{Unauthenticated, 401, "INFO"},
		{bridge.Forbidden, 403, "INFO"},
		{bridge.NotFound, 404, "INFO"},
		{MethodNotAllowed, 405, "INFO"},
		{NotAcceptable, 406, "INFO"},
		{bridge.JobConflict, 409, "INFO"},
		{bridge.IdempotencyConflict, 409, "INFO"},
		{SchemaChanged, 412, "INFO"},
		{PreconditionFailed, 412, "INFO"},
		{TooLarge, 413, "INFO"},
		{UnsupportedMediaType, 415, "INFO"},
		{RangeNotSatisfiable, 416, "INFO"},
		{bridge.InvalidArguments, 422, "INFO"},
		{bridge.ToolError, 422, "INFO"},
		{bridge.RateLimited, 429, "INFO"},
		{bridge.Internal, 500, "ERROR"},
		{bridge.UpstreamError, 502, "WARN"},
		{bridge.UpstreamAuth, 502, "WARN"},
		{bridge.OutcomeUnknown, 502, "WARN"},
		{bridge.ResultTooLarge, 502, "WARN"},
		{bridge.InvalidResult, 502, "WARN"},
		{bridge.Overloaded, 503, "WARN"},
		{bridge.Unavailable, 503, "WARN"},
		{bridge.NotReady, 503, "WARN"},
		{bridge.StoreUnavailable, 503, "WARN"},
		{bridge.DeadlineExceeded, 504, "WARN"},
	}
	if len(tests) != len(meanings) {
		t.Errorf("%d kinds are tested, and %d have a meaning", len(tests), len(meanings))
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			f := newFixture()
			f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
				return nil, &bridge.Error{Kind: tt.kind, Op: "test.call", Msg: "This is what happened.", Err: errors.New("the cause")}
			}
			c := f.serve(t)
			p := c.do("POST", "/tools/demo/echo", `{"secret":"hunter2"}`).wantProblem(t, tt.status, tt.kind)
			if p["detail"] != "This is what happened." {
				t.Errorf("detail = %q", p["detail"])
			}

			// It is explained where its type leads, and logged once.
			explained := c.do("GET", p["type"].(string), "")
			if explained.status != 200 || !strings.Contains(explained.body, `"code":"`+string(tt.kind)+`"`) {
				t.Errorf("GET %s = %d %s", p["type"], explained.status, explained.body)
			}
			lines := f.logLines(t)
			if len(lines) != 1 {
				t.Fatalf("%d lines were logged, want 1: %s", len(lines), f.log.String())
			}
			l := lines[0]
			for name, want := range map[string]any{
				"msg": "call", "level": tt.level, "code": string(tt.kind), "status": float64(tt.status),
				"request_id": p["request_id"], "handle": "demo", "tool": "echo", "bytes_in": 20.0,
			} {
				if l[name] != want {
					t.Errorf("logged %s = %v, want %v", name, l[name], want)
				}
			}
			if strings.Contains(f.log.String(), "hunter2") {
				t.Error("an argument was logged")
			}
		})
	}
}

func TestEveryKindOfTheDomainHasAMeaning(t *testing.T) {
	for _, k := range []bridge.Kind{
		bridge.Internal, bridge.Malformed, bridge.Forbidden, bridge.NotFound, bridge.InvalidArguments, bridge.ToolError,
		bridge.RateLimited, bridge.Overloaded, bridge.Unavailable, bridge.NotReady, bridge.StoreUnavailable, bridge.UpstreamError,
		bridge.UpstreamAuth, bridge.OutcomeUnknown, bridge.ResultTooLarge, bridge.InvalidResult, bridge.DeadlineExceeded,
		bridge.JobConflict, bridge.IdempotencyConflict,
	} {
		m, ok := meanings[k]
		if !ok || m.status < 400 || m.title == "" || m.what == "" || m.do == "" {
			t.Errorf("the meaning of %s is %+v", k, m)
		}
	}
	if _, ok := meanings[bridge.Canceled]; ok {
		t.Error("nobody can see that a call was canceled")
	}
}

func TestErrorsOfNoKind(t *testing.T) {
	for name, err := range map[string]error{
		"plain":    errors.New("password is hunter2"),
		"canceled": context.Canceled, // by somebody else: the caller is still there
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return nil, err }
			r := f.serve(t).do("POST", "/tools/demo/echo", "")
			r.wantProblem(t, 500, bridge.Internal)
			if strings.Contains(r.body, "hunter2") || strings.Contains(r.body, "cancel") {
				t.Errorf("the caller sees the cause: %s", r.body)
			}
			if !strings.Contains(f.log.String(), err.Error()) {
				t.Errorf("the cause is not in the log: %s", f.log.String())
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", time.Nanosecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", 2 * time.Minute: "120",
	} {
		f := newFixture()
		f.fails["gate"] = &bridge.Error{Kind: bridge.Overloaded, RetryAfter: d, Members: map[string]any{"short": []string{"mcp:stdio"}}}
		r := f.serve(t).do("POST", "/tools/demo/echo", "")
		p := r.wantProblem(t, 503, bridge.Overloaded)
		if got := r.header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After for %v = %q, want %q", d, got, want)
		}
		if fmt.Sprint(p["short"]) != "[mcp:stdio]" {
			t.Errorf("short = %v", p["short"])
		}
	}
}

func TestMembers(t *testing.T) {
	f := newFixture()
	var long []int
	for i := range 30 {
		long = append(long, i)
	}
	f.fails["gate"] = &bridge.Error{
		Kind: bridge.Overloaded, Msg: strings.Repeat("ü", detailText),
		Members: map[string]any{
			"list": long, "counted": long, "counted_count": 99, "text": "<a & b>", "number": 9007199254740993,
			"status": 200, "type": "about:blank", "request_id": "mine",
		},
	}
	r := f.serve(t).do("POST", "/tools/demo/echo", "")
	p := r.wantProblem(t, 503, bridge.Overloaded)
	if got := len(p["list"].([]any)); got != 20 || p["list_count"] != 30.0 {
		t.Errorf("list shows %d of %v", got, p["list_count"])
	}
	if p["counted_count"] != 99.0 {
		t.Errorf("counted_count = %v, want what the error said", p["counted_count"])
	}
	if !strings.Contains(r.body, `"number":9007199254740993`) || !strings.Contains(r.body, `"text":"<a & b>"`) {
		t.Errorf("body = %s", r.body)
	}
	if d := p["detail"].(string); len(d) > detailText+len("…") || strings.Contains(d, "\ufffd") {
		t.Errorf("detail has %d bytes", len(d))
	}
}

func TestMemberThatIsNotJSON(t *testing.T) {
	f := newFixture()
	f.fails["gate"] = &bridge.Error{Kind: bridge.Overloaded, Members: map[string]any{"x": make(chan int)}}
	f.serve(t).do("POST", "/tools/demo/echo", "").wantProblem(t, 503, bridge.Overloaded)
	if !strings.Contains(f.log.String(), "not JSON") {
		t.Errorf("nothing was logged: %s", f.log.String())
	}
}

func TestToolError(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"disk full"}],"isError":true}`)
	f.keep = &bridge.Artifact{Ref: "mcp~abc", Type: "mcp"}
	r := f.serve(t).do("POST", "/tools/demo/echo", "")
	p := r.wantProblem(t, 422, bridge.ToolError)
	if !strings.Contains(p["detail"].(string), "disk full") || fmt.Sprint(p["content"]) != "[map[text:disk full type:text]]" {
		t.Errorf("body = %s", r.body)
	}
	if p["artifact_ref"] != nil || p["artifact"] != nil {
		t.Errorf("body refers to an artifact that nobody serves: %s", r.body)
	}
	if strings.Contains(f.log.String(), "disk full") {
		t.Errorf("the result was logged: %s", f.log.String())
	}

	f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	p = f.serve(t).do("POST", "/tools/demo/echo", "").wantProblem(t, 422, bridge.ToolError)
	if p["artifact_ref"] != "mcp~abc" || p["artifact"] != "../../artifacts/mcp~abc" {
		t.Errorf("artifact = %v, artifact_ref = %v", p["artifact"], p["artifact_ref"])
	}
}

func TestInvalidArguments(t *testing.T) {
	s := newToolServer("demo", "echo")
	s.Tools = append(s.Tools, newTool("demo", "set", `{"type":"object","properties":{"mode":{"enum":["fast","slow"]}},"required":["mode"]}`))
	f := newFixture(s)
	r := f.serve(t).do("POST", "/tools/demo/set", `{"mode":"hunter2"}`)
	p := r.wantProblem(t, 422, bridge.InvalidArguments)
	errs, _ := p["errors"].([]any)
	if len(errs) != 1 || errs[0].(map[string]any)["pointer"] != "/mode" {
		t.Errorf("errors = %v", p["errors"])
	}
	if strings.Contains(f.log.String(), "hunter2") {
		t.Errorf("an argument was logged: %s", f.log.String())
	}
}

func TestCallerGoesAway(t *testing.T) {
	f := newFixture()
	running, ended := make(chan struct{}), make(chan struct{})
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		close(running)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	h := f.handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-running
	// Only the half that sends: what is answered all the same could still be read.
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
		t.Errorf("the caller that went away got %q, %v", b, err)
	}
	conn.Close()
	lines := f.logLines(t)
	if len(lines) != 1 || lines[0]["status"] != 499.0 || lines[0]["code"] != "canceled" {
		t.Errorf("log = %v", lines)
	}
}

func TestCallerGoesAwayWithinTheBody(t *testing.T) {
	f := newFixture()
	h := f.handler()
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-ended
	lines := f.logLines(t)
	if len(lines) != 1 || lines[0]["status"] != 499.0 && lines[0]["status"] != 400.0 {
		t.Errorf("log = %v", lines)
	}
}

func TestPanic(t *testing.T) {
	f := newFixture()
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { panic("hunter2") }
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", "")
	r.wantProblem(t, 500, bridge.Internal)
	if strings.Contains(r.body, "hunter2") || strings.Contains(r.body, "goroutine") {
		t.Errorf("the caller sees the panic: %s", r.body)
	}
	if log := f.log.String(); !strings.Contains(log, "hunter2") || !strings.Contains(log, "problem_test.go") {
		t.Errorf("the log lacks the panic or its stack: %s", log)
	}
	if lines := f.logLines(t); len(lines) != 1 || lines[0]["level"] != "ERROR" {
		t.Errorf("log = %v", lines)
	}
	c.do("GET", "/healthz", "").wantOK(t, `{"status":"ok"}`)
}

func TestPanicWithinTheAnswer(t *testing.T) {
	f := newFixture()
	s := f.handler().(*server)
	s.mux.Get("/boom", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("half"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic("then nothing")
	})
	srv := httptest.NewServer(s)
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/boom")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("half an answer looks whole: %q", b)
	}
	if !strings.Contains(f.log.String(), "then nothing") {
		t.Errorf("log = %s", f.log.String())
	}
}

func TestParameterErrors(t *testing.T) {
	f := newFixture()
	c := f.serve(t)
	for path, want := range map[string]string{
		"/tools?limit=0":      "query.limit",
		"/tools?limit=1001":   "query.limit",
		"/tools?limit=x":      "query.limit",
		"/tools/demo?limit=0": "query.limit",
		"/tools?cursor=!":     "cursor",
		"/tools?cursor=e30x":  "cursor",
		"/tools?handles=%zz":  "query",
	} {
		p := c.do("GET", path, "").wantProblem(t, 400, bridge.Malformed)
		if !strings.Contains(p["detail"].(string), want) {
			t.Errorf("%s: detail = %q, does not name %s", path, p["detail"], want)
		}
	}
	for _, l := range f.logLines(t) {
		if l["msg"] != "request failed" || l["code"] != "malformed-request" || l["status"] != 400.0 {
			t.Errorf("log = %v", l)
		}
	}
	if n := len(f.logLines(t)); n != 7 {
		t.Errorf("%d lines were logged, want 7", n)
	}
}

func TestMethods(t *testing.T) {
	c := newFixture().serve(t)
	tests := []struct{ method, path, allow string }{
		{"PUT", "/tools/demo/echo", "GET, HEAD, POST"},
		{"DELETE", "/tools/demo", "GET, HEAD, POST"},
		{"OPTIONS", "/tools/demo/echo", "GET, HEAD, POST"},
		{"PURGE", "/tools/demo/echo", "GET, HEAD, POST"},
		{"TRACE", "/tools/demo/echo", "GET, HEAD, POST"},
		{"PATCH", "/tools/demo/a%2Fb", "GET, HEAD, POST"},
		{"POST", "/tools", "GET, HEAD"},
		{"POST", "/openapi.json", "GET, HEAD"},
		{"POST", "/docs", "GET, HEAD"},
		{"POST", "/docs/assets/docs.js", "GET, HEAD"},
		{"POST", "/", "GET, HEAD"},
		{"DELETE", "/healthz", "GET, HEAD"},
		{"POST", "/problems/internal", "GET, HEAD"},
		{"PUT", "/tools/demo/echo/", "GET, HEAD, POST"},
	}
	for _, tt := range tests {
		r := c.do(tt.method, tt.path, "")
		r.wantProblem(t, 405, MethodNotAllowed)
		if got := r.header.Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow = %q, want %q", tt.method, tt.path, got, tt.allow)
		}
	}
	for _, method := range []string{"GET", "POST", "PUT", "PURGE", "OPTIONS"} {
		c.do(method, "/nothing/here", "").wantProblem(t, 404, bridge.NotFound)
	}
	for _, path := range []string{"/docs/assets/nope.js", "/problems/nope", "/tools/nope", "/tools/demo/nope", "/tools/nope/docs", "/tools/nope/openapi.json", "/tools/nope/openapi.yaml", "/schemas/Problem.json", "/openapi", "/openapi.json/", "/tools/demo/openapi.yaml/x"} {
		c.do("GET", path, "").wantProblem(t, 404, bridge.NotFound)
	}
}

func TestHead(t *testing.T) {
	c := newFixture().serve(t)
	for _, path := range []string{"/", "/tools", "/tools/demo", "/tools/demo/echo", "/openapi.json", "/openapi.yaml", "/tools/demo/openapi.json", "/docs", "/tools/demo/docs", "/docs/assets/docs.js", "/healthz", "/readyz", "/problems/internal"} {
		get, head := c.do("GET", path, "", "Accept-Encoding: identity"), c.do("HEAD", path, "", "Accept-Encoding: identity")
		if head.status != 200 || head.body != "" {
			t.Errorf("HEAD %s = %d %q", path, head.status, head.body)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag"} {
			if g, h := get.header.Get(name), head.header.Get(name); g != h {
				t.Errorf("HEAD %s: %s = %q, and %q for GET", path, name, h, g)
			}
		}
	}
	if r := c.do("HEAD", "/nope", ""); r.status != 404 || r.body != "" || r.header.Get("Content-Type") != problemType {
		t.Errorf("HEAD /nope = %+v", r)
	}
	// On the connection itself: not a byte of a body that could be taken for the next answer.
	r := c.raw("HEAD /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if r.status != 200 || r.body != "" {
		t.Errorf("HEAD /tools on the connection = %+v", r)
	}
}

func TestExplanations(t *testing.T) {
	c := newFixture().serve(t)
	browser := "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for kind := range meanings {
		r := c.do("GET", "/problems/"+string(kind), "", browser)
		if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(r.body, string(kind)) {
			t.Errorf("/problems/%s for a browser = %d %s", kind, r.status, r.body)
		}
	}
	for _, accept := range []string{"*/*", "application/json", "application/json, text/html", "text/html;q=0.5, application/json"} {
		r := c.do("GET", "/problems/internal", "", "Accept: "+accept)
		if r.header.Get("Content-Type") != "application/json" || r.header.Get("Vary") != "Accept" {
			t.Errorf("Accept %s: %v", accept, r.header)
		}
	}
}

func TestRequestID(t *testing.T) {
	f := newFixture()
	c := f.serve(t)
	for _, id := range []string{"abc-123_x.y~z", "0123456789012345678901234567890123456789012345678901234567890123"} {
		if got := c.do("GET", "/healthz", "", "Request-Id: "+id).header.Get("Request-Id"); got != id {
			t.Errorf("Request-Id = %q, want the request's own %q", got, id)
		}
		if got := c.do("GET", "/healthz", "", "X-Request-Id: "+id).header.Get("Request-Id"); got != id {
			t.Errorf("Request-Id = %q, want the request's own %q", got, id)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", "a\tb", `a"b`, "ü", strings.Repeat("x", 65)} {
		got := c.do("GET", "/healthz", "", "Request-Id: "+id).header.Get("Request-Id")
		if got == id || len(got) < 16 || !safeID(got) || seen[got] {
			t.Errorf("Request-Id for %q = %q, want a new one", id, got)
		}
		seen[got] = true
	}
	r := c.do("POST", "/tools/demo/echo", "", "Request-Id: mine")
	r.wantOK(t, `{"content":[]}`)
	if l := f.logLines(t); len(l) != 1 || l[0]["request_id"] != "mine" {
		t.Errorf("log = %v", l)
	}
}

func TestLongNamesAreCutInTheLog(t *testing.T) {
	f := newFixture()
	long := strings.Repeat("n", 5000)
	f.serve(t).do("POST", "/tools/demo/"+long, "").wantProblem(t, 404, bridge.NotFound)
	if n := len(f.log.String()); n > 2000 {
		t.Errorf("the log line has %d bytes", n)
	}
	f2 := newFixture()
	f2.serve(t).do("POST", "/tools/demo/a%0Ab%22%7D%1B[31m", "").wantProblem(t, 404, bridge.NotFound)
	if got := f2.log.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("a name broke the log: %q", got)
	}
}

// TestCanceledIsAborted: the connection of an answer that nobody gets is not used again.
func TestCanceledIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/tools/demo/echo", nil)
		aborted := make(chan any, 1)
		go func() {
			defer func() { aborted <- recover() }()
			f.handler().ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		cancel()
		if got, _ := (<-aborted).(error); !errors.Is(got, http.ErrAbortHandler) {
			t.Errorf("the handler ended with %v, want ErrAbortHandler", got)
		}
	})
}
