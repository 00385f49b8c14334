package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A redisServer is a redis-server process on a port of loopback, without a disk.
type redisServer struct {
	t    *testing.T
	port string
	cmd  *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	r := &redisServer{t: t, port: freePort(t)}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) url() string { return "redis://127.0.0.1:" + r.port }

func (r *redisServer) start() {
	r.t.Helper()
	r.run("--port", r.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
}

func (r *redisServer) run(args ...string) {
	r.t.Helper()
	r.cmd = exec.Command("redis-server", append(args, "--dir", r.t.TempDir())...)
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	waitForPort(r.t, r.port)
}

// redisCluster starts a cluster of three servers and returns its URL.
func redisCluster(t *testing.T) string {
	t.Helper()
	const nodes, slots = 3, 16384
	cli := func(port string, args ...string) string {
		t.Helper()
		out, err := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var ports []string
	var first, firstBus, addrs string
	for i := range nodes {
		r := &redisServer{t: t, port: freePort(t)}
		bus := freePort(t)
		r.run("--port", r.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-port", bus)
		t.Cleanup(r.kill)
		cli(r.port, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/nodes), strconv.Itoa((i+1)*slots/nodes-1))
		ports = append(ports, r.port)
		if i == 0 {
			first, firstBus = r.port, bus
			continue
		}
		cli(r.port, "CLUSTER", "MEET", "127.0.0.1", first, firstBus)
		addrs += "&addr=127.0.0.1:" + r.port
	}
	until(t, "the cluster comes up", func() bool {
		for _, port := range ports {
			info := cli(port, "CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return "redis://127.0.0.1:" + first + "?" + addrs[1:]
}

func (r *redisServer) kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

// Redis goes away and comes back while the bridge runs: calls answer all the time,
// and nobody has to start anything again but Redis.
func TestRedisGoesAway(t *testing.T) {
	redis := startRedis(t)
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"artifacts": map[string]any{"store": redis.url()}})
	p.ready()
	res := p.call("ok", "echo", `{"message":"kept"}`, 200)
	ref := res.Header.Get("Artifact-Ref")
	if got := p.get("/artifacts/" + ref + "/content/0/text"); string(got.body) != `"kept"` {
		t.Errorf("while Redis is there: %d %s", got.StatusCode, got.body)
	}
	for round := range 2 {
		redis.kill()
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

		redis.start()
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
	redis := startRedis(t)
	redis.kill()
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"artifacts": map[string]any{"store": redis.url()}})
	p.ready()
	if res := p.call("ok", "echo", `{"message":"x"}`, 200); res.Header.Get("Artifact-Ref") != "" {
		t.Errorf("a reference without a store: %v", res.Header)
	}
	redis.start()
	until(t, "results are kept", func() bool {
		return p.call("ok", "echo", `{"message":"x"}`, 200).Header.Get("Artifact-Ref") != ""
	})
}

// Two bridges share one Redis: what one keeps, the other reads.
func TestBridgesShareRedis(t *testing.T) {
	redis := startRedis(t)
	more := map[string]any{"artifacts": map[string]any{"store": redis.url()}}
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
