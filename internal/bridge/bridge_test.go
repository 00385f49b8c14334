package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A world is a bridge over fakes that write down what happens to them.
type world struct {
	Bridge
	steps []string

	snapshot  *Snapshot
	allows    func(handle, tool string) bool
	attach    func(c Caller, handle string, headers bool) (<-chan struct{}, error)
	spendErr  error
	openErr   error
	clientErr error
	client    func(*Target) error // fails before clients are handed out; nil never
	admitErr  error
	allowErr  error
	clients   []*fakeClient // handed out in turn, the last one again and again
	released  int
	held      int // clients that were not given back
	done      []error
}

type fakeClient struct {
	w    *world
	dead bool
	call func(ctx context.Context, r Request, letGo func()) (*Result, error)
}

func (w *world) step(s string)             { w.steps = append(w.steps, s) }
func (w *world) Snapshot(Caller) *Snapshot { return w.snapshot }

func (w *world) Attach(c Caller, handle string, headers bool) (<-chan struct{}, error) {
	if w.attach == nil {
		return nil, nil
	}
	return w.attach(c, handle, headers)
}

func (w *world) Allows(_ Caller, h, t string) bool {
	return w.allows == nil || w.allows(h, t)
}

func (w *world) Sees(_ Caller, h string) bool { return w.Allows(Caller{}, h, "") }

func (w *world) Spend(context.Context, Caller) (func(), error) {
	w.step("spend")
	return func() { w.step("unspend") }, w.spendErr
}
func (w *world) Open(EndpointID) error { w.step("open?"); return w.openErr }

func (w *world) Allow(EndpointID) (func(error), error) {
	w.step("permit")
	return func(err error) { w.done = append(w.done, err) }, w.allowErr
}

func (w *world) Client(_ context.Context, t *Target) (Client, func(), error) {
	w.step("client")
	if w.client != nil {
		if err := w.client(t); err != nil {
			return nil, nil, err
		}
	}
	if w.clientErr != nil {
		return nil, nil, w.clientErr
	}
	w.held++
	c := w.clients[0]
	if len(w.clients) > 1 {
		w.clients = w.clients[1:]
	}
	return c, func() { w.held-- }, nil
}

func (w *world) Admit(context.Context, Caller, Demand, time.Duration) (func(), error) {
	w.step("admit")
	return func() { w.released++ }, w.admitErr
}

func (w *world) Keep(context.Context, Caller, *Tool, *Result, *Timing) *Artifact {
	w.step("keep")
	return &Artifact{Ref: "mcp~x"}
}

func (c *fakeClient) Connected() bool { return !c.dead }

func (c *fakeClient) Call(ctx context.Context, r Request, letGo func()) (*Result, error) {
	c.w.step("call")
	return c.call(ctx, r, letGo)
}

// answers returns a client that answers with these bytes.
func (w *world) answers(b string) *fakeClient {
	return &fakeClient{w: w, call: func(_ context.Context, _ Request, letGo func()) (*Result, error) {
		letGo()
		return ParseResult([]byte(b))
	}}
}

func (w *world) fails(err error) *fakeClient {
	return &fakeClient{w: w, call: func(_ context.Context, _ Request, letGo func()) (*Result, error) {
		letGo()
		return nil, err
	}}
}

const plain = `{"content":[{"type":"text","text":"hi"}]}`

func newWorld() *world {
	w := &world{}
	target := &Target{Handle: "s", Timeout: 20 * time.Second, MaxTimeout: time.Minute}
	tools := []*Tool{
		{Handle: "s", Name: "t", Target: target},
		{Handle: "s", Name: "hidden", Target: target},
	}
	w.snapshot = NewSnapshot(1, true, []*Server{
		{Handle: "s", State: Ready, Tools: tools, Skipped: []Skipped{{Name: "odd", Reason: "its schema is a string"}}},
		{Handle: "starting", State: Connecting},
		{Handle: "down", State: Failed, LastError: "no such command"},
		{Handle: "locked", State: NeedsAuth, LastError: "401"},
	})
	w.clients = []*fakeClient{w.answers(plain)}
	w.Bridge = Bridge{Catalogue: w, Policy: w, Budget: w, Breaker: w, Clients: w, Gate: w, Keeper: w, Nesting: 10}
	return w
}

