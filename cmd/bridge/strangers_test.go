package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Thousands of wrong keys and tokens cost others nothing but time: every one is refused, whoever
// has a key is served beside them, and the log has a line a second about them, with no credential in it.
func TestManyWrongKeys(t *testing.T) {
	const guessers, each = 8, 500
	key, entry := newKey(t, "mine", map[string]any{"scopes": []string{"call", "admin"}})
	p := start(t, map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}, map[string]any{
		"auth": map[string]any{"keys": []any{entry}, "jwt": []any{map[string]any{"issuer": "http://127.0.0.1:" + freePort(t), "audience": "bridge"}}},
	})
	until(t, "the server is there", func() bool { return len(p.names("X-API-Key", key)) > 0 })

	began := time.Now()
	var guessing, calling sync.WaitGroup
	var over atomic.Bool
	for g := range guessers {
		guessing.Go(func() {
			for i := range each {
				guess := fmt.Sprintf("mcpb_%040d%d", i, g)
				if i%2 == 0 { // no issuer that is trusted
					guess = fmt.Sprintf("eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.mcpb_%d", i)
				}
				if res := p.do("GET", "/tools", "", "Authorization", "Bearer "+guess); res.StatusCode != http.StatusUnauthorized {
					t.Errorf("a wrong key: %d %s", res.StatusCode, res.body)
				}
			}
		})
	}
	calls := 0
	calling.Go(func() {
		for ; !over.Load(); calls++ {
			p.call("demo", "add", `{"a":1,"b":2}`, 200, "X-API-Key", key)
		}
	})
	guessing.Wait()
	over.Store(true)
	calling.Wait()

	counted, lines := 0, 0
	until(t, "all guesses are in the log", func() bool {
		counted, lines = 0, 0
		for line := range strings.Lines(p.log()) {
			var l struct {
				Msg   string
				Count int
			}
			if json.Unmarshal([]byte(line), &l) == nil && strings.HasPrefix(l.Msg, "requests of unknown callers") {
				counted += l.Count
				lines++
			}
		}
		return counted >= guessers*each
	})
	// One at once, then one in each second that has begun.
	if most := int(time.Since(began)/time.Second) + 2; counted != guessers*each || lines > most || calls == 0 {
		t.Errorf("%d guesses in %d lines of the log beside %d calls, want %d in %d lines at most", counted, lines, calls, guessers*each, most)
	}
	if strings.Contains(p.log(), "mcpb_") {
		t.Error("the log shows a credential")
	}
	t.Logf("%d guesses and %d calls in %v, %d lines", counted, calls, time.Since(began).Round(time.Millisecond), lines)
}
