package routes

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/openapi"
)

// Each visitor sees its own servers by the predicate of lists, and its own calls; one with
// the scope admin all circuits, gates and calls. What is not for a visitor is not in
// the bytes that it gets.
func TestConsoleShowsWhatTheVisitorMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := newConsoleFixture(newDoor())
		call(h, "ada", "/tools/demo/add", `{"secret":"of-ada"}`)
		call(h, "ada", "/tools/files/read", `{}`) // which she may not see
		call(h, "bob", "/tools/files/read", `{}`)
		call(h, "bob", "/tools/demo/add", `{}`)
		call(h, "bob", "/tools/demo/echo", `{}`)
		call(h, "nobody", "/tools/demo/echo", `{}`)

		want := map[string]struct{ servers, circuits, gates, calls, absent []string }{
			"ada": {
				[]string{"demo 2"},
				[]string{"mcp:demo closed"},
				[]string{"mcp:demo", "mcp:stdio"},
				[]string{"demo/add 200"},
				[]string{"files", "bob", "on fire", "of-ada", "secret", "line 3", `"store"`},
			},
			"bob": {
				[]string{"demo 1", "files 1"},
				[]string{"mcp:demo closed", "mcp:files open"},
				[]string{"mcp:demo", "mcp:files", "mcp:stdio"},
				[]string{"demo/echo 200", "files/read 200"},
				[]string{`"add"`, "ada", "line 3"},
			},
			"root": {
				[]string{"demo 2", "files 1"},
				[]string{"mcp:demo closed", "mcp:files open"},
				[]string{"mcp:demo", "mcp:files", "mcp:stdio"},
				[]string{"demo/echo 200", "demo/add 404 not-found", "files/read 200", "files/read 404 not-found", "demo/add 200"},
				[]string{"of-ada", "secret"},
			},
		}
		for key, want := range want {
			l := watch(t, h, key)
			synctest.Wait()
			s := l.last(t)
			servers, circuits, gates, calls := s.names()
			for what, pair := range map[string][2][]string{
				"servers": {want.servers, servers}, "circuits": {want.circuits, circuits}, "gates": {want.gates, gates}, "calls": {want.calls, calls},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s sees other %s (-want +got):\n%s", key, what, diff)
				}
			}
			all := strings.Join(append(l.of("snapshot"), l.of("tools")...), "\n")
			for _, text := range want.absent {
				if strings.Contains(all, text) {
					t.Errorf("%s is shown %q:\n%s", key, text, all)
				}
			}
			if s.Everybody != (key == "root") || (s.Config != nil) != (key == "root") || (s.Artifacts != nil) != (key == "root") {
				t.Errorf("%s sees everybody: %v, %v, %v", key, s.Everybody, s.Config, s.Artifacts)
			}
			if h := l.Header(); l.status != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: status %d, %v", key, l.status, h)
			}
			l.leave()
		}
		// One visitor's part must not change what the next one sees of the same look.
		bob := watch(t, h, "bob")
		ada := watch(t, h, "ada")
		root := watch(t, h, "root")
		synctest.Wait()
		if got := len(root.last(t).Circuits) + len(bob.last(t).Gates) + len(ada.last(t).Circuits); got != 2+3+1 {
			t.Errorf("side by side they see %d rows", got)
		}
		if got, want := ada.of("tools"), []string{`[{"handle":"demo","tools":[["add","add"],["echo","echo"]]}]`}; !slices.Equal(got, want) {
			t.Errorf("tools = %q, want %q", got, want)
		}
		for _, l := range []*looking{bob, ada, root} {
			l.leave()
		}
	})
}

