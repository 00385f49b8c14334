package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcpbridge/internal/mcptest"
)

// asking returns a server that asks, in each way that a server can: by handle.
func asking(t *testing.T) map[string]server {
	t.Helper()
	return map[string]server{
		"http":   {"url": mcptest.Start(t, mcptest.HTTPAsks).URL, "elicitation": true},
		"stdio":  with(with(mode(t, mcptest.Asks), "elicitation", true), "sharing", "user"),
		"modern": {"url": mcptest.Start(t, mcptest.HTTPAsks, "stateless").URL, "elicitation": true},
		"pipe":   with(mode(t, mcptest.Asks, "modern"), "elicitation", true),
	}
}

// A jobAsking is a job that asks.
type jobAsking struct {
	ID, State string
	Requests  []struct {
		ID, Mode, Message, URL string
		Schema                 json.RawMessage
	}
}

// asked makes a call, and demands that it is a job that asks so many things.
func (p *process) asked(handle, tool, args string, n int, header ...string) jobAsking {
	p.t.Helper()
	res := p.call(handle, tool, args, http.StatusAccepted, header...)
	var j jobAsking
	if err := json.Unmarshal(res.body, &j); err != nil || j.State != "input_required" || len(j.Requests) != n || res.Header.Get("Location") != "../../jobs/"+j.ID {
		p.t.Fatalf("%s/%s: %v: %s %v; want a job that asks %d things", handle, tool, err, res.body, res.Header, n)
	}
	return j
}

// reply answers a job, and demands the status.
func (p *process) reply(id, body string, status int, header ...string) response {
	p.t.Helper()
	res := p.do("POST", "/jobs/"+id+"/input", body, header...)
	if res.StatusCode != status {
		p.t.Errorf("input %s: %d %s, want %d", body, res.StatusCode, res.body, status)
	}
	return res
}

// result waits for a job's end and returns its result's text.
func (p *process) result(id string, header ...string) string {
	p.t.Helper()
	j := p.job(id, "done")
	res := p.do("GET", "/artifacts/"+j.Result.Ref+"?pointer=/content/0/text", "", append(header, "Accept", "text/plain")...)
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("the result: %d %s", res.StatusCode, res.body)
	}
	return string(res.body)
}

// Whatever the server's transport and version, what it asks its caller answers over REST.
func TestQuestions(t *testing.T) {
	p := start(t, asking(t), nil)
	p.ready()
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		t.Run(handle, func(t *testing.T) {
			j := p.asked(handle, "ask", `{"who":"you"}`, 1)
			if q := j.Requests[0]; q.Message != "Who are you, you?" || q.Mode != "form" || !strings.Contains(string(q.Schema), `"minLength":2`) {
				t.Errorf("it asks %+v", q)
			}
			id := j.Requests[0].ID
			// What does not fit is refused with all that is wrong, and the job goes on asking.
			for body, pointer := range map[string]string{
				`{"` + id + `":{"action":"accept","content":{"name":"A"}}}`: "/" + id + "/content/name",
				`{"` + id + `":{"action":"accept","content":{}}}`:           "/" + id + "/content",
				`{"` + id + `":{"action":"accept"}}`:                        "/" + id + "/content",
				`{"` + id + `":{"action":"perhaps"}}`:                       "/" + id + "/action",
				`{"` + id + `":{"action":"cancel"},"else":{}}`:              "/else",
				`{}`: "/" + id,
			} {
				res := p.reply(j.ID, body, 422)
				if !strings.Contains(string(res.body), `"pointer":"`+pointer+`"`) {
					t.Errorf("input %s: %s, want the pointer %s", body, res.body, pointer)
				}
			}
			wantProblem(t, p.reply(j.ID, `{"x`, 400), 400, "malformed-request", "JSON")
			p.reply(j.ID, `{"`+id+`":{"action":"accept","content":{"name":"Ada"}}}`, 204)
			wantProblem(t, p.reply(j.ID, `{"`+id+`":{"action":"accept","content":{"name":"Eve"}}}`, 409), 409, "job-conflict", "asks nothing") // twice
			if got := p.result(j.ID); got != "hello Ada" {
				t.Errorf("result = %q", got)
			}
			wantProblem(t, p.reply(j.ID, `{"action":"cancel"}`, 409), 409, "job-conflict", "asks nothing") // late

			for _, action := range []string{"decline", "cancel"} {
				j := p.asked(handle, "ask", `{}`, 1)
				p.reply(j.ID, `{"action":"`+action+`"}`, 204)
				if got := p.result(j.ID); got != "no name: "+action {
					t.Errorf("%s: %q", action, got)
				}
			}
			j = p.asked(handle, "ask_page", `{}`, 1)
			if q := j.Requests[0]; q.Mode != "url" || q.URL != "https://example.com/sign-in" {
				t.Errorf("it asks %+v", q)
			}
			p.reply(j.ID, `{"action":"accept"}`, 204)
			if got := p.result(j.ID); got != "visited: true" {
				t.Errorf("result = %q", got)
			}
			// A job of the caller's own making asks as well.
			async := p.async(handle, "ask", `{}`)
			p.job(async.ID, "input_required")
			p.reply(async.ID, `{"action":"accept","content":{"name":"Ada"}}`, 204)
			if got := p.result(async.ID); got != "hello Ada" {
				t.Errorf("async: %q", got)
			}
		})
	}
	wantProblem(t, p.reply("nothing", `{"action":"cancel"}`, 404), 404, "not-found", "no such job")
}