func TestInvokeInOrder(t *testing.T) {
	w := newWorld()
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Args: []byte("{\n\"a\":1}")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"spend", "open?", "client", "admit", "permit", "call", "keep", "unspend"}
	if diff := cmp.Diff(want, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if w.held != 0 || w.released != 1 || len(w.done) != 1 || w.done[0] != nil {
		t.Errorf("released %d times, breaker told %v; want once, and one success", w.released, w.done)
	}
	if a.Artifact.Ref != "mcp~x" || string(a.Result.Raw) != plain {
		t.Errorf("answer = %+v", a)
	}
}

func TestInvokeHandsOverArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"as they are", `{"n":9007199254740993, "f":1.10}`, `{"n":9007199254740993, "f":1.10}`},
		{"none", "", "{}"},
		{"over lines", "{\r\n  \"a\": \"x\"\n}", `{    "a": "x" }`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			var got Request
			w.clients[0].call = func(_ context.Context, r Request, letGo func()) (*Result, error) {
				letGo()
				got = r
				return ParseResult([]byte(plain))
			}
			if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Args: []byte(tt.args)}); err != nil {
				t.Fatal(err)
			}
			if string(got.Args) != tt.want {
				t.Errorf("args = %q, want %q", got.Args, tt.want)
			}
			if got.Idle != 20*time.Second || got.Total != time.Minute {
				t.Errorf("idle %v, total %v; want the target's 20s and 1m", got.Idle, got.Total)
			}
		})
	}
}

// A rule's time is the most that one call may take; it never gives more.
func TestInvokeRuleTimeout(t *testing.T) {
	for _, tt := range []struct{ rule, want time.Duration }{{time.Second, time.Second}, {time.Hour, time.Minute}, {0, time.Minute}} {
		w := newWorld()
		var got Request
		w.clients[0].call = func(_ context.Context, r Request, letGo func()) (*Result, error) {
			letGo()
			got = r
			return ParseResult([]byte(plain))
		}
		caller := Caller{ID: "ci", Rule: &Rule{Timeout: tt.rule}}
		if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Caller: caller}); err != nil {
			t.Fatal(err)
		}
		if got.Total != tt.want || got.Caller.ID != "ci" {
			t.Errorf("total %v for caller %q, want %v for ci", got.Total, got.Caller.ID, tt.want)
		}
	}
}

// Each refusal ends the call at its step: nothing behind it is touched.
func TestInvokeRefusals(t *testing.T) {
	refused := &Error{Kind: Overloaded, Op: "test", Msg: "no"}
	checker := checkerFunc(func([]byte) ([]byte, error) { return nil, &Error{Kind: InvalidArguments, Op: "test"} })
	tests := []struct {
		name   string
		call   Call
		set    func(*world)
		kind   Kind
		detail string
		steps  string
	}{
		{"unknown server", Call{Handle: "x", Tool: "t"}, nil, NotFound, `no server "x"`, ""},
		{"unknown tool", Call{Handle: "s", Tool: "x/y"}, nil, NotFound, `no tool "x/y"`, ""},
		{"hidden tool", Call{Handle: "s", Tool: "hidden"}, func(w *world) {
			w.allows = func(_, tool string) bool { return tool == "t" }
		}, NotFound, `no tool "hidden"`, ""},
		{"hidden server", Call{Handle: "s", Tool: "t"}, func(w *world) {
			w.allows = func(string, string) bool { return false }
		}, NotFound, `no server "s"`, ""},
		{"tool left out", Call{Handle: "s", Tool: "odd"}, nil, NotFound, "its schema is a string", ""},
		{"server starting", Call{Handle: "starting", Tool: "t"}, nil, NotReady, "still being connected", ""},
		{"server down", Call{Handle: "down", Tool: "t"}, nil, Unavailable, "no such command", "open?"},
		{"server locked", Call{Handle: "locked", Tool: "t"}, nil, UpstreamAuth, "401", ""},
		{"not an object", Call{Handle: "s", Tool: "t", Args: []byte("[1]")}, nil, Malformed, "must be one JSON object", ""},
		{"too deep", Call{Handle: "s", Tool: "t", Args: []byte(strings.Repeat(`{"a":`, 11) + "1" + strings.Repeat("}", 11))}, nil, Malformed, "nested too deeply", ""},
		{"schema", Call{Handle: "s", Tool: "t"}, func(w *world) {
			w.snapshot.Server("s").Tool("t").Arguments = checker
		}, InvalidArguments, "", ""},
		{"budget", Call{Handle: "s", Tool: "t"}, func(w *world) { w.spendErr = refused }, Overloaded, "no", "spend"},
		{"circuit", Call{Handle: "s", Tool: "t"}, func(w *world) { w.openErr = refused }, Overloaded, "no", "spend open? unspend"},
		{"client", Call{Handle: "s", Tool: "t"}, func(w *world) { w.clientErr = refused }, Overloaded, "no", "spend open? client unspend"},
		{"gate", Call{Handle: "s", Tool: "t"}, func(w *world) { w.admitErr = refused }, Overloaded, "no", "spend open? client admit unspend"},
		{"permit", Call{Handle: "s", Tool: "t"}, func(w *world) { w.allowErr = refused }, Overloaded, "no", "spend open? client admit permit unspend"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.set != nil {
				tt.set(w)
			}
			_, err := w.Invoke(t.Context(), &tt.call)
			if e, ok := errors.AsType[*Error](err); !ok || e.Kind != tt.kind || !strings.Contains(e.Msg, tt.detail) {
				t.Errorf("err = %v, want kind %q that says %q", err, tt.kind, tt.detail)
			}
			if got := strings.Join(w.steps, " "); got != tt.steps {
				t.Errorf("steps = %q, want %q", got, tt.steps)
			}
			if w.held != 0 {
				t.Errorf("%d clients were not given back", w.held)
			}
			if tt.name == "permit" && w.released != 1 {
				t.Errorf("slots were released %d times, want 1", w.released)
			}
		})
	}
}

