package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
)

// Lane and SDK ask at once over the same pipes; everybody gets his own answer.
func TestInterleaved(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 60 {
				if i%8 == 0 {
					res, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "text", Arguments: map[string]any{
						"text": fmt.Sprintf(`{"content":[{"type":"text","text":"%d-%d"}]}`, i, j),
					}})
					if err != nil {
						t.Error(err)
						return
					}
					if got, want := res.Content[0].(*mcp.TextContent).Text, fmt.Sprintf("%d-%d", i, j); got != want {
						t.Errorf("the session got %s, want %s", got, want)
					}
					continue
				}
				args := fmt.Sprintf(`{"i":%d,"j":%d,"pad":"%s"}`, i, j, strings.Repeat("x", j*i*7))
				b, err := c.Do(t.Context(), &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(args)})
				if err != nil {
					t.Error(err)
					return
				}
				if string(b) != args {
					t.Errorf("got %.80s, want %.80s", b, args)
				}
			}
		})
	}
	wg.Wait()
	if got := c.Stats(); got != (Stats{}) {
		t.Errorf("Stats = %+v, want none", got)
	}
}

func TestAnswers(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.ResultBytes = 100_000
	c := dialFake(t, o)
	big := `{"s":"` + strings.Repeat("y", 90_000) + `"}`
	tests := []struct {
		name, frame string // the line that the server sends; @ stands for the id
		want        string
		err         error // of the same type, and with this in its text
	}{
		{"numbers", `{"jsonrpc":"2.0","id":@,"result":{"b":9007199254740993,"a":1.10,"c":1e400,"a2":-0}}`, `{"b":9007199254740993,"a":1.10,"c":1e400,"a2":-0}`, nil},
		{"white space", ` { "result" : [ 1 ,	2 ] , "id" : @ , "jsonrpc" : "2.0" } ` + "\r", `[ 1 ,	2 ]`, nil},
		{"escapes", `{"jsonrpc":"2.0","id":@,"result":{"s":"\u00e9\/é\ud83d\ude00\n"}}`, `{"s":"\u00e9\/é\ud83d\ude00\n"}`, nil},
		{"the id last", `{"result":{"id":1,"x":{"id":2}},"jsonrpc":"2.0","id":@}`, `{"id":1,"x":{"id":2}}`, nil},
		{"the key escaped", `{"jsonrpc":"2.0","\u0069d":@,"result":1}`, `1`, nil},
		{"an id within", `{"jsonrpc":"2.0","result":{"s":"\"id\":1}","id":77},"id":@}`, `{"s":"\"id\":1}","id":77}`, nil},
		{"a double as id", `{"jsonrpc":"2.0","id":@.0,"result":true}`, `true`, nil},
		{"null beside an error of null", `{"jsonrpc":"2.0","id":@,"error":null,"result":null}`, `null`, nil},
		{"near the limit", `{"jsonrpc":"2.0","id":@,"result":` + big + `}`, big, nil},
		{"an error", `{"jsonrpc":"2.0","id":@,"error":{"code":-32602,"message":"bad\u0020one","data":{"a":1.0}}}`, ``, &rpc.Error{Code: -32602, Message: "bad one", Data: []byte(`{"a":1.0}`)}},
		{"an error without data", `{"jsonrpc":"2.0","error":{"message":"m"},"id":@}`, ``, &rpc.Error{Message: "m"}},
		{"an error that is a string", `{"jsonrpc":"2.0","error":"m","id":@}`, ``, &rpc.Failure{Reason: rpc.Protocol, Msg: "the server answered an error that is no object"}},
		{"neither", `{"jsonrpc":"2.0","id":@}`, ``, &rpc.Failure{Reason: rpc.Protocol, Msg: "the server answered neither a result nor an error"}},
		{"an error of null", `{"jsonrpc":"2.0","error":null,"id":@}`, ``, &rpc.Failure{Reason: rpc.Protocol, Msg: "the server answered neither a result nor an error"}},
		{"NaN", `{"jsonrpc":"2.0","id":@,"result":{"x":NaN}}`, ``, &rpc.Failure{Reason: rpc.Protocol, Msg: "the server's answer is not valid JSON"}},
		{"two results", `{"jsonrpc":"2.0","id":@,"result":1,"result":2}`, ``, &rpc.Failure{Reason: rpc.Protocol, Msg: "the server's answer is not valid JSON"}},
		{"too large", `{"jsonrpc":"2.0","id":@,"result":"` + strings.Repeat("z", 100_000) + `"}`, ``, &rpc.Failure{Reason: rpc.TooLarge, Msg: "the server's answer is larger than 100000 bytes"}},
		{"too large, the id last", `{"jsonrpc":"2.0","result":{"id":3,"s":"` + strings.Repeat(`\"`, 200_000) + `"},"id":@}`, ``, &rpc.Failure{Reason: rpc.TooLarge, Msg: "the server's answer is larger than 100000 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := c.Do(t.Context(), request("frame", map[string]any{"text": tt.frame}))
			if string(b) != tt.want {
				t.Errorf("got %.200s, want %.200s", b, tt.want)
			}
			if f, ok := errors.AsType[*rpc.Failure](err); ok {
				f.Err = nil
			}
			if d := cmp.Diff(tt.err, err); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if got := do(t, c, request("echo", nil)); got != "{}" {
				t.Errorf("the next call got %s", got)
			}
		})
	}
	if got, want := c.Stats(), (Stats{TooLarge: 2}); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}

