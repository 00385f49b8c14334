package routes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/jobs"
)

// withJobs gives the fixture jobs, whose callers are named by the header X-User.
func (f *fixture) withJobs(t *testing.T, o jobs.Options) *fixture {
	t.Helper()
	o.Invoke = func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) { return f.bridge().Invoke(ctx, c) }
	o.Compile = func([]byte) (bridge.Checker, error) { return wantsColour{}, nil }
	f.opts.Jobs = jobs.New(o)
	f.opts.Caller = func(r *http.Request) (bridge.Caller, error) {
		return bridge.Caller{ID: r.Header.Get("X-User"), User: r.Header.Get("X-User"), Scopes: bridge.ScopeCall}, nil
	}
	t.Cleanup(func() {
		if err := f.opts.Jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// wantsColour is the check of a question's schema.
type wantsColour struct{}

func (wantsColour) Check(doc []byte) ([]byte, error) {
	if strings.Contains(string(doc), `"colour"`) {
		return doc, nil
	}
	return nil, &bridge.Error{Kind: bridge.InvalidArguments, Msg: "no", Members: map[string]any{
		"errors": []map[string]string{{"pointer": "", "message": `misses "colour"`, "schema_pointer": "/required"}},
	}}
}

// An event is one server-sent event as a reader understands it.
type event struct{ id, typ, data string }

// readEvents reads a stream to its end.
func readEvents(body string) []event {
	var all []event
	for block := range strings.SplitSeq(body, "\n\n") {
		var e event
		var data []string
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.typ = value
			case "data":
				data = append(data, value)
			}
		}
		if e.data = strings.Join(data, "\n"); e.typ != "" {
			all = append(all, e)
		}
	}
	return all
}

func jobOf(t *testing.T, r response) JobInfo {
	t.Helper()
	var j JobInfo
	if err := json.Unmarshal([]byte(r.body), &j); err != nil || j.ID == "" {
		t.Fatalf("answer %d %s is no job: %v", r.status, r.body, err)
	}
	return j
}

// until asks for the job until it is in a state.
func until(t *testing.T, c *client, id string, state jobs.State, headers ...string) JobInfo {
	t.Helper()
	for range 100 {
		j := jobOf(t, c.do("GET", "/jobs/"+id, "", append(headers, "Prefer: wait=5")...))
		if j.State == state {
			return j
		}
		if j.State.Final() {
			t.Fatalf("the job is %+v, want %s", j, state)
		}
	}
	t.Fatalf("the job never was %s", state)
	return JobInfo{}
}

// reports is a client that reports progress twice, waits for go, and answers.
func reports(release <-chan struct{}, result string) func(context.Context, bridge.Request) (*bridge.Result, error) {
	return func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Progress != nil {
			r.Progress(json.RawMessage("{\"progress\":\r\n 1.10}"))
			r.Progress(json.RawMessage(`{"progress":2}`))
		}
		select {
		case <-release:
			return newResult(result), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const odd = "{\n  \"n\": 9007199254740993, \"f\": 1.10}"

func TestStreamedCall(t *testing.T) {
	release := make(chan struct{})
	f := newFixture().withJobs(t, jobs.Options{})
	f.keep = &bridge.Artifact{Ref: "mcp~x", Type: "mcp"}
	f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	f.client = reports(release, `{"structuredContent":`+odd+`}`)
	close(release)
	r := f.serve(t).do("POST", "/tools/demo/echo", `{}`, "Accept: text/event-stream")
	if r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" || r.header.Get("X-Accel-Buffering") != "no" || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("answer = %d %v", r.status, r.header)
	}
	want := []event{
		{"1", "progress", "{\"progress\": \n 1.10}"},
		{"2", "progress", `{"progress":2}`},
		{"", "artifact", `{"artifact_ref":"mcp~x","artifact_type":"mcp","artifact":"../../artifacts/mcp~x"}`},
		{"3", "result", odd},
	}
	if diff := cmp.Diff(want, readEvents(r.body), cmp.AllowUnexported(event{})); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	lines := f.logLines(t)
	if len(lines) != 1 || lines[0]["msg"] != "call" || lines[0]["tool"] != "echo" || lines[0]["upstream"] == nil {
		t.Errorf("logged: %v", lines)
	}
}

func TestStreamedFailure(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
		return newResult(`{"isError":true,"content":[{"type":"text","text":"disk full"}]}`), nil
	}
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", `{}`, "Accept: text/event-stream")
	events := readEvents(r.body)
	if len(events) != 1 || events[0].typ != "problem" || !strings.Contains(events[0].data, `"code":"tool-error"`) || !strings.Contains(events[0].data, "disk full") {
		t.Errorf("events: %v", events)
	}
	if l := f.logLines(t); len(l) != 1 || l[0]["code"] != "tool-error" {
		t.Errorf("logged: %v", l)
	}
	// What never begins is a problem as ever.
	c.do("POST", "/tools/demo/none", `{}`, "Accept: text/event-stream").wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/tools/demo/echo", `{`, "Accept: text/event-stream").wantProblem(t, 400, bridge.Malformed)
}

