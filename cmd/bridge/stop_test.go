package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On SIGTERM /readyz says no at once, while calls are served until the delay is
// over, also new ones on new connections; those under way then still end well.
func TestDrainDelay(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"drainDelay": "2s"})
	p.ready()
	kept := &http.Transport{} // with one idle connection
	defer kept.CloseIdleConnections()
	before := echo(t, kept, p.base)
	if before.Close {
		t.Error("a connection is closed although nothing stops")
	}
	slow := make(chan response, 1)
	go func() { slow <- p.call("ok", "slow", `{"seconds":3}`, 200) }() // longer than the delay
	until(t, "the call is on its way", func() bool {
		_, _, gates := p.status()
		return gates["mcp:stdio slots"].InUse == 1
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "it is not ready", func() bool { return p.get("/readyz").StatusCode == http.StatusServiceUnavailable })
	wantProblem(t, p.get("/readyz"), http.StatusServiceUnavailable, "not-ready", "about to stop")
	if got := p.get("/healthz").StatusCode; got != http.StatusOK {
		t.Errorf("/healthz = %d while it drains", got)
	}
	if res := echo(t, kept, p.base); res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("on a connection that is kept: %d, closed %t; want 200 and the connection closed", res.StatusCode, res.Close)
	}
	if res := echo(t, &http.Transport{DisableKeepAlives: true}, p.base); res.StatusCode != http.StatusOK {
		t.Errorf("on a new connection: %d", res.StatusCode)
	}
	if res := <-slow; res.StatusCode != http.StatusOK {
		t.Errorf("the call under way: %d", res.StatusCode)
	}
	<-p.exited
	if p.err != nil {
		t.Errorf("the bridge ended with %v", p.err)
	}
	if strings.Contains(p.log(), "request failed") {
		t.Error("the log has a line for each probe that is told no")
	}
	p.wantNoProcess()
}

// echo makes a call over a transport of its own and reads the answer.
func echo(t *testing.T, transport http.RoundTripper, base string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/tools/ok/echo", strings.NewReader(`{"message":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// Nobody who presses Ctrl-C, or signals twice, waits for balancers to notice.
func TestNoDrainDelay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		signals []syscall.Signal
		died    bool
	}{
		{"Ctrl-C", []syscall.Signal{syscall.SIGINT}, false},
		{"SIGTERM twice", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"drainDelay": "10m"})
			p.ready()
			for i, sig := range tt.signals {
				if i > 0 {
					until(t, "the first signal has come", func() bool { return strings.Contains(p.log(), "stopping; ") })
				}
				if err := p.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-p.exited:
			case <-time.After(time.Minute):
				t.Fatal("it waits for the delay")
			}
			if (p.err != nil) != tt.died {
				t.Errorf("it ended with %v", p.err)
			}
			p.wantNoProcess()
		})
	}
}

// The context of the program is a cancelled one, and says why.
func TestUntilSignal(t *testing.T) {
	ctx, stop := untilSignal(t.Context())
	stop()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without a signal: %v", err)
	}
	err := error(signalled{syscall.SIGTERM})
	if !errors.Is(err, context.Canceled) || err.Error() != "terminated signal received" {
		t.Errorf("with a signal: %v", err)
	}
}