// Frames that answer nothing are skipped, and do not confuse.
func TestStrays(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.ResultBytes = 10_000
	c := dialFake(t, o)
	huge := strings.Repeat("x", 50_000)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1099511999999,"result":1}`, // late
		`{"jsonrpc":"2.0","id":4,"result":1}`,             // to the session, which knows none
		`{"jsonrpc":"2.0","id":"1099511627777","result":1}`,
		`{"jsonrpc":"2.0","id":{"a":1},"result":1}`,                            // skipped
		`{"jsonrpc":"1.0","id":9,"result":1}`,                                  // skipped
		`{"id":null}`,                                                          // skipped
		`garbage ` + huge,                                                      // skipped
		`{"jsonrpc":"2.0","method":"notifications/x","params":"` + huge + `"}`, // too large and skipped
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1099511999999}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`,
	} {
		text := line + "\n" + `{"jsonrpc":"2.0","id":@,"result":"mine"}`
		if got := do(t, c, request("frame", map[string]any{"text": text})); got != `"mine"` {
			t.Errorf("after %.60s: got %s", line, got)
		}
	}
	if got, want := c.Stats(), (Stats{Skipped: 5, TooLarge: 2, Late: 1}); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}

func TestErrorAnswer(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	_, err := c.Do(t.Context(), &rpc.Request{Method: "no/such\n\"method\""})
	want := &rpc.Error{Code: -32601, Message: "no such method", Data: json.RawMessage(`{"method":"no/such\n\"method\""}`)}
	if d := cmp.Diff(error(want), err); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	if got, want := waitFrames(t, c, 1)[0], `"method":"no/such\u000a\"method\"","params":{}}`; !strings.HasSuffix(got, want) {
		t.Errorf("the server got %s, want …%s", got, want)
	}
}

// An answer larger than any buffer that is kept arrives whole, whether its
// buffer is handed on or, being much too large, is not.
func TestLargeAnswer(t *testing.T) {
	for _, limit := range []int64{7 << 20, 64 << 20} {
		largeAnswer(t, limit)
	}
}

func largeAnswer(t *testing.T, limit int64) {
	t.Helper()
	o := fakeOptions(t, "plain")
	o.ResultBytes = limit
	c := dialFake(t, o)
	const n = 6 << 20
	got := do(t, c, request("big", map[string]any{"n": n}))
	if want := n + len(`{"id":7,"s":""}`); len(got) != want {
		t.Fatalf("%d bytes came, want %d", len(got), want)
	}
	if strings.Count(got, `\"x}`) != n/4 || !strings.HasSuffix(got, `\"x}"}`) {
		t.Errorf("got %.100s…%s", got, got[len(got)-10:])
	}
}