// Events are only for those who want them more than JSON.
func TestWhoGetsEvents(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	c := f.serve(t)
	for accept, want := range map[string]string{
		"text/event-stream":                         "text/event-stream",
		"text/event-stream, application/json;q=0.9": "text/event-stream",
		"application/json, text/event-stream":       "application/json",
		"*/*":                                       "application/json",
		"text/*":                                    "application/json",
	} {
		if got := c.do("POST", "/tools/demo/echo", `{}`, "Accept: "+accept).header.Get("Content-Type"); got != want {
			t.Errorf("Accept: %s gets %s, want %s", accept, got, want)
		}
	}
	c.do("POST", "/tools/demo/echo", `{}`, "Accept: text/event-stream;q=0").wantProblem(t, 406, NotAcceptable)
	if p := c.do("POST", "/tools/demo/echo", `{}`, "Accept: text/event-stream", "Prefer: respond-async").wantProblem(t, 406, NotAcceptable); !strings.Contains(p["detail"].(string), "/jobs/{id}/events") {
		t.Errorf("detail = %s", p["detail"])
	}
	r := c.do("POST", "/tools/demo/echo?dry_run=1", `{}`, "Accept: text/event-stream")
	if r.status != 204 {
		t.Errorf("a dry run answers %d %s", r.status, r.body)
	}
}

// A reader that hangs up ends the call; so does one that stops reading.
func TestStreamWithoutReader(t *testing.T) {
	for name, stop := range map[string]func(*http.Response){
		"hangs up":      func(r *http.Response) { _ = r.Body.Close() },
		"stops reading": func(*http.Response) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture().withJobs(t, jobs.Options{})
			f.opts.WriteTimeout = 100 * time.Millisecond
			ended := make(chan error, 1)
			f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
				big := json.RawMessage(`"` + strings.Repeat("x", 512<<10) + `"`)
				for ctx.Err() == nil {
					r.Progress(big)
					time.Sleep(time.Millisecond) // the flood is bounded, the reader's silence is not
				}
				ended <- context.Cause(ctx)
				return nil, ctx.Err()
			}
			c := f.serve(t)
			req, _ := http.NewRequestWithContext(t.Context(), "POST", c.url+"/tools/demo/echo", strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "text/event-stream")
			res, err := c.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			stop(res)
			if err := <-ended; err == nil {
				t.Error("the call ended without a cause")
			}
		})
	}
}

func TestAsyncCall(t *testing.T) {
	release := make(chan struct{})
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = reports(release, `{"structuredContent":`+odd+`}`)
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async", "X-User: ann")
	j := jobOf(t, r)
	if r.status != 202 || r.header.Get("Location") != "../../jobs/"+j.ID || r.header.Get("Retry-After") == "" || r.header.Get("Preference-Applied") != "respond-async" {
		t.Fatalf("answer = %d %v %s", r.status, r.header, r.body)
	}
	// Nobody else has it.
	for _, path := range []string{"", "/events"} {
		c.do("GET", "/jobs/"+j.ID+path, "", "X-User: bob").wantProblem(t, 404, bridge.NotFound)
	}
	c.do("DELETE", "/jobs/"+j.ID, "", "X-User: bob").wantProblem(t, 404, bridge.NotFound)
	if r := c.do("GET", "/jobs", "", "X-User: bob"); r.body != `{"jobs":[]}` {
		t.Errorf("bob has %s", r.body)
	}
	close(release)
	j = until(t, c, j.ID, jobs.Done, "X-User: ann")
	if string(j.Result.Data) != `{"n":9007199254740993,"f":1.10}` || j.Expires == nil || string(j.Progress) != `{"progress":2}` {
		t.Errorf("job = %+v, result %s", j, j.Result.Data)
	}
	events := readEvents(c.do("GET", "/jobs/"+j.ID+"/events", "", "X-User: ann").body)
	if len(events) != 3 || events[2] != (event{"3", "result", odd}) {
		t.Errorf("events: %q", events)
	}
	events = readEvents(c.do("GET", "/jobs/"+j.ID+"/events", "", "X-User: ann", "Last-Event-ID: 2").body)
	if len(events) != 1 || events[0].typ != "result" {
		t.Errorf("events behind the second: %q", events)
	}
	if r := c.do("HEAD", "/jobs/"+j.ID+"/events", "", "X-User: ann"); r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
	c.do("GET", "/jobs/"+j.ID+"/events", "", "X-User: ann", "Last-Event-ID: x").wantProblem(t, 400, bridge.Malformed)
}

