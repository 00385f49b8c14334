package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
)

// behind runs a test with bridge A in front of a bridge B in front of real
// servers, once over each way in which B publishes them: what A offers as
// b/ok__echo is B's ok/echo.
func behind(t *testing.T, test func(t *testing.T, a *process)) {
	servers := func(t *testing.T) map[string]server {
		return map[string]server{
			"ok": mode(t, "ok"), "exact": mode(t, "exact"), "results": mode(t, "results"),
			"names": mode(t, "names"), "schemas": mode(t, "schemas"), "pages": mode(t, "pages", "1200", "500"),
		}
	}
	for name, protocol := range map[string]string{"modern": "auto", "sessions": "2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, servers(t), nil)
			a := start(t, map[string]server{"b": {"url": b.base + "/mcp", "protocol": protocol}}, nil)
			a.ready()
			test(t, a)
		})
	}
	t.Run("stdio", func(t *testing.T) {
		a := start(t, map[string]server{"b": published(t, servers(t))}, nil)
		a.ready()
		test(t, a)
	})
}

// published returns the entry of a bridge that publishes these servers over stdio.
func published(t *testing.T, servers map[string]server) server {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "published.json")
	write(t, path, string(b))
	program, err := exec.LookPath("bridge")
	if err != nil {
		t.Fatal(err)
	}
	return server{"command": program, "args": []string{"mcp", "--config", path}}
}

func TestBridgeBehindBridge(t *testing.T) {
	direct := start(t, map[string]server{"schemas": mode(t, "schemas")}, nil)
	direct.ready()
	behind(t, func(t *testing.T, a *process) {
		t.Run("results", func(t *testing.T) { resultsBehind(t, a) })
		t.Run("lists", func(t *testing.T) { listsBehind(t, a, direct) })
		t.Run("life", func(t *testing.T) { lifeBehind(t, a) })
	})
}

// Results, arguments and errors are the same behind two bridges as behind one.
func resultsBehind(t *testing.T, a *process) {
	for _, tt := range []struct{ tool, args, want string }{
		{"exact__numbers", `{}`, exactNumbers},
		{"exact__unknown_blocks", `{}`, `{"content":` + exactBlocks + `}`},
		{"exact__surrogate", `{}`, exactSurrogate},
		{"ok__answer", answer(`{"content" : [ ], "structuredContent":{ "n":1.10 } }`), `{ "n":1.10 }`},
		{"ok__huge", `{"bytes":3000000}`, ""},
	} {
		// That the artifact can be read again means that its reference came through.
		_, res := a.artifact("b", tt.tool, tt.args)
		if tt.want != "" && string(res.body) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.tool, res.body, tt.want)
		}
	}
	path, _ := a.artifact("b", "exact__meta", `{}`)
	whole := string(a.get(path + "?view=result").body)
	if !strings.Contains(whole, strings.TrimSuffix(mcptest.ExactMeta, "}")+`,"artifact_ref":"«artifact:`+strings.TrimPrefix(path, "/artifacts/")+`»"`) {
		t.Errorf("the whole result is %s", whole)
	}
	const args = `{"z":9007199254740993, "price":1.10,"a":1e400,"html":"<b>&</b>"}`
	if got := text(t, a.call("b", "ok__args", args, 200)); got != args {
		t.Errorf("the arguments came as %s, want %s", got, args)
	}
	a.problem("b", "results__disk_full", `{}`, 422, "tool-error", "disk full")
	a.problem("b", "results__nothing", `{}`, 404, "not-found", "no tool")
	a.problem("b", "ok__rpc_error", `{"code":-32050,"message":"broke down"}`, 422, "tool-error", "broke down")
}

// text returns the text of a result's first block.
func text(t *testing.T, res response) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	decode(t, res, &r)
	if len(r.Content) == 0 {
		t.Fatalf("no content: %.300s", res.body)
	}
	return r.Content[0].Text
}

// A tool is the same behind two bridges as behind one: its schemas in the same bytes, under a name that finds it.
func listsBehind(t *testing.T, a, direct *process) {
	type list struct {
		Tools []struct {
			Name  string
			Input json.RawMessage `json:"input_schema"`
		}
		Next string
	}
	all := func(p *process, path string) (l list) {
		for {
			var page list
			decode(t, p.get(path), &page)
			l.Tools = append(l.Tools, page.Tools...)
			if page.Next == "" {
				return l
			}
			path = path[:strings.IndexByte(path, '?')] + page.Next
		}
	}
	published := map[string]string{} // :: tool -> its schema
	count := 0
	for _, tool := range all(a, "/tools/b?limit=1000").Tools {
		if strings.HasPrefix(tool.Name, "pages__") {
			count++
		}
		if name, ok := strings.CutPrefix(tool.Name, "schemas__"); ok {
			published[name] = string(tool.Input)
		}
	}
	if count != 1200 {
		t.Errorf("%d tools came over several pages, want 1200", count)
	}
	for _, tool := range all(direct, "/tools/schemas?limit=1000").Tools {
		got, ok := published[tool.Name]
		if !ok {
			t.Errorf("schemas/%s is not there", tool.Name)
			continue
		}
		// The protocol wants "type": "object" where a schema leaves it out.
		if want := string(tool.Input); got != want && strings.Replace(got, `"type":"object",`, "", 1) != strings.TrimPrefix(want, " ") {
			t.Errorf("schemas/%s:\n got %s\nwant %s", tool.Name, got, want)
		}
	}
	// Every name of names, however odd, is a tool that answers that name.
	answered := map[string]bool{}
	for _, tool := range all(a, "/tools/b?limit=1000").Tools {
		if strings.HasPrefix(tool.Name, "names_") {
			answered[text(t, a.call("b", tool.Name, `{}`, 200))] = true
		}
	}
	for _, name := range mcptest.ToolNames {
		if !answered[name] {
			t.Errorf("names/%s cannot be called", name)
		}
	}
}

