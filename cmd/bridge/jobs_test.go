package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/redistest"
)

// A jobView is what tests need of a job.
type jobView struct {
	ID       string
	State    string
	Progress json.RawMessage
	Requests []struct{ ID, Message string }
	Result   *struct {
		Ref string `json:"artifact_ref"`
	}
	Problem *struct{ Code, Detail string }
}

// twins starts two bridges with the same servers on one Redis.
func twins(t *testing.T, servers map[string]server) (redis *redistest.Server, a, b *process) {
	t.Helper()
	redis = redistest.Start(t)
	more := map[string]any{"artifacts": map[string]any{"store": redis.URL()}}
	a, b = start(t, servers, more), start(t, servers, more)
	a.ready()
	b.ready()
	return redis, a, b
}

// shared is the entry of one server process, which counts and blocks for all bridges.
func shared(t *testing.T) server {
	t.Helper()
	return server{"url": mcptest.Start(t, mcptest.HTTPRaw, mcptest.OK).URL}
}

// async starts a call as a job.
func (p *process) async(handle, tool, args string, header ...string) jobView {
	p.t.Helper()
	res := p.call(handle, tool, args, http.StatusAccepted, append(header, "Prefer", "respond-async")...)
	var j jobView
	if err := json.Unmarshal(res.body, &j); err != nil || res.Header.Get("Location") != "../../jobs/"+j.ID {
		p.t.Fatalf("%v: %s %v", err, res.body, res.Header)
	}
	return j
}

// job waits with long polls until a job is in a state.
func (p *process) job(id, state string) jobView {
	p.t.Helper()
	for range 600 {
		res := p.do("GET", "/jobs/"+id, "", "Prefer", "wait=1")
		var j jobView
		switch res.StatusCode {
		case http.StatusOK:
			decode(p.t, res, &j)
			if j.State == state {
				return j
			}
		default:
			p.t.Fatalf("GET = %d %s", res.StatusCode, res.body)
		}
		if j.State == "done" || j.State == "failed" || j.State == "cancelled" {
			p.t.Fatalf("the job is %+v, want %s", j, state)
		}
	}
	p.t.Fatalf("the job does not become %s", state)
	return jobView{}
}

// follow reads a job's events, in the background, until they end.
func (p *process) follow(id string) (events <-chan string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), "GET", p.base+"/jobs/"+id+"/events", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		p.t.Fatalf("events: %d %s", res.StatusCode, b)
	}
	out := make(chan string, 10000)
	go func() { // ends with the stream, or with the test
		defer close(out)
		defer res.Body.Close()
		typ := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if t, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				typ = t
			}
			if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- typ + " " + d
			}
		}
	}()
	return out
}

// next returns the next event of a type.
func next(t *testing.T, events <-chan string, typ string) string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("the stream ends without %s", typ)
			}
			if data, ok := strings.CutPrefix(e, typ+" "); ok {
				return data
			}
		case <-timeout:
			t.Fatalf("no %s comes", typ)
		}
	}
}

// A job waits in line for longer than a call whose caller waits with it.
func TestJobsArePatient(t *testing.T) {
	p := start(t, map[string]server{"s": with(shared(t), "maxConcurrent", 1)}, map[string]any{"queue": map[string]any{"maxWait": "100ms"}})
	p.ready()
	first := p.async("s", "block", `{"key":"first"}`)
	p.job(first.ID, "running")
	second := p.async("s", "block", `{"key":"second"}`)
	wantProblem(t, p.call("s", "echo", `{"message":"x"}`, http.StatusServiceUnavailable), http.StatusServiceUnavailable, "overloaded", "100ms")
	p.job(second.ID, "queued")
	if res := p.do("DELETE", "/jobs/"+first.ID, ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %d %s", res.StatusCode, res.body)
	}
	p.job(second.ID, "running")
}

