package publish

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
)

// ping reports whether the session is there.
func (f *fixture) ping(id string, header ...string) bool {
	f.t.Helper()
	return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(header, sessionHeader, id)...).status == http.StatusOK
}

// There are never more sessions than allowed: the idlest goes.
func TestSessionsAreBounded(t *testing.T) {
	f := newFixture(t)
	f.opts.Sessions, f.opts.SessionsPerOwner = 5, 3
	f.serve()
	bobs := []string{f.begin("User", "bob"), f.begin("User", "bob")}
	var anns []string
	for range 4 { // the first of which goes when the fourth comes
		anns = append(anns, f.begin())
	}
	for i, want := range []bool{false, true, true, true} {
		if got := f.ping(anns[i]); got != want {
			t.Errorf("ann's session %d: %v, want %v", i, got, want)
		}
	}
	if !f.ping(bobs[0], "User", "bob") || !f.ping(bobs[1], "User", "bob") {
		t.Error("ann's sessions cost bob one of his")
	}
	f.begin("User", "eve") // a sixth, for which the idlest of all goes: ann's second
	if f.ping(anns[1]) || !f.ping(anns[2]) {
		t.Error("it was not the idlest that went")
	}
	if n := f.sessions(); n != 5 {
		t.Errorf("there are %d sessions", n)
	}
}

// Sessions that are in use are not ended for new ones, which are refused.
func TestFull(t *testing.T) {
	f := newFixture(t)
	f.opts.Sessions = 1
	running, release := make(chan struct{}), make(chan struct{})
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
		close(running)
		<-release
		return newResult(`{"content":[]}`), nil
	}
	f.serve()
	id := f.begin()
	answered := make(chan response, 1)
	go func() { answered <- f.do("POST", callOf("demo__add", `{}`), sessionHeader, id) }()
	<-running
	for what, r := range map[string]response{"a session": f.do("POST", initialize), "a stream": f.do("POST", listen, versionHeader, "2026-07-28", "Mcp-Method", "subscriptions/listen")} {
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "too many sessions") {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	close(release)
	if r := <-answered; !strings.Contains(r.body, `"result"`) {
		t.Errorf("the call that was running: %d %s", r.status, r.body)
	}
	f.begin()
}

const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// A stream is not addressable as a session.
func TestStreamIsNoSession(t *testing.T) {
	f := newFixture(t).publish()
	e, err := f.server.register(f.server.newPeer(request{}, ""), request{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if f.server.acquire(e.id, bridge.Owner{}) != nil {
		t.Error("it was found")
	}
	f.server.end(e)
}

func TestIdleSessionsEnd(t *testing.T) {
	f := newFixture(t).serve()
	idle, used := f.begin(), f.begin()
	f.server.mu.Lock()
	f.server.sessions[used].open++
	f.server.mu.Unlock()
	f.server.reap(time.Now().Add(f.server.opts.SessionIdle - time.Minute))
	if n := f.sessions(); n != 2 {
		t.Fatalf("too early: %d sessions", n)
	}
	f.server.reap(time.Now().Add(f.server.opts.SessionIdle + time.Minute))
	f.server.release(f.server.sessions[used])
	if f.ping(idle) || !f.ping(used) {
		t.Error("the idle session is there, or the used one is not")
	}
}

// A change is told to those whose list it changes, and only to them.
func TestListChanged(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t)
		f.serve()
		changed := make(chan struct{}, 10)
		cs := f.connect(version, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
		f.watched(1)
		namesOf(t, cs)
		one := f.snap.Load().Servers
		again := newServer("files", newTool("files", "read", ""))
		again.State = bridge.Idle
		f.set(true, one[0], again) // says nothing new
		f.set(true, one[0], again, newServer("new", newTool("new", "tool", "")))
		<-changed
		if got := strings.Join(namesOf(t, cs), " "); got != "demo__add demo__echo files__read new__tool" {
			t.Errorf("the list is %q", got)
		}
		f.set(true, one[0], again)
		<-changed
		f.server.tell() // nothing is left to tell
		select {
		case <-changed:
			t.Error("it was told twice")
		default:
		}
	})
}

// watched waits until so many clients can hear of changes: the SDK's opens its stream in the background.
func (f *fixture) watched(n int) {
	f.t.Helper()
	for range 1000 {
		open := 0
		f.server.mu.Lock()
		for _, e := range f.server.sessions {
			open += e.open
		}
		f.server.mu.Unlock()
		if open == n {
			return
		}
		time.Sleep(5 * time.Millisecond) // the SDK brings no event for it
	}
	f.t.Fatal("nobody listens")
}

