package routes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

func TestAnswerIsExact(t *testing.T) {
	tests := []struct{ name, result, want string }{
		{"structured", `{"content":[],"structuredContent":{"z":9007199254740993,"a":1.10,"e":1e400, "z":"\u00e9\/"}}`, `{"z":9007199254740993,"a":1.10,"e":1e400, "z":"\u00e9\/"}`},
		{"list", `{"structuredContent":[1, 2]}`, `[1, 2]`},
		{"null", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, `{"content":[{"type":"text","text":"x"}]}`},
		{"content alone", `{ "content" : [ {"type":"new","x":1} ] }`, `{ "content" : [ {"type":"new","x":1} ] }`},
		{"content beside others", `{"_meta":{"a":1},"content":[{"type":"text","text":"x"}]}`, `{"content":[{"type":"text","text":"x"}]}`},
		{"nothing", `{}`, `{"content":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newFixture().returns(tt.result).serve(t).do("POST", "/tools/demo/echo", "")
			r.wantOK(t, tt.want)
			want := map[string]string{
				"Content-Type": "application/json", "Content-Length": fmt.Sprint(len(tt.want)),
				"Vary": "Accept, Prefer", "X-Content-Type-Options": "nosniff",
				"Artifact-Ref": "", "Content-Location": "", "Preference-Applied": "",
			}
			got := map[string]string{}
			for name := range want {
				got[name] = r.header.Get(name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIfMatch(t *testing.T) {
	f := newFixture()
	var calls atomic.Int32
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
		calls.Add(1)
		return newResult(`{"content":[]}`), nil
	}
	c := f.serve(t)
	tag := c.do("GET", "/tools/demo/echo", "").header.Get("ETag")
	for _, v := range []string{tag, "hash-of-echo", "*", `"other", "hash-of-echo"`, `"other",hash-of-echo`} {
		c.do("POST", "/tools/demo/echo", "{}", "If-Match: "+v).wantOK(t, `{"content":[]}`)
	}
	c.do("POST", "/tools/demo?tool=echo", "{}", "If-Match: "+tag).wantOK(t, `{"content":[]}`)
	if r := c.do("POST", "/tools/demo/echo?dry_run=1", "{}", "If-Match: "+tag); r.status != 204 {
		t.Errorf("a dry run is %d", r.status)
	}
	if n := calls.Load(); n != 6 {
		t.Errorf("the tool was called %d times", n)
	}
	for _, v := range []string{`"hash-of-add"`, "W/" + tag, ",", `"*"`, "hash-of-ech", tag + "x"} {
		r := c.do("POST", "/tools/demo/echo", "{}", "If-Match: "+v)
		r.wantProblem(t, 412, SchemaChanged)
		if !strings.Contains(r.body, `"schema_sha256":"hash-of-echo"`) {
			t.Errorf("If-Match: %s: %s", v, r.body)
		}
	}
	c.do("POST", "/tools/demo/echo?dry_run=1", "{}", `If-Match: "x"`).wantProblem(t, 412, SchemaChanged)
	c.do("POST", "/tools/demo/nope", "{}", "If-Match: *").wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/tools/demo/echo", "[]x", `If-Match: "x"`).wantProblem(t, 412, SchemaChanged)
	if n := calls.Load(); n != 6 {
		t.Errorf("the tool was called %d times", n)
	}
}

func TestArgumentsArrive(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"exact", `{"n":9007199254740993,"e":1.10,"k":"\u00e9"}`, `{"n":9007199254740993,"e":1.10,"k":"\u00e9"}`},
		{"over lines", "{\r\n\t\"a\": 1\n}", "{  \t\"a\": 1 }"},
		{"empty", "", "{}"},
		{"space", " {} ", " {} "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			f := newFixture()
			f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
				got = string(r.Args)
				return newResult(`{}`), nil
			}
			f.serve(t).do("POST", "/tools/demo/echo", tt.body).wantOK(t, `{"content":[]}`)
			if got != tt.want {
				t.Errorf("the tool got %q, want %q", got, tt.want)
			}
		})
	}
}

// countCalls makes the fixture's client count its calls.
func (f *fixture) countCalls() *atomic.Int64 {
	n, inner := new(atomic.Int64), f.client
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		n.Add(1)
		return inner(ctx, r)
	}
	return n
}

func TestBadBodies(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	tests := []struct{ name, body, detail string }{
		{"array", `[1,2]`, "byte 0"},
		{"string", `"x"`, "byte 0"},
		{"cut off", `{"a":1`, "byte 6"},
		{"no value", `{"a":}`, "byte 5"},
		{"more behind it", `{} {}`, "byte 3"},
		{"a second frame", "{}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", "byte 3"},
		{"key twice", `{"a":1,"a":2}`, "byte 7"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "byte 5"},
		{"control character", "{\"a\":\"\n\"}", "byte 6"},
		{"huge exponent", `{"a":1e999999}`, "byte"},
		{"too deep", `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, "byte"},
		{"space alone", " ", "byte"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := c.do("POST", "/tools/demo/echo", tt.body).wantProblem(t, 400, bridge.Malformed)
			if !strings.Contains(p["detail"].(string), tt.detail) {
				t.Errorf("detail = %q, does not say %q", p["detail"], tt.detail)
			}
		})
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
}

func TestContentTypes(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	good := []string{
		"application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`,
		"application/vnd.acme+json", "application/json; profile=x",
	}
	for _, ct := range good {
		c.do("POST", "/tools/demo/echo", `{}`, "Content-Type: "+ct).wantOK(t, `{"content":[]}`)
	}
	c.do("POST", "/tools/demo/echo", "").wantOK(t, `{"content":[]}`)
	if n := int(calls.Load()); n != len(good)+1 {
		t.Errorf("the tool was called %d times, want %d", n, len(good)+1)
	}
	for _, ct := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/jsonp",
		"application/json; charset=utf-16", "application/json; charset=latin1", "image/svg+json", "application/json, text/plain", "json", ";",
	} {
		c.do("POST", "/tools/demo/echo", `{}`, "Content-Type: "+ct).wantProblem(t, 415, UnsupportedMediaType)
	}
	// A form that was sent without a field is one all the same.
	c.do("POST", "/tools/demo/echo", "", "Content-Type: text/plain").wantProblem(t, 415, UnsupportedMediaType)
	for _, ce := range []string{"gzip", "br", "identity, gzip"} {
		r := c.do("POST", "/tools/demo/echo", `{}`, "Content-Encoding: "+ce)
		r.wantProblem(t, 415, UnsupportedMediaType)
		if got := r.header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding = %q, want identity", got)
		}
	}
	c.do("POST", "/tools/demo/echo", `{}`, "Content-Encoding: identity").wantOK(t, `{"content":[]}`)
	if n := int(calls.Load()); n != len(good)+2 {
		t.Errorf("the tool was called %d times, want %d", n, len(good)+2)
	}
	two := c.raw("POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
	two.wantProblem(t, 415, UnsupportedMediaType)
}

