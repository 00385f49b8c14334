package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// askedBy demands that an answer is a job that asks who one is, and returns its id.
func askedBy(t *testing.T, what string, res response, method string) string {
	t.Helper()
	var j struct {
		ID, State, Method string
		Requests          []struct{ Message string }
	}
	if err := json.Unmarshal(res.body, &j); err != nil || res.StatusCode != http.StatusAccepted || j.State != "input_required" || j.Method != method || len(j.Requests) != 1 || j.Requests[0].Message != "Who are you?" {
		t.Fatalf("%s: %v: %d %s; want a job that asks", what, err, res.StatusCode, res.body)
	}
	return j.ID
}

// Whatever the server's transport and version, also a read and a prompt may ask their caller something
// first, and be put off. A completion may not: who asks in its middle is refused at once.
func TestResourcesAsk(t *testing.T) {
	p := start(t, asking(t), nil)
	p.ready()
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		id := askedBy(t, handle, p.read(handle, "ask:name"), "resources/read")
		p.reply(id, `{"action":"accept","content":{"name":"A"}}`, 422)
		p.reply(id, `{"action":"accept","content":{"name":"Ada"}}`, 204)
		ref := p.job(id, "done").Result.Ref
		if got := p.do("GET", "/artifacts/"+ref+"?pointer=/contents/0/text", "", "Accept", "text/plain"); string(got.body) != "the name is Ada" {
			t.Errorf("%s: the resource is %s", handle, got.body)
		}

		id = askedBy(t, handle, p.do("POST", "/prompts/"+handle+"/greet", ""), "prompts/get")
		p.reply(id, `{"action":"decline"}`, 204)
		p.job(id, "done")
		var j struct {
			Result struct {
				Data struct {
					Messages []struct{ Content struct{ Text string } }
				}
			}
		}
		if decode(t, p.get("/jobs/"+id), &j); len(j.Result.Data.Messages) != 1 || j.Result.Data.Messages[0].Content.Text != "greet decline" {
			t.Errorf("%s: the prompt is %+v", handle, j.Result)
		}

		if handle == "modern" || handle == "pipe" {
			p.wantPutOff(handle)
			continue
		}
		var c struct{ Completion struct{ Values []string } }
		decode(t, p.do("POST", "/complete/"+handle, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}}`), &c)
		if len(c.Completion.Values) != 1 || !strings.HasPrefix(c.Completion.Values[0], "refused: ") {
			t.Errorf("%s: the completion brings %q", handle, c.Completion.Values)
		}
	}
	if strings.Contains(p.log(), "ask:name") {
		t.Error("the log has a URI")
	}
}

// wantPutOff reads and gets what a server puts off before it answers.
func (p *process) wantPutOff(handle string) {
	p.t.Helper()
	if res := p.read(handle, "ask:busy"); res.StatusCode != http.StatusOK || string(res.body) != "at last" {
		p.t.Errorf("%s: put off, the resource is %d %s", handle, res.StatusCode, res.body)
	}
	if res := p.do("POST", "/prompts/"+handle+"/busy", ""); res.StatusCode != http.StatusOK || !strings.Contains(string(res.body), "at last") {
		p.t.Errorf("%s: put off, the prompt is %d %s", handle, res.StatusCode, res.body)
	}
}

// A server that may not ask, and does, is refused at once, and goes on.
func TestResourcesMayNotAsk(t *testing.T) {
	servers := asking(t)
	for _, s := range servers {
		delete(s, "elicitation")
	}
	p := start(t, servers, nil)
	p.ready()
	for _, handle := range []string{"http", "stdio", "modern", "pipe"} {
		wantProblem(t, p.read(handle, "ask:name"), http.StatusBadGateway, "upstream-error", "elicit")
		wantProblem(t, p.do("POST", "/prompts/"+handle+"/greet", ""), http.StatusBadGateway, "upstream-error", "elicit")
		if handle == "modern" || handle == "pipe" {
			p.wantPutOff(handle)
		}
		if got := p.text(handle, "hung", `{}`); got != "0 ended, 0 running" {
			t.Errorf("%s afterwards: %s", handle, got)
		}
	}
}
