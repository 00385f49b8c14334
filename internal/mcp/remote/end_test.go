package remote

import (
	"net/http"
	"sync"
	"testing"

	"mcpbridge/internal/mcp/rpc"
)

// Whoever learns that the connection has ended, in whatever way, sees it in Done
// and Err: he looks for another one at once.
func TestEndIsSeenFirst(t *testing.T) {
	ended := func(c *Conn) bool {
		select {
		case <-c.Done():
			return c.Err() != nil
		default:
			return false
		}
	}
	// learn makes some calls at once, all of which must fail for the reason.
	learn := func(t *testing.T, c *Conn, reason rpc.Reason) {
		t.Helper()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r := request1(`{}`)
				r.LetGo = func() {
					if !ended(c) {
						t.Error("let go before the end is seen")
					}
				}
				_, err := c.Do(t.Context(), r)
				if !ended(c) {
					t.Errorf("Do = %v before the end is seen", err)
				}
				if f, ok := asFailure(err); !ok || f.Reason != reason {
					t.Errorf("Do = %v, want %s", err, reason)
				}
			})
		}
		wg.Wait()
	}
	const about = `{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32600,"message":"no such session"}}`
	for name, h := range map[string]handler{
		"404": status(404), "400": answerRaw(400, "application/json", about), "200": answerRaw(200, "application/json", about),
		"event": events("data: " + about + "\n\n"),
	} {
		t.Run("expired "+name, func(t *testing.T) {
			c := dial(t, pinned(sessionServer(t, h)))
			learn(t, c, rpc.SessionExpired)
			learn(t, c, rpc.SessionExpired) // not sent
		})
	}
	t.Run("the stream ends", func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(8)
		s := newSSEServer(t, "/post", nil)
		s.set("tools/call", func(w http.ResponseWriter, _ *http.Request, _ *seen) { w.WriteHeader(202); all.Done() })
		c := dial(t, Options{URL: s.URL, Protocol: SSE})
		go func() { all.Wait(); s.out <- "END" }()
		learn(t, c, rpc.Lost)
		learn(t, c, rpc.NotSent)
	})
	t.Run("closed", func(t *testing.T) {
		s := sessionServer(t, hang)
		c := dial(t, pinned(s))
		go func() { s.await(t, "tools/call", 8); _ = c.Close() }()
		learn(t, c, rpc.Lost)
		learn(t, c, rpc.NotSent)
	})
}
