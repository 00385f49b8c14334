package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// sampled is a sample of so many nanoseconds; the stack has the innermost function first.
func sampled(ns int64, stack ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{1, ns}}
	for _, name := range stack {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
	}
	return s
}

func TestComposition(t *testing.T) {
	handler := []string{"mcpbridge/internal/routes.(*exchange).invoke", "github.com/go-chi/chi/v5.(*Mux).ServeHTTP", "net/http.(*conn).serve"}
	under := func(names ...string) []string { return append(names, handler...) }
	p := &profile.Profile{Sample: []*profile.Sample{
		sampled(40_000, "internal/runtime/syscall/linux.Syscall6", "syscall.write", "net.(*conn).Write", "net/http.checkConnErrorWriter.Write", "net/http.(*conn).serve"),
		sampled(10_000, under("runtime.memmove", "mcpbridge/internal/raw.Check", "mcpbridge/internal/bridge.(*Bridge).strict", "mcpbridge/internal/bridge.(*Bridge).Invoke")...),
		sampled(6_000, under("runtime.nextFreeFast", "runtime.mallocgcSmallScanNoHeader", "runtime.newobject")...),
		sampled(4_000, under("net/http.(*Request).SetPathValue")...),
		sampled(9_000, "runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker"),
		sampled(1_000, "runtime.futex", "runtime.findRunnable", "runtime.mcall"),
		sampled(7_000, "runtime.traceStack", "runtime.reentersyscall", "syscall.write", "net/http.(*conn).serve"),
	}}
	got := compositionOf(p, 10, 32)
	want := [][]string{
		{"net/http: requests in, answers out", "4.0 µs", "57 %", "0.0 µs", "4.0 µs"},
		{"checking the arguments", "1.0 µs", "14 %", "0.0 µs", "0.0 µs"},
		{"garbage collection, beside allocating", "0.9 µs", "13 %", "0.0 µs", "0.0 µs"},
		{"routes: reading the request, writing the answer", "0.6 µs", "9 %", "0.6 µs", "0.0 µs"},
		{"chi and huma", "0.4 µs", "6 %", "0.0 µs", "0.0 µs"},
		{"the scheduler, and whatever else the runtime does", "0.1 µs", "1 %", "0.0 µs", "0.1 µs"},
		{"all", "7.0 µs", "100 %", "0.6 µs", "4.1 µs"},
	}
	if d := cmp.Diff(want, got.rows); d != "" {
		t.Errorf("the rows are others (-want +got):\n%s", d)
	}
	if !strings.Contains(got.foot, "10.0 calls") || !strings.Contains(got.foot, "10 % more") {
		t.Errorf("the foot is %q", got.foot)
	}
}

func TestNoProfile(t *testing.T) {
	for _, answer := range []http.HandlerFunc{
		http.NotFound,
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no profile")) },
	} {
		srv := httptest.NewServer(answer)
		if p, err := fetchProfile(t.Context(), srv.Listener.Addr().String(), 1); err == nil {
			t.Errorf("a profile with %d samples came of it", len(p.Sample))
		}
		srv.Close()
	}
	if _, err := fetchProfile(t.Context(), "127.0.0.1:1", 1); err == nil {
		t.Error("a profile came from nowhere")
	}
}

// A load that fails before the profile is whole would make each call look cheap.
func TestProfileOfAFailingLoad(t *testing.T) {
	var answered atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/calls", func(w http.ResponseWriter, _ *http.Request) {
		if answered.Add(1) == 50 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	if _, _, err := profileUnder(t.Context(), post(addr, "/calls", "", "{}"), 2, addr, 1); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("err = %v", err)
	}
	p, calls, err := profileUnder(t.Context(), post(addr, "/calls", "", "{}"), 2, addr, 1)
	if err != nil || p.DurationNanos < 9e8 || calls < 1 || calls > float64(answered.Load()) {
		t.Errorf("%v calls of %d, %v", calls, answered.Load(), err)
	}
}