func TestBodySizes(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	body := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	chunked := func(s string) response {
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/tools/demo/echo", io.MultiReader(strings.NewReader(s)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		return c.send(req)
	}
	for _, n := range []int{10, firstBuffer, firstBuffer + 1, 4 << 20} {
		c.do("POST", "/tools/demo/echo", body(n)).wantOK(t, `{"content":[]}`)
		chunked(body(n)).wantOK(t, `{"content":[]}`)
	}
	chunked("").wantOK(t, `{"content":[]}`)
	if n := calls.Load(); n != 9 {
		t.Errorf("the tool was called %d times, want 9", n)
	}
	for _, n := range []int{4<<20 + 1, 5 << 20} {
		c.do("POST", "/tools/demo/echo", body(n)).wantProblem(t, 413, TooLarge)
		chunked(body(n)).wantProblem(t, 413, TooLarge)
	}
	if n := calls.Load(); n != 9 {
		t.Errorf("the tool was called %d times, want 9", n)
	}
	c.do("POST", "/tools/demo/echo", "").wantOK(t, `{"content":[]}`) // the server goes on

	// Whoever asks first is told before sending anything.
	r := c.raw("POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
	r.wantProblem(t, 413, TooLarge)
	if r.header.Get("Connection") != "close" {
		t.Errorf("Connection = %q, want close: the body is still to come", r.header.Get("Connection"))
	}
}

func TestBodyThatIsCutOff(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	f.opts.BodyTimeout = 50 * time.Millisecond
	c := f.serve(t)
	head := "POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, rest := range map[string]string{
		"silent":       "Content-Length: 10\r\n\r\n{",
		"silent chunk": "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
		"no chunk":     "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		t.Run(name, func(t *testing.T) { c.raw(head+rest).wantProblem(t, 400, bridge.Malformed) })
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
}

// TestBodyThatNobodyReads: the server must not wait for ever for what was announced.
func TestBodyThatNobodyReads(t *testing.T) {
	f := newFixture()
	f.opts.BodyTimeout = 50 * time.Millisecond
	c := f.serve(t)
	for _, head := range []string{"POST /nope", "GET /tools", "POST /tools/demo/echo?dry_run=x"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, head+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(conn); err != nil || len(b) == 0 {
			t.Errorf("%s: the server answered %q and did not close: %v", head, b, err)
		}
		conn.Close()
	}
}

// TestConnectionIsUsedAgain: after a call with a body, and after one that was refused without reading it.
func TestConnectionIsUsedAgain(t *testing.T) {
	f := newFixture()
	f.opts.BodyTimeout = 50 * time.Millisecond
	c := f.serve(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rd := bufio.NewReader(conn)
	for i := range 6 {
		path := [...]string{"/tools/demo/echo", "/nope"}[i%2]
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		if got, want := c.readAnswer(rd, false).status, [...]int{200, 404}[i%2]; got != want {
			t.Fatalf("request %d: status = %d, want %d", i, got, want)
		}
		time.Sleep(60 * time.Millisecond) // longer than the body's time, which is not the next request's
	}
}

// TestBodyTimeoutIsNotTheCalls: the deadline of the body must be gone once it is there.
func TestBodyTimeoutIsNotTheCalls(t *testing.T) {
	f := newFixture()
	f.opts.BodyTimeout = 50 * time.Millisecond
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
			return newResult(`{}`), nil
		}
	}
	c := f.serve(t)
	c.do("POST", "/tools/demo/echo", `{}`).wantOK(t, `{"content":[]}`)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rd := bufio.NewReader(conn)
	for _, body := range []string{"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Content-Length: 0\r\n\r\n"} {
		if _, err := io.WriteString(conn, "POST /tools/demo/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+body); err != nil {
			t.Fatal(err)
		}
		if got := c.readAnswer(rd, false).status; got != 200 {
			t.Errorf("%q: status %d", body, got)
		}
	}
}