// A tool that comes at run time is in the lists of both bridges, a call that is given up is cancelled
// at the server, through both.
func lifeBehind(t *testing.T, a *process) {
	a.call("b", "ok__add_tool", `{"name":"brand_new"}`, 200)
	for range 200 {
		if a.get("/tools/b/ok__brand_new").StatusCode == http.StatusOK {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got := text(t, a.call("b", "ok__brand_new", `{}`, 200)); got != "brand_new" {
		t.Errorf("the new tool answers %q", got)
	}
	a.call("b", "ok__block", `{"key":"k"}`, 504, "Prefer", "wait=1")
	if got := text(t, a.call("b", "ok__cancelled", `{"count":1}`, 200)); strings.Count(got, ",") != 0 || got == "[]" {
		t.Errorf("cancelled at the server: %s, want one id", got)
	}
}

// Progress keeps a call alive through both.
func TestProgressBehindBridge(t *testing.T) {
	b := start(t, map[string]server{"ok": with(mode(t, "ok"), "timeout", "2s")}, nil)
	a := start(t, map[string]server{"b": {"url": b.base + "/mcp", "timeout": "2s"}}, nil)
	a.ready()
	if got := text(t, a.call("b", "ok__slow", `{"seconds":4,"every":0.5}`, 200)); got != "done" {
		t.Errorf("got %q", got)
	}
}

func TestMCPNarrowed(t *testing.T) {
	b := start(t, map[string]server{"ok": mode(t, "ok"), "exact": mode(t, "exact")}, map[string]any{"basePath": "/base"})
	a := start(t, map[string]server{"b": {"url": b.base + "/base/mcp?handles=exact"}}, nil)
	a.ready()
	a.call("b", "exact__numbers", `{}`, 200)
	a.call("b", "ok__echo", `{}`, 404)
	if res := b.do("POST", "/base/mcp", `{}`, "Host", "evil.example"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign Host: %d %s", res.StatusCode, res.body)
	}
	if res := b.do("POST", "/base/mcp", `{}`, "Origin", "https://evil.example"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign Origin: %d %s", res.StatusCode, res.body)
	}
	if res := b.do("PUT", "/base/mcp", `{}`); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, POST, DELETE" {
		t.Errorf("PUT: %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
	if res := b.do("POST", "/base/mcp/", `{`); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(res.body), "-32700") {
		t.Errorf("no JSON: %d %s", res.StatusCode, res.body)
	}
}

// bridge mcp ends with its input and on a signal, and leaves no process behind.
func TestMCPCommandEnds(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, in io.Closer){
		"the input's end": func(_ *exec.Cmd, in io.Closer) { in.Close() },
		"SIGTERM":         func(cmd *exec.Cmd, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":          func(cmd *exec.Cmd, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{t: t, tag: "BRIDGE_TEST_TAG=" + t.Name() + "." + time.Now().Format("150405.000000")}
			s := published(t, map[string]server{"ok": mode(t, "ok"), "stubborn": mode(t, "stubborn")})
			cmd := exec.Command(s["command"].(string), s["args"].([]string)...)
			cmd.Env = append(os.Environ(), p.tag)
			var log bytes.Buffer
			cmd.Stderr = &log
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ok__echo","arguments":{"message":"hi"}}}`,
			} {
				if _, err := io.WriteString(in, m+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			dec := json.NewDecoder(out)
			for id := range 2 {
				var m struct {
					ID    int
					Error json.RawMessage
				}
				if err := dec.Decode(&m); err != nil || m.ID != id+1 || m.Error != nil {
					t.Fatalf("%+v, %v\n%s", m, err, log.String())
				}
			}
			if len(tagged(p.tag)) < 3 {
				t.Errorf("running: %q", tagged(p.tag))
			}
			end(cmd, in)
			if rest, err := io.ReadAll(io.MultiReader(dec.Buffered(), out)); err != nil || len(bytes.TrimSpace(rest)) > 0 {
				t.Errorf("more was written: %q, %v", rest, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v\n%s", err, log.String())
			}
			p.wantNoProcess()
		})
	}
}

// asksNext waits until a job asks something else, and returns the message.
func (p *process) asksNext(j jobAsking) string {
	p.t.Helper()
	for range 600 {
		if now := p.job(j.ID, "input_required").Requests; len(now) > 0 && now[0].Message != j.Requests[0].Message {
			return now[0].Message
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatal("the job asks nothing else")
	return ""
}

// What a server asks, and says while it works, comes through two bridges, whatever versions of
// the protocol the three speak: the caller's reply is the server's.
func TestQuestionsBehindBridge(t *testing.T) {
	b := start(t, asking(t), nil)
	b.ready()
	at := b.base + "/mcp"
	a := start(t, map[string]server{
		"modern":   {"url": at, "elicitation": true},
		"sessions": {"url": at, "elicitation": true, "protocol": "2025-11-25"},
		"pipe":     with(with(published(t, asking(t)), "elicitation", true), "sharing", "user"),
	}, nil)
	a.ready()
	for _, handle := range []string{"modern", "sessions", "pipe"} {
		for _, origin := range []string{"http", "stdio", "modern", "pipe"} {
			t.Run(handle+" "+origin, func(t *testing.T) {
				j := a.asked(handle, origin+"__ask", `{"who":"you"}`, 1)
				if q := j.Requests[0]; q.Message != "Who are you, you?" || q.Mode != "form" || !strings.Contains(string(q.Schema), `"minLength":2`) {
					t.Errorf("it asks %+v", q)
				}
				a.reply(j.ID, `{"action":"accept","content":{"name":"Ada"}}`, 204)
				if got := a.result(j.ID); got != "hello Ada" {
					t.Errorf("result = %q", got)
				}
				if origin == "http" || origin == "stdio" { // where two questions come one after the other
					j = a.asked(handle, origin+"__ask_both", `{}`, 1)
					answers := map[string]string{"Who are you?": `{"action":"accept","content":{"name":"Ada"}}`, "Which colour?": `{"action":"accept","content":{"colour":"red"}}`}
					a.reply(j.ID, answers[j.Requests[0].Message], 204)
					a.reply(j.ID, answers[a.asksNext(j)], 204)
					if got := a.result(j.ID); got != "Ada is red" {
						t.Errorf("two questions: %q", got)
					}
				} else {
					j = a.asked(handle, origin+"__ask_again", `{}`, 1)
					a.reply(j.ID, `{"action":"accept","content":{"name":"Ada"}}`, 204)
					a.asksNext(j)
					a.reply(j.ID, `{"action":"accept","content":{"age":36}}`, 204)
					if got := a.result(j.ID); got != "Ada is 36" {
						t.Errorf("two rounds: %q", got)
					}
				}
				j = a.asked(handle, origin+"__ask_page", `{}`, 1)
				if q := j.Requests[0]; q.Mode != "url" || q.URL != "https://example.com/sign-in" {
					t.Errorf("it asks %+v", q)
				}
				a.reply(j.ID, `{"action":"decline"}`, 204)
				if got := a.result(j.ID); got != "visited: false" {
					t.Errorf("result = %q", got)
				}
				if handle == "pipe" || origin == "stdio" || origin == "pipe" {
					return // nothing ties log messages to a call there
				}
				res := a.call(handle, origin+"__work", `{"steps":2,"seconds":0.1}`, 200, "Accept", "text/event-stream")
				for _, want := range []string{"event: progress", `"message":"step 2"`, "event: log", `"data":"did step 2"`, "2 steps done"} {
					if !strings.Contains(string(res.body), want) {
						t.Errorf("the events lack %q:\n%s", want, res.body)
					}
				}
			})
		}
	}
}

// Clients without sessions are asked through two bridges, too: the call waits in the one that has the server.
func TestQuestionsBehindBridgeOverMCP(t *testing.T) {
	b := start(t, asking(t), nil)
	b.ready()
	a := start(t, map[string]server{"b": {"url": b.base + "/mcp", "elicitation": true}}, nil)
	a.ready()
	call := func(name, more string) (answer struct {
		Result struct {
			RequestState  string
			InputRequests map[string]any
			Content       []struct{ Text string }
		}
	},
	) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{"who":"you"}` + more +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		res := a.do("POST", "/mcp", body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
		message := res.body
		if i := bytes.LastIndex(message, []byte("data: {")); i >= 0 {
			message = message[i+len("data: "):]
		}
		if err := json.Unmarshal(message, &answer); err != nil {
			t.Fatalf("%v: %d %s", err, res.StatusCode, res.body)
		}
		return answer
	}
	for _, origin := range []string{"http", "stdio", "modern", "pipe"} {
		name := "b__" + origin + "__ask"
		asked := call(name, "").Result
		if len(asked.InputRequests) != 1 || asked.RequestState == "" {
			t.Fatalf("%s asks %+v", name, asked)
		}
		for id := range asked.InputRequests {
			got := call(name, fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ada"}}}`, asked.RequestState, id)).Result
			if len(got.Content) != 1 || got.Content[0].Text != "hello Ada" {
				t.Errorf("%s answers %+v", name, got)
			}
		}
	}
}
