package breaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

var (
	endpoint = bridge.EndpointID{Label: "mcp:one"}
	errFault = &bridge.Error{Kind: bridge.OutcomeUnknown, Msg: "the process exited", Fault: true}
)

// call makes one call that ends with result and reports whether it was allowed.
func call(b *Breaker, result error) bool {
	done, err := b.Allow(endpoint)
	if err != nil {
		return false
	}
	done(result)
	return true
}

func TestOpensAfterFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Failures: 3, Cooldown: time.Minute, MaxCooldown: 3 * time.Minute})
		for range 2 {
			call(b, errFault)
		}
		call(b, nil) // a success in between starts the count anew
		for range 3 {
			if !call(b, errFault) {
				t.Fatal("refused before three failures in a row")
			}
		}
		err := b.Open(endpoint)
		e, ok := errors.AsType[*bridge.Error](err)
		if !ok || e.Kind != bridge.Unavailable || e.RetryAfter != time.Minute {
			t.Fatalf("Open = %#v, want server-unavailable for 1m", err)
		}
		// Each failed probe doubles the cool-down, up to the limit.
		for _, cooldown := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
			time.Sleep(cooldown - time.Nanosecond)
			if call(b, nil) {
				t.Fatalf("allowed before the cool-down of %v", cooldown)
			}
			time.Sleep(time.Nanosecond)
			if !call(b, errFault) {
				t.Fatalf("no probe after the cool-down of %v", cooldown)
			}
		}
		time.Sleep(3 * time.Minute)
		for range 2 {
			if !call(b, nil) {
				t.Error("refused after a probe that succeeded")
			}
		}
	})
}

func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Cooldown: time.Minute})
		b.ConnectFailed(endpoint, errFault)
		time.Sleep(time.Minute)
		done, err := b.Allow(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Allow(endpoint); err == nil {
			t.Error("two probes at once")
		}
		done(context.Canceled) // proves nothing: the next call is the probe
		if !call(b, nil) {
			t.Error("no probe after one that was canceled")
		}
	})
}

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Cooldown: time.Minute})
		b.ConnectFailed(endpoint, errFault)
		if b.Open(endpoint) == nil {
			t.Fatal("closed after a failed connect")
		}
		time.Sleep(30 * time.Second)
		b.ConnectFailed(endpoint, errFault) // in the background, while it is open
		if e, _ := errors.AsType[*bridge.Error](b.Open(endpoint)); e == nil || e.RetryAfter != 30*time.Second {
			t.Errorf("Open = %v, want the rest of the first cool-down", e)
		}
		b.Connected(endpoint)
		if err := b.Open(endpoint); err != nil {
			t.Errorf("Open = %v after a connection, want nil", err)
		}
	})
}

// Calls on a connection that broke count once, whenever they were allowed.
func TestOneBreakCountsOnce(t *testing.T) {
	b := New(Options{Failures: 2})
	broke := func(conn uint64) *bridge.Error {
		return &bridge.Error{Kind: bridge.OutcomeUnknown, Msg: "the process exited", Fault: true, Conn: conn}
	}
	for range 10 {
		call(b, broke(7))
	}
	if err := b.Open(endpoint); err != nil {
		t.Errorf("one broken connection opened the circuit: %v", err)
	}
	call(b, broke(8))
	if b.Open(endpoint) == nil {
		t.Error("closed after two connections that broke")
	}
	timeout := &bridge.Error{Kind: bridge.DeadlineExceeded, Fault: true}
	b.Reset(endpoint)
	call(b, timeout)
	call(b, timeout)
	if b.Open(endpoint) == nil {
		t.Error("two time-outs on a live connection count as one")
	}
}