// A job is waited for, followed and read at another bridge than the one that runs it.
func TestJobAtAnotherBridge(t *testing.T) {
	_, a, b := twins(t, map[string]server{"s": shared(t)})
	j := a.async("s", "block", `{"key":"x"}`)
	b.job(j.ID, "running")
	events := b.follow(j.ID)
	polled := make(chan jobView, 1)
	go func() { // ends with the job
		req, _ := http.NewRequestWithContext(t.Context(), "GET", b.base+"/jobs/"+j.ID, nil)
		req.Header.Set("Prefer", "wait=60")
		var v jobView
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = json.NewDecoder(res.Body).Decode(&v)
			res.Body.Close()
		}
		polled <- v
	}()
	b.call("s", "release", `{"key":"x"}`, 200)
	v := <-polled
	if v.State != "done" || v.Result == nil {
		t.Fatalf("the long poll brought %+v", v)
	}
	next(t, events, "artifact")
	result := next(t, events, "result")
	for _, p := range []*process{a, b} {
		if res := p.get("/artifacts/" + v.Result.Ref); string(res.body) != result {
			t.Errorf("the artifact is %s, want %s", res.body, result)
		}
		var list struct{ Jobs []jobView }
		decode(t, p.get("/jobs"), &list)
		if len(list.Jobs) != 1 || list.Jobs[0].ID != j.ID || list.Jobs[0].State != "done" {
			t.Errorf("the list is %+v", list)
		}
	}
	if n := strings.Count(a.log()+b.log(), `"job ended"`); n != 1 {
		t.Errorf("%d lines of log say that the job ended", n)
	}
}

func TestCancelAtAnotherBridge(t *testing.T) {
	_, a, b := twins(t, map[string]server{"s": shared(t)})
	j := a.async("s", "block", `{"key":"never"}`)
	b.job(j.ID, "running")
	events := b.follow(j.ID)
	a.call("s", "blocked", `{"key":"never","count":1}`, 200)
	if res := b.do("DELETE", "/jobs/"+j.ID, ""); res.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE = %d %s", res.StatusCode, res.body)
	}
	a.call("s", "cancelled", `{"count":1}`, 200) // the server was told
	if e := next(t, events, "problem"); !strings.Contains(e, "was cancelled") {
		t.Errorf("the last event is %s", e)
	}
	a.job(j.ID, "cancelled")
	b.job(j.ID, "cancelled")
}

func TestProgressAtAnotherBridge(t *testing.T) {
	_, a, b := twins(t, map[string]server{"s": mode(t, "ok")})
	j := a.async("s", "slow", `{"seconds":3600,"every":0.01}`)
	b.job(j.ID, "running")
	events := b.follow(j.ID)
	for range 20 {
		next(t, events, "progress")
	}
	res := b.get("/jobs/" + j.ID)
	changed := b.do("GET", "/jobs/"+j.ID, "", "Prefer", "wait=60", "If-None-Match", res.Header.Get("ETag"))
	if changed.StatusCode != http.StatusOK || changed.Header.Get("ETag") == res.Header.Get("ETag") {
		t.Errorf("the next change: %d %s", changed.StatusCode, changed.body)
	}
	// Where a stream was cut off it goes on.
	late := b.do("DELETE", "/jobs/"+j.ID, "")
	if late.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE = %d", late.StatusCode)
	}
	b.job(j.ID, "cancelled")
	all := b.get("/jobs/" + j.ID + "/events")
	ids := strings.Count(string(all.body), "\nid: ")
	tail := b.do("GET", "/jobs/"+j.ID+"/events", "", "Last-Event-ID", fmt.Sprint(ids-3))
	if n := strings.Count(string(tail.body), "\nid: "); ids < 20 || n != 3 {
		t.Errorf("of %d events there are %d behind the last but three:\n%s", ids, n, tail.body)
	}
}