// Who may neither call nor administrate does not see anything; nor does who is unknown.
func TestConsoleRefuses(t *testing.T) {
	f := newFixture()
	f.opts.Caller = newDoor().caller
	c := f.serve(t)
	c.do("GET", "/console/events", "", "X-API-Key: wrong").wantProblem(t, 401, Unauthenticated)
	c.do("GET", "/console/events", "", "X-API-Key: blind").wantProblem(t, 403, bridge.Forbidden)
	c.do("POST", "/console/events", "", "X-API-Key: ada").wantProblem(t, 405, MethodNotAllowed)
	if r := c.do("HEAD", "/console/events", "", "X-API-Key: ada"); r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d, %v", r.status, r.header)
	}
}

// Snapshots come when something has changed, at most once a second; where nothing does, a
// sign of life. All visitors share one look at the status, and without any there is none.
func TestConsoleIsSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, waiting atomic.Int32
		f := newFixture()
		f.opts.Status = func() Status {
			looks.Add(1)
			return Status{Waiting: int(waiting.Load())}
		}
		h := f.handler()
		time.Sleep(time.Minute)
		call(h, "", "/tools/demo/echo", `{}`)
		if looks.Load() != 0 {
			t.Errorf("%d looks at the status for nobody", looks.Load())
		}
		var all []*looking
		for range 20 {
			all = append(all, watch(t, h, ""))
		}
		one := all[0]
		synctest.Wait()
		if looks.Load() != 1 {
			t.Errorf("%d looks for 20 visitors at once", looks.Load())
		}
		time.Sleep(40*time.Second + time.Millisecond)
		if looks.Load() > 41 {
			t.Errorf("%d looks for 20 visitors in 40 s", looks.Load())
		}
		if got := one.times("event: snapshot"); len(got) != 1 {
			t.Errorf("snapshots at %v, though nothing has changed", got)
		}
		if got := one.times(": still here"); len(got) != 2 {
			t.Errorf("signs of life at %v, want two in 40 s", got)
		}
		for range 50 {
			waiting.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		got := one.times("event: snapshot")
		if len(got) < 5 || len(got) > 7 {
			t.Errorf("%d snapshots after 50 changes in 5 s: %v", len(got), got)
		}
		for i := 1; i < len(got); i++ {
			if got[i]-got[i-1] < time.Second {
				t.Errorf("two snapshots within %v", got[i]-got[i-1])
			}
		}
		if len(one.of("tools")) != 1 {
			t.Errorf("the same tools were sent %d times", len(one.of("tools")))
		}
		for _, l := range all {
			l.leave()
		}
		before := looks.Load()
		time.Sleep(time.Minute)
		if n := looks.Load() - before; n != 0 {
			t.Errorf("%d looks after the last visitor has left", n)
		}
	})
}

// A call is there within two seconds; a changed catalogue brings its tools.
func TestConsoleIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.opts.Documents = openapi.New(openapi.Options{})
		f.opts.Bridge = f.bridge()
		catalogue := moving{fixture: f}
		catalogue.now.Store(f.snap)
		f.opts.Bridge.Catalogue = &catalogue
		h := New(f.opts)
		l := watch(t, h, "")
		time.Sleep(500 * time.Millisecond)
		if n := len(l.last(t).Calls); n != 0 {
			t.Fatalf("%d calls before the first", n)
		}
		f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
			time.Sleep(250 * time.Millisecond)
			return newResult(`{"content":[{"type":"text","text":"secret-result"}]}`), nil
		}
		w := call(h, "", "/tools/demo/echo", `{"a":"secret-argument"}`, "Request-Id: my-id")
		time.Sleep(2 * time.Second)
		want := []consoleCall{{ID: "my-id", Handle: "demo", Kind: "tool", Name: "echo", Status: 200, Millis: 250, In: 23, Out: int64(w.Body.Len())}}
		got := l.last(t).Calls
		if len(got) == 1 && time.Since(got[0].At) < time.Minute {
			got[0].At = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		for _, s := range l.of("snapshot") {
			if strings.Contains(s, "secret") {
				t.Errorf("shown: %s", s)
			}
		}
		// A call that fails, one that is only checked, and one that goes on as a job are not the same.
		f.fails["breaker"] = &bridge.Error{Kind: bridge.Unavailable, Msg: "held off"}
		call(h, "", "/tools/demo/echo", `{}`)
		delete(f.fails, "breaker")
		call(h, "", "/tools/demo/echo?dry_run=1", `{}`)
		time.Sleep(2 * time.Second)
		_, _, _, calls := l.last(t).names()
		if diff := cmp.Diff([]string{"demo/echo 204", "demo/echo 503 server-unavailable", "demo/echo 200"}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		catalogue.now.Store(bridge.NewSnapshot(2, true, []*bridge.Server{newToolServer("new", "x y")}))
		time.Sleep(2 * time.Second)
		if got := l.of("tools"); len(got) != 2 || got[1] != `[{"handle":"new","tools":[["x y","`+openapi.ToolID("x y")+`"]]}]` {
			t.Errorf("tools: %q", got)
		}
		l.leave()
	})
}