// A caller is not told of what it may not see.
func TestListChangedForOthers(t *testing.T) {
	f := newFixture(t)
	f.allows = func(_ bridge.Caller, handle, _ string) bool { return handle != "hidden" }
	f.publish()
	p := f.server.newPeer(request{handles: handles{"demo": true}}, "")
	p.tell()
	if p.told != [subjects][32]byte{} {
		t.Error("one that never listed was told")
	}
	p.knows(ofTools, f.server.narrowed(p.latest()))
	before := p.told
	servers := f.snap.Load().Servers
	f.set(true, append(servers[:2:2], newServer("hidden", newTool("hidden", "x", "")), newServer("other", newTool("other", "x", "")))...)
	p.tell()
	if p.told != before {
		t.Error("it was told")
	}
	f.set(true, newServer("demo", newTool("demo", "add", `{"name":"add","description":"Another text."}`)))
	p.tell()
	if p.told == before {
		t.Error("it was not told of another description")
	}
}

// No goroutine is left of sessions, streams and calls, however they end.
func TestNoLeaks(t *testing.T) {
	mcptest.NoLeaks(t)
	f := newFixture(t)
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		if strings.Contains(string(r.Args), "wait") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return newResult(`{"content":[]}`), nil
	}
	f.serve()
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			version := versions[i%len(versions)]
			t := &mcp.StreamableClientTransport{Endpoint: f.url, MaxRetries: -1}
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
			}).Connect(context.Background(), t, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				f.t.Error(err)
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "demo__add", Arguments: map[string]any{"wait": true}})
			if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "demo__add"}); err != nil {
				f.t.Error(err)
			}
			f.set(true, f.snap.Load().Servers...)
			if i%3 != 0 { // the others never say that they end
				_ = cs.Close()
			} else {
				f.t.Cleanup(func() { _ = cs.Close() })
			}
		})
	}
	wg.Wait()
}

// A client that does not read its stream holds up nobody, and is cut off.
func TestDeadStream(t *testing.T) {
	f := newFixture(t)
	f.opts.WriteTimeout = 50 * time.Millisecond
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
		return newResult(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 16<<20) + `"}]}`), nil
	}
	f.serve()
	id := f.begin()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := callOf("demo__add", `{}`)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nUser: ann\r\nMcp-Session-Id: %s\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body)
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // the status; the rest stays unread
		t.Fatal(err)
	}
	f.idle(id)
	if !f.ping(id) {
		t.Error("the session ended with its stream")
	}
}

// idle waits until no request of the session is under way.
func (f *fixture) idle(id string) {
	f.t.Helper()
	for range 2000 {
		f.server.mu.Lock()
		open := f.server.sessions[id].open
		f.server.mu.Unlock()
		if open == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatal("a request does not end")
}

// A server that drains does not wait for those who wait for news.
func TestEndStreams(t *testing.T) {
	f := newFixture(t).serve()
	id := f.begin()
	ended := make(chan response, 2)
	go func() { ended <- f.do("GET", "", sessionHeader, id) }()
	go func() {
		ended <- f.do("POST", listen, versionHeader, "2026-07-28", "Mcp-Method", "subscriptions/listen")
	}()
	f.watched(2)
	f.server.EndStreams()
	<-ended
	<-ended
	if r := f.do("POST", callOf("demo__add", `{}`), sessionHeader, id); !strings.Contains(r.body, `"result"`) {
		t.Errorf("a call afterwards: %d %s", r.status, r.body)
	}
	if r := f.do("GET", "", sessionHeader, id); r.status != http.StatusOK {
		t.Errorf("a stream afterwards: %d %s", r.status, r.body)
	}
	f.server.Close()
	f.server.Close()
	if r := f.do("POST", initialize); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "stopping") {
		t.Errorf("a session afterwards: %d %s", r.status, r.body)
	}
}

// A stream on which nothing happens shows that it lives.
func TestHeartbeat(t *testing.T) {
	f := newFixture(t)
	f.opts.Heartbeat = time.Millisecond
	f.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, req := range []*http.Request{
		newRequest(ctx, "GET", f.url, "", sessionHeader, f.begin()),
		newRequest(ctx, "POST", f.url, listen, versionHeader, "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	} {
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for beats := 0; beats < 3; {
			if !lines.Scan() {
				t.Fatalf("%s: the stream ended: %v", req.Method, lines.Err())
			}
			if lines.Text() == ": " {
				beats++
			}
		}
	}
}

func newRequest(ctx context.Context, method, url, body string, header ...string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	header = append(header, "Accept", "application/json, text/event-stream", "Content-Type", "application/json", "User", "ann")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// A bug in a call is that call's failure, and nobody else's.
func TestPanic(t *testing.T) {
	f := newFixture(t)
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { panic("a bug") }
	f.serve()
	id := f.begin()
	r := f.do("POST", callOf("demo__add", `{}`), sessionHeader, id)
	if !strings.Contains(r.message(), `"code":-32603,"message":"the bridge has a fault`) || strings.Contains(r.body, "a bug") {
		t.Errorf("got %s", r.body)
	}
	if !f.ping(id) || !strings.Contains(f.logged(), "a bug") {
		t.Errorf("the session is gone, or the log says nothing: %s", f.logged())
	}
}