func TestInputAtAnotherBridge(t *testing.T) {
	asks := with(with(mode(t, mcptest.Asks), "elicitation", true), "sharing", "user")
	_, a, b := twins(t, map[string]server{"asks": asks})
	j := a.async("asks", "ask", `{"who":"guest"}`)
	got := b.job(j.ID, "input_required")
	if len(got.Requests) != 1 || !strings.Contains(got.Requests[0].Message, "guest") {
		t.Fatalf("the job asks %+v", got)
	}
	bad := b.do("POST", "/jobs/"+j.ID+"/input", `{"action":"accept","content":{"name":"A"}}`)
	wantProblem(t, bad, http.StatusUnprocessableEntity, "invalid-arguments", "does not fit")
	if !strings.Contains(string(bad.body), `"pointer":"/content/name"`) {
		t.Errorf("no pointer in %s", bad.body)
	}
	if res := b.do("POST", "/jobs/"+j.ID+"/input", `{"action":"accept","content":{"name":"Ada"}}`); res.StatusCode != http.StatusNoContent {
		t.Fatalf("input: %d %s", res.StatusCode, res.body)
	}
	done := b.job(j.ID, "done")
	if res := b.get("/artifacts/" + done.Result.Ref); !strings.Contains(string(res.body), "Ada") {
		t.Errorf("the tool answered %s", res.body)
	}
	wantProblem(t, b.do("POST", "/jobs/"+j.ID+"/input", `{"action":"decline"}`), http.StatusConflict, "job-conflict", "asks nothing")
}

// What a bridge ran that is killed has an unknown outcome, at every other one.
func TestJobsOfAKilledBridge(t *testing.T) {
	_, a, b := twins(t, map[string]server{"s": shared(t)})
	j := a.async("s", "block", `{"key":"never"}`, "Idempotency-Key", "job")
	b.job(j.ID, "running")
	events := b.follow(j.ID)
	_ = a.cmd.Process.Kill()
	<-a.exited
	if e := next(t, events, "problem"); !strings.Contains(e, "outcome-unknown") {
		t.Errorf("the last event is %s", e)
	}
	if got := b.job(j.ID, "failed"); got.Problem == nil || got.Problem.Code != "outcome-unknown" {
		t.Errorf("the job is %+v", got)
	}
	res := b.call("s", "block", `{"key":"never"}`, http.StatusBadGateway, "Idempotency-Key", "job")
	wantProblem(t, res, http.StatusBadGateway, "outcome-unknown", "is gone")
}