// Several questions come together since 2026-07-28, and one after the other before.
func TestSeveralQuestions(t *testing.T) {
	p := start(t, asking(t), nil)
	p.ready()
	for _, handle := range []string{"modern", "pipe"} {
		j := p.asked(handle, "ask_both", `{}`, 2)
		name, colour := `"name":{"action":"accept","content":{"name":"Ada"}}`, `"a/b~":{"action":"accept","content":{"colour":"red"}}`
		if res := p.reply(j.ID, `{`+name+`}`, 422); !strings.Contains(string(res.body), `"pointer":"/a~1b~0"`) {
			t.Errorf("one answer to two questions: %s", res.body)
		}
		p.reply(j.ID, `{`+name+`,`+colour+`}`, 204)
		if got := p.result(j.ID); got != "Ada is red" {
			t.Errorf("%s: %q", handle, got)
		}

		j = p.asked(handle, "ask_again", `{}`, 1)
		p.reply(j.ID, `{`+name+`}`, 204)
		p.job(j.ID, "input_required")
		p.reply(j.ID, `{"age":{"action":"accept","content":{"age":36}}}`, 204)
		if got := p.result(j.ID); got != "Ada is 36" {
			t.Errorf("%s: two rounds: %q", handle, got)
		}
		// To be asked again later is no question.
		if got := p.text(handle, "busy", `{"times":3}`); got != "at last" {
			t.Errorf("%s: put off, it answers %q", handle, got)
		}
		p.problem(handle, "ask_model", `{}`, 502, "upstream-error", "sampling/createMessage")
	}
	for _, handle := range []string{"http", "stdio"} {
		j := p.asked(handle, "ask_both", `{}`, 1)
		answers := map[string]string{"Who are you?": `{"action":"accept","content":{"name":"Ada"}}`, "Which colour?": `{"action":"accept","content":{"colour":"red"}}`}
		p.reply(j.ID, answers[j.Requests[0].Message], 204)
		second := p.job(j.ID, "input_required")
		if second.Requests[0].ID == j.Requests[0].ID {
			t.Errorf("%s: both questions are %q", handle, second.Requests[0].ID)
		}
		p.reply(j.ID, answers[second.Requests[0].Message], 204)
		if got := p.result(j.ID); got != "Ada is red" {
			t.Errorf("%s: %q", handle, got)
		}
	}
}

// A question waits for its time and no longer, and the call says so.
func TestInputWait(t *testing.T) {
	p := start(t, asking(t), map[string]any{"jobs": map[string]any{"inputWait": "300ms"}})
	p.ready()
	for _, handle := range []string{"modern", "pipe", "http", "stdio"} {
		j := p.asked(handle, "ask", `{}`, 1)
		// A long poll ends at once while the job asks.
		until(t, "the question's time is up", func() bool {
			var now jobView
			decode(t, p.get("/jobs/"+j.ID), &now)
			if now.State != "failed" {
				return false
			}
			if now.Problem.Code != "deadline-exceeded" || !strings.Contains(now.Problem.Detail, "did not come within 300ms") {
				t.Errorf("%s: %+v", handle, now.Problem)
			}
			return true
		})
		wantProblem(t, p.reply(j.ID, `{"action":"cancel"}`, 409), 409, "job-conflict", "asks nothing")
	}
}

