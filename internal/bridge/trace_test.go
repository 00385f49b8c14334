package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const aParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParseTrace(t *testing.T) {
	for _, tt := range []struct{ parent, want string }{
		{aParent, aParent},
		{strings.TrimSuffix(aParent, "1") + "0", strings.TrimSuffix(aParent, "1") + "0"},
		{"cc" + aParent[2:], aParent}, // of a later version
		{"cc" + aParent[2:] + "-what-the-future-will-be-like", aParent},
		{"", ""},
		{aParent + "-x", ""},
		{"cc" + aParent[2:] + ".x", ""},
		{"ff" + aParent[2:], ""},
		{strings.ToUpper(aParent), ""},
		{aParent[:54], ""},
		{strings.Replace(aParent, "-01", ".01", 1), ""},
		{strings.Replace(aParent, "-4b", "_4b", 1), ""},
		{strings.Replace(aParent, "36-", "36_", 1), ""},
		{strings.Replace(aParent, "4bf", "4xf", 1), ""},
		{strings.Replace(aParent, "00f067", "00f06\n", 1), ""},
		{aParent[:53] + "0g", ""},
		{"00-00000000000000000000000000000000-00f067aa0ba902b7-01", ""},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", ""},
	} {
		got := ParseTrace(tt.parent, "rojo=1")
		want := Trace{tt.want, "rojo=1"}
		if tt.want == "" {
			want = Trace{}
		}
		if got != want {
			t.Errorf("ParseTrace(%q) = %q, want %q", tt.parent, got, want)
		}
	}
	for state, want := range map[string]string{
		"":                        "",
		`a="x\"`:                  `a="x\"`,
		"a=\n":                    "",
		"a=é":                     "",
		strings.Repeat("a", 1024): strings.Repeat("a", 1024),
		strings.Repeat("a", 1025): "",
	} {
		if got := ParseTrace(aParent, state); got.State != want || got.Parent != aParent {
			t.Errorf("with the state %q it is %q", state, got)
		}
	}
}

func TestTraceOf(t *testing.T) {
	h := map[string][]string{"Traceparent": {aParent}, "Tracestate": {"a=1", "b=2"}}
	if got, want := TraceOf(h), (Trace{aParent, "a=1,b=2"}); got != want {
		t.Errorf("TraceOf(%v) = %v, want %v", h, got, want)
	}
	h["Traceparent"] = []string{aParent, aParent}
	if got := TraceOf(h); got != (Trace{}) {
		t.Errorf("of two traceparents one is taken: %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { TraceOf(map[string][]string(nil)) }); n != 0 {
		t.Errorf("%v allocations for a request without a trace", n)
	}
}

func TestTraceMeta(t *testing.T) {
	if got := string(Trace{aParent, `a="\`}.Meta()); got != `"traceparent":"`+aParent+`","tracestate":"a=\"\\"` {
		t.Errorf("Meta() = %s", got)
	}
	if got := string(Trace{Parent: aParent}.Meta()); got != `"traceparent":"`+aParent+`"` {
		t.Errorf("Meta() = %s", got)
	}
	if got := (Trace{}).Meta(); got != nil {
		t.Errorf("of no trace Meta() = %s", got)
	}
	if got := (Trace{Parent: aParent}).ID(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("ID() = %s", got)
	}
	if got := (Trace{}).ID(); got != "" {
		t.Errorf("of no trace ID() = %s", got)
	}
}

// A tracer notes what it is told.
type tracer struct{ told []string }

func (r *tracer) Step(t Trace, name string, began time.Time, err error) {
	r.told = append(r.told, fmt.Sprintf("%s %s %v %v", t.Parent, name, began.IsZero(), err))
}

func (r *tracer) Request(t Trace, q Request) (Trace, func(*Result, error)) {
	r.told = append(r.told, fmt.Sprintf("%s calls %s", t.Parent, q.Tool.Name))
	return Trace{Parent: "ours"}, func(res *Result, err error) {
		r.told = append(r.told, fmt.Sprintf("answered %v %v by %s", res != nil, err, q.Wire.ID))
	}
}

func TestTracer(t *testing.T) {
	w := newWorld()
	var sent Request
	answer := w.clients[0].call
	w.clients[0].call = func(ctx context.Context, r Request, letGo func()) (*Result, error) {
		sent = r
		if r.Wire != nil {
			r.Wire.ID = "7"
		}
		return answer(ctx, r, letGo)
	}
	call := func() error {
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Trace: Trace{Parent: "theirs"}})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if sent.Trace.Parent != "theirs" || sent.Wire != nil {
		t.Errorf("without a tracer the trace goes on as %v", sent.Trace)
	}

	var tr tracer
	w.Tracer = &tr
	if err := call(); err != nil {
		t.Fatal(err)
	}
	want := []string{"theirs admission false <nil>", "theirs calls t", "answered true <nil> by 7", "theirs store false <nil>"}
	if d := cmp.Diff(want, tr.told); d != "" || sent.Trace.Parent != "ours" {
		t.Errorf("the server was sent %v; %s", sent.Trace, d)
	}

	tr.told = nil
	w.admitErr = errors.New("full")
	if err := call(); err == nil {
		t.Fatal("it was admitted")
	}
	w.clientErr = errors.New("down")
	if err := call(); err == nil {
		t.Fatal("it was connected")
	}
	if d := cmp.Diff([]string{"theirs admission false full", "theirs connect false down"}, tr.told); d != "" {
		t.Error(d)
	}
}

// A call without a tracer costs nothing more than before there were any.
func TestNoTracerNoAllocation(t *testing.T) {
	w := newWorld()
	c := &Call{}
	began := time.Now()
	if n := testing.AllocsPerRun(100, func() { w.Bridge.step(c, "admission", began, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