func TestDryRun(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	for _, q := range []string{"dry_run=1", "dry_run=true"} {
		if r := c.do("POST", "/tools/demo/echo?"+q, `{}`); r.status != 204 || r.body != "" {
			t.Errorf("%s: %d %s", q, r.status, r.body)
		}
	}
	if r := c.do("POST", "/tools/demo?tool=echo&dry_run=1", `{}`); r.status != 204 {
		t.Errorf("by query: %d %s", r.status, r.body)
	}
	c.do("POST", "/tools/demo/echo?dry_run=1", `[]`).wantProblem(t, 400, bridge.Malformed)
	c.do("POST", "/tools/demo/nope?dry_run=1", `{}`).wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/tools/demo/echo?dry_run=2", `{}`).wantProblem(t, 400, bridge.Malformed)
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
	c.do("POST", "/tools/demo/echo?dry_run=0", `{}`).wantOK(t, `{"content":[]}`)
	f.fails["breaker"] = &bridge.Error{Kind: bridge.Unavailable, Msg: "open"}
	c.do("POST", "/tools/demo/echo?dry_run=1", `{}`).wantProblem(t, 503, bridge.Unavailable)
}

func TestWait(t *testing.T) {
	var limit time.Duration
	f := newFixture()
	f.opts.MaxTimeout = time.Minute
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		limit = 0
		if d, ok := ctx.Deadline(); ok {
			limit = time.Until(d).Round(time.Second)
		}
		return newResult(`{}`), nil
	}
	c := f.serve(t)
	tests := []struct {
		prefer, applied string
		limit           time.Duration
	}{
		{"wait=10", "wait=10", 10 * time.Second},
		{"Wait = 10", "wait=10", 10 * time.Second},
		{`wait="10"`, "wait=10", 10 * time.Second},
		{"return=minimal, wait=10; x=y, wait=20", "wait=10", 10 * time.Second},
		{"wait=60", "wait=60", time.Minute},
		{"wait=61", "wait=60", time.Minute},
		{"wait=2147483647", "wait=60", time.Minute},
		{"wait=99999999999999999999", "wait=60", time.Minute},
		{"respond-async", "", 0},
		{"", "", 0},
	}
	for _, tt := range tests {
		r := c.do("POST", "/tools/demo/echo", "", "Prefer: "+tt.prefer)
		r.wantOK(t, `{"content":[]}`)
		if got := r.header.Get("Preference-Applied"); got != tt.applied || limit != tt.limit {
			t.Errorf("Prefer %q: applied %q, limit %v; want %q, %v", tt.prefer, got, limit, tt.applied, tt.limit)
		}
	}
	for _, bad := range []string{"wait", "wait=", "wait=0", "wait=-1", "wait=1.5", "wait=1s", "wait=x", "wait=1e9"} {
		c.do("POST", "/tools/demo/echo", "", "Prefer: "+bad).wantProblem(t, 400, bridge.Malformed)
	}
}