// Without elicitation: true nobody is asked, and the server knows.
func TestQuestionsAreOptIn(t *testing.T) {
	servers := asking(t)
	for _, s := range servers {
		delete(s, "elicitation")
	}
	servers["everything"] = npm("everything")
	p := start(t, servers, nil)
	p.ready()
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		res := p.call(handle, "ask", `{}`, 502)
		wantProblem(t, res, 502, "upstream-error", "")
	}
	p.problem("everything", "trigger-elicitation-request", `{}`, 404, "not-found", "no tool")
}

// Two callers who are asked at the same time never see each other's question.
func TestQuestionsBelongToTheirCallers(t *testing.T) {
	a, alice := newKey(t, "alice", map[string]any{"user": "alice"})
	b, bob := newKey(t, "bob", map[string]any{"user": "bob"})
	p := start(t, asking(t), map[string]any{"auth": map[string]any{"keys": []any{alice, bob}}})
	keys := map[string][]string{"Alice": {"X-API-Key", a}, "Bob": {"X-API-Key", b}}
	until(t, "all servers are there, but for those of users", func() bool {
		return p.do("GET", "/readyz", "").StatusCode == http.StatusOK
	})
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		jobs := map[string]jobAsking{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for who, key := range keys {
			wg.Go(func() {
				j := p.asked(handle, "ask", `{"who":"`+who+`"}`, 1, key...)
				if j.Requests[0].Message != "Who are you, "+who+"?" {
					t.Errorf("%s: %s is asked %+v", handle, who, j.Requests[0])
				}
				mu.Lock()
				defer mu.Unlock()
				jobs[who] = j
			})
		}
		wg.Wait()
		for who, other := range map[string]string{"Alice": "Bob", "Bob": "Alice"} {
			wantProblem(t, p.reply(jobs[other].ID, `{"action":"cancel"}`, 404, keys[who]...), 404, "not-found", "no such job")
			if res := p.do("GET", "/jobs/"+jobs[other].ID, "", keys[who]...); res.StatusCode != 404 {
				t.Errorf("%s sees the job of %s: %s", who, other, res.body)
			}
		}
		for who, key := range keys {
			p.reply(jobs[who].ID, `{"action":"accept","content":{"name":"`+who+`"}}`, 204, key...)
		}
		for who, key := range keys {
			until(t, who+"'s job is done", func() bool {
				var j jobView
				decode(t, p.do("GET", "/jobs/"+jobs[who].ID, "", append(key, "Prefer", "wait=1")...), &j)
				if j.Result == nil {
					return false
				}
				res := p.do("GET", "/artifacts/"+j.Result.Ref, "", key...)
				if !strings.Contains(string(res.body), "hello "+who) {
					t.Errorf("%s: the result of %s is %s", handle, who, res.body)
				}
				return true
			})
		}
	}
}

