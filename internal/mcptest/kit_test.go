package mcptest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKitHandshake(t *testing.T) {
	c := start(t, OK)
	f := c.initialize()
	var r struct {
		ProtocolVersion string
		ServerInfo      struct{ Name string }
	}
	if err := json.Unmarshal(f.Result, &r); err != nil {
		t.Fatal(err)
	}
	if r.ProtocolVersion != "2025-06-18" || r.ServerInfo.Name != "mcptest" {
		t.Errorf("initialize: %s", f.Result)
	}
	if f := c.ask("ping", `{}`); string(f.Result) != `{}` {
		t.Errorf("ping: %s", f.line)
	}
	if f := c.ask("resources/list", `{}`); f.Error == nil || f.Error.Code != -32601 {
		t.Errorf("an unknown method: %s, want error -32601", f.line)
	}
	names, cursor := c.names(`{}`)
	if len(names) != len(kit()) || cursor != "" {
		t.Errorf("tools/list: %d tools and cursor %q, want %d and none", len(names), cursor, len(kit()))
	}
	c.stdin.Close()
	if got := c.wait(); got != 0 {
		t.Errorf("status %d at the end of stdin, want 0", got)
	}
}

func TestKitKeepsBytes(t *testing.T) {
	c := start(t, OK)
	const args = `{ "b":1.10,"a":9007199254740993, "s":"\u00e9\/<>&\ud83d","e":1e400 }`
	if got := c.text("args", args); got != args {
		t.Errorf("args = %s, want %s", got, args)
	}
	params := `{"name":"params","arguments":` + args + `,"_meta":{"progressToken":7}}`
	if f := c.ask("tools/call", params); !strings.Contains(string(f.Result), quote(params)) {
		t.Errorf("params = %s, want it to hold %s", f.Result, quote(params))
	}
	const result = `{"content":[],"z":1.10, "a":[1e400]}`
	if got := c.call("answer", `{"result":`+quote(result)+`}`); got != result {
		t.Errorf("answer = %s, want %s", got, result)
	}
	c.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"write","arguments":{"frame":"no json {id}"}}}`)
	if got, want := c.line(), `no json "x"`; got != want {
		t.Errorf("write = %q, want %q", got, want)
	}
	var lines []string
	if err := json.Unmarshal([]byte(c.text("frames", `{}`)), &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 5 || !strings.Contains(lines[0], args) {
		t.Errorf("frames = %q, want five lines, the first with %s", lines, args)
	}
}

func TestKitAnswers(t *testing.T) {
	t.Setenv("MCPTEST_SECRET", "s3cret")
	c := start(t, OK)
	for _, tt := range []struct{ tool, args, want string }{
		{"echo", `{"message":"hi"}`, "hi"},
		{"env", `{"name":"MCPTEST_SECRET"}`, "s3cret"},
		{"calls", `{}`, "3"},
		{"pid", `{}`, strconv.Itoa(c.cmd.Process.Pid)},
		{"huge", `{"bytes":100000}`, strings.Repeat("x", 100000)},
	} {
		if got := c.text(tt.tool, tt.args); got != tt.want {
			t.Errorf("%s = %.50q, want %.50q", tt.tool, got, tt.want)
		}
	}
	if got, want := c.call("fail", `{}`), `{"content":[{"type":"text","text":"disk full"}],"isError":true}`; got != want {
		t.Errorf("fail = %s, want %s", got, want)
	}
	for _, tt := range []struct {
		params string
		code   int
	}{
		{`{"name":"rpc_error","arguments":{"code":-32050,"message":"broken"}}`, -32050},
		{`{"name":"nobody","arguments":{}}`, -32602},
		{`{"name":"echo","arguments":{"message":5}}`, -32602},
		{`[]`, -32602},
	} {
		if f := c.ask("tools/call", tt.params); f.Error == nil || f.Error.Code != tt.code {
			t.Errorf("%s: got %s, want error %d", tt.params, f.line, tt.code)
		}
	}
	c.send(`{"jsonrpc"`)
	if f := c.next(); f.Error == nil || f.Error.Code != -32700 || string(f.ID) != "null" {
		t.Errorf("half a frame: got %s, want error -32700 without an id", f.line)
	}
	c.send(`{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"say","arguments":{"stderr":"E","stdout":"O"}}}`)
	if got := c.line(); got != "O" {
		t.Errorf("say wrote %q, want O", got)
	}
	c.next()
	c.request("tools/call", `{"name":"exit","arguments":{"status":9,"words":"bye"}}`)
	if got := c.wait(); got != 9 {
		t.Errorf("status %d, want 9", got)
	}
	if got := c.stderr.String(); got != "E\nbye\n" {
		t.Errorf("stderr %q, want E and bye", got)
	}
}

func TestKitCancel(t *testing.T) {
	c := start(t, OK)
	slow := c.request("tools/call", `{"name":"slow","arguments":{"seconds":3600,"every":0.001},"_meta":{"progressToken":"tok"}}`)
	for range 2 {
		f := c.next()
		var p struct {
			ProgressToken string
			Progress      float64
		}
		if err := json.Unmarshal(f.Params, &p); err != nil {
			t.Fatal(err)
		}
		if f.Method != "notifications/progress" || p.ProgressToken != "tok" || p.Progress <= 0 {
			t.Errorf("got %s, want progress on tok", f.line)
		}
	}
	hang := c.request("tools/call", `{"name":"hang"}`)
	ask := c.request("tools/call", `{"name":"cancelled","arguments":{"count":2}}`)
	for _, id := range []string{slow, hang} {
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	f := c.next()
	for f.Method == "notifications/progress" { // written before the cancellation came
		f = c.next()
	}
	if want := quote("[" + slow + "," + hang + "]"); string(f.ID) != ask || !strings.Contains(string(f.Result), want) {
		t.Errorf("cancelled = %s, want %s", f.line, want)
	}
	if got := c.text("echo", `{"message":"alive"}`); got != "alive" {
		t.Errorf("echo = %q after the cancellations", got)
	}
}

func TestKitStubborn(t *testing.T) {
	c := start(t, OK)
	id := c.request("tools/call", `{"name":"slow","arguments":{"seconds":0.05,"stubborn":true}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	if f := c.next(); string(f.ID) != id || string(f.Result) != text("done") {
		t.Errorf("got %s, want the late answer to %s", f.line, id)
	}
}

