package publish

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

func TestBadRequests(t *testing.T) {
	f := newFixture(t)
	f.opts.RequestBytes = 100_000
	f.serve()
	id := f.begin()
	many := strings.Repeat(`{"jsonrpc":"2.0","method":"ping"},`, maxBatch)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, tt := range []struct {
		name, method, body string
		header             []string
		status             int
		want               string
	}{
		{"no JSON", "POST", `{`, nil, 400, `"code":-32700`},
		{"nothing", "POST", ``, nil, 400, `"code":-32700`},
		{"a key twice", "POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, `"code":-32600`},
		{"no JSON-RPC", "POST", `{"id":1,"method":"ping"}`, nil, 400, `"code":-32600`},
		{"neither call nor answer", "POST", `{"jsonrpc":"2.0","id":1}`, nil, 400, `"code":-32600`},
		{"a method that is no string", "POST", `{"jsonrpc":"2.0","id":1,"method":5}`, nil, 400, `"code":-32600`},
		{"an id that is none", "POST", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, `"code":-32600`},
		{"an empty batch", "POST", `[]`, nil, 400, `"code":-32600`},
		{"a batch of a number", "POST", `[1]`, nil, 400, `"code":-32600`},
		{"a huge batch", "POST", `[` + many + `{"jsonrpc":"2.0","method":"ping"}]`, nil, 400, `more than 100 messages`},
		{"a batch in a version without", "POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, []string{sessionHeader, id, versionHeader, "2025-11-25"}, 400, "batch"},
		{"too large", "POST", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100_000) + `"}`, nil, 413, `larger than the limit`},
		{"no session", "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, nil, 400, `"id":7,"error":{"code":-32600`},
		{"no session, ping", "POST", `{"jsonrpc":"2.0","id":"a","method":"ping"}`, nil, 400, `"id":"a"`},
		{"a session that is none", "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{sessionHeader, "nonsense"}, 404, `"code":-32001`},
		{"a session of another's", "POST", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{sessionHeader, id, "User", "bob"}, 404, `"code":-32001`},
		{"a stream of another's", "GET", ``, []string{sessionHeader, id, "User", "bob"}, 404, `"code":-32001`},
		{"an end by another", "DELETE", ``, []string{sessionHeader, id, "User", "bob"}, 404, `"code":-32001`},
		{"a stream of no session", "GET", ``, nil, 400, `names no session`},
		{"a stream without sessions", "GET", ``, []string{versionHeader, "2026-07-28"}, 405, `only POST`},
		{"another method", "PUT", `{}`, nil, 405, `no such method`},
		{"an unknown method", "POST", `{"jsonrpc":"2.0","id":9007199254740993,"method":"no/such"}`, []string{sessionHeader, id}, 200, `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601`},
		{"an unknown notification", "POST", `{"jsonrpc":"2.0","method":"notifications/no/such"}`, []string{sessionHeader, id}, 202, ``},
		{"an unknown method without sessions", "POST", `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + meta + `}}`, []string{versionHeader, "2026-07-28", "Mcp-Method", "no/such"}, 404, `"code":-32601`},
		{"a method that is not offered", "POST", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:y"}}`, []string{sessionHeader, id}, 200, `"code":-32601`},
		{"an unknown version", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{sessionHeader, id, versionHeader, "1999-01-01"}, 400, `protocol version`},
		{"a version to come", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`, []string{versionHeader, "2099-01-01", "Mcp-Method", "tools/list"}, 400, `"code":-32022`},
		{"a version in the message alone", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, nil, 400, `"code":-32020`},
		{"a version in the header alone", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{versionHeader, "2026-07-28", "Mcp-Method", "tools/list"}, 400, `"code":-32602`},
		{"a header of another method", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, []string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call"}, 400, `"code":-32020`},
		{"no header of the tool", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add",` + meta + `}}`, []string{versionHeader, "2026-07-28", "Mcp-Method", "tools/call"}, 400, `"code":-32020`},
		{"a wrong Accept", "POST", initialize, []string{"Accept", "text/html"}, 400, `Accept`},
		{"a wrong type", "POST", initialize, []string{"Content-Type", "text/plain"}, 415, `Content-Type`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := f.do(tt.method, tt.body, tt.header...)
			if r.status != tt.status || !strings.Contains(r.message(), tt.want) {
				t.Errorf("got %d %s, want %d that says %s", r.status, r.body, tt.status, tt.want)
			}
			if r.status == 405 && r.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
	// All of it left the session as it was, and no other behind.
	if r := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, id); r.message() != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("ping: %d %s", r.status, r.body)
	}
	if n := f.sessions(); n != 1 {
		t.Errorf("there are %d sessions, want 1", n)
	}
}

// sessions returns how many there are.
func (f *fixture) sessions() int {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return len(f.server.sessions)
}

// A body that never comes is not waited for for ever.
func TestSlowBody(t *testing.T) {
	f := newFixture(t)
	f.opts.BodyTimeout = 20 * time.Millisecond
	f.serve()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
}

// The time of the body is not that of the call, however the body comes.
func TestBodyTimeoutIsNotTheCalls(t *testing.T) {
	f := newFixture(t)
	f.opts.BodyTimeout = 50 * time.Millisecond
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
			return bridge.ParseResult([]byte(`{"content":[]}`))
		}
	}
	f.serve()
	id := f.begin()
	for _, body := range []io.Reader{strings.NewReader(callOf("demo__add", `{"a":1,"b":2}`)), io.MultiReader(strings.NewReader(callOf("demo__add", `{"a":1,"b":2}`)))} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("User", "ann")
		req.Header.Set(sessionHeader, id)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(b), `"result"`) || strings.Contains(string(b), "isError") {
			t.Errorf("%s: %s, %v", res.Status, b, err)
		}
	}
}