// What says nothing about the server's health neither closes a circuit nor starts its count anew.
func TestNoNews(t *testing.T) {
	for name, noNews := range map[string]error{
		"the caller left": &bridge.Error{Kind: bridge.Canceled}, "the caller's own deadline": &bridge.Error{Kind: bridge.DeadlineExceeded},
		"nothing was sent": &bridge.Error{Kind: bridge.Unavailable, Replay: true}, "a bug of ours": errors.New("call aborted"),
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Options{Failures: 2, Cooldown: time.Minute})
			call(b, errFault)
			call(b, noNews)
			call(b, errFault)
			if b.Open(endpoint) == nil {
				t.Fatalf("%s: it started the count anew", name)
			}
			time.Sleep(time.Minute)
			call(b, noNews)
			if s := b.Stats(endpoint); s.State != HalfOpen {
				t.Errorf("%s: it made a half-open circuit %s", name, s.State)
			}
			call(b, &bridge.Error{Kind: bridge.UpstreamError}) // an answer, if not a good one
			if s := b.Stats(endpoint); s.State != Closed {
				t.Errorf("%s: an answer left the circuit %s", name, s.State)
			}
		})
	}
}

// A success from before an opening is stale, also when the circuit was closed and forgotten in between.
func TestStaleSuccessAfterClosing(t *testing.T) {
	b := New(Options{Failures: 1})
	late, err := b.Allow(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	call(b, errFault)
	b.Reset(endpoint)
	call(b, errFault)
	late(nil)
	if b.Open(endpoint) == nil {
		t.Error("a stale success closed the circuit")
	}
}

// A success that comes in after the circuit opened is stale.
func TestStaleSuccess(t *testing.T) {
	b := New(Options{Failures: 1})
	late, err := b.Allow(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	call(b, errFault)
	late(nil)
	if b.Open(endpoint) == nil {
		t.Error("a stale success closed the circuit")
	}
}

func TestRefusedCredentialOpensAtOnce(t *testing.T) {
	b := New(Options{Failures: 2})
	for range 3 {
		call(b, &bridge.Error{Kind: bridge.UpstreamAuth, Msg: "403"}) // for this call alone
	}
	if err := b.Open(endpoint); err != nil {
		t.Errorf("open after calls that were forbidden: %v", err)
	}
	call(b, &bridge.Error{Kind: bridge.UpstreamAuth, Msg: "401", Fault: true})
	if b.Open(endpoint) == nil {
		t.Error("closed after a refused credential")
	}
}

func TestStatsAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Cooldown: time.Minute})
		want := func(state State, failures int) {
			t.Helper()
			if s := b.Stats(endpoint); s.State != state || s.Failures != failures || (s.Reason == "") != (state == Closed) || s.Until.IsZero() != (state != Opened) {
				t.Errorf("stats = %+v, want %s after %d failures", s, state, failures)
			}
		}
		want(Closed, 0)
		call(b, errFault)
		want(Closed, 1)
		b.ConnectFailed(endpoint, errFault)
		want(Opened, 2)
		time.Sleep(time.Minute)
		want(HalfOpen, 2)
		b.Reset(endpoint)
		want(Closed, 0)
		if err := b.Open(endpoint); err != nil {
			t.Errorf("Open = %v after a reset", err)
		}
	})
}

// 100 callers at the end of a cool-down make one call.
func TestOneProbeOf100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Cooldown: time.Minute})
		b.ConnectFailed(endpoint, errFault)
		time.Sleep(time.Minute)
		var calls atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				done, err := b.Allow(endpoint)
				if err != nil {
					return
				}
				calls.Add(1)
				time.Sleep(time.Second)
				done(errFault)
			})
		}
		wg.Wait()
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls, want 1", got)
		}
	})
}

func BenchmarkOpenCircuit(b *testing.B) {
	br := New(Options{})
	br.ConnectFailed(endpoint, errFault)
	b.ReportAllocs()
	for b.Loop() {
		if br.Open(endpoint) == nil {
			b.Fatal("closed")
		}
	}
}

func BenchmarkClosedCircuit(b *testing.B) {
	br := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		done, err := br.Allow(endpoint)
		if err != nil {
			b.Fatal(err)
		}
		done(nil)
	}
}