// moving is a catalogue that changes while it is looked at.
type moving struct {
	*fixture
	now atomic.Pointer[bridge.Snapshot]
}

func (m *moving) Snapshot(bridge.Caller) *bridge.Snapshot { return m.now.Load() }

// A key that is taken away ends the stream; another rule for it shows other servers.
func TestConsoleAsksAgainWhoItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		_, h := newConsoleFixture(d)
		ada, bob := watch(t, h, "ada"), watch(t, h, "bob")
		synctest.Wait()
		d.set("ada", bridge.Caller{ID: "ada", User: "ada", Scopes: bridge.ScopeCall, Rule: &bridge.Rule{Allow: []string{"files/*"}}})
		time.Sleep(2 * time.Second)
		if servers, _, _, _ := ada.last(t).names(); !slices.Equal(servers, []string{"files 1"}) {
			t.Errorf("by the new rule ada sees %q", servers)
		}
		if got := ada.of("tools"); len(got) != 2 || strings.Contains(got[1], "demo") {
			t.Errorf("by the new rule ada sees the tools %q", got)
		}
		d.take("ada")
		d.set("bob", bridge.Caller{ID: "bob", User: "bob", Scopes: bridge.ScopeMetrics})
		time.Sleep(2 * time.Second)
		<-ada.ended
		<-bob.ended
	})
}

// No more than a hundred look at a time, of whom ten administrate; who leaves makes room, and the end of the bridge ends all.
func TestConsoleIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.opts.Console = NewConsole()
		f.opts.Caller = newDoor().caller
		h := f.handler()
		refused := func(key string, code bridge.Kind) {
			t.Helper()
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://localhost/console/events", nil)
			r.Header.Set("X-API-Key", key)
			h.ServeHTTP(w, r)
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), string(code)) {
				t.Errorf("status %d, %v, %s; want 503 %s", w.Code, w.Header(), w.Body, code)
			}
		}
		var all []*looking
		for range maxStreams - operators {
			all = append(all, watch(t, h, "ada"))
		}
		synctest.Wait()
		refused("ada", bridge.Overloaded)
		for range operators {
			all = append(all, watch(t, h, "root"))
		}
		synctest.Wait()
		refused("root", bridge.Overloaded)
		all[0].leave()
		refused("ada", bridge.Overloaded)
		all[0] = watch(t, h, "root")
		synctest.Wait()
		if all[0].status != http.StatusOK {
			t.Errorf("status %d, though somebody has left", all[0].status)
		}
		f.opts.Console.Close()
		f.opts.Console.Close() // may be called again
		for _, l := range all {
			<-l.ended
		}
		refused("root", bridge.NotReady)
		if f.opts.Console.streams != 0 || f.opts.Console.latest != nil {
			t.Errorf("%d streams are left", f.opts.Console.streams)
		}
	})
}

// A visitor that stops reading is cut off.
func TestConsoleCutsWhoStopsReading(t *testing.T) {
	f := newFixture()
	f.opts.WriteTimeout = 200 * time.Millisecond
	f.snap.Servers[0].LastError = strings.Repeat("x", 32<<20)
	h := f.handler()
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	<-ended
}

