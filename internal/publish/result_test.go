package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
)

// What the server sent arrives byte by byte, with what is added to _meta alone.
func TestExactResults(t *testing.T) {
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"mcp-bridge","title":"MCP Bridge","version":"1.2.3"}`
	const ref = `"artifact_ref":"«artifact:mcp~abc»"`
	for _, tt := range []struct{ name, sent, ref, legacy, modern string }{
		{
			"numbers", `{"structuredContent":` + mcptest.ExactNumbers + `,"content":[ ]}`, "mcp~abc",
			`{"structuredContent":` + mcptest.ExactNumbers + `,"content":[ ],"_meta":{` + ref + `}}`,
			`{"structuredContent":` + mcptest.ExactNumbers + `,"content":[ ],"_meta":{` + ref + `,` + info + `},"resultType":"complete"}`,
		},
		{
			"unknown blocks", `{"content":` + mcptest.ExactBlocks + `}`, "",
			`{"content":` + mcptest.ExactBlocks + `}`,
			`{"content":` + mcptest.ExactBlocks + `,"_meta":{` + info + `},"resultType":"complete"}`,
		},
		{
			"surrogates", `{"content":[],"structuredContent":` + mcptest.ExactSurrogate + `}`, "",
			`{"content":[],"structuredContent":` + mcptest.ExactSurrogate + `}`,
			`{"content":[],"structuredContent":` + mcptest.ExactSurrogate + `,"_meta":{` + info + `},"resultType":"complete"}`,
		},
		{
			"its own _meta", `{"_meta":` + mcptest.ExactMeta + `,"content":[],"future":[1.0]}`, "mcp~abc",
			`{"_meta":{"example.com/z":9007199254740993,"example.com/a":[1.0],` + ref + `},"content":[],"future":[1.0]}`,
			`{"_meta":{"example.com/z":9007199254740993,"example.com/a":[1.0],` + ref + `,` + info + `},"content":[],"future":[1.0],"resultType":"complete"}`,
		},
		{
			"a reference of another bridge", `{"content":[],"_meta":{"artifact_ref":"«artifact:mcp~other»","k":1}}`, "mcp~abc",
			`{"content":[],"_meta":{"k":1,` + ref + `}}`, `{"content":[],"_meta":{"k":1,` + ref + `,` + info + `},"resultType":"complete"}`,
		},
		{
			"the names of its server", `{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"0"}},"resultType":"complete"}`, "mcp~abc",
			`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"0"},` + ref + `},"resultType":"complete"}`,
			`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"0"},` + ref + `},"resultType":"complete"}`,
		},
		{
			"_meta that is none", `{"content":[],"_meta":null}`, "mcp~abc",
			`{"content":[],"_meta":{` + ref + `}}`, `{"content":[],"_meta":{` + ref + `,` + info + `},"resultType":"complete"}`,
		},
		{"nothing", `{ }`, "mcp~abc", `{"_meta":{` + ref + `}}`, `{"_meta":{` + ref + `,` + info + `},"resultType":"complete"}`},
		{
			"lines", "{\r\n\"content\" : [\n] }", "mcp~abc",
			`{  "content" : [ ],"_meta":{` + ref + `}}`, `{  "content" : [ ],"_meta":{` + ref + `,` + info + `},"resultType":"complete"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.ref = tt.ref
			f.returns(tt.sent)
			f.serve()
			const frame = `{"jsonrpc":"2.0","id":1,"result":`
			if got := f.modernCall("demo__add", `{}`).message(); got != frame+tt.modern+"}" {
				t.Errorf("2026-07-28:\n got %s\nwant %s", got, frame+tt.modern+"}")
			}
			id := f.begin()
			if got := f.do("POST", callOf("demo__add", `{}`), sessionHeader, id).message(); got != frame+tt.legacy+"}" {
				t.Errorf("2025-11-25:\n got %s\nwant %s", got, frame+tt.legacy+"}")
			}
		})
	}
}

// The server gets the very bytes of the arguments.
func TestExactArguments(t *testing.T) {
	const args = `{"z":9007199254740993, "a":1e400,"html":"<b>&","e":"\u00e9"}`
	f := newFixture(t)
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		b, _ := json.Marshal(string(r.Args))
		return newResult(`{"content":[{"type":"text","text":` + string(b) + `}]}`), nil
	}
	f.serve()
	texts := map[string]string{
		"modern":  f.modernCall("demo__add", args).message(),
		"session": f.do("POST", callOf("demo__add", args), sessionHeader, f.begin()).message(),
		"batch":   f.do("POST", "["+callOf("demo__add", args)+"]", sessionHeader, f.begin()).message(),
	}
	for how, msg := range texts {
		var r struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(msg), &r); err != nil || len(r.Result.Content) != 1 || r.Result.Content[0].Text != args {
			t.Errorf("%s: %s", how, msg)
		}
	}
	for _, none := range []string{`null`, `{}`} {
		if msg := f.modernCall("demo__add", none).message(); !strings.Contains(msg, `"text":"{}"`) {
			t.Errorf("arguments %s: %s", none, msg)
		}
	}
}