type checkerFunc func([]byte) ([]byte, error)

func (f checkerFunc) Check(b []byte) ([]byte, error) { return f(b) }

func TestDryRunSpendsNothing(t *testing.T) {
	w := newWorld()
	if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"open?"}, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// A client that died while its call waited gives its slots back before another is connected.
func TestClientDiesInLine(t *testing.T) {
	w := newWorld()
	dead := w.answers(plain)
	dead.dead = true
	w.clients = []*fakeClient{dead, w.answers(plain)}
	if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"}); err != nil {
		t.Fatal(err)
	}
	want := "spend open? client admit client admit permit call keep unspend"
	if got := strings.Join(w.steps, " "); got != want || w.released != 2 {
		t.Errorf("steps = %q, released %d times; want %q, twice", got, w.released, want)
	}
}

func TestReplay(t *testing.T) {
	again := &Error{Kind: Unavailable, Op: "test", Msg: "not sent", Replay: true}
	once := &Error{Kind: OutcomeUnknown, Op: "test", Msg: "lost"}
	tests := []struct {
		name  string
		errs  []error
		calls int
		kind  Kind
	}{
		{"not sent, then answered", []error{again}, 2, ""},
		{"lost", []error{once}, 1, OutcomeUnknown},
		{"never sent", []error{again, again, again, again}, 3, Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			last := w.clients
			w.clients = nil
			for _, err := range tt.errs {
				w.clients = append(w.clients, w.fails(err))
			}
			w.clients = append(w.clients, last...)
			_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
			if tt.kind == "" && err != nil || tt.kind != "" && KindOf(err) != tt.kind {
				t.Errorf("err = %v, want kind %q", err, tt.kind)
			}
			if len(w.done) != tt.calls || w.released != tt.calls {
				t.Errorf("called %d times, released %d times; want %d", len(w.done), w.released, tt.calls)
			}
		})
	}
}

func TestPanicReturnsEverything(t *testing.T) {
	w := newWorld()
	w.clients[0].call = func(context.Context, Request, func()) (*Result, error) { panic("boom") }
	func() {
		defer func() { _ = recover() }()
		_, _ = w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
	}()
	if w.held != 0 || w.released != 1 || len(w.done) != 1 || !errors.Is(w.done[0], errAborted) || w.steps[len(w.steps)-1] != "unspend" {
		t.Errorf("released %d, breaker told %v, steps %v", w.released, w.done, w.steps)
	}
}

func TestCallerEndsTheCall(t *testing.T) {
	hang := func(ctx context.Context, _ Request, letGo func()) (*Result, error) {
		<-ctx.Done()
		letGo()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.clients[0].call = hang
		start := time.Now()
		c := &Call{Handle: "s", Tool: "t", Timeout: 3 * time.Second}
		_, err := w.Invoke(t.Context(), c)
		if KindOf(err) != DeadlineExceeded || time.Since(start) != 3*time.Second || c.Timing.Upstream != 3*time.Second {
			t.Errorf("err = %v after %v (upstream %v), want deadline-exceeded after exactly 3s", err, time.Since(start), c.Timing.Upstream)
		}
		if e, _ := errors.AsType[*Error](err); e == nil || e.Fault {
			t.Errorf("a deadline that the caller shortened counts against the server: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := w.Invoke(ctx, &Call{Handle: "s", Tool: "t"}); KindOf(err) != Canceled {
			t.Errorf("err = %v, want canceled", err)
		}
	})
}

