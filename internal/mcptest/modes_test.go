package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBanner(t *testing.T) {
	c := start(t, Banner)
	for _, want := range []string{"*** Example MCP Server v1.2.3 ***", "", `{"level":"info","msg":"JSON, but no JSON-RPC"}`, "[1, 2"} {
		if got := c.line(); got != want {
			t.Errorf("the banner says %q, want %q", got, want)
		}
	}
	id := c.request("ping", `{}`)
	if got := c.line(); got != "debug: about to answer" {
		t.Errorf("before its answer it wrote %q", got)
	}
	if f := c.next(); string(f.ID) != id {
		t.Errorf("got %s, want the answer to %s", f.line, id)
	}
	c.stdin.Close()
	c.wait()
	if got := c.stderr.String(); got != "[info] warming up\n[debug] about to answer\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestExitAtOnce(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{nil, 3, "no licence found\n"},
		{[]string{"0", "bye"}, 0, "bye\n"},
		{[]string{"x"}, 1, "mcptest exit-at-once: \"x\" is no status\n"},
	} {
		c := start(t, ExitAtOnce, tt.args...)
		if got := c.wait(); got != tt.status || c.stderr.String() != tt.stderr {
			t.Errorf("%v: status %d and stderr %q, want %d and %q", tt.args, got, c.stderr.String(), tt.status, tt.stderr)
		}
	}
}

func TestNeverAnswerInitialize(t *testing.T) {
	c := start(t, NeverAnswerInitialize)
	c.request("initialize", `{}`)
	c.stdin.Close()
	if got := c.line(); got != "" {
		t.Errorf("it wrote %q", got)
	}
	if got := c.wait(); got != 0 {
		t.Errorf("status %d at the end of stdin, want 0", got)
	}
}

func TestStubborn(t *testing.T) {
	c := start(t, Stubborn)
	c.initialize() // its signals are ignored by now
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if f := c.ask("ping", `{}`); f.Error != nil {
		t.Errorf("after SIGTERM: %s", f.line)
	}
	c.request("tools/call", `{"name":"hang"}`)
	c.stdin.Close()
	if got := c.line(); got != "the end of stdin is ignored" {
		t.Errorf("it wrote %q", got)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.wait()
	if got := c.cmd.ProcessState.String(); got != "signal: killed" {
		t.Errorf("it ended with %q, want to be killed", got)
	}
}

func TestStopsReading(t *testing.T) {
	c := start(t, StopsReading)
	c.initialize()
	if names, _ := c.names(`{}`); len(names) != len(kit()) {
		t.Errorf("tools/list: %v", names)
	}
	// More than a pipe and a read buffer hold, so that only a reader would let this end.
	wrote := make(chan error, 1)
	go func() {
		_, err := c.stdin.Write(make([]byte, 4<<20))
		wrote <- err
	}()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err == nil {
		t.Error("4 MiB were written to a server that does not read")
	}
}

func TestPauses(t *testing.T) {
	c := start(t, Pauses)
	c.initialize()
	if got := c.text("pause", `{}`); got != "pausing" {
		t.Errorf("pause = %q", got)
	}
	pipe := c.stdin.(interface{ SetWriteDeadline(time.Time) error })
	if err := pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	blanks := bytes.Repeat([]byte(" "), 4<<20) // more than a pipe holds
	if n, err := c.stdin.Write(blanks); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were written, %v, to a server that does not read", n, err)
	}
	if err := errors.Join(pipe.SetWriteDeadline(time.Time{}), c.cmd.Process.Signal(syscall.SIGUSR1)); err != nil {
		t.Fatal(err)
	}
	if f := c.ask("ping", `{}`); f.Error != nil {
		t.Errorf("ping: %s", f.line)
	}
}

func TestNeverAnswerCall(t *testing.T) {
	c := start(t, NeverAnswerCall)
	c.initialize()
	c.request("tools/call", `{"name":"echo","arguments":{}}`)
	if f := c.ask("ping", `{}`); f.Error != nil {
		t.Errorf("ping: %s", f.line)
	}
}