// Nothing that holds a line feed is sent, whoever let it through.
func TestSmuggled(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	for _, r := range []*rpc.Request{
		{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte("{}}}\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"die","arguments":{}}}`)},
		{Method: "tools/call", Params: []byte("\"name\":\"echo\",\r\"arguments\":"), Args: []byte("{}")},
	} {
		let := 0
		r.LetGo = func() { let++ }
		_, err := c.Do(t.Context(), r)
		if f := failure(t, err); f.Reason != rpc.Protocol {
			t.Errorf("Do = %v", f)
		}
		if let != 1 {
			t.Errorf("let go %d times", let)
		}
	}
	if got := received(t, c); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

func TestProgress(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	r := request("progress", map[string]any{"n": 5})
	var got []string
	r.Progress = func(p json.RawMessage) { got = append(got, string(p)) }
	if b := do(t, c, r); b != `{"n":5}` {
		t.Errorf("got %s", b)
	}
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprintf(`{"progressToken":1099511627777,"progress":%d}`, i+1))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
}

// Progress moves the idle deadline, also where nobody watches it.
func TestIdle(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	r := request("progress", map[string]any{"n": 8, "every": 250 * time.Millisecond})
	r.Idle, r.Total = time.Second, time.Minute
	start := time.Now()
	do(t, c, r)
	if d := time.Since(start); d < 2*time.Second {
		t.Errorf("answered after %v", d)
	}

	r = request("never", nil)
	r.Idle, r.Total = 100*time.Millisecond+1, time.Minute
	_, err := c.Do(t.Context(), r)
	want := &rpc.Failure{Reason: rpc.Deadline, Msg: "the server neither answered nor reported progress for 100ms"}
	if d := cmp.Diff(error(want), err); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}

// Progress does not move the total deadline, and a server that goes on
// reporting it lets go a grace after that deadline.
func TestTotal(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.CancelGrace = time.Second
	c := dialFake(t, o)
	r := request("forever", map[string]any{"every": 10 * time.Millisecond})
	r.Idle, r.Total = 400*time.Millisecond, 500*time.Millisecond-1
	var ended atomic.Bool
	r.Progress = func(json.RawMessage) {
		if ended.Load() {
			t.Error("progress came after Do had returned")
		}
	}
	letGo := make(chan struct{})
	r.LetGo = func() { close(letGo) }
	start := time.Now()
	_, err := c.Do(t.Context(), r)
	ended.Store(true)
	want := &rpc.Failure{Reason: rpc.Deadline, Msg: "the server did not answer within 500ms"}
	if d := cmp.Diff(error(want), err); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	<-letGo
	if d := time.Since(start); d < 1500*time.Millisecond || d > 5*time.Second {
		t.Errorf("let go after %v, want 1.5s", d)
	}
	frames := waitFrames(t, c, 2)
	if got, want := frames[1], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1099511627777,"reason":"the call's time was up"}}`; got != want {
		t.Errorf("the server got %s, want %s", got, want)
	}
}

// A cancelled call comes back at once. Its slot does when the late answer comes.
func TestCancel(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.CancelGrace = time.Hour
	c := dialFake(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	r := request("late", nil)
	letGo := make(chan struct{})
	r.LetGo = func() { close(letGo) }
	ch := background(t, ctx, c, r)
	_, id, _ := strings.Cut(waitFrames(t, c, 1)[0], `"id":`)
	id, _, _ = strings.Cut(id, ",")
	cancel()
	if a := <-ch; !errors.Is(a.err, context.Canceled) {
		t.Errorf("Do = %s, %v", a.result, a.err)
	}
	<-letGo
	frames := waitFrames(t, c, 2)
	if got, want := frames[1], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"the caller went away"}}`; got != want {
		t.Errorf("the server got %s, want %s", got, want)
	}
	if got := c.Stats().Late; got != 1 {
		t.Errorf("Late = %d, want 1", got)
	}
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	if len(c.lane.calls)+len(c.lane.tombs) != 0 {
		t.Errorf("left: %v %v", c.lane.calls, c.lane.tombs)
	}
}

// Without a late answer, the slot comes back after the grace, or with the connection.
func TestLetGo(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.CancelGrace = 300 * time.Millisecond
	c := dialFake(t, o)
	var let atomic.Int32
	call := func(tool string, idle, total time.Duration) time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r := request(tool, map[string]any{"every": 20 * time.Millisecond})
		r.Idle, r.Total = idle, total
		// The server reports progress to those who ask only.
		r.Progress = func(json.RawMessage) {}
		done := make(chan struct{})
		r.LetGo = func() { let.Add(1); close(done) }
		start := time.Now()
		if _, err := c.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v", err)
		}
		<-done
		return time.Since(start)
	}
	if d := call("never", 0, 0); d < 300*time.Millisecond || d > 5*time.Second {
		t.Errorf("let go after %v, want the grace", d)
	}
	// Progress extends the grace, up to a grace after the deadline that stood then.
	for _, total := range []time.Duration{0, time.Hour} {
		if d := call("forever", 2*time.Second, total); d < 2300*time.Millisecond || d > 8*time.Second {
			t.Errorf("let go after %v, want 2.35s", d)
		}
	}
	if d := call("forever", time.Hour, 2*time.Second); d < 2300*time.Millisecond || d > 8*time.Second {
		t.Errorf("let go after %v, want 2.3s", d)
	}
	// The connection's end lets go of everything.
	c.lane.grace = time.Hour
	time.AfterFunc(200*time.Millisecond, func() { _ = c.Close() })
	if d := call("never", 0, 0); d > 10*time.Second {
		t.Errorf("let go after %v", d)
	}
	if n := let.Load(); n != 5 {
		t.Errorf("let go %d times, want 5", n)
	}
}

