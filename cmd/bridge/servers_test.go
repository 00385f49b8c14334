package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/web/webtest"
)

// Every tool of four real servers is in the document, and can be called.
func TestRealServers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "note.txt"), "remember the milk")
	everything := npm("everything", "stdio")
	everything["env"] = map[string]string{"SEEN_BY": "the server"}
	memory := npm("memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")}
	p := start(t, map[string]server{
		"everything": everything, "files": npm("filesystem", dir), "memory": memory, "thinking": npm("sequential-thinking"),
	}, nil)
	c := p.ready()

	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	decode(t, p.get("/openapi.json"), &doc)
	tools := 0
	for _, s := range c.Servers {
		if s.State != "ready" || s.LastError != "" {
			t.Errorf("%s is %s: %s", s.Handle, s.State, s.LastError)
		}
		var one struct{ Tools []struct{ Name string } }
		decode(t, p.get("/tools/"+s.Handle), &one)
		for _, tool := range one.Tools {
			tools++
			path := "/tools/" + s.Handle + "/" + tool.Name
			if got := doc.Paths[path]["post"].OperationID; got != s.Handle+"__"+tool.Name {
				t.Errorf("%s has the operationId %q", path, got)
			}
			// A dry run goes as far as the schema: whatever it says, the tool is known and can be called.
			if res := p.do("POST", path+"?dry_run=1", "{}"); res.StatusCode != 204 && res.StatusCode != 422 {
				t.Errorf("dry run of %s: status %d: %s", path, res.StatusCode, res.body)
			}
		}
	}
	if tools != len(doc.Paths) || tools < 35 {
		t.Errorf("%d tools, %d paths in the document; want the same, and at least 35", tools, len(doc.Paths))
	}

	want := func(handle, tool, args, sub string) {
		t.Helper()
		if res := p.call(handle, tool, args, 200); !strings.Contains(string(res.body), sub) {
			t.Errorf("%s/%s(%s) = %.500s, want %q in it", handle, tool, args, res.body, sub)
		}
	}
	want("everything", "echo", `{"message":"grüße"}`, `Echo: grüße`)
	want("everything", "get-sum", `{"a":1,"b":2}`, "is 3")
	want("everything", "get-env", ``, "the server")
	want("everything", "get-structured-content", `{"location":"Chicago"}`, `"temperature":`)
	want("everything", "get-resource-links", `{"count":2}`, `"resource_link"`)
	want("everything", "get-resource-reference", `{"resourceType":"Blob"}`, `"blob":`)
	want("everything", "get-annotated-message", `{"messageType":"error"}`, `"priority":1`)
	want("everything", "trigger-long-running-operation", `{"duration":0.2,"steps":2}`, "completed")
	want("files", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "note.txt")), "remember the milk")
	want("files", "list_directory", fmt.Sprintf(`{"path":%q}`, dir), "note.txt")
	want("memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}`, "Ada")
	want("memory", "read_graph", ``, "wrote the first program")
	want("thinking", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtHistoryLength")
	p.problem("files", "read_text_file", `{"path":"/etc/passwd"}`, 422, "tool-error", "outside allowed directories")
	p.problem("everything", "get-sum", `{"a":"x","b":2}`, 422, "invalid-arguments", "a")

	res := p.call("everything", "get-tiny-image", ``, 200, "Accept", "image/png")
	if res.Header.Get("Content-Type") != "image/png" || !bytes.HasPrefix(res.body, []byte("\x89PNG")) {
		t.Errorf("an image: %s, %.20q", res.Header.Get("Content-Type"), res.body)
	}
	res = p.call("everything", "echo", `{"message":"hi"}`, 200, "Accept", "text/plain")
	if string(res.body) != "Echo: hi" {
		t.Errorf("as text: %q", res.body)
	}
}

// The same real server over Streamable HTTP and HTTP+SSE, as processes of their own.
func TestRemoteServers(t *testing.T) {
	servers := map[string]server{}
	for handle, mode := range map[string]string{"streamable": "streamableHttp", "sse": "sse"} {
		port := freePort(t)
		args := npm("everything", mode)["args"].([]string)
		cmd := exec.Command("node", args...)
		cmd.Env = append(os.Environ(), "PORT="+port)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		waitForPort(t, port)
		path := map[string]string{"streamable": "/mcp", "sse": "/sse"}[handle]
		servers[handle] = server{"url": "http://127.0.0.1:" + port + path}
	}
	servers["sse"]["type"] = "sse"
	p := start(t, servers, nil)
	for _, s := range p.ready().Servers {
		if s.State != "ready" {
			t.Errorf("%s is %s: %s", s.Handle, s.State, s.LastError)
		}
		if res := p.call(s.Handle, "echo", `{"message":"grüße \ud83d\ude00"}`, 200); !strings.Contains(string(res.body), "Echo: grüße") {
			t.Errorf("%s: echo = %s", s.Handle, res.body)
		}
		p.call(s.Handle, "get-tiny-image", ``, 200)
		p.call(s.Handle, "trigger-long-running-operation", `{"duration":0.2,"steps":2}`, 200)
		p.problem(s.Handle, "get-sum", `{}`, 422, "invalid-arguments", "a")
	}
}

// Swagger UI comes from the binary alone, and calls a tool.
func TestSwaggerUI(t *testing.T) {
	p := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	p.ready()
	for path, operation := range map[string]string{"/docs": "demo__add", "/tools/demo/docs": "add"} {
		body := `{"a": 2, "b": 40}`
		r := webtest.Swagger(t, webtest.Options{URL: p.base + path, Calls: []webtest.Call{{Operation: operation, Body: &body}}})
		if len(r.Foreign) > 0 || len(r.Faults) > 0 {
			t.Errorf("%s: asked elsewhere for %q; faults %q", path, r.Foreign, r.Faults)
		}
		if len(r.Answers) != 1 || r.Answers[0].Status != 200 || !strings.Contains(r.Answers[0].Shown, "42") {
			t.Errorf("%s: answers %+v, want 42", path, r.Answers)
		}
	}
}

// The results of trials R1 to R5: no byte is changed, no block is lost.
func TestResultsAreExact(t *testing.T) {
	p := start(t, map[string]server{"exact": mode(t, "exact"), "results": mode(t, "results"), "last": mode(t, "id-last")}, nil)
	p.ready()
	wantBody := func(handle, tool, want string) {
		t.Helper()
		if res := p.call(handle, tool, ``, 200); string(res.body) != want {
			t.Errorf("%s/%s = %s\nwant %s", handle, tool, res.body, want)
		}
	}
	wantBody("exact", "numbers", exactNumbers)
	wantBody("exact", "unknown_blocks", `{"content":`+exactBlocks+`}`)
	wantBody("exact", "surrogate", exactSurrogate)
	wantBody("results", "structured_empty_content", `{"name":"Ada"}`)
	wantBody("results", "structured_extra", `{"name":"Ada","age":36}`)
	wantBody("results", "structured_list", `[{"n":1},{"n":2.0}]`)
	wantBody("results", "no_content", `{"content":[]}`)
	p.problem("results", "disk_full", ``, 422, "tool-error", "disk full")
	p.problem("results", "structured_error", ``, 422, "tool-error", "errno")

	var all struct{ Content []struct{ Type string } }
	decode(t, p.call("results", "all_blocks", ``, 200), &all)
	var kinds []string
	for _, b := range all.Content {
		kinds = append(kinds, b.Type)
	}
	if got := strings.Join(kinds, " "); got != "text image audio resource resource resource_link" {
		t.Errorf("blocks = %s", got)
	}
	res := p.call("results", "text_image", ``, 200, "Accept", "image/png")
	if png, _ := base64.StdEncoding.DecodeString(pngData); !bytes.Equal(res.body, png) || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the image of a text and an image: %s %q", res.Header.Get("Content-Type"), res.body)
	}
	if res := p.call("results", "audio", ``, 200, "Accept", "audio/*"); res.Header.Get("Content-Type") != "audio/wav" {
		t.Errorf("audio as %s", res.Header.Get("Content-Type"))
	}
	args := "{\n  \"message\": \"pretty\", \"n\": 9007199254740993.10\r\n}"
	if res := p.call("last", "args", args, 200, "Accept", "text/plain"); string(res.body) != strings.NewReplacer("\n", " ", "\r", " ").Replace(args) {
		t.Errorf("arguments arrived as %q", res.body)
	}
}