func TestToolError(t *testing.T) {
	w := newWorld()
	long := strings.Repeat("ä", 2000)
	var blocks []string
	for i := range 25 {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":"disk full %d"}`, i))
	}
	blocks[1] = `{"n":1.10,"type":"text","text":"` + long + `"}`
	w.clients = []*fakeClient{w.answers(`{"content":[` + strings.Join(blocks, ",") + `],"isError":true}`)}
	_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != ToolError || e.Members["artifact_ref"] != "mcp~x" {
		t.Fatalf("err = %#v, want tool-error with its artifact", err)
	}
	if e.Result == nil || !e.Result.IsError || !strings.Contains(string(e.Result.Content), long) {
		t.Errorf("the error does not have the whole result: %+v", e.Result)
	}
	if !strings.Contains(e.Msg, "disk full 0") {
		t.Errorf("message %q does not have the tool's own text", e.Msg)
	}
	content, err := json.Marshal(e.Members["content"])
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 4<<10 || !strings.Contains(string(content), `{"n":1.10,"type":"text","text":"ä`) {
		t.Errorf("content of %d bytes: %.200s", len(content), content)
	}
	if got := e.Members["content_count"]; got != 25 {
		t.Errorf("content_count = %v, want 25", got)
	}
	if w.done[0] != nil {
		t.Errorf("the breaker was told %v: a tool's own error is no news of the server", w.done[0])
	}
}

func TestOutputSchema(t *testing.T) {
	bad := checkerFunc(func([]byte) ([]byte, error) {
		return nil, &Error{Kind: InvalidArguments, Op: "x", Msg: "/n: not a number"}
	})
	odd := checkerFunc(func([]byte) ([]byte, error) { return nil, errors.New("out of order") })
	good := checkerFunc(func(b []byte) ([]byte, error) { return b, nil })
	tests := []struct {
		name, result string
		check        Checker
		breach       string
	}{
		{"fits", `{"content":[],"structuredContent":{"n":1}}`, good, ""},
		{"breaks", `{"content":[],"structuredContent":{"n":"x"}}`, bad, "/n: not a number"},
		{"breaks, says another error", `{"content":[],"structuredContent":{"n":"x"}}`, odd, "out of order"},
		{"missing", plain, good, "there is no structured content"},
		{"not checkable", `{"structuredContent":{}}`, nil, ""},
	}
	for _, tt := range tests {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s strict=%v", tt.name, strict), func(t *testing.T) {
				w := newWorld()
				w.clients = []*fakeClient{w.answers(tt.result)}
				tool := w.snapshot.Server("s").Tool("t")
				tool.Output, tool.Result, tool.Target.Strict = json.RawMessage(`{}`), tt.check, strict
				a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
				if tt.breach != "" && strict {
					if KindOf(err) != InvalidResult || !strings.Contains(err.Error(), tt.breach) {
						t.Errorf("err = %v, want invalid-result that says %q", err, tt.breach)
					}
					if e, ok := errors.AsType[*Error](err); !ok || e.Result == nil || string(e.Result.Raw) != tt.result {
						t.Errorf("the error does not have the result: %+v", e)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if tt.breach == "" && a.Breach != "" || !strings.HasSuffix(a.Breach, tt.breach) || strings.HasPrefix(a.Breach, "x: ") {
					t.Errorf("breach = %q, want %q", a.Breach, tt.breach)
				}
			})
		}
	}
}

// What View lists is what Invoke finds.
func TestViewAndInvokeAgree(t *testing.T) {
	w := newWorld()
	w.allows = func(h, tool string) bool { return h == "s" && tool != "hidden" }
	view := w.View(Caller{})
	if len(view.Servers) != 1 || view.Server("s") == nil {
		t.Fatalf("servers in view: %v", view.Servers)
	}
	for _, tool := range w.snapshot.Server("s").Tools {
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: tool.Name})
		if listed := view.Server("s").Tool(tool.Name) != nil; listed != (err == nil) {
			t.Errorf("tool %q: listed %v, call %v", tool.Name, listed, err)
		}
	}
	w.allows = nil
	if w.View(Caller{}).Server("s") != w.snapshot.Server("s") {
		t.Error("a server whose tools are all visible was copied")
	}
}
