package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/redistest"
	"mcpbridge/internal/routes"
)

// status returns GET /status, and its rows by name.
func (p *process) status() (st routes.Status, endpoints map[string]routes.EndpointStatus, gates map[string]routes.GateStatus) {
	p.t.Helper()
	decode(p.t, p.get("/status"), &st)
	endpoints, gates = map[string]routes.EndpointStatus{}, map[string]routes.GateStatus{}
	for _, e := range st.Endpoints {
		endpoints[e.Name] = e
	}
	for _, g := range st.Gates {
		gates[g.Name+" "+g.Kind] = g
	}
	return st, endpoints, gates
}

// until waits for something that happens in the background.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("not within 10 s: %s", what)
}

func TestStatusTellsTheTruth(t *testing.T) {
	ok := with(mode(t, "ok"), "rate", "5/m")
	ok["env"] = map[string]string{"TOKEN": "correct-horse"}
	p := start(t, map[string]server{
		"ok": with(ok, "maxConcurrent", 2), "missing": {"command": "no-such-command-anywhere"}, "idle": with(mode(t, "ok"), "idleTimeout", "1s"),
	}, map[string]any{"queue": map[string]any{"maxWait": "1s"}, "cancelGrace": "200ms"})
	var calls sync.WaitGroup
	defer calls.Wait()
	p.ready()
	st, endpoints, gates := p.status()
	if !st.Ready || st.Processes < 1 || st.MaxProcesses != 64 {
		t.Errorf("status = %+v", st)
	}
	if e := endpoints["mcp:ok"]; e.Connection != "connected" || e.Circuit.State != "closed" || e.Handles[0] != "ok" || strings.Contains(e.Endpoint, "correct-horse") {
		t.Errorf("mcp:ok = %+v", e)
	}
	if e := endpoints["mcp:missing"]; e.Connection != "none" || e.Circuit.State != "open" || !strings.Contains(e.Circuit.Reason, "no-such-command") || e.Circuit.Until == nil {
		t.Errorf("mcp:missing = %+v", e)
	}
	if len(gates) != 0 {
		t.Errorf("gates before the first call: %+v", gates)
	}

	for range 2 {
		calls.Go(func() { p.call("ok", "block", `{"key":"k"}`, 504, "Prefer", "wait=4") })
	}
	until(t, "two calls hold the slots", func() bool {
		_, _, gates = p.status()
		return gates["mcp:ok slots"].InUse == 2
	})
	if g := gates["mcp:ok slots"]; g.Capacity != 2 || gates["mcp:stdio slots"].InUse != 2 || gates["mcp:ok rate"].InUse != 2 || gates["mcp:ok rate"].Capacity != 5 {
		t.Errorf("gates = %+v", gates)
	}
	calls.Go(func() { p.problem("ok", "echo", `{"message":"x"}`, 503, "overloaded", "mcp:ok") })
	until(t, "a third call waits", func() bool {
		st, _, gates = p.status()
		return st.Waiting == 1 && gates["mcp:ok slots"].Waiting == 1
	})
	until(t, "and gives up", func() bool {
		st, _, _ = p.status()
		return st.Waiting == 0
	})
	calls.Wait()
	until(t, "the slots of cancelled calls come back", func() bool {
		_, _, gates = p.status()
		return gates["mcp:ok slots"].InUse == 0 && gates["mcp:stdio slots"].InUse == 0 && gates["mcp:ok slots"].LastActivity != nil
	})
	until(t, "the idle process is gone", func() bool {
		_, endpoints, _ = p.status()
		return endpoints["mcp:idle"].Connection == "none"
	})
	if res := p.call("idle", "echo", `{"message":"again"}`, 200); !strings.Contains(string(res.body), "again") {
		t.Errorf("after idling: %s", res.body)
	}
}

func TestStatusOfArtifacts(t *testing.T) {
	servers := func() map[string]server { return map[string]server{"ok": mode(t, "ok")} }
	p := start(t, servers(), map[string]any{"artifacts": map[string]any{"bytes": "8KiB"}})
	p.ready()
	for range 20 {
		p.call("ok", "echo", `{"message":"x"}`, 200)
	}
	p.call("ok", "echo", `{"message":"`+strings.Repeat("x", 9000)+`"}`, 200)
	st, _, _ := p.status()
	if a := st.Artifacts; a == nil || a.Store != "memory" || a.Down || a.Kept != 20 || a.TooBig != 1 || a.Failed != 0 || *a.Count < 2 || *a.Evicted != int64(20-*a.Count) || *a.Bytes < 1000 || *a.Bytes > 8<<10 {
		t.Errorf("artifacts in memory: %+v", a)
	}

	redis := redistest.Start(t)
	p = start(t, servers(), map[string]any{"artifacts": map[string]any{"store": redis.URL()}})
	p.ready()
	p.call("ok", "echo", `{"message":"x"}`, 200)
	st, _, _ = p.status()
	if a := st.Artifacts; a == nil || a.Store != "redis" || a.Down || a.Kept != 1 || a.Failed != 0 || a.Count != nil || a.Bytes != nil || a.Evicted != nil {
		t.Errorf("artifacts in Redis: %+v", a)
	}
	redis.Kill()
	p.call("ok", "echo", `{"message":"x"}`, 200)
	st, _, _ = p.status()
	if a := st.Artifacts; a == nil || !a.Down || a.Kept != 1 || a.Failed != 1 {
		t.Errorf("artifacts without Redis: %+v", a)
	}
}