// Trials S and C5, C6: what reaches a server is what the caller sent, or nothing.
func TestArguments(t *testing.T) {
	p := start(t, map[string]server{"s": mode(t, "schemas"), "ok": mode(t, "ok")}, nil)
	p.ready()
	arrives := func(tool, args, want string) {
		t.Helper()
		if res := p.call("s", tool, args, 200, "Accept", "text/plain"); string(res.body) != want {
			t.Errorf("%s(%s): %q arrived, want %q", tool, args, res.body, want)
		}
	}
	arrives("s1_ref_property", `{"from":"a","to":"b"}`, `{"from":"a","to":"b"}`)
	arrives("s2_definitions", `{"zone":"utc"}`, `{"zone":"utc"}`)
	arrives("s3_recursive", `{"root":{"name":"a","children":[{"name":"b"}]}}`, `{"root":{"name":"a","children":[{"name":"b"}]}}`)
	arrives("s4_enum", `{"mode":"fast"}`, `{"mode":"fast"}`)
	arrives("s6_anything", `{"x":null,"a":[1,"x"],"c":[{}]}`, `{"x":null,"a":[1,"x"],"c":[{}]}`)
	arrives("s8_optional_integer", `{"query": "q","limit":null }`, `{"query": "q" }`)
	arrives("s9_additional", `{"known":"a","other":1.10}`, `{"known":"a","other":1.10}`)
	arrives("s10_open", `{"k":1}`, `{"k":1}`)
	arrives("s11_empty", ``, `{}`)
	arrives("s11_none", ``, `{}`)
	arrives("s14_default", `{"unit":"px"}`, `{"unit":"px"}`)
	p.problem("s", "s1_ref_property", `{"to":5}`, 422, "invalid-arguments", "to")
	p.problem("s", "s2_definitions", `{"zone":"mars"}`, 422, "invalid-arguments", "zone")
	p.problem("s", "s3_recursive", `{"root":{"name":"a","children":[{}]}}`, 422, "invalid-arguments", "name")
	p.problem("s", "s4_enum", `{"mode":"medium"}`, 422, "invalid-arguments", "mode")
	p.problem("s", "s13_undeclared_required", `{"a":"x"}`, 422, "invalid-arguments", "b")

	numbers := `{"n":[` + strings.TrimSuffix(strings.Repeat("1e999999,", 200), ",") + `]}`
	for name, body := range map[string]string{
		"not JSON": `{"a":`, "an array": `[1]`, "a string": `"x"`, "trailing data": `{} {}`, "duplicate keys": `{"a":1,"\u0061":2}`,
		"bad UTF-8": "{\"a\":\"\xff\"}", "huge exponents": numbers, "too deep": strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000),
		"a control character": "{\"a\":\"\n\"}",
		"a smuggled frame":    "{}}}\n{\"jsonrpc\":\"2.0\",\"id\":777,\"method\":\"tools/call\",\"params\":{\"name\":\"pid\",\"arguments\":{}}}\n{\"x\":{\"y\":{}",
	} {
		t.Run(name, func(*testing.T) { p.problem("ok", "args", body, 400, "malformed-request", "") })
	}
	p.problem("ok", "args", `{"a":"`+strings.Repeat("x", 5<<20)+`"}`, 413, "request-too-large", "")
	p.call("ok", "args", `{}`, 200)
	if got := p.call("ok", "frames", ``, 200, "Accept", "text/plain").body; bytes.Contains(got, []byte("pid")) || bytes.Count(got, []byte("tools/call")) != 2 {
		t.Errorf("the server has read %s", got)
	}
	wantProblem(t, p.do("POST", "/tools/ok/args", "{}", "Content-Type", "text/plain"), 415, "unsupported-media-type", "")
	wantProblem(t, p.do("PUT", "/tools/ok/args", "{}"), 405, "method-not-allowed", "")
	wantProblem(t, p.do("POST", "/tools/nobody/args", "{}"), 404, "not-found", "nobody")
	wantProblem(t, p.do("POST", "/tools/ok/nothing", "{}"), 404, "not-found", "nothing")
	wantProblem(t, p.do("POST", "/tools/ok/args", "{}", "Accept", "text/html"), 406, "not-acceptable", "")
}