// A result in the store of artifacts is referred to, and events have it from there.
func TestAsyncArtifact(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.opts.Artifacts = artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)})
	f.returns(`{"structuredContent":` + odd + `}`)
	c := f.serve(t)
	j := until(t, c, jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async")).ID, jobs.Done)
	if j.Result.Data != nil || j.Result.Artifact != "../artifacts/"+j.Result.ArtifactRef {
		t.Fatalf("result = %+v", j.Result)
	}
	c.do("GET", "/artifacts/"+j.Result.ArtifactRef, "").wantOK(t, odd)
	events := readEvents(c.do("GET", "/jobs/"+j.ID+"/events", "").body)
	if n := len(events); n != 2 || events[0].typ != "artifact" || events[1].data != odd {
		t.Errorf("events: %q", events)
	}
	if r := c.do("DELETE", "/artifacts/"+j.Result.ArtifactRef, ""); r.status != 204 {
		t.Fatal(r.status, r.body)
	}
	events = readEvents(c.do("GET", "/jobs/"+j.ID+"/events", "").body)
	if n := len(events); n != 1 || events[0].typ != "problem" || !strings.Contains(events[0].data, "not-found") {
		t.Errorf("events without the artifact: %q", events)
	}
}

func TestWaitThenAsync(t *testing.T) {
	release := make(chan struct{})
	f := newFixture().withJobs(t, jobs.Options{PerCaller: 1})
	f.client = reports(release, `{"structuredContent":1}`)
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async, wait=1")
	if r.status != 202 || r.header.Get("Preference-Applied") != "respond-async, wait=1" {
		t.Fatalf("answer = %d %v %s", r.status, r.header, r.body)
	}
	// One more than the caller may have: it waited in vain, and its call is ended.
	c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async, wait=1").wantProblem(t, 429, bridge.RateLimited)
	c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async").wantProblem(t, 429, bridge.RateLimited)
	close(release)
	r = c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async, wait=60")
	r.wantOK(t, "1")
	if r.header.Get("Server-Timing") == "" {
		t.Error("no Server-Timing")
	}
	if r := c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async, wait=0"); r.status != 202 {
		t.Errorf("wait=0: %d", r.status)
	}
}

func TestBadJobRequests(t *testing.T) {
	c := newFixture().withJobs(t, jobs.Options{}).serve(t)
	for _, p := range []string{"wait=-1", "wait=1e9", "wait=x", "wait=1.5"} {
		c.do("POST", "/tools/demo/echo", `{}`, "Prefer: "+p).wantProblem(t, 400, bridge.Malformed)
		c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async, "+p).wantProblem(t, 400, bridge.Malformed)
		c.do("GET", "/jobs/none", "", "Prefer: "+p).wantProblem(t, 400, bridge.Malformed)
	}
	c.do("GET", "/jobs/none", "").wantProblem(t, 404, bridge.NotFound)
	c.do("GET", "/jobs/none/events", "").wantProblem(t, 404, bridge.NotFound)
	c.do("DELETE", "/jobs/none", "").wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/jobs/none/input", `{"action":"accept"}`).wantProblem(t, 404, bridge.NotFound)
	c.do("POST", "/jobs/none/input", `[]`).wantProblem(t, 400, bridge.Malformed)
	c.do("GET", "/jobs?after=none", "").wantProblem(t, 400, bridge.Malformed)
	c.do("GET", "/jobs?limit=0", "").wantProblem(t, 400, bridge.Malformed)
	j := jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async"))
	c.do("POST", "/jobs/"+j.ID+"/input", `{"action":"accept"}`).wantProblem(t, 409, bridge.JobConflict)
	plain := newFixture().serve(t) // without jobs
	plain.do("GET", "/jobs/none", "").wantProblem(t, 404, bridge.NotFound)
	plain.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async", "Accept: text/event-stream, application/json;q=0.1").wantOK(t, `{"content":[]}`)
}