// A server that gets one call at a time is ended when it goes on with a cancelled one, whatever progress it reports.
func TestStuck(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.CancelGrace, o.Exclusive = 300*time.Millisecond, true
	c := dialFake(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := request("forever", map[string]any{"every": 20 * time.Millisecond})
	r.Idle = time.Hour
	r.Progress = func(json.RawMessage) {}
	letGo := make(chan struct{})
	r.LetGo = func() { close(letGo) }
	start := time.Now()
	if _, err := c.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do = %v", err)
	}
	<-letGo
	if d := time.Since(start); d < 300*time.Millisecond {
		t.Errorf("let go after %v, want the grace", d)
	}
	select {
	case <-c.Done(): // so that nobody takes it for the next call
	default:
		t.Error("it let go before its end was known")
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "went on with a cancelled call for 300ms") {
		t.Errorf("Err = %v", err)
	}
}

// Every way of a call lets go once.
func TestLetGoOnce(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	var let atomic.Int32
	counted := func(r *rpc.Request) *rpc.Request {
		r.LetGo = func() { let.Add(1) }
		return r
	}
	want := int32(0)
	check := func(what string) {
		t.Helper()
		want++
		eventually(t, what, func() bool { return let.Load() >= want })
		if got := let.Load(); got != want {
			t.Errorf("%s: let go %d times, want %d", what, got, want)
		}
	}
	do(t, c, counted(request("echo", nil)))
	check("an answer")
	_, _ = c.Do(t.Context(), counted(&rpc.Request{Method: "x"}))
	check("an error")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, counted(request("echo", nil))); !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v", err)
	}
	check("cancelled before")
	_, err := c.Do(t.Context(), counted(request("die", map[string]any{"n": 1})))
	if f := failure(t, err); f.Reason != rpc.Lost {
		t.Errorf("Do = %v", f)
	}
	check("lost")
	_, err = c.Do(t.Context(), counted(request("echo", nil)))
	if f := failure(t, err); f.Reason != rpc.NotSent || !strings.Contains(f.Msg, "status 1") {
		t.Errorf("Do = %v", f)
	}
	check("not sent")
}

// Aborted calls leave nothing, however they race with their answers.
func TestAborted(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.CancelGrace = 50 * time.Millisecond
	c := dialFake(t, o)
	var let, made atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i*100+j)%40)*50*time.Microsecond)
				r := request("echo", map[string]any{"i": i, "j": j})
				r.LetGo = func() { let.Add(1) }
				made.Add(1)
				b, err := c.Do(ctx, r)
				if err == nil && !bytes.Equal(b, r.Args) {
					t.Errorf("got %s, want %s", b, r.Args)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "all are let go of", func() bool { return let.Load() == made.Load() })
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	if len(c.lane.calls)+len(c.lane.tombs) != 0 {
		t.Errorf("left: %v %v", c.lane.calls, c.lane.tombs)
	}
}

// What the server asks is the session's to answer.
func TestServerRequests(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	if got := do(t, c, request("ask", map[string]any{"text": "ping"})); got != `{"jsonrpc":"2.0","id":"q","result":{}}` {
		t.Errorf("ping was answered %s", got)
	}
	if got := do(t, c, request("ask", map[string]any{"text": "sampling/createMessage"})); !strings.Contains(got, `"id":"q","error":{"code":`) {
		t.Errorf("sampling, which is not offered, was answered %s", got)
	}
}

func TestListChanged(t *testing.T) {
	o := fakeOptions(t, "plain")
	changed := make(chan string, 10)
	o.ListChanged = func(list string) { changed <- list }
	c := dialFake(t, o)
	do(t, c, request("changed", nil))
	if got := <-changed; got != "tools" {
		t.Errorf("ListChanged(%q)", got)
	}
}
