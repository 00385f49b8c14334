package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
)

// A cancellation overtakes the calls that wait for a server which reads too slowly, and one of these
// that is given up is never sent.
func TestCancelOvertakesWhatIsQueued(t *testing.T) {
	p := start(t, map[string]server{"s": with(mode(t, mcptest.Pauses), "maxConcurrent", 20)}, map[string]any{"cancelGrace": "300ms"})
	p.ready()
	pid := p.pid("s")
	var wg sync.WaitGroup
	call := func(ctx context.Context, args string, status int) {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "POST", p.base+"/tools/s/block", strings.NewReader(args))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultTransport.RoundTrip(req)
			switch {
			case err != nil && status != 0:
				t.Error(err)
			case err == nil:
				res.Body.Close()
				if res.StatusCode != status {
					t.Errorf("%.40s: %d, want %d", args, res.StatusCode, status)
				}
			}
		})
	}
	inUse := func(n int) func() bool {
		return func() bool {
			_, _, gates := p.status()
			return gates["mcp:stdio slots"].InUse == n
		}
	}
	sent, leave := context.WithCancel(t.Context())
	call(sent, `{"key":"sent"}`, 0)
	p.call("s", "blocked", `{"key":"sent","count":1}`, 200)
	p.call("s", "pause", `{}`, 200)

	// The first of these is in the pipe, as far as that holds it, and the others wait behind.
	const queued = 6
	pad := strings.Repeat("x", 256<<10)
	for i := range queued {
		call(t.Context(), fmt.Sprintf(`{"key":"%d","pad":%q}`, i, pad), 200)
		until(t, "the call holds its slot", inUse(i+2))
	}
	unsent, forget := context.WithCancel(t.Context())
	call(unsent, `{"key":"unsent"}`, 0)
	until(t, "the last call holds its slot", inUse(queued+2))
	forget()
	until(t, "what was not sent holds no slot any more", inUse(queued+1))
	leave()
	until(t, "both callers are gone", func() bool { return strings.Count(p.log(), `"status":499`) == 2 })

	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for i := range queued {
		p.call("s", "release", fmt.Sprintf(`{"key":"%d"}`, i), 200)
	}
	wg.Wait()
	var lines []string
	if err := json.Unmarshal([]byte(p.text("s", "frames", `{}`)), &lines); err != nil {
		t.Fatal(err)
	}
	var order []string
	id := ""
	for _, line := range lines {
		var f struct {
			ID     json.Number
			Method string
			Params struct {
				RequestID json.Number `json:"requestId"`
				Name      string
				Arguments struct{ Key string }
			}
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Method == "notifications/cancelled":
			order = append(order, "cancelled")
			if f.Params.RequestID.String() != id {
				t.Errorf("request %s was cancelled, want %s", f.Params.RequestID, id)
			}
		case f.Params.Name == "block":
			order = append(order, f.Params.Arguments.Key)
			if f.Params.Arguments.Key == "sent" {
				id = f.ID.String()
			}
		}
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "sent 0 cancelled ") || len(order) != queued+2 || strings.Contains(got, "unsent") {
		t.Errorf("the server read %s, want the cancellation behind what it was reading already, and all that was queued behind that", got)
	}
	until(t, "all slots are back", inUse(0))
}