func TestWaitIsOver(t *testing.T) {
	f := newFixture()
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := f.serve(t).do("POST", "/tools/demo/echo", "", "Prefer: wait=1")
	r.wantProblem(t, 504, bridge.DeadlineExceeded)
	if got := r.header.Get("Server-Timing"); !strings.Contains(got, "upstream;dur=1") {
		t.Errorf("Server-Timing = %q, want a second upstream", got)
	}
}

var timings = regexp.MustCompile(`^find;dur=\d+\.\d{3}, check;dur=\d+\.\d{3}, connect;dur=\d+\.\d{3}, queue;dur=\d+\.\d{3}, upstream;dur=\d+\.\d{3}$`)

func TestServerTiming(t *testing.T) {
	f := newFixture()
	c := f.serve(t)
	if got := c.do("POST", "/tools/demo/echo", `{}`).header.Get("Server-Timing"); !timings.MatchString(got) {
		t.Errorf("Server-Timing = %q", got)
	}
	// A failed call has the steps it came to.
	f.fails["connect"] = &bridge.Error{Kind: bridge.Unavailable, Msg: "down"}
	if got := c.do("POST", "/tools/demo/echo", `{}`).header.Get("Server-Timing"); !strings.Contains(got, "connect;") || strings.Contains(got, "upstream;") {
		t.Errorf("Server-Timing = %q", got)
	}
	got := serverTiming(&bridge.Timing{Find: time.Microsecond, Check: 1500 * time.Microsecond, Upstream: 1999500, Walk: 2 * time.Second, Store: time.Nanosecond})
	if want := "find;dur=0.001, check;dur=1.500, upstream;dur=2.000, walk;dur=2000.000, store;dur=0.000"; got != want {
		t.Errorf("Server-Timing = %q, want %q", got, want)
	}
}

const (
	pngBytes  = "\x89PNG\r\n\x1a\n…"
	wavBytes  = "RIFF…"
	svgScript = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
)

func block(typ, mediaType, data string) string {
	return fmt.Sprintf(`{"type":%q,"mimeType":%q,"data":%q}`, typ, mediaType, base64.StdEncoding.EncodeToString([]byte(data)))
}

