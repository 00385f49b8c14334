package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcptest"
)

// 10,000 calls that are cut off at random leave no slot, waiter, process or goroutine.
func TestAbortedCallsLeaveNothing(t *testing.T) {
	mcptest.NoLeaks(t) // looks when everything below is closed
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	file, err := json.Marshal(map[string]any{
		"mcpServers": map[string]server{"ok": with(mode(t, "ok"), "maxConcurrent", 8), "remote": {"url": remote.URL}},
		"bridge":     map[string]any{"cancelGrace": "20ms", "queue": map[string]any{"maxWaiting": 64}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Read(strings.NewReader(string(file)), "bridge.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	keeper, _, err := newKeeper(cfg.Bridge.Artifacts, slog.New(slog.DiscardHandler)) // in memory: there is nothing to close
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(cfg, slog.New(slog.DiscardHandler), keeper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	a.run(context.Background())
	if err := a.catalogue.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.handler(keeper, true, new(atomic.Bool)))
	t.Cleanup(srv.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)

	var wg sync.WaitGroup
	var answered atomic.Int32
	turns := make(chan int)
	for w := range 48 {
		r := rand.New(rand.NewPCG(1, uint64(w)))
		wg.Go(func() {
			for i := range turns {
				tool, args := "echo", `{"message":"x"}`
				if i%4 == 0 {
					tool, args = "slow", `{"seconds":0.02,"every":0.01}`
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Int64N(int64(50*time.Millisecond))))
				if callOnce(ctx, transport, srv.URL+"/tools/"+[]string{"ok", "ok", "remote"}[i%3]+"/"+tool, args) {
					answered.Add(1)
				}
				cancel()
			}
		})
	}
	for i := range 10000 {
		turns <- i
	}
	close(turns)
	wg.Wait()
	until(t, "all slots, users and places in line are back", func() bool {
		gates, pool := a.gate.Stats(), a.pool.Stats()
		for _, g := range gates.Accounts {
			if g.Account.Kind != bridge.EndpointRate && g.InUse != 0 {
				return false
			}
		}
		for _, e := range pool.Endpoints {
			if e.Users != 0 {
				return false
			}
		}
		return gates.Waiting == 0 && pool.Processes == 1
	})
	for _, handle := range []string{"ok", "remote"} {
		if !callOnce(t.Context(), transport, srv.URL+"/tools/"+handle+"/echo", `{"message":"x"}`) {
			t.Errorf("%s does not answer any more", handle)
		}
	}
	if n := answered.Load(); n == 0 || n == 10000 {
		t.Errorf("%d of 10000 calls were answered; the test cut off none, or all", n)
	}
	t.Logf("%d of 10000 calls were answered", answered.Load())
}

// callOnce makes one call and reports whether it was answered with 200.
func callOnce(ctx context.Context, transport *http.Transport, url, args string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(args))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}
