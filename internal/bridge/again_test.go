package bridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errGone = &Error{Kind: Unavailable, Msg: "The server is no longer served here.", Gone: true}

// replaced is a snapshot in which the server of w's is another one.
func replaced(endpoint string, check Checker) *Snapshot {
	target := &Target{Handle: "s", Endpoint: EndpointID{Label: endpoint}, Timeout: 7 * time.Second, MaxTimeout: time.Minute}
	return NewSnapshot(2, true, []*Server{{Handle: "s", State: Ready, Tools: []*Tool{{Handle: "s", Name: "t", Target: target, Arguments: check}}}})
}

// hasGone makes so many clients fail because their endpoint has gone, and calls then each time.
func (w *world) hasGone(times int, then func()) {
	w.client = func(*Target) error {
		if times == 0 {
			return nil
		}
		times--
		then()
		return errGone
	}
}

// checkFunc is a checker.
type checkFunc func([]byte) ([]byte, error)

func (f checkFunc) Check(b []byte) ([]byte, error) { return f(b) }

// A call whose server was replaced after its tool was found runs on the new one, with its settings and its check.
func TestCallIsFoundAgain(t *testing.T) {
	w := newWorld()
	w.hasGone(1, func() {
		w.snapshot = replaced("new", checkFunc(func([]byte) ([]byte, error) { return []byte(`{"checked":"anew"}`), nil }))
	})
	var got Request
	w.clients[0].call = func(_ context.Context, r Request, letGo func()) (*Result, error) {
		letGo()
		got = r
		return ParseResult([]byte(plain))
	}
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Args: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Args) != `{"checked":"anew"}` || got.Idle != 7*time.Second || a.Tool.Target.Endpoint.Label != "new" {
		t.Errorf("ran with %s, idle %v, on %q; want what the new server says", got.Args, got.Idle, a.Tool.Target.Endpoint.Label)
	}
	want := []string{"spend", "open?", "client", "open?", "client", "admit", "permit", "call", "keep", "unspend"}
	if diff := cmp.Diff(want, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestCallIsNotFoundAgain(t *testing.T) {
	tests := []struct {
		name  string
		times int
		then  func(*world)
		want  Kind
	}{
		{"the server was removed", 1, func(w *world) { w.snapshot = NewSnapshot(2, true, nil) }, NotFound},
		{"the arguments do not fit any more", 1, func(w *world) {
			w.snapshot = replaced("new", checkFunc(func([]byte) ([]byte, error) { return nil, &Error{Kind: InvalidArguments, Msg: "x"} }))
		}, InvalidArguments},
		{"the new one's circuit is open", 1, func(w *world) { w.openErr = &Error{Kind: Overloaded, Msg: "open"} }, Overloaded},
		{"it goes again and again", 1000, func(*world) {}, Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.hasGone(tt.times, func() { tt.then(w) })
			_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
			if KindOf(err) != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
			if n := strings.Count(strings.Join(w.steps, " "), "client"); n > 11 {
				t.Errorf("%d tries", n)
			}
		})
	}
}

// The first call to a server of the caller's own waits until that is connected.
func TestCallWaitsForItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		found := w.snapshot
		w.snapshot = NewSnapshot(1, true, []*Server{{Handle: "s", State: Idle}})
		settled := make(chan struct{})
		var attached []string
		w.attach = func(_ Caller, handle string, headers bool) (<-chan struct{}, error) {
			if !headers {
				t.Error("a call attached as a document does")
			}
			attached = append(attached, handle)
			return settled, nil
		}
		go func() {
			time.Sleep(3 * time.Second)
			synctest.Wait() // the call waits
			w.snapshot = found
			close(settled)
		}()
		c := &Call{Handle: "s", Tool: "t"}
		if _, err := w.Invoke(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"s"}, attached); diff != "" || c.Timing.Connect != 3*time.Second || c.Timing.Find != 0 {
			t.Errorf("attached %v, timing %+v; want once, and 3s to connect", attached, c.Timing)
		}
	})
}

// What is connected already, for somebody with whom the caller shares it, is there at once.
func TestCallOfWhatIsConnected(t *testing.T) {
	w := newWorld()
	found := w.snapshot
	w.attach = func(Caller, string, bool) (<-chan struct{}, error) {
		w.snapshot = found
		return nil, nil
	}
	for name, use := range map[string]func() error{
		"Invoke": func() error { _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"}); return err },
		"Find":   func() error { _, err := w.Find(&Call{Handle: "s", Tool: "t"}); return err },
		"View": func() error {
			if w.View(Caller{}).Server("s").Tool("t") == nil {
				return errors.New("the tool is not there")
			}
			return nil
		},
	} {
		w.snapshot = NewSnapshot(1, true, []*Server{{Handle: "s", State: Idle}})
		if err := use(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallThatCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.snapshot = NewSnapshot(1, true, []*Server{{Handle: "s", State: Idle}})
		w.attach = func(Caller, string, bool) (<-chan struct{}, error) { return make(chan struct{}), nil }
		start := time.Now()
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Timeout: 2 * time.Second})
		if KindOf(err) != DeadlineExceeded || time.Since(start) != 2*time.Second {
			t.Errorf("err = %v after %v, want deadline-exceeded after 2s", err, time.Since(start))
		}
		w.snapshot = NewSnapshot(1, true, []*Server{{Handle: "s", State: Connecting}})
		if _, err := w.Find(&Call{Handle: "s", Tool: "t"}); KindOf(err) != NotReady {
			t.Errorf("Find: err = %v, want not-ready at once", err)
		}
		w.attach = func(Caller, string, bool) (<-chan struct{}, error) {
			return nil, &Error{Kind: Forbidden, Msg: "no user"}
		}
		if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"}); KindOf(err) != Forbidden {
			t.Errorf("err = %v, want forbidden", err)
		}
		w.allows = func(string, string) bool { return false }
		if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"}); KindOf(err) != NotFound {
			t.Errorf("a caller who may not: err = %v, want not-found", err)
		}
		if len(w.steps) != 0 {
			t.Errorf("steps %v, want none", w.steps)
		}
	})
}

// A view begins to connect what the caller may see, and Attach that and what takes headers.
func TestViewAttaches(t *testing.T) {
	w := newWorld()
	listed := time.Now()
	before := NewSnapshot(1, true, []*Server{
		{Handle: "own", State: Idle},
		{Handle: "hidden", State: Idle},
		{Handle: "failing", State: Idle},
		{Handle: "rests", State: Idle, Listed: listed},
		{Handle: "starts", State: Connecting},
	})
	after := NewSnapshot(2, true, []*Server{{Handle: "own", State: Connecting}})
	w.allows = func(h, _ string) bool { return h != "hidden" }
	var got []string
	w.attach = func(_ Caller, handle string, headers bool) (<-chan struct{}, error) {
		if handle == "failing" {
			return nil, errors.New("x")
		}
		if headers {
			handle += " with headers"
		}
		got = append(got, handle)
		w.snapshot = after
		return make(chan struct{}), nil
	}
	w.snapshot = before
	if view := w.View(Caller{}); view.Server("own").State != Connecting {
		t.Error("the view is that of before")
	}
	w.snapshot = before
	w.Bridge.Attach(Caller{})
	if diff := cmp.Diff([]string{"own", "own with headers"}, got); diff != "" {
		t.Errorf("attached (-want +got):\n%s", diff)
	}
}