// everythingAt runs the real server over Streamable HTTP and returns its URL.
func everythingAt(t *testing.T) string {
	t.Helper()
	port := freePort(t)
	cmd := exec.Command("node", npm("everything", "streamableHttp")["args"].([]string)...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitForPort(t, port)
	return "http://127.0.0.1:" + port + "/mcp"
}

// A real server asks, over both transports, and goes on for longer than its silence may last (trial C3, shorter).
func TestRealLongCalls(t *testing.T) {
	p := start(t, map[string]server{
		"stdio": with(with(with(npm("everything"), "elicitation", true), "sharing", "user"), "timeout", "1500ms"),
		"http":  {"url": everythingAt(t), "elicitation": true, "timeout": "1500ms"},
	}, nil)
	p.ready()
	for _, handle := range []string{"stdio", "http"} {
		j := p.asked(handle, "trigger-elicitation-request", `{}`, 1)
		if j.Requests[0].Message != "Please provide inputs for the following fields:" {
			t.Errorf("%s asks %+v", handle, j.Requests[0])
		}
		id := j.Requests[0].ID
		res := p.reply(j.ID, `{"`+id+`":{"action":"accept","content":{"integer":101}}}`, 422)
		for _, pointer := range []string{`"/` + id + `/content"`, `"/` + id + `/content/integer"`} {
			if !strings.Contains(string(res.body), pointer) {
				t.Errorf("%s: wrong input: %s, want %s", handle, res.body, pointer)
			}
		}
		p.reply(j.ID, `{"action":"accept","content":{"name":"Ada","integer":7,"check":true}}`, 204)
		ref := p.job(j.ID, "done").Result.Ref
		if got := p.get("/artifacts/" + ref); !strings.Contains(string(got.body), `- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7`) {
			t.Errorf("%s: %s", handle, got.body)
		}

		if got := p.text(handle, "trigger-long-running-operation", `{"duration":4,"steps":16}`); !strings.Contains(got, "completed. Duration: 4 seconds") {
			t.Errorf("%s: %q", handle, got)
		}
		p.problem(handle, "trigger-long-running-operation", `{"duration":4,"steps":1}`, 504, "deadline-exceeded", "told to cancel")
	}
}

// Whoever waits when the bridge has to go gets an answer, and streams have an end.
func TestWaitersAtTheEnd(t *testing.T) {
	p := start(t, map[string]server{"http": asking(t)["http"]}, map[string]any{"shutdownGrace": "100ms"})
	p.ready()
	j := p.async("http", "hang", `{}`)
	answers := make(chan string, 4)
	ask := func(method, path, body string, header ...string) {
		go func() { // ends with the bridge
			res := p.do(method, path, body, header...)
			answers <- fmt.Sprintf("%d %s", res.StatusCode, res.body)
		}()
	}
	ask("GET", "/jobs/"+j.ID, "", "Prefer", "wait=600")
	ask("GET", "/jobs/"+j.ID+"/events", "")
	ask("POST", "/tools/http/hang", `{}`)
	ask("POST", "/tools/http/hang", `{}`, "Accept", "text/event-stream")
	p.text("http", "hung", `{"running":3}`)
	p.stop(syscall.SIGTERM)
	var got []string
	for range 4 {
		got = append(got, <-answers)
	}
	slices.Sort(got) // that of the plain call is the last
	all := strings.Join(got, "\n")
	if !strings.Contains(all, `"state":"running"`) || strings.Count(all, `"code":"outcome-unknown"`) != 2 || strings.Count(all, "event: problem") != 1 || !strings.HasPrefix(got[3], "502 ") {
		t.Errorf("answers:\n%s", all)
	}
}

// Whoever ends a job has its server told, at once, which call to cancel (trial C1).
func TestJobsAreCancelledAtTheServer(t *testing.T) {
	servers := asking(t)
	p := start(t, servers, map[string]any{"shutdownGrace": "100ms"})
	p.ready()
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		tool := "hang"
		if handle == "stdio" { // which has one call at a time, so that nobody else could tell
			p = start(t, map[string]server{"stdio": with(mode(t, mcptest.Asks), "maxConcurrent", 3)}, nil)
			p.ready()
		}
		j, other := p.async(handle, tool, `{}`), p.async(handle, tool, `{}`)
		if got := p.text(handle, "hung", `{"running":2}`); got != "0 ended, 2 running" {
			t.Errorf("%s: %s", handle, got)
		}
		if res := p.do("DELETE", "/jobs/"+j.ID, ""); res.StatusCode != 204 {
			t.Fatalf("DELETE = %d %s", res.StatusCode, res.body)
		}
		if got := p.text(handle, "hung", `{"ended":1}`); got != "1 ended, 1 running" {
			t.Errorf("%s: %s", handle, got)
		}
		p.job(j.ID, "cancelled")
		p.job(other.ID, "running")
		p.do("DELETE", "/jobs/"+other.ID, "")
		// The time that the caller gives ends it in the same way.
		wantProblem(t, p.call(handle, tool, `{}`, 504, "Prefer", "wait=1"), 504, "deadline-exceeded", "")
		if got := p.text(handle, "hung", `{"ended":3}`); got != "3 ended, 0 running" {
			t.Errorf("%s: %s", handle, got)
		}
		if handle == "stdio" {
			p.stop(syscall.SIGTERM)
			p = start(t, servers, map[string]any{"shutdownGrace": "100ms"})
			p.ready()
		}
	}
	// So does the bridge's end.
	for _, handle := range []string{"http", "modern"} {
		p.async(handle, "hang", `{}`)
		p.text(handle, "hung", `{"running":1}`)
	}
	p.stop(syscall.SIGTERM)
	p = start(t, servers, nil)
	p.ready()
	for _, handle := range []string{"http", "modern"} {
		if got := p.text(handle, "hung", `{"ended":4}`); got != "4 ended, 0 running" {
			t.Errorf("after the end of the bridge %s says: %s", handle, got)
		}
	}
}