func TestKitBlock(t *testing.T) {
	c := start(t, OK)
	a := c.request("tools/call", `{"name":"block","arguments":{"key":"k"}}`)
	b := c.request("tools/call", `{"name":"block","arguments":{"key":"k"}}`)
	if got := c.text("blocked", `{"key":"k","count":2}`); got != "blocked" {
		t.Errorf("blocked = %q", got)
	}
	r := c.request("tools/call", `{"name":"release","arguments":{"key":"k"}}`)
	got := map[string]bool{}
	for range 3 {
		got[string(c.next().ID)] = true
	}
	if diff := cmp.Diff(map[string]bool{a: true, b: true, r: true}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := c.text("block", `{"key":"k"}`); got != "released" {
		t.Errorf("block after release = %q", got)
	}
}

func TestKitListChanged(t *testing.T) {
	c := start(t, OK)
	before, _ := c.names(`{}`)
	c.request("tools/call", `{"name":"add_tool","arguments":{"name":"new one"}}`)
	if f := c.next(); f.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s, want list_changed", f.line)
	}
	c.next()
	after, _ := c.names(`{}`)
	if diff := cmp.Diff(append(before, "new one"), after); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := c.text("new one", `{}`); got != "new one" {
		t.Errorf("the new tool answered %q", got)
	}
	c.request("tools/call", `{"name":"remove_tool","arguments":{"name":"new one"}}`)
	c.next()
	c.next()
	if after, _ := c.names(`{}`); !cmp.Equal(before, after) {
		t.Errorf("tools after remove_tool: %v", after)
	}
}
