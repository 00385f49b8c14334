package publish

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// logging makes the fake server write log messages of several levels, and things that are none.
func (f *fixture) logging() {
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Log == nil {
			return newResult(`{"content":[],"_meta":{"logs":"nobody"}}`), nil
		}
		for _, params := range []string{
			`{"level":"info","data":"one"}`, `{"level":"warning","logger":"l","data":{"n":9007199254740993}}`,
			`{"level":"loud","data":1}`, `{"level":"error"}`, `[]`, `{"level":5,"data":1}`,
			`{"level":"emergency","data":"two"}`,
		} {
			r.Log([]byte(params))
		}
		return newResult(`{"content":[]}`), nil
	}
}

// A client hears log messages from the level on that it has set, on the stream of the call, before its answer.
func TestLogsOfSession(t *testing.T) {
	f := newFixture(t)
	f.logging()
	f.serve()
	id := f.begin()
	call := func() string { return f.do("POST", callOf("demo__add", `{}`), sessionHeader, id).body }
	if got := call(); !strings.Contains(got, `"logs":"nobody"`) {
		t.Errorf("before a level was set: %s", got)
	}
	set := func(level string) string {
		return f.do("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":%q}}`, level), sessionHeader, id).message()
	}
	if got := set("loud"); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "loud") {
		t.Errorf("a level that is none: %s", got)
	}
	if got := set("warning"); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("setting a level: %s", got)
	}
	want := `event: message
data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"n":9007199254740993}}}

event: message
data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":"two"}}

event: message
data: {"jsonrpc":"2.0","id":1,"result":`
	if got := call(); !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Since 2026-07-28 each request says the level.
func TestLogsOfRequest(t *testing.T) {
	f := newFixture(t)
	f.logging()
	f.serve()
	ask := func(level string) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}%s}}}`, level)
		return f.do("POST", body, versionHeader, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "demo__add").body
	}
	if got := ask(""); !strings.Contains(got, `"logs":"nobody"`) {
		t.Errorf("without a level: %s", got)
	}
	got := ask(`,"io.modelcontextprotocol/logLevel":"warning"`)
	if strings.Count(got, "notifications/message") != 2 || !strings.Contains(got, "9007199254740993") || strings.Contains(got, "one") {
		t.Errorf("with a level: %s", got)
	}
}

// Over pipes it is the same.
func TestLogsOverPipes(t *testing.T) {
	f := newFixture(t)
	f.logging()
	f.publish()
	heard := make(chan mcp.LoggingLevel, 10)
	cs := f.connectPipes("2025-11-25", &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { heard <- r.Params.Level }})
	if err := cs.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "critical"}); err != nil {
		t.Fatal(err)
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"}); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "emergency" {
		t.Errorf("heard %q", got)
	}
}