// Trials N2 and N3: a name is a name, whatever it looks like.
func TestNames(t *testing.T) {
	p := start(t, map[string]server{"names": mode(t, "names"), "a/b c": mode(t, "ok")}, nil)
	p.ready()
	var list struct{ Tools []struct{ Name string } }
	decode(t, p.get("/tools/names"), &list)
	if len(list.Tools) < 15 {
		t.Errorf("%d tools are listed", len(list.Tools))
	}
	for _, tool := range list.Tools {
		if res := p.call("names", tool.Name, ``, 200, "Accept", "text/plain"); string(res.body) != tool.Name {
			t.Errorf("a call of %q ran %q", tool.Name, res.body)
		}
		res := p.do("POST", "/tools/names?tool="+url.QueryEscape(tool.Name), ``, "Accept", "text/plain")
		if string(res.body) != tool.Name {
			t.Errorf("a call of ?tool=%q: %d %.300s", tool.Name, res.StatusCode, res.body)
		}
	}
	p.call("a/b c", "echo", `{"message":"x"}`, 200)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/tools/names/openapi.json", "/tools/a%2Fb%20c/openapi.yaml", "/docs", "/tools/names/docs"} {
		res := p.get(path)
		if res.StatusCode != 200 {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
		if tag := res.Header.Get("ETag"); tag == "" || p.do("GET", path, "", "If-None-Match", tag).StatusCode != 304 {
			t.Errorf("%s: no 304 for its ETag %q", path, tag)
		}
	}
}

