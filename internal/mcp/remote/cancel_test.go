package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

func TestCancel(t *testing.T) {
	const short, long = 300 * time.Millisecond, 30 * time.Second
	type result struct {
		err   error
		took  time.Duration
		letGo time.Duration
	}
	// run makes a call that hangs, or answers late once release is closed.
	run := func(t *testing.T, era string, h handler, grace time.Duration, cancelled bool, change func(*rpc.Request)) (result, *server) {
		t.Helper()
		leakFree(t)
		s := sessionServer(t, h)
		s.set("server/discover", answerJSON(discovered))
		c := dial(t, Options{URL: s.URL, Protocol: era, Options: rpc.Options{CancelGrace: grace}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		let := make(chan time.Time, 2)
		r := request1(`{}`)
		r.LetGo = func() { let <- time.Now() }
		if change != nil {
			change(r)
		}
		var began time.Time
		if cancelled {
			go func() {
				s.await(t, "tools/call", 1)
				cancel()
			}()
		}
		began = time.Now()
		_, err := c.Do(ctx, r)
		took := time.Since(began)
		at := <-let
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		select {
		case <-let:
			t.Error("LetGo was called twice")
		default:
		}
		return result{err, took, at.Sub(began)}, s
	}

	t.Run("the caller goes away", func(t *testing.T) {
		got, s := run(t, v20251125, hang, short, true, nil)
		if !errors.Is(got.err, context.Canceled) || got.letGo < short {
			t.Errorf("got %+v, want it let go after %s", got, short)
		}
		m := s.got("notifications/cancelled")
		if len(m) != 1 {
			t.Fatalf("%d cancellations came", len(m))
		}
		want := `{"requestId":` + s.got("tools/call")[0].id + `,"reason":"the caller went away"}`
		if string(m[0].params) != want || m[0].header.Get("Mcp-Session-Id") != "s1" {
			t.Errorf("cancellation is %s with %v, want %s", m[0].params, m[0].header, want)
		}
	})
	t.Run("the time is up", func(t *testing.T) {
		got, s := run(t, v20251125, hang, short, false, func(r *rpc.Request) { r.Total = 100 * time.Millisecond })
		failed(t, got.err, rpc.Deadline)
		if !errors.Is(got.err, rpc.ErrDeadline) || got.letGo < 100*time.Millisecond+short {
			t.Errorf("got %+v", got)
		}
		if m := s.got("notifications/cancelled"); len(m) != 1 || !strings.Contains(string(m[0].params), "time for it was up") {
			t.Errorf("cancellations: %s", m)
		}
	})
	t.Run("the caller's own deadline", func(t *testing.T) {
		s := sessionServer(t, hang)
		c := dial(t, pinned(s))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := c.Do(ctx, request1(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("the stream ends after the cancellation", func(t *testing.T) {
		told := make(chan struct{})
		h := func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			stream(w)
			say(w, "id: 1\ndata:\n\n") // it could be resumed, but nobody wants it any more
			<-told
		}
		got, s := run(t, v20251125, h, long, true, func(*rpc.Request) {
			time.AfterFunc(100*time.Millisecond, func() { close(told) })
		})
		if got.letGo > long/2 {
			t.Errorf("got %+v, want it let go with the end of the stream", got)
		}
		if m := s.got("GET"); slices.ContainsFunc(m, func(m seen) bool { return m.header.Get("Last-Event-Id") != "" }) {
			t.Error("a stream that nobody waits for was resumed")
		}
	})
	t.Run("a late answer", func(t *testing.T) {
		h := func(w http.ResponseWriter, _ *http.Request, m *seen) {
			stream(w)
			time.Sleep(100 * time.Millisecond)
			say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
		}
		got, _ := run(t, v20251125, h, long, true, nil)
		if got.took > long/2 || got.letGo < 50*time.Millisecond || got.letGo > long/2 {
			t.Errorf("got %+v, want it let go with the late answer", got)
		}
	})
	t.Run("progress after the cancellation", func(t *testing.T) {
		h := func(w http.ResponseWriter, r *http.Request, m *seen) {
			stream(w)
			for r.Context().Err() == nil {
				say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s}}\n\n", m.id)
				time.Sleep(20 * time.Millisecond)
			}
		}
		for _, tt := range []struct{ idle, total time.Duration }{{0, 500 * time.Millisecond}, {500 * time.Millisecond, time.Hour}} {
			var mu sync.Mutex
			returned := false
			got, _ := run(t, v20251125, h, short, true, func(r *rpc.Request) {
				r.Idle, r.Total = tt.idle, tt.total
				r.Progress = func(jsonRaw) {
					mu.Lock()
					defer mu.Unlock()
					if returned {
						t.Error("progress after Do returned")
					}
				}
				letGo := r.LetGo
				r.LetGo = func() { mu.Lock(); returned = true; mu.Unlock(); letGo() }
			})
			if got.letGo < 700*time.Millisecond || got.letGo > long/2 {
				t.Errorf("%v: got %+v, want it held while there is progress, until the deadline that stood and the grace are over", tt, got)
			}
		}
	})
	t.Run("modern", func(t *testing.T) {
		closed := make(chan struct{})
		h := func(_ http.ResponseWriter, r *http.Request, _ *seen) { <-r.Context().Done(); close(closed) }
		got, s := run(t, v20260728, h, long, true, nil)
		<-closed
		if !errors.Is(got.err, context.Canceled) || got.letGo > long/2 {
			t.Errorf("got %+v, want it let go at once", got)
		}
		if m := s.got("notifications/cancelled"); len(m) > 0 {
			t.Error("a cancellation was sent beside the closing of the stream")
		}
	})
	t.Run("the cancellation is not answered", func(t *testing.T) {
		s := sessionServer(t, hang)
		s.set("notifications/cancelled", status(400))
		c := dial(t, pinned(s))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { s.await(t, "tools/call", 1); cancel() }()
		if _, err := c.Do(ctx, request1(`{}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		s.await(t, "notifications/cancelled", 1)
		s.set("tools/call", answerJSON(`{}`))
		if _, err := call1(t, c, `{}`); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		s := sessionServer(t, hang)
		c := dial(t, pinned(s))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n := 0
		r := request1(`{}`)
		r.LetGo = func() { n++ }
		if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) || n != 1 {
			t.Errorf("error is %v, let go %d times", err, n)
		}
		if got := s.got("tools/call"); len(got) > 0 {
			t.Error("it was sent")
		}
	})
}

// TestCancelWhileConnecting: nothing was sent, so there is nothing to cancel, and no grace.
func TestCancelWhileConnecting(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	var stuck atomic.Bool
	dialing := make(chan struct{})
	told := sync.OnceFunc(func() { close(dialing) })
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if stuck.Load() {
			told()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	c := dial(t, Options{URL: s.URL, Protocol: v20251125, Transport: tr, Options: rpc.Options{CancelGrace: time.Minute}})
	s.await(t, "GET", 1)
	stuck.Store(true)
	defer stuck.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-dialing; cancel() }()
	let := make(chan struct{})
	r := request1(`{}`)
	r.LetGo = func() { close(let) }
	if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	<-let
	if got := s.got("notifications/cancelled"); len(got) > 0 {
		t.Error("a cancellation was sent for what was not")
	}
}

// TestAbortedCalls: many callers who go away leave nothing behind.
func TestAbortedCalls(t *testing.T) {
	for _, era := range []string{v20251125, v20260728} {
		t.Run(era, func(t *testing.T) {
			leakFree(t)
			s := sessionServer(t, hang)
			s.set("server/discover", answerJSON(discovered))
			c := dial(t, Options{URL: s.URL, Protocol: era, Options: rpc.Options{CancelGrace: 20 * time.Millisecond}})
			const calls = 1000
			var let atomic.Int32
			all := make(chan struct{})
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for i := range calls / 20 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%10)*time.Millisecond)
						r := request1(`{}`)
						r.LetGo = func() {
							if let.Add(1) == calls {
								close(all)
							}
						}
						if _, err := c.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("error is %v", err)
						}
						cancel()
					}
				})
			}
			wg.Wait()
			<-all
			if !c.quiet() {
				t.Error("calls are left")
			}
			s.set("tools/call", answerJSON("{}"))
			if _, err := call1(t, c, `{}`); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIdle: progress moves the idle deadline, also where nobody watches it.
func TestIdle(t *testing.T) {
	const idle, every, times = time.Second, 250 * time.Millisecond, 8
	// It reports progress to those who ask only, and then answers.
	steps := func(m *seen, send func(string)) {
		token := raw.Get(raw.Get(m.params, "_meta"), "progressToken")
		for range times {
			time.Sleep(every)
			if token != nil {
				send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) + `,"progress":1}}`)
			}
		}
		send(`{"jsonrpc":"2.0","id":` + m.id + `,"result":{}}`)
	}
	h := func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		steps(m, func(frame string) { say(w, "data: %s\n\n", frame) })
	}
	sse := newSSEServer(t, "/post", nil)
	sse.set("tools/call", func(w http.ResponseWriter, _ *http.Request, m *seen) {
		w.WriteHeader(202)
		w.(http.Flusher).Flush()
		steps(m, func(frame string) { sse.out <- "data: " + frame + "\n\n" })
	})
	for name, o := range map[string]Options{
		"session": pinned(sessionServer(t, h)),
		"modern":  {URL: modernServer(t, h).URL},
		"sse":     {URL: sse.URL, Protocol: SSE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, o)
			r := request1(`{}`)
			r.Idle, r.Total = idle, time.Minute
			if _, err := c.Do(t.Context(), r); err != nil {
				t.Errorf("Do = %v", err)
			}
		})
	}
	t.Run("of nothing but calls", func(t *testing.T) {
		s := sessionServer(t, nil)
		s.set("tools/list", answerJSON(`{}`))
		c := dial(t, pinned(s))
		if _, err := c.Do(t.Context(), &rpc.Request{Method: "tools/list", Idle: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if got := string(s.got("tools/list")[0].params); got != "{}" {
			t.Errorf("params are %s", got)
		}
	})
}