func TestAccept(t *testing.T) {
	text := `{"type":"text","text":"one"},{"type":"resource","resource":{"uri":"x:y","text":"two"}}`
	png, wav, svg := block("image", "image/png", pngBytes), block("audio", "Audio/WAV; codecs=1", wavBytes), block("image", "image/svg+xml", svgScript)
	blob := `{"type":"resource","resource":{"uri":"x:y","mimeType":"image/gif","blob":"R0lG"}}`
	all := `{"content":[` + text + `,` + png + `,` + wav + `]}`
	tests := []struct {
		name, result, accept  string
		wantType, wantBody    string // wantBody "" is the JSON
		wantSandbox, download bool
	}{
		{"nothing", all, "", "application/json", "", false, false},
		{"anything", all, "*/*", "application/json", "", false, false},
		{"json", all, "application/json", "application/json", "", false, false},
		{"json by range", all, "application/*", "application/json", "", false, false},
		{"axios", all, "application/json, text/plain, */*", "application/json", "", false, false},
		{"browser", all, "text/html, application/xhtml+xml, image/avif, image/webp, */*;q=0.8", "application/json", "", false, false},
		{"text", all, "text/plain", "text/plain; charset=utf-8", "one\ntwo", true, false},
		{"text by range", all, "text/*", "text/plain; charset=utf-8", "one\ntwo", true, false},
		{"text first", all, "text/plain, application/json;q=0.5", "text/plain; charset=utf-8", "one\ntwo", true, false},
		{"json first", all, "text/plain;q=0.5, application/json", "application/json", "", false, false},
		{"text named first", all, "text/plain, application/json", "text/plain; charset=utf-8", "one\ntwo", true, false},
		{"json named first", all, "application/json, text/plain", "application/json", "", false, false},
		{"no text there", `{"content":[` + png + `]}`, "text/plain", "application/json", "", false, false},
		{"no text there, image is next", `{"content":[` + png + `]}`, "text/plain, image/png;q=0.5", "image/png", pngBytes, true, false},
		{"empty text", `{"content":[{"type":"text","text":""}],"_meta":{}}`, "text/plain", "text/plain; charset=utf-8", "", true, false},
		{"image", all, "image/png", "image/png", pngBytes, true, false},
		{"any image", all, "image/*", "image/png", pngBytes, true, false},
		{"image before anything", all, "image/png, */*", "image/png", pngBytes, true, false},
		{"image in capitals", all, "IMAGE/PNG;Q=0.9", "image/png", pngBytes, true, false},
		{"audio", all, "audio/wav", "audio/wav", wavBytes, true, false},
		{"embedded", `{"content":[` + blob + `]}`, "image/gif", "image/gif", "GIF", true, false},
		{"script in an image", `{"content":[` + svg + `]}`, "image/*", "image/svg+xml", svgScript, true, true},
		{"image of another type", all, "image/webp", "application/json", "", false, false},
		{"two images", `{"content":[` + png + `,` + png + `]}`, "image/png", "application/json", "", false, false},
		{"not base64", `{"content":[{"type":"image","mimeType":"image/png","data":"%%%"}]}`, "image/png", "application/json", "", false, false},
		{"type that is none", `{"content":[{"type":"image","mimeType":"image/png\r\nX: y","data":"QQ=="}]}`, "image/*", "application/json", "", false, false},
		{"not an image", `{"content":[` + block("image", "text/html", svgScript) + `]}`, "image/*, */*;q=0.1", "application/json", "", false, false},
		{"all but json", all, "*/*, application/json;q=0", "text/plain; charset=utf-8", "one\ntwo", true, false},
		{"all but json, image alone", `{"content":[` + png + `]}`, "*/*, application/json;q=0", "image/png", pngBytes, true, false},
		{"refused image", all, "image/png;q=0, application/json;q=0.1", "application/json", "", false, false},
		{"unknown types beside", all, "application/xml, text/html, application/json;q=0.1", "application/json", "", false, false},
		{"quoted comma", all, `application/json;profile="a,text/plain"`, "application/json", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture().returns(tt.result)
			r := f.serve(t).do("POST", "/tools/demo/echo", "", "Accept: "+tt.accept)
			want := tt.wantBody
			if tt.wantType == "application/json" {
				want = string(bytes.Join(newResult(tt.result).Data(), nil))
			}
			r.wantOK(t, want)
			if got := r.header.Get("Content-Type"); got != tt.wantType {
				t.Errorf("Content-Type = %q, want %q", got, tt.wantType)
			}
			if got := r.header.Get("Content-Security-Policy"); (got != "") != tt.wantSandbox {
				t.Errorf("Content-Security-Policy = %q", got)
			}
			if got := r.header.Get("Content-Disposition"); (got == "attachment") != tt.download {
				t.Errorf("Content-Disposition = %q", got)
			}
			if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Vary") != "Accept, Prefer" {
				t.Errorf("headers = %v", r.header)
			}
		})
	}
}

