package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
)

// text calls a tool and returns its result's text.
func (p *process) text(handle, tool, args string) string {
	p.t.Helper()
	return string(p.call(handle, tool, args, 200, "Accept", "text/plain").body)
}

func (p *process) pid(handle string) int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.text(handle, "pid", ``))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// together makes n calls at once and returns how often each text came back.
func (p *process) together(n int, handle, tool, args string) map[string]int {
	p.t.Helper()
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			text := p.text(handle, tool, args)
			mu.Lock()
			defer mu.Unlock()
			got[text]++
		})
	}
	wg.Wait()
	return got
}

// Trials L1 and L2: a child that was killed is started again, once, by whoever calls next.
func TestKilledServerComesBack(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	first := p.pid("ok")
	kill := func(pid int) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	kill(first)
	second := p.pid("ok")
	if second == first {
		t.Errorf("the killed process %d answered", first)
	}
	kill(second)
	got := p.together(20, "ok", "pid", ``)
	if len(got) != 1 || got[strconv.Itoa(second)] != 0 {
		t.Errorf("20 callers were answered by %v, want one new process", got)
	}
}

// Trial C2, and its exceptions: a call whose answer is lost is made again only if that does no harm.
func TestLostAnswers(t *testing.T) {
	for _, tt := range []struct {
		tool string
		runs int
	}{{"die", 1}, {"die_half", 1}, {"die_idempotent", 2}, {"die_read_only", 2}} {
		t.Run(tt.tool, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ran")
			p := start(t, map[string]server{"dies": mode(t, "die-in-call", file)}, nil)
			p.ready()
			if tt.runs == 1 {
				p.problem("dies", tt.tool, `{}`, 502, "outcome-unknown", "not known whether the tool ran")
			} else {
				p.call("dies", tt.tool, `{}`, 200)
			}
			ran, err := os.ReadFile(file)
			if err != nil || bytes.Count(ran, []byte("\n")) != tt.runs {
				t.Errorf("the tool ran %d times, want %d (%v)", bytes.Count(ran, []byte("\n")), tt.runs, err)
			}
		})
	}
}

// Trials L3 and L4: what goes wrong with a remote server is a problem in time, and the next call works.
func TestRemoteFaults(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	p := start(t, map[string]server{"r": {"url": remote.URL}}, nil)
	p.ready()
	p.problem("r", "http_status", `{"status":502}`, 502, "outcome-unknown", "502") // a gateway may have lost the answer
	p.problem("r", "http_type", `{}`, 502, "upstream-error", "")
	p.problem("r", "http_drop", `{}`, 502, "outcome-unknown", "")
	p.problem("r", "http_drop_stream", `{}`, 502, "outcome-unknown", "")
	if got := p.text("r", "echo", `{"message":"alive"}`); got != "alive" {
		t.Errorf("after the faults: %q", got)
	}
	p.problem("r", "http_status", `{"status":401}`, 502, "upstream-auth", "401")
	until(t, "the refused credential's circuit is shown", func() bool {
		_, endpoints, _ := p.status()
		return endpoints["mcp:r"].Circuit.State == "open"
	})
}

// Trial L3: a session that the server forgot is made anew, and the call once more.
func TestExpiredSession(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	p := start(t, map[string]server{"r": {"url": remote.URL}}, nil)
	p.ready()
	p.call("r", "http_expire", `{}`, 200)
	if got := p.text("r", "echo", `{"message":"again"}`); got != "again" {
		t.Errorf("after the session expired: %q", got)
	}
	got := p.together(20, "r", "echo", `{"message":"x"}`)
	if got["x"] != 20 {
		t.Errorf("20 callers got %v", got)
	}
}

// Trial L6: a server that is down at the start appears without a restart.
func TestServerComesUpLater(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	remote.Stop()
	p := start(t, map[string]server{"r": with(server{"url": remote.URL}, "reconnectDelay", "200ms")}, nil)
	p.ready()
	p.problem("r", "echo", `{"message":"x"}`, 503, "server-unavailable", "could not be started or reached")
	mcptest.StartAt(t, remote.Addr, mcptest.HTTPRaw, "ok")
	until(t, "the server is ready", func() bool { return p.do("POST", "/tools/r/echo", `{"message":"x"}`).StatusCode == 200 })
}

// Trial L15: a server that is slow to connect does not slow those who use others.
func TestSlowConnectHoldsUpNobody(t *testing.T) {
	p := start(t, map[string]server{"silent": mode(t, "never-answer-initialize"), "ok": mode(t, "ok")}, map[string]any{"readyGrace": "100ms", "pool": map[string]any{"stdioCalls": 2}})
	until(t, "the good one is ready", func() bool { return p.do("POST", "/tools/ok/echo", `{"message":"x"}`).StatusCode == 200 })
	for range 5 { // these wait for the silent one, and hold none of the two slots
		go func() { _ = p.do("POST", "/tools/silent/echo", `{}`) }()
	}
	if got := p.together(20, "ok", "echo", `{"message":"x"}`); got["x"] != 20 {
		t.Errorf("20 callers got %v", got)
	}
}

// Trial C1: when the caller hangs up, the server is told, with the right id, and the slot comes back.
func TestCallerHangsUp(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	p := start(t, map[string]server{"local": with(mode(t, "ok"), "maxConcurrent", 2), "remote": {"url": remote.URL}}, map[string]any{"cancelGrace": "300ms"})
	p.ready()
	for _, handle := range []string{"local", "remote"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", p.base+"/tools/"+handle+"/slow", strings.NewReader(`{"seconds":60}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		time.AfterFunc(500*time.Millisecond, cancel)
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			res.Body.Close()
			t.Fatalf("%s: answered with %d", handle, res.StatusCode)
		}
		var ids []json.Number
		if err := json.Unmarshal([]byte(p.text(handle, "cancelled", `{"count":1}`)), &ids); err != nil || len(ids) != 1 {
			t.Errorf("%s: the server was told to cancel %v (%v), want one request", handle, ids, err)
		}
		until(t, "the slot is back", func() bool {
			_, _, gates := p.status()
			return gates["mcp:stdio slots"].InUse == 0 && gates["mcp:http slots"].InUse == 0
		})
	}
}

// A server that is killed under load is started again, and nobody notices: what may run twice is
// called again, one broken connection is one failure, and the circuit stays closed.
func TestKilledUnderLoad(t *testing.T) {
	p := start(t, map[string]server{"ok": with(mode(t, "ok"), "maxConcurrent", 20)}, map[string]any{"queue": map[string]any{"maxWaitingPerCaller": 200}})
	p.ready()
	var failures, calls atomic.Int32
	var first sync.Once
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res := p.do("POST", "/tools/ok/echo", `{"message":"x"}`)
				calls.Add(1)
				if res.StatusCode != http.StatusOK {
					failures.Add(1)
					first.Do(func() { t.Logf("the first failure: %d %s", res.StatusCode, res.body) })
				}
			}
		})
	}
	for range 4 {
		pid := p.pid("ok") // whoever lost the last one is served again
		time.Sleep(500 * time.Millisecond)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	p.pid("ok")
	close(stop)
	wg.Wait()
	if n := failures.Load(); n > 0 {
		t.Errorf("%d of %d calls failed", n, calls.Load())
	}
	if _, endpoints, _ := p.status(); endpoints["mcp:ok"].Circuit.State != "closed" {
		t.Errorf("circuit = %+v", endpoints["mcp:ok"].Circuit)
	}
}
