package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
)

// Profiles are at a listener of their own, and nothing of them at the bridge's.
func TestDebugListener(t *testing.T) {
	mcptest.NoLeaks(t)
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"telemetry": map[string]any{"debugListen": "127.0.0.1:0"}})
	p.ready()
	addr := ""
	for line := range strings.Lines(p.log()) {
		var l struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &l) == nil && strings.HasPrefix(l.Msg, "profiles are served") {
			addr = l.Addr
		}
	}
	if addr == "" {
		t.Fatalf("the log does not say where:\n%s", p.log())
	}
	for _, path := range []string{"/debug/flight", "/debug/pprof/"} {
		if res := p.get(path); res.StatusCode != http.StatusNotFound {
			t.Errorf("the bridge itself answers %s: %d", path, res.StatusCode)
		}
	}
	debug := &process{t: t, base: "http://" + addr}
	p.call("ok", "echo", `{"message":"hi"}`, 200)
	res := debug.get("/debug/flight")
	if res.StatusCode != 200 || !bytes.HasPrefix(res.body, []byte("go 1.")) {
		t.Fatalf("the flight recorder answers %d %.100q", res.StatusCode, res.body)
	}
	if res := debug.get("/debug/pprof/goroutine?debug=1"); res.StatusCode != 200 || !strings.Contains(string(res.body), "catalogue") {
		t.Errorf("the goroutines are %d %.300s", res.StatusCode, res.body)
	}
	if res := debug.do("GET", "/debug/flight", "", "Host", "evil.example"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a page gets %d", res.StatusCode)
	}
	p.stop(syscall.SIGTERM)
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("profiles outlive the bridge")
	}
}

// A bridge that cannot serve profiles says so, and ends.
func TestDebugListenerTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	path := t.TempDir() + "/bridge.yaml"
	write(t, path, `{"mcpServers":{},"bridge":{"listen":"127.0.0.1:0","telemetry":{"debugListen":"`+ln.Addr().String()+`"}}}`)
	out, err := exec.Command("bridge", "serve", "--config", path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "bridge.telemetry.debugListen: cannot listen") {
		t.Errorf("%v: %s", err, out)
	}
}