func TestDieInCall(t *testing.T) {
	for _, tool := range []string{"die", "die_idempotent", "die_read_only", "die_half"} {
		file := filepath.Join(t.TempDir(), "runs")
		c := start(t, DieInCall, file)
		c.request("tools/call", `{"name":"`+tool+`"}`)
		half := c.line()
		if want := tool == "die_half"; strings.HasPrefix(half, `{"jsonrpc"`) != want || json.Valid([]byte(half)) {
			t.Errorf("%s wrote %q before it died", tool, half)
		}
		if got := c.wait(); got != 7 {
			t.Errorf("%s: status %d, want 7", tool, got)
		}
		c = start(t, DieInCall, file)
		if got := c.text(tool, `{}`); got != "ran 2 times" {
			t.Errorf("%s answered %q the second time", tool, got)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != tool+"\n"+tool+"\n" {
			t.Errorf("%s: the file says %q (%v)", tool, b, err)
		}
	}
	c := start(t, DieInCall)
	c.request("tools/call", `{"name":"die"}`)
	if got := c.wait(); got != 7 {
		t.Errorf("without a file: status %d, want 7", got)
	}
	c = start(t, DieInCall, filepath.Join(t.TempDir(), "no", "runs"))
	if f := c.ask("tools/call", `{"name":"die"}`); f.Error == nil {
		t.Errorf("with a file that cannot be: %s, want an error", f.line)
	}
}

func TestPages(t *testing.T) {
	c := start(t, Pages, "7", "3")
	var all []string
	cursor := ""
	for page := range 3 {
		params := `{}`
		if page > 0 {
			params = fmt.Sprintf(`{"cursor":%q}`, cursor)
		}
		var names []string
		names, cursor = c.names(params)
		all = append(all, names...)
	}
	if cursor != "" {
		t.Errorf("the last page has the cursor %q", cursor)
	}
	if want := []string{"tool_0", "tool_1", "tool_2", "tool_3", "tool_4", "tool_5", "tool_6"}; !cmp.Equal(want, all) {
		t.Errorf("pages list %v, want %v", all, want)
	}
	if got := c.text("tool_6", `{}`); got != "tool_6" {
		t.Errorf("tool_6 = %q", got)
	}
	if f := c.ask("tools/list", `{"cursor":5}`); f.Error == nil {
		t.Errorf("a cursor that is no string: %s, want an error", f.line)
	}
	if got := start(t, Pages, "0").wait(); got != 1 {
		t.Errorf("pages of no tools: status %d, want 1", got)
	}
}

func TestPagesLoopAndEndless(t *testing.T) {
	c := start(t, PagesLoop)
	names, first := c.names(`{}`)
	_, second := c.names(fmt.Sprintf(`{"cursor":%q}`, first))
	if len(names) == 0 || first != "again" || second != first {
		t.Errorf("cursors %q and %q after %d tools, want the same", first, second, len(names))
	}
	c = start(t, PagesEndless)
	seen := map[string]bool{}
	_, cursor := c.names(`{}`)
	for range 50 {
		if cursor == "" || seen[cursor] {
			t.Fatalf("cursor %q after %d pages, want a new one", cursor, len(seen))
		}
		seen[cursor] = true
		_, cursor = c.names(fmt.Sprintf(`{"cursor":%q}`, cursor))
	}
}

func TestNoTools(t *testing.T) {
	c := start(t, NoTools)
	if f := c.initialize(); !strings.Contains(string(f.Result), `"capabilities":{},`) {
		t.Errorf("initialize: %s", f.Result)
	}
	if f := c.ask("tools/list", `{}`); f.Error == nil || f.Error.Code != -32601 {
		t.Errorf("tools/list: %s, want -32601", f.line)
	}
}

func TestBadTools(t *testing.T) {
	for _, tt := range []struct {
		mode, holds string
		names       []string // those with a name that is a string
	}{
		{BadSchema, `"inputSchema":{"type":"string"}`, []string{"tool_1", "tool_2", "tool_3", "tool_4", "tool_5", "tool_6"}},
		{BadDescription, `"description":5`, []string{"tool_1", "tool_2", "tool_3", "tool_4", "tool_5", "tool_6"}},
		{BadTools, `"inputSchema":[]`, []string{"tool_1", "", "", "", "tool_2", "array_schema", "string_schema", "tool_3", "tool_1"}},
	} {
		c := start(t, tt.mode)
		if f := c.ask("tools/list", `{}`); !strings.Contains(string(f.Result), tt.holds) {
			t.Errorf("%s: %s, want it to hold %s", tt.mode, f.Result, tt.holds)
		}
		if names, _ := c.names(`{}`); !cmp.Equal(tt.names, names) {
			t.Errorf("%s lists %q, want %q", tt.mode, names, tt.names)
		}
		if got := c.text("tool_3", `{}`); got != "tool_3" {
			t.Errorf("%s: tool_3 = %q", tt.mode, got)
		}
	}
}

func TestExact(t *testing.T) {
	c := start(t, Exact)
	for tool, want := range map[string]string{
		"numbers": ExactNumbers, "unknown_blocks": ExactBlocks, "meta": ExactMeta, "surrogate": ExactSurrogate,
	} {
		if got := c.call(tool, `{}`); !strings.Contains(got, want) || !json.Valid([]byte(got)) {
			t.Errorf("%s = %s, want it to hold %s", tool, got, want)
		}
	}
	if got := c.text("echo", `{"message":"kit"}`); got != "kit" {
		t.Errorf("echo = %q", got)
	}
}

func TestResults(t *testing.T) {
	c := start(t, Results)
	names, _ := c.names(`{}`)
	if len(names) != 24 {
		t.Errorf("%d tools, want 24", len(names))
	}
	for _, n := range names {
		if got := c.call(n, `{}`); !json.Valid([]byte(got)) {
			t.Errorf("%s = %s, which is no JSON", n, got)
		}
	}
	for tool, want := range map[string]string{
		"text_image":               imageBlock,
		"audio":                    `"type":"audio"`,
		"embedded_text":            textRes,
		"embedded_blob":            blobRes,
		"resource_link":            linkBlock,
		"disk_full":                `"isError":true`,
		"structured_empty_content": `"content":[],"structuredContent":{"name":"Ada"}`,
		"structured_list":          `"structuredContent":[{"n":1},{"n":2.0}]`,
		"structured_extra":         `"age":36`,
	} {
		if got := c.call(tool, `{}`); !strings.Contains(got, want) {
			t.Errorf("%s = %s, want it to hold %s", tool, got, want)
		}
	}
	if got := c.call("breach", `{}`); strings.Contains(got, "structuredContent") {
		t.Errorf("breach = %s", got)
	}
}

func TestIDLast(t *testing.T) {
	c := start(t, IDLast)
	for _, params := range []string{`{"name":"huge","arguments":{"bytes":100}}`, `{"name":"rpc_error","arguments":{}}`} {
		id := c.request("tools/call", params)
		if l := c.line(); !strings.HasSuffix(l, `,"id":`+id+`}`) || !json.Valid([]byte(l)) {
			t.Errorf("%s: got %s, want its id last", params, l)
		}
	}
}

func TestSchemas(t *testing.T) {
	c := start(t, Schemas)
	f := c.ask("tools/list", `{}`)
	var r struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(f.Result, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tools) != len(SchemaTools) {
		t.Fatalf("%d tools, want %d", len(r.Tools), len(SchemaTools))
	}
	for i, want := range SchemaTools {
		if got := r.Tools[i]; got.Name != want.Name || string(got.InputSchema) != want.Schema {
			t.Errorf("tool %d is %s with %s, want %s with %s", i, got.Name, got.InputSchema, want.Name, want.Schema)
		}
	}
	const args = `{"limit":null, "query":"\u0041"}`
	if got := c.text("s8_optional_integer", args); got != args {
		t.Errorf("s8 = %s, want %s", got, args)
	}
}

func TestNames(t *testing.T) {
	c := start(t, Names)
	names, _ := c.names(`{}`)
	if diff := cmp.Diff(ToolNames, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, n := range names {
		if got := c.text(n, `{}`); got != n {
			t.Errorf("%q answered %q", n, got)
		}
	}
	if n := len(ToolNames[6]); n != 70 {
		t.Errorf("the long name has %d characters, want 70", n)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestModern(t *testing.T) {
	c := start(t, Modern)
	for _, tt := range []struct {
		method, params string
		code           int
	}{
		{"initialize", `{}`, -32601},
		{"ping", `{}`, -32601},
		{"tools/list", `{}`, -32602},
		{"tools/list", `[]`, -32602},
		{"tools/list", strings.Replace(`{`+modernMeta+`}`, "2026-07-28", "2026-01-01", 1), -32022},
		{"tools/list", strings.Replace(`{`+modernMeta+`}`, "clientInfo", "x", 1), -32602},
		{"tools/list", strings.Replace(`{`+modernMeta+`}`, "clientCapabilities", "x", 1), -32602},
	} {
		if f := c.ask(tt.method, tt.params); f.Error == nil || f.Error.Code != tt.code {
			t.Errorf("%s %s: %s, want error %d", tt.method, tt.params, f.line, tt.code)
		}
	}
	const complete = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcptest","version":"1.2.3"}}}`
	for method, params := range map[string]string{
		"server/discover": `{` + modernMeta + `}`, "tools/list": `{` + modernMeta + `}`,
		"tools/call": `{"name":"answer","arguments":{"result":"{}"},` + modernMeta + `}`,
	} {
		if f := c.ask(method, params); !strings.HasSuffix(string(f.Result), complete) {
			t.Errorf("%s: %s, want it to end with %s", method, f.Result, complete)
		}
	}
	listen := c.request("subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+modernMeta+`}`)
	if f := c.next(); f.Method != "notifications/subscriptions/acknowledged" {
		t.Errorf("got %s, want the acknowledgement", f.line)
	}
	c.request("tools/call", `{"name":"add_tool","arguments":{},`+modernMeta+`}`)
	if f := c.next(); f.Method != "notifications/tools/list_changed" || !strings.Contains(string(f.Params), `subscriptionId":`+listen) {
		t.Errorf("got %s, want list_changed for subscription %s", f.line, listen)
	}

	c = start(t, Modern, "exit")
	c.ask("initialize", `{}`)
	if got := c.wait(); got != 1 {
		t.Errorf("status %d after initialize, want 1", got)
	}
}

func TestNoPing(t *testing.T) {
	c := start(t, NoPing)
	c.initialize()
	if f := c.ask("ping", `{}`); f.Error == nil || f.Error.Code != -32601 {
		t.Errorf("ping: %s, want -32601", f.line)
	}
	if got := c.text("echo", `{"message":"alive"}`); got != "alive" {
		t.Errorf("echo = %q", got)
	}
}