// Calls under one key, half of them at each bridge, are one call.
func TestIdempotencyKeyAtTwoBridges(t *testing.T) {
	_, a, b := twins(t, map[string]server{"s": shared(t)})
	var wg sync.WaitGroup
	var replayed atomic.Int64
	var mu sync.Mutex
	bodies := map[string]int{}
	const calls = 40
	for i := range calls {
		wg.Go(func() {
			p := []*process{a, b}[i%2]
			req, _ := http.NewRequestWithContext(t.Context(), "POST", p.base+"/tools/s/block", strings.NewReader(`{"key":"k"}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", "k")
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.Header.Get("Idempotency-Replayed") == "true" {
				replayed.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			bodies[fmt.Sprint(res.StatusCode, string(body), res.Header.Get("Artifact-Ref"))]++
		})
	}
	a.call("s", "blocked", `{"key":"k","count":1}`, 200)
	b.call("s", "release", `{"key":"k"}`, 200)
	wg.Wait()
	if len(bodies) != 1 || replayed.Load() != calls-1 {
		t.Errorf("%d calls were replayed, with the answers %v", replayed.Load(), bodies)
	}
	// The server has seen block once, blocked, release and this.
	if res := a.call("s", "calls", `{}`, 200); !strings.Contains(string(res.body), `"4"`) {
		t.Errorf("the server has seen %s calls, want 4", res.body)
	}
	wantProblem(t, b.call("s", "block", `{"key":"other"}`, http.StatusConflict, "Idempotency-Key", "k"), http.StatusConflict, "idempotency-conflict", "was used before")
	one := a.async("s", "block", `{"key":"j"}`, "Idempotency-Key", "j")
	two := b.async("s", "block", `{"key":"j"}`, "Idempotency-Key", "j")
	if one.ID != two.ID {
		t.Error("one key made two jobs")
	}
	b.call("s", "release", `{"key":"j"}`, 200)
	b.job(one.ID, "done")
}

// Redis is started again, empty, while a job runs: its bridge does not notice, and the other one has it back.
func TestJobsWithoutRedis(t *testing.T) {
	redis, a, b := twins(t, map[string]server{"s": shared(t)})
	j := a.async("s", "block", `{"key":"x"}`)
	b.job(j.ID, "running")
	redis.Kill()
	if got := a.job(j.ID, "running"); got.ID != j.ID {
		t.Errorf("at its own bridge: %+v", got)
	}
	wantProblem(t, b.get("/jobs/"+j.ID), http.StatusServiceUnavailable, "store-unavailable", "")
	wantProblem(t, b.do("DELETE", "/jobs/"+j.ID, ""), http.StatusServiceUnavailable, "store-unavailable", "")
	wantProblem(t, b.call("s", "echo", `{}`, http.StatusServiceUnavailable, "Idempotency-Key", "k"), http.StatusServiceUnavailable, "store-unavailable", "")
	b.call("s", "echo", `{}`, http.StatusOK)
	redis.Restart(t)
	until(t, "the job is there again", func() bool { return b.get("/jobs/"+j.ID).StatusCode == http.StatusOK })
	b.call("s", "release", `{"key":"x"}`, 200)
	b.job(j.ID, "done")
	for _, p := range []*process{a, b} {
		if n := strings.Count(p.log(), "the Redis of jobs cannot be reached"); n != 1 {
			t.Errorf("of one outage there are %d lines of log", n)
		}
	}
}

// A bridge that is stopped says how its jobs ended.
func TestJobsOfAStoppedBridge(t *testing.T) {
	redis := redistest.Start(t)
	more := map[string]any{"artifacts": map[string]any{"store": redis.URL()}, "shutdownGrace": "100ms"}
	servers := map[string]server{"s": shared(t)}
	a, b := start(t, servers, more), start(t, servers, more)
	a.ready()
	j := a.async("s", "block", `{"key":"never"}`)
	b.job(j.ID, "running")
	a.stop(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		var got jobView
		decode(t, b.get("/jobs/"+j.ID), &got)
		if got.State == "failed" || got.State == "cancelled" {
			return
		}
	}
	t.Error("the job still runs")
}

// A caller that starts a thousand jobs has as many as it may have, and is told so; all of it ends when they are cancelled.
func TestThousandJobs(t *testing.T) {
	p := start(t, map[string]server{"s": shared(t)}, map[string]any{"cancelGrace": "100ms", "queue": map[string]any{"maxWaiting": 2000, "maxWaitingPerCaller": 2000}})
	p.ready()
	var mu sync.Mutex
	var started []string
	refused := 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				res := p.do("POST", "/tools/s/block", `{"key":"never"}`, "Prefer", "respond-async")
				var j jobView
				err := json.Unmarshal(res.body, &j)
				mu.Lock()
				switch {
				case err == nil && res.StatusCode == http.StatusAccepted:
					started = append(started, j.ID)
				case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" && strings.Contains(string(res.body), "100 jobs running"):
					refused++
				default:
					t.Errorf("%d %s", res.StatusCode, res.body)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(started) != 100 || refused != 900 {
		t.Errorf("%d were started and %d refused, want 100 and 900", len(started), refused)
	}
	var list struct{ Jobs []jobView }
	if decode(t, p.get("/jobs?limit=1000"), &list); len(list.Jobs) != 100 {
		t.Errorf("the list has %d jobs", len(list.Jobs))
	}
	for _, id := range started {
		if res := p.do("DELETE", "/jobs/"+id, ""); res.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE = %d %s", res.StatusCode, res.body)
		}
	}
	for _, id := range started {
		p.job(id, "cancelled")
	}
	until(t, "nothing runs or waits", func() bool {
		st, _, gates := p.status()
		return gates["mcp:http slots"].InUse == 0 && st.Waiting == 0
	})
	p.async("s", "echo", `{}`) // there is room again
}
