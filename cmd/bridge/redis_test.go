package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/redistest"
)

// redisCluster starts a cluster of three servers and returns its URL.
func redisCluster(t *testing.T) string {
	t.Helper()
	servers := redistest.NewCluster(t)
	for _, s := range servers {
		t.Cleanup(s.Stop)
	}
	return redistest.ClusterURL(servers)
}

// Redis goes away and comes back while the bridge runs: calls answer all the time,
// and nobody has to start anything again but Redis.
func TestRedisGoesAway(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"artifacts": map[string]any{"store": redis.URL()}})
	p.ready()
	res := p.call("ok", "echo", `{"message":"kept"}`, 200)
	ref := res.Header.Get("Artifact-Ref")
	if got := p.get("/artifacts/" + ref + "/content/0/text"); string(got.body) != `"kept"` {
		t.Errorf("while Redis is there: %d %s", got.StatusCode, got.body)
	}
	for round := range 2 {
		redis.Kill()
		for range 5 {
			began := time.Now()
			res = p.call("ok", "echo", `{"message":"down"}`, 200, "Prefer", "return=minimal")
			if !strings.Contains(string(res.body), "down") || res.Header.Get("Artifact-Ref") != "" || res.Header.Get("Content-Location") != "" || res.Header.Get("Preference-Applied") != "" {
				t.Errorf("without Redis: %s, %v", res.body, res.Header)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("a call without Redis took %v", d)
			}
		}
		for _, path := range []string{"/artifacts/" + ref, "/artifacts/" + ref + "/content", "/artifacts/" + ref + "?view=summary", "/artifacts"} {
			wantProblem(t, p.get(path), http.StatusServiceUnavailable, "store-unavailable", "")
		}
		wantProblem(t, p.do("DELETE", "/artifacts/"+ref, ""), http.StatusServiceUnavailable, "store-unavailable", "")
		if res := p.get("/readyz"); res.StatusCode != http.StatusOK {
			t.Errorf("round %d: without Redis /readyz is %d", round, res.StatusCode)
		}

		redis.Restart(t)
		until(t, "results are kept again", func() bool {
			res = p.call("ok", "echo", `{"message":"again"}`, 200)
			return res.Header.Get("Artifact-Ref") != ""
		})
		ref = res.Header.Get("Artifact-Ref")
		if got := p.get("/artifacts/" + ref + "/content/0/text"); string(got.body) != `"again"` {
			t.Errorf("with Redis again: %d %s", got.StatusCode, got.body)
		}
	}
	// Of many results that were lost there are few lines.
	if n := strings.Count(p.log(), "results are not kept as artifacts"); n < 1 || n > 5 || !strings.Contains(p.log(), "results are kept as artifacts again") {
		t.Errorf("%d lines were logged", n)
	}
}

// A bridge starts without its Redis.
func TestRedisComesLater(t *testing.T) {
	redis := redistest.Start(t)
	redis.Kill()
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"artifacts": map[string]any{"store": redis.URL()}})
	p.ready()
	if res := p.call("ok", "echo", `{"message":"x"}`, 200); res.Header.Get("Artifact-Ref") != "" {
		t.Errorf("a reference without a store: %v", res.Header)
	}
	redis.Restart(t)
	until(t, "results are kept", func() bool {
		return p.call("ok", "echo", `{"message":"x"}`, 200).Header.Get("Artifact-Ref") != ""
	})
}

// Two bridges share one Redis: what one keeps, the other reads.
func TestBridgesShareRedis(t *testing.T) {
	redis := redistest.Start(t)
	more := map[string]any{"artifacts": map[string]any{"store": redis.URL()}}
	a := start(t, map[string]server{"ok": mode(t, "ok")}, more)
	b := start(t, map[string]server{}, more)
	a.ready()
	ref := a.call("ok", "echo", `{"message":"shared"}`, 200).Header.Get("Artifact-Ref")
	if got := b.get("/artifacts/" + ref + "/content/0/text"); string(got.body) != `"shared"` {
		t.Errorf("the other bridge: %d %s", got.StatusCode, got.body)
	}
	if res := b.do("DELETE", "/artifacts/"+ref, ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %d %s", res.StatusCode, res.body)
	}
	wantProblem(t, a.get("/artifacts/"+ref), http.StatusNotFound, "not-found", "")
}

// A bridge's password for Redis shows in nothing that it says.
func TestRedisPasswordIsSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.json")
	write(t, path, `{"mcpServers":{},"bridge":{"listen":"127.0.0.1:0","artifacts":{"store":"redis://:correct-horse@127.0.0.1:`+freePort(t)+`"}}}`)
	p := startArgs(t, "serve", "--config", path)
	res := p.get("/artifacts")
	wantProblem(t, res, http.StatusServiceUnavailable, "store-unavailable", "")
	if strings.Contains(string(res.body)+p.log(), "correct-horse") {
		t.Errorf("the password is in %s or in the log:\n%s", res.body, p.log())
	}
}