func TestNotAcceptable(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	c := f.serve(t)
	for _, accept := range []string{
		"application/xml", "text/html", "text/html, application/xml;q=0.9", "video/mp4", "application/json;q=0", "text/event-stream",
		"*/*;q=0", "image/*;q=0", "application/json;q=0, text/*;q=0",
	} {
		c.do("POST", "/tools/demo/echo", "", "Accept: "+accept).wantProblem(t, 406, NotAcceptable)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
	// What cannot be read says nothing.
	for _, accept := range []string{"nonsense", ",", "*/png", "text/", "application/json;q=2", "application/json;q=NaN"} {
		c.do("POST", "/tools/demo/echo", "", "Accept: "+accept).wantOK(t, `{"content":[]}`)
	}
}

func TestArtifactHeaders(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}`)
	f.keep = &bridge.Artifact{Ref: "mcp~abc", Type: "mcp"}
	f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	c := f.serve(t)
	tests := []struct{ path, accept, location, link string }{
		{"/tools/demo/echo", "", "../../artifacts/mcp~abc", `<../../artifacts/mcp~abc?view=result>; rel="alternate"; title="the whole result"`},
		{"/tools/demo/echo/", "", "../../../artifacts/mcp~abc", `<../../../artifacts/mcp~abc?view=result>; rel="alternate"; title="the whole result"`},
		{"/tools/demo?tool=echo", "", "../artifacts/mcp~abc", `<../artifacts/mcp~abc?view=result>; rel="alternate"; title="the whole result"`},
		{"/tools/demo/echo", "text/plain", "", `<../../artifacts/mcp~abc?view=result>; rel="alternate"; title="the whole result"`},
	}
	for _, tt := range tests {
		r := c.do("POST", tt.path, "", "Accept: "+tt.accept)
		if got := r.header.Get("Content-Location"); got != tt.location {
			t.Errorf("%s: Content-Location = %q, want %q", tt.path, got, tt.location)
		}
		if got := r.header.Get("Link"); got != tt.link {
			t.Errorf("%s: Link = %q, want %q", tt.path, got, tt.link)
		}
		if r.header.Get("Artifact-Ref") != "mcp~abc" || r.header.Get("Artifact-Type") != "mcp" {
			t.Errorf("%s: headers = %v", tt.path, r.header)
		}
		if tt.location != "" {
			if got := c.resolve(tt.path, tt.location); got != "/artifacts/mcp~abc" {
				t.Errorf("%s: Content-Location leads to %s", tt.path, got)
			}
		}
	}
}

func TestCallLog(t *testing.T) {
	f := newFixture()
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{ID: "ci", Scopes: bridge.ScopeCall}, nil
	}
	tool := f.snap.Server("demo").Tool("echo")
	tool.Output = []byte(`{"type":"object"}`)
	f.serve(t).do("POST", "/tools/demo/echo", `{"secret":"hunter2"}`).wantOK(t, `{"content":[]}`)
	lines := f.logLines(t)
	if len(lines) != 1 {
		t.Fatalf("log = %v", lines)
	}
	l := lines[0]
	for name, want := range map[string]any{
		"msg": "call", "level": "INFO", "status": 200.0, "caller": "ci", "handle": "demo", "tool": "echo",
		"bytes_in": 20.0, "bytes_out": 14.0, "breach": "there is no structured content",
	} {
		if l[name] != want {
			t.Errorf("logged %s = %v, want %v", name, l[name], want)
		}
	}
	for _, name := range []string{"request_id", "duration", "find", "check", "upstream"} {
		if l[name] == nil {
			t.Errorf("%s is not logged", name)
		}
	}
	if strings.Contains(f.log.String(), "hunter2") {
		t.Error("an argument was logged")
	}
}

func TestUnknownCaller(t *testing.T) {
	f := newFixture()
	calls := f.countCalls()
	f.opts.Caller = func(*http.Request) (bridge.Caller, error) {
		return bridge.Caller{}, &bridge.Error{Kind: Unauthenticated, Op: "identity", Msg: "No key.", Err: errors.New("no header")}
	}
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", "")
	r.wantProblem(t, 401, Unauthenticated)
	if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer ") {
		t.Errorf("WWW-Authenticate = %q", got)
	}
	for _, path := range []string{"/tools", "/tools/demo", "/tools/demo/echo", "/openapi.json", "/openapi.yaml", "/tools/demo/openapi.json"} {
		c.do("GET", path, "").wantProblem(t, 401, Unauthenticated)
	}
	for _, path := range []string{"/", "/docs", "/tools/demo/docs", "/tools/nope/docs", "/docs/assets/docs.js", "/healthz", "/readyz", "/problems/unauthenticated", "/openapi-bridge.json", "/docs/bridge"} {
		if r := c.do("GET", path, ""); r.status != 200 {
			t.Errorf("GET %s = %d, want it open to all", path, r.status)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
}
