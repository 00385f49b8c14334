package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcptest"
)

// A served is an app that runs in this process until the test ends.
type served struct {
	*app
	t *testing.T
}

func serveApp(t *testing.T, servers map[string]server) *served {
	t.Helper()
	a, err := newApp(readConfig(t, servers), slog.New(slog.DiscardHandler), artifacts.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	a.run(t.Context())
	if err := a.catalogue.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &served{a, t}
}

func readConfig(t *testing.T, servers map[string]server) *config.Config {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Read(strings.NewReader(string(b)), "test.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// apply serves other servers from now on.
func (s *served) apply(servers map[string]server) {
	s.t.Helper()
	list, err := s.servers(readConfig(s.t, servers).Servers)
	if err == nil {
		_, err = s.catalogue.Apply(s.t.Context(), list, nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// call calls a tool and returns its first text.
func (s *served) call(c bridge.Caller, handle, tool, args string) (string, error) {
	a, err := s.bridge.Invoke(s.t.Context(), &bridge.Call{Handle: handle, Tool: tool, Args: []byte(args), Caller: c})
	if err != nil {
		return "", err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(a.Result.Raw, &r); err != nil || len(r.Content) == 0 {
		return "", fmt.Errorf("no text in %s: %w", a.Result.Raw, err)
	}
	return r.Content[0].Text, nil
}

// A server is added, changed and removed under load without one failed call, and no old process is left.
func TestSwapUnderLoad(t *testing.T) {
	mcptest.NoLeaks(t)
	const callers, swaps = 32, 60
	version := func(n int) server {
		return with(mode(t, "ok"), "env", map[string]string{"VERSION": fmt.Sprint(n)})
	}
	kept := version(-1)
	s := serveApp(t, map[string]server{"kept": kept, "changing": version(0)})
	pid, err := s.call(s.anonymous, "kept", "pid", "{}")
	if err != nil {
		t.Fatal(err)
	}

	var applied atomic.Int64 // the version that has been applied last
	var calls, absent atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				calls.Add(1)
				switch n % 4 {
				case 0:
					if got, err := s.call(s.anonymous, "kept", "pid", "{}"); err != nil || got != pid {
						t.Errorf("kept: %q, %v; want the process %s all the time", got, err, pid)
					}
				case 1: // is removed and comes back
					_, err := s.call(s.anonymous, "coming", "echo", "{}")
					if bridge.KindOf(err) == bridge.NotFound {
						absent.Add(1)
					} else if err != nil {
						t.Errorf("coming: %v", err)
					}
				case 2: // is long enough for a swap to come in between
					if _, err := s.call(s.anonymous, "changing", "slow", `{"seconds":0.2}`); err != nil {
						t.Errorf("changing, slow: %v", err)
					}
				default:
					least := applied.Load()
					got, err := s.call(s.anonymous, "changing", "env", `{"name":"VERSION"}`)
					var version int64
					if err == nil {
						_, err = fmt.Sscan(got, &version)
					}
					if err != nil || version < least {
						t.Errorf("changing: version %q, %v; %d had been applied", got, err, least)
					}
				}
			}
		})
	}
	start := time.Now()
	for n := 1; n <= swaps && !t.Failed(); n++ {
		servers := map[string]server{"kept": kept, "changing": version(n)}
		if n%2 == 1 {
			servers["coming"] = mode(t, "ok", "coming")
		}
		s.apply(servers)
		applied.Store(int64(n))
		_, err := s.call(s.anonymous, "coming", "echo", "{}")
		if there := n%2 == 1; there != (err == nil) || !there && bridge.KindOf(err) != bridge.NotFound {
			t.Errorf("swap %d: coming there %v, err = %v", n, there, err)
		}
	}
	close(done)
	wg.Wait()
	t.Logf("%d swaps and %d calls in %v, none failed; %d came while the server was removed", swaps, calls.Load(), time.Since(start).Round(time.Millisecond), absent.Load())
	until(t, "only the processes of kept and changing are left", func() bool {
		return s.pool.Stats().Processes == 2 && len(s.pool.Stats().Endpoints) == 2
	})
}