func TestDelete(t *testing.T) {
	f := newFixture(t)
	running := make(chan struct{})
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		close(running)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.serve()
	id := f.begin()
	answered := make(chan response, 1)
	go func() { answered <- f.do("POST", callOf("demo__add", `{}`), sessionHeader, id) }()
	<-running
	if r := f.do("DELETE", "", sessionHeader, id); r.status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", r.status, r.body)
	}
	<-answered // its call ends with the session
	if r := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, id); r.status != http.StatusNotFound {
		t.Errorf("ping in the session that was ended: %d %s", r.status, r.body)
	}
	if n := f.sessions(); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// A failed initialize leaves no session.
func TestFailedInitialize(t *testing.T) {
	f := newFixture(t).serve()
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"initialize"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"no/such"},{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}]`,
	} {
		f.do("POST", body)
	}
	f.do("POST", initialize, "Accept", "text/html")
	if n := f.sessions(); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// The headers that a tool's schema asks for are compared with its arguments.
func TestParamHeaders(t *testing.T) {
	entry := `{"name":"add","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	f := newFixture(t, newServer("demo", newTool("demo", "add", entry))).serve()
	const args = `{"region":"eu"}`
	if r := f.modernCall("demo__add", args, "Mcp-Param-Region", "eu"); r.status != 200 {
		t.Errorf("equal: %d %s", r.status, r.body)
	}
	for _, h := range [][]string{{}, {"Mcp-Param-Region", "us"}} {
		if r := f.modernCall("demo__add", args, h...); r.status != 400 || !strings.Contains(r.body, "-32020") {
			t.Errorf("%q: %d %s", h, r.status, r.body)
		}
	}
}

// A client's cancellation ends the call, in either way that it can say so.
func TestCancellation(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t)
		running, ended := make(chan struct{}), make(chan error, 1)
		f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
			close(running)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
		f.serve()
		cs := f.connect(version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "demo__add"})
			done <- err
		}()
		<-running
		cancel()
		if err := <-ended; err == nil {
			t.Error("the call ended for no cause")
		}
		if err := <-done; err == nil {
			t.Error("the call was answered")
		}
		if _, err := cs.ListTools(t.Context(), nil); err != nil {
			t.Errorf("the session is broken: %v", err)
		}
	})
}

// Nobody waits for the answer of a client that hung up.
func TestHangUp(t *testing.T) {
	f := newFixture(t)
	running, ended := make(chan struct{}), make(chan struct{})
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		close(running)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	f.serve()
	id := f.begin()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := callOf("demo__add", `{}`)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nUser: ann\r\nMcp-Session-Id: %s\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body)
	<-running
	conn.Close()
	<-ended
}

func TestProgress(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t)
		f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
			if r.Progress == nil {
				return newResult(`{"content":[],"_meta":{"asked":false}}`), nil
			}
			r.Progress([]byte(`{"progressToken":77,"progress":1,"total":4,"message":"one"}`))
			r.Progress([]byte(`{"progress":2.50,"total":4}`))
			r.Progress([]byte(`{"progress":"no number"}`))
			r.Progress([]byte(`[]`))
			r.Progress([]byte(`{"progress":4,"progressToken":"other"}`))
			return newResult(`{"content":[]}`), nil
		}
		f.serve()
		got := make(chan string, 10)
		cs := f.connect(version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			got <- fmt.Sprintf("%v %v %v %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message)
		}})
		p := &mcp.CallToolParams{Name: "demo__add"}
		p.SetProgressToken("mine")
		if _, err := cs.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"mine 1 4 one", "mine 2.5 4 ", "mine 4 0 "} {
			if g := <-got; g != want {
				t.Errorf("got %q, want %q", g, want)
			}
		}
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"})
		if err != nil || res.Meta["asked"] != false {
			t.Errorf("progress was asked for by nobody: %v, %v", res, err)
		}
	})
}

// The server's digits come through, under the client's own token.
func TestExactProgress(t *testing.T) {
	f := newFixture(t)
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		r.Progress([]byte(`{"progress":9007199254740993,"progressToken":1,"total":1.10,"own":[1.0]}`))
		return newResult(`{}`), nil
	}
	f.serve()
	body := strings.Replace(callOf("demo__add", `{}`), `"name"`, `"_meta":{"progressToken":12},"name"`, 1)
	r := f.do("POST", body, sessionHeader, f.begin())
	// All of it comes before the answer.
	const want = `event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12,"progress":9007199254740993,"total":1.10,"own":[1.0]}}

event: message
data: {"jsonrpc":"2.0","id":1,"result":{}}

`
	if r.body != want {
		t.Errorf("got %s\nwant %s", r.body, want)
	}
}