// Trials S12, L5, L7, L8: servers that are down or odd take nothing from the others.
func TestOddServers(t *testing.T) {
	p := start(t, map[string]server{
		"banner": mode(t, "banner"), "exits": mode(t, "exit-at-once"), "silent": with(mode(t, "never-answer-initialize"), "handshakeTimeout", "2s"),
		"missing": {"command": "no-such-command-anywhere"}, "pages": mode(t, "pages", "25", "10"), "loop": mode(t, "pages-loop"),
		"empty": mode(t, "no-tools"), "badschema": mode(t, "bad-schema"), "baddescription": mode(t, "bad-description"),
		"modern": mode(t, "modern"), "off": with(server{"command": "x"}, "disabled", true),
		"unreachable": {"url": "http://127.0.0.1:" + freePort(t) + "/mcp"},
	}, map[string]any{"readyGrace": "20s"})
	for _, s := range p.ready().Servers {
		var one struct {
			State     string
			LastError string `json:"last_error"`
			Tools     []struct{ Name string }
			Skipped   []struct{ Name, Reason string }
		}
		decode(t, p.get("/tools/"+s.Handle), &one)
		want := map[string]struct {
			state, says string
			tools       int
		}{
			"banner": {"ready", "", -1}, "exits": {"failed", "no licence found", 0}, "silent": {"failed", "initialize", 0},
			"missing": {"failed", "no-such-command-anywhere", 0}, "pages": {"ready", "", 25}, "loop": {"failed", "circles", 0},
			"empty": {"ready", "", 0}, "badschema": {"ready", "", 5}, "baddescription": {"ready", "", 6}, "modern": {"ready", "", -1},
			"off": {"disabled", "", 0}, "unreachable": {"failed", "", 0},
		}[s.Handle]
		if one.State != want.state || !strings.Contains(one.LastError, want.says) || want.tools >= 0 && len(one.Tools) != want.tools {
			t.Errorf("%s: %s with %d tools, last error %q; want %s with %d, and %q", s.Handle, one.State, len(one.Tools), one.LastError, want.state, want.tools, want.says)
		}
		if s.Handle == "badschema" && (len(one.Skipped) != 1 || one.Skipped[0].Name != "tool_4" || one.Skipped[0].Reason == "") {
			t.Errorf("badschema: skipped %+v, want tool_4 and why", one.Skipped)
		}
	}
	for _, handle := range []string{"banner", "modern"} {
		if res := p.call(handle, "echo", `{"message":"x"}`, 200, "Accept", "text/plain"); string(res.body) != "x" {
			t.Errorf("%s: echo = %q", handle, res.body)
		}
	}
	p.problem("missing", "x", `{}`, 503, "server-unavailable", "no-such-command-anywhere")
	p.problem("badschema", "tool_4", `{}`, 404, "not-found", "left out")
}

// A server that dies, hangs, or answers too much takes only that call with it.
func TestFaultsInCalls(t *testing.T) {
	p := start(t, map[string]server{
		"dies": mode(t, "die-in-call", filepath.Join(t.TempDir(), "ran")), "hangs": with(mode(t, "never-answer-call"), "timeout", "500ms"), "ok": mode(t, "ok"),
	}, map[string]any{"limits": map[string]any{"resultBytes": "1MiB"}, "cancelGrace": "100ms"})
	p.ready()
	p.problem("dies", "die", `{}`, 502, "outcome-unknown", "7")
	p.call("dies", "echo", `{"message":"x"}`, 200) // it is started again
	p.problem("hangs", "echo", `{"message":"x"}`, 504, "deadline-exceeded", "")
	p.problem("ok", "huge", `{"bytes":2000000}`, 502, "result-too-large", "")
	p.problem("ok", "rpc_error", `{"code":-32000,"message":"out of cheese"}`, 502, "upstream-error", "out of cheese")
	wantProblem(t, p.do("POST", "/tools/ok/slow", `{"seconds":60}`, "Prefer", "wait=1"), 504, "deadline-exceeded", "")
	res := p.call("ok", "cancelled", `{"count":1}`, 200, "Accept", "text/plain")
	var ids []any
	if err := json.Unmarshal(res.body, &ids); err != nil || len(ids) != 1 {
		t.Errorf("the server was told to cancel %s, want one request", res.body)
	}
}