// Results that are answered together do not mix.
func TestBatchOfResults(t *testing.T) {
	f := newFixture(t)
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		return newResult(`{"content":[],"args":` + string(r.Args) + `}`), nil
	}
	f.serve()
	var calls, want []string
	for i := range 50 {
		id := fmt.Sprintf(`"id":%d`, 100+i)
		calls = append(calls, strings.Replace(callOf("demo__add", `{"n":`+fmt.Sprint(i)+`.0}`), `"id":1`, id, 1))
		want = append(want, fmt.Sprintf(`data: {"jsonrpc":"2.0",%s,"result":{"content":[],"args":{"n":%d.0}}}`, id, i))
	}
	r := f.do("POST", "["+strings.Join(calls, ",")+"]", sessionHeader, f.begin())
	var got []string
	for line := range strings.Lines(r.body) {
		if strings.HasPrefix(line, "data: ") {
			got = append(got, strings.TrimRight(line, "\n"))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%d: -want +got\n%s", r.status, diff)
	}
}

func TestFailures(t *testing.T) {
	retry := &bridge.Error{Kind: bridge.Overloaded, Msg: "The server is busy.", RetryAfter: 1500 * time.Millisecond, Members: map[string]any{"short": []string{"mcp:demo"}}}
	for _, tt := range []struct {
		name string
		err  error
		want string // part of the answer
	}{
		{"overloaded", retry, `"result":{"content":[{"type":"text","text":"The server is busy. Try again in 2 s."}],"isError":true,"_meta":{"mcp-bridge/error":{"code":"overloaded","retry_after":2,"short":["mcp:demo"]}}}`},
		{"a kept result that breaks its schema", &bridge.Error{Kind: bridge.InvalidResult, Msg: "Broken.", Members: map[string]any{"artifact_ref": "mcp~abc"}}, `"_meta":{"mcp-bridge/error":{"code":"invalid-result"},"artifact_ref":"«artifact:mcp~abc»"}`},
		{"unavailable", &bridge.Error{Kind: bridge.Unavailable, Msg: "Down."}, `"isError":true,"_meta":{"mcp-bridge/error":{"code":"server-unavailable"}}`},
		{"not found", &bridge.Error{Kind: bridge.NotFound, Msg: "Gone."}, `"error":{"code":-32602,"message":"Gone."}`},
		{"internal", &bridge.Error{Kind: bridge.Internal, Err: errors.New("secret")}, `"error":{"code":-32603,"message":"the bridge has a fault; its log says more"}`},
		{"of no kind", errors.New("secret"), `"error":{"code":-32603,"message":"the call was ended"}`},
		{"a member that is not JSON", &bridge.Error{Kind: bridge.Unavailable, Msg: "Down.", Members: map[string]any{"x": math.NaN()}}, `"error":{"code":-32603`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.fails = tt.err
			f.serve()
			r := f.do("POST", callOf("demo__add", `{}`), sessionHeader, f.begin())
			if !strings.Contains(r.message(), tt.want) || strings.Contains(r.body, "secret") {
				t.Errorf("got %s\nwant %s", r.body, tt.want)
			}
		})
	}
}

func TestFailuresOfArguments(t *testing.T) {
	entry := `{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}}`
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, newServer("demo", newTool("demo", "add", entry))).serve()
		cs := f.connect(version, nil)
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add", Arguments: map[string]any{"a": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := res.Content[0].(*mcp.TextContent)
		if !res.IsError || text == nil || !strings.Contains(text.Text, "/a: is a string, must be a number") {
			t.Errorf("got %+v", res)
		}
		for name, args := range map[string]any{"nobody__add": nil, "demo__nothing": nil, "demo/add": nil, "": nil, "demo__add": []int{1}} {
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args}); err == nil {
				t.Errorf("the call of %q was answered", name)
			}
		}
	})
	f := newFixture(t).serve()
	if r := f.do("POST", callOf("demo__add", `{"a":1,"a":2}`), sessionHeader, f.begin()); !strings.Contains(r.message(), `"code":-32602`) {
		t.Errorf("a key twice: %s", r.body)
	}
}

// A tool's own error arrives whole, not as the bridge's words about it.
func TestToolErrors(t *testing.T) {
	const sent = `{"isError":true,"content":[{"type":"text","text":"disk full"}],"n":1.0}`
	f := newFixture(t)
	f.ref = "mcp~abc"
	f.returns(sent)
	f.serve()
	want := `"result":` + sent[:len(sent)-1] + `,"_meta":{"artifact_ref":"«artifact:mcp~abc»"}}}`
	if r := f.do("POST", callOf("demo__add", `{}`), sessionHeader, f.begin()); !strings.HasSuffix(r.message(), want) {
		t.Errorf("got %s\nwant %s", r.body, want)
	}
}

// A call's line says who called what and how it went, and quotes nothing of it.
func TestLog(t *testing.T) {
	f := newFixture(t)
	f.returns(`{"isError":true,"content":[{"type":"text","text":"a secret"}]}`)
	f.serve()
	f.modernCall("demo__add", `{"password":"a secret"}`, "Key", "key-1")
	f.fails = &bridge.Error{Kind: bridge.Internal, Op: "gate", Msg: "x", Err: errors.New("the cause")}
	f.modernCall("demo__echo", `{}`)
	f.modernCall("demo__nothing", `{}`)
	f.server.Close()
	lines := strings.Split(strings.TrimSpace(f.logged()), "\n")
	if len(lines) != 3 || strings.Contains(f.logged(), "secret") {
		t.Fatalf("the log is\n%s", f.logged())
	}
	for i, want := range []string{`"handle":"demo","tool":"add"`, `"level":"ERROR"`, `"code":"not-found"`} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[0], `"caller":"key-1"`) || !strings.Contains(lines[0], `"code":"tool-error"`) || !strings.Contains(lines[1], "the cause") {
		t.Errorf("the log is\n%s", f.logged())
	}
}