func TestJobPages(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	c := f.serve(t)
	var ids []string
	for range 5 {
		ids = append(ids, jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async")).ID)
	}
	slices.Reverse(ids)
	var got []string
	for at := "?limit=2"; at != ""; {
		var list JobList
		r := c.do("GET", "/jobs"+at, "")
		if err := json.Unmarshal([]byte(r.body), &list); err != nil {
			t.Fatal(err)
		}
		want := ""
		if list.Next != "" {
			want = "<" + list.Next + `>; rel="next"`
		}
		if got := r.header.Get("Link"); got != want {
			t.Errorf("Link of %s is %q, want %q", at, got, want)
		}
		for _, j := range list.Jobs {
			got = append(got, j.ID)
		}
		at = list.Next
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestCancelledJob(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = reports(nil, "")
	c := f.serve(t)
	j := jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async"))
	if r := c.do("DELETE", "/jobs/"+j.ID, ""); r.status != 204 {
		t.Fatal(r.status, r.body)
	}
	j = until(t, c, j.ID, jobs.Cancelled)
	if j.Problem != nil || j.Result != nil {
		t.Errorf("job = %+v", j)
	}
	events := readEvents(c.do("GET", "/jobs/"+j.ID+"/events", "").body)
	if e := events[len(events)-1]; e.typ != "problem" || !strings.Contains(e.data, "was cancelled") {
		t.Errorf("last event: %v", e)
	}
}

// What a version of a job is known to be is waited past.
func TestLongPoll(t *testing.T) {
	step := make(chan struct{})
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		<-step
		r.Progress(json.RawMessage(`{"progress":1}`))
		<-step
		return nil, &bridge.Error{Kind: bridge.UpstreamError, Op: "test", Msg: "it broke"}
	}
	c := f.serve(t)
	j := jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Prefer: respond-async"))
	r := c.do("GET", "/jobs/"+j.ID, "")
	for jobOf(t, r).State != jobs.Running {
		r = c.do("GET", "/jobs/"+j.ID, "")
	}
	step <- struct{}{}
	r = c.do("GET", "/jobs/"+j.ID, "", "Prefer: wait=60", "If-None-Match: "+r.header.Get("ETag"))
	if j = jobOf(t, r); string(j.Progress) != `{"progress":1}` || r.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("after progress: %s %v", r.body, r.header)
	}
	if r := c.do("GET", "/jobs/"+j.ID, "", "Prefer: wait=1", "If-None-Match: "+r.header.Get("ETag")); r.status != 304 {
		t.Errorf("without a change: %d %s", r.status, r.body)
	}
	step <- struct{}{}
	if j = until(t, c, j.ID, jobs.Failed); j.Problem == nil || j.Problem.Code != bridge.UpstreamError || j.Problem.Detail != "it broke" {
		t.Errorf("at the end: %+v", j)
	}
}

// asking makes every tool ask before it answers with what it was told.
func (f *fixture) asking(questions ...bridge.Question) *fixture {
	for tool := range f.snap.Tools() {
		tool.Target.Asks = true
	}
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		replies, err := r.Ask(ctx, questions)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(replies)
		if err != nil {
			return nil, err
		}
		return newResult(fmt.Sprintf(`{"structuredContent":%s}`, b)), nil
	}
	return f
}

func TestInput(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{}).asking(bridge.Question{ID: "q1", Mode: "form", Message: "Which colour?", Schema: json.RawMessage(`{"type":"object"}`)})
	c := f.serve(t)
	r := c.do("POST", "/tools/demo/echo", `{}`)
	j := jobOf(t, r)
	if r.status != 202 || j.State != jobs.InputRequired || len(j.Requests) != 1 || j.Requests[0].Message != "Which colour?" || r.header.Get("Location") == "" {
		t.Fatalf("answer = %d %s", r.status, r.body)
	}
	p := c.do("POST", "/jobs/"+j.ID+"/input", `{"action":"accept","content":{"shape":"round"}}`).wantProblem(t, 422, bridge.InvalidArguments)
	if b, _ := json.Marshal(p["errors"]); !strings.Contains(string(b), `"pointer":"/content"`) {
		t.Errorf("errors = %s", b)
	}
	if p := c.do("POST", "/jobs/"+j.ID+"/input", `{"colour":"red"}`).wantProblem(t, 422, bridge.InvalidArguments); !strings.Contains(p["detail"].(string), `A reply is {"action": `) {
		t.Errorf("detail = %s", p["detail"])
	}
	c.do("POST", "/jobs/"+j.ID+"/input", `{"q2":{"action":"decline"}}`).wantProblem(t, 422, bridge.InvalidArguments)
	c.do("POST", "/jobs/"+j.ID+"/input", `{"q1":5}`).wantProblem(t, 422, bridge.InvalidArguments)
	c.do("POST", "/jobs/"+j.ID+"/input", `{"action":`).wantProblem(t, 400, bridge.Malformed)
	if r := c.do("POST", "/jobs/"+j.ID+"/input", `{"action":"accept","content":{"colour":"blue"}}`); r.status != 204 {
		t.Fatalf("answer = %d %s", r.status, r.body)
	}
	j = until(t, c, j.ID, jobs.Done)
	if got, want := string(j.Result.Data), `{"q1":{"action":"accept","content":{"colour":"blue"}}}`; got != want {
		t.Errorf("the tool was told %s, want %s", got, want)
	}
	c.do("POST", "/jobs/"+j.ID+"/input", `{"q1":{"action":"accept","content":{"colour":"red"}}}`).wantProblem(t, 409, bridge.JobConflict)
}