// A tool that comes at run time is in the document.
func TestListChanges(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	before := p.get("/openapi.json").Header.Get("ETag")
	p.call("ok", "add_tool", `{"name":"brand_new"}`, 200)
	for range 100 {
		if res := p.do("POST", "/tools/ok/brand_new", ``); res.StatusCode == 200 {
			res := p.get("/openapi.json")
			if !strings.Contains(string(res.body), "ok__brand_new") || res.Header.Get("ETag") == before {
				t.Error("the document does not show the new tool, or has its old ETag")
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the new tool cannot be called")
}

// Trial I8, and DNS rebinding.
func TestBrowsersOfOtherOrigins(t *testing.T) {
	p := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	p.ready()
	for _, body := range []string{`{"a":1,"b":2}`, ""} {
		res := p.do("POST", "/tools/demo/add", body, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
		wantProblem(t, res, 403, "forbidden", "")
	}
	wantProblem(t, p.do("POST", "/tools/demo/add", `{"a":1,"b":2}`, "Host", "evil.example"), 403, "forbidden", "")
	p.call("demo", "add", `{"a":1,"b":2}`, 200)
}

// Trial I4: what came from the environment or a file is in no log, error or list.
func TestSecretsStayHidden(t *testing.T) {
	const secret = "correct-horse-battery"
	t.Setenv("BRIDGE_TEST_SECRET", secret)
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, secret+"\n")
	ok := mode(t, "ok")
	ok["env"] = map[string]string{"A": "${BRIDGE_TEST_SECRET}", "B": "${file:" + file + "}", "C": "${BRIDGE_TEST_UNSET:-fallback}"}
	exits := mode(t, "exit-at-once", "3", "my key is ${BRIDGE_TEST_SECRET}")
	exits["env"] = ok["env"]
	p := start(t, map[string]server{
		"ok": ok, "exits": exits,
		"http": {"url": "http://127.0.0.1:" + freePort(t) + "/mcp?key=${BRIDGE_TEST_SECRET}", "headers": map[string]string{"X-Key": "${BRIDGE_TEST_SECRET}"}},
	}, nil)
	p.ready()
	for name, want := range map[string]string{"A": secret, "B": secret, "C": "fallback"} {
		if res := p.call("ok", "env", `{"name":"`+name+`"}`, 200, "Accept", "text/plain"); string(res.body) != want {
			t.Errorf("the server has %s=%q", name, res.body)
		}
	}
	p.call("ok", "say", `{"stderr":"the key is `+secret+`","stdout":"x"}`, 200)
	shown := p.log() + string(p.get("/tools").body) + string(p.get("/tools/exits").body) + string(p.get("/tools/http").body) + string(p.do("POST", "/tools/http/x", "{}").body)
	if strings.Contains(shown, secret) {
		t.Errorf("the secret shows in:\n%s", shown)
	}
}

// Whatever ends the bridge, none of its servers stays.
func TestNothingIsLeftRunning(t *testing.T) {
	servers := func() map[string]server {
		return map[string]server{
			"ok": mode(t, "ok"), "stubborn": mode(t, "stubborn"), "silent": mode(t, "never-answer-initialize"), "everything": npm("everything", "stdio"),
			"family": {"command": "sh", "args": []string{"-c", `sleep 1000 & exec "$0" mcptest ok`, self(t)}},
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			p := start(t, servers(), map[string]any{"readyGrace": "1s"})
			for range 100 { // the silent one is still starting
				if p.do("POST", "/tools/family/echo", `{"message":"x"}`).StatusCode == 200 && p.do("POST", "/tools/stubborn/echo", `{"message":"x"}`).StatusCode == 200 {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if n := len(tagged(p.tag)); n < 6 {
				t.Fatalf("only %d processes are running; the test would prove nothing", n)
			}
			begin := time.Now()
			p.stop(sig)
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
	}
}

// A request under way is answered before the bridge ends; new ones are not taken.
func TestShutdownDrains(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	answered := make(chan response, 1)
	go func() { answered <- p.call("ok", "slow", `{"seconds":2}`, 200) }()
	time.Sleep(500 * time.Millisecond) // the call is on its way
	p.stop(syscall.SIGTERM)
	if res := <-answered; res.StatusCode != 200 {
		t.Errorf("a call under way got %d", res.StatusCode)
	}
}