// The calls that are kept are bounded, and those of one busy caller are not all that others see.
func TestConsoleKeepsTheLatestCalls(t *testing.T) {
	c := NewConsole()
	for i := range keptCalls + 250 {
		c.Record(&bridge.Call{Handle: "h", Tool: fmt.Sprint(i)}, Ending{})
	}
	got := c.newest()
	if len(got) != keptCalls || got[0].name != fmt.Sprint(keptCalls+249) || got[keptCalls-1].name != "250" {
		t.Errorf("%d calls from %s to %s", len(got), got[0].name, got[len(got)-1].name)
	}
	long := strings.Repeat("long", 10_000)
	c.Record(&bridge.Call{Handle: long, Tool: long}, Ending{})
	if last := c.newest()[0]; len(last.handle)+len(last.name)+len(last.shown) > 2000 {
		t.Errorf("a name of %d bytes is kept", len(last.name))
	}
	c.Record(&bridge.Call{Handle: "h", Method: bridge.ReadResource, Tool: "file:///secret"}, Ending{})
	if last := c.newest()[0].shownAs(); last.Name != "resources/read" {
		t.Errorf("of a resource %q is shown", last.Name)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		h := f.handler()
		for range 150 {
			call(h, "", "/tools/demo/echo", `{}`)
		}
		l := watch(t, h, "")
		synctest.Wait()
		if n := len(l.last(t).Calls); n != shownCalls {
			t.Errorf("%d calls are shown, want %d", n, shownCalls)
		}
		l.leave()
	})
}

// A call that its caller left is that caller's, also where its end was not waited for.
func TestConsoleKnowsWhoLeft(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.opts.Caller, f.opts.Console = newDoor().caller, NewConsole()
	ctx, leave := context.WithCancel(t.Context())
	f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
		leave()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/tools/demo/echo", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-API-Key", "ada")
	func() {
		defer func() { _ = recover() }() // how an answer is broken off
		f.handler().ServeHTTP(httptest.NewRecorder(), r)
	}()
	calls := f.opts.Console.newest()
	if len(calls) != 1 || calls[0].owner != (bridge.Owner{User: "ada"}) || calls[0].Code != bridge.Canceled {
		t.Errorf("calls = %+v", calls)
	}
}

// The page is for all, whatever they accept, and refers to what is below wherever it is.
func TestConsolePage(t *testing.T) {
	for _, base := range []string{"", "/bridge"} {
		f := newFixture()
		f.opts.BasePath, f.opts.Version = base, "1.2.3"
		f.opts.Caller = newDoor().caller
		c := f.serve(t)
		paths := map[string]string{base + "/": ""}
		if base != "" {
			paths[base] = "bridge/"
		}
		for path, root := range paths {
			r := c.do("GET", path, "", "Accept: application/json")
			if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(r.header.Get("Content-Security-Policy"), "script-src 'self'; style-src 'self'") {
				t.Fatalf("GET %s: %d, %v", path, r.status, r.header)
			}
			for _, want := range []string{`data-root="` + root + `"`, `src="` + root + `docs/assets/console.js"`, `href="` + root + `docs"`, "1.2.3"} {
				if !strings.Contains(r.body, want) {
					t.Errorf("GET %s lacks %s:\n%s", path, want, r.body)
				}
			}
		}
		for _, asset := range []string{"console.js", "console-draw.js", "console-words.js", "console-stream.js", "console.css"} {
			if r := c.do("GET", base+"/docs/assets/"+asset, ""); r.status != 200 {
				t.Errorf("%s: %d", asset, r.status)
			}
		}
	}
}

func BenchmarkConsoleRecord(b *testing.B) {
	c := NewConsole()
	call := &bridge.Call{Handle: "files", Tool: "read_file"}
	b.ReportAllocs()
	for b.Loop() {
		c.Record(call, Ending{ID: "id", Status: 200})
	}
}