// A stream tells what is asked, goes on when it is answered elsewhere, and ends with the answer.
func TestInputInAStream(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{}).asking(bridge.Question{ID: "q1"}, bridge.Question{ID: "q2"})
	c := f.serve(t)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", c.url+"/tools/demo/echo", nil)
	req.Header.Set("Accept", "text/event-stream")
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var last string
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		var asked struct{ Job string }
		if err := json.Unmarshal([]byte(data), &asked); err == nil && asked.Job != "" {
			if r := c.do("POST", "/jobs/"+asked.Job+"/input", `{"q1":{"action":"decline"},"q2":{"action":"cancel"}}`); r.status != 204 {
				t.Errorf("input: %d %s", r.status, r.body)
			}
		}
	}
	if want := `{"q1":{"action":"decline"},"q2":{"action":"cancel"}}`; last != want {
		t.Errorf("the last event is %s, want %s", last, want)
	}
}

func TestIdempotencyKey(t *testing.T) {
	var n atomic.Int64
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
		return newResult(fmt.Sprintf(`{"structuredContent":{"n":%d}}`, n.Add(1))), nil
	}
	c := f.serve(t)
	first := c.do("POST", "/tools/demo/echo", `{"a": 1}`, `Idempotency-Key: "k"`)
	first.wantOK(t, `{"n":1}`)
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first call is a replay")
	}
	again := c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k")
	again.wantOK(t, `{"n":1}`)
	if again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("the second call is no replay")
	}
	f.fails["breaker"] = &bridge.Error{Kind: bridge.Unavailable, Op: "test", Msg: "The circuit is open."}
	c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k").wantOK(t, `{"n":1}`) // it is known
	c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k2").wantProblem(t, 503, bridge.Unavailable)
	delete(f.fails, "breaker")
	if events := readEvents(c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k", "Accept: text/event-stream").body); len(events) != 1 || events[0].data != `{"n":1}` {
		t.Errorf("streamed again: %v", events)
	}
	c.do("POST", "/tools/demo/echo", `{"a": 2}`, "Idempotency-Key: k").wantProblem(t, 409, bridge.IdempotencyConflict)
	c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k", "X-User: bob").wantOK(t, `{"n":2}`)
	a := jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Idempotency-Key: j", "Prefer: respond-async"))
	b := jobOf(t, c.do("POST", "/tools/demo/echo", `{}`, "Idempotency-Key: j", "Prefer: respond-async"))
	if a.ID != b.ID {
		t.Error("one key made two jobs")
	}
	allows := f.allows
	f.allows = func(string, string) bool { return false }
	c.do("POST", "/tools/demo/echo", `{"a": 1}`, "Idempotency-Key: k").wantProblem(t, 404, bridge.NotFound) // also what it was answered before
	f.allows = allows
	for _, k := range []string{`""`, `"`, `"x`, "\u00e9", strings.Repeat("x", 256)} {
		c.do("POST", "/tools/demo/echo", `{}`, "Idempotency-Key: "+k).wantProblem(t, 400, bridge.Malformed)
	}
}

// A call that goes by a job tells its caller's rate like any other.
func TestRateOfJobs(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.returns(`{"content":[]}`)
	f.opts.Allowance = func(bridge.Caller) (identity.Allowance, bool) {
		return identity.Allowance{Burst: 20, Full: 12 * time.Second, Left: 3, Reset: time.Second}, true
	}
	c := f.serve(t)
	for _, header := range []string{"Prefer: respond-async", "Prefer: respond-async, wait=60", "Accept: text/event-stream", "Idempotency-Key: k"} {
		if r := c.do("POST", "/tools/demo/echo", `{}`, header); r.header.Get("RateLimit") != `"calls";r=3;t=1` {
			t.Errorf("%s: %d %v", header, r.status, r.header)
		}
	}
}
