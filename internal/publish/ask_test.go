package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// What a server asks during a call reaches a client that can be asked, and its reply the server.
func TestAsk(t *testing.T) {
	questions := []bridge.Question{
		{ID: "a", Mode: "form", Message: "Your name?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)},
		{ID: "b", Mode: "url", Message: "Log in.", URL: "https://example.com/login"},
	}
	tool := newTool("demo", "add", "")
	tool.Target.Asks = true
	f := newFixture(t, newServer("demo", tool, newTool("demo", "quiet", "")))
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Ask == nil {
			return newResult(`{"content":[],"_meta":{"asked":"nobody"}}`), nil
		}
		replies, err := r.Ask(ctx, questions)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(replies)
		if err != nil {
			return nil, err
		}
		return newResult(fmt.Sprintf(`{"content":[],"_meta":{"asked":%q}}`, b)), nil
	}
	f.serve()
	var fails error
	o := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if fails != nil {
				return nil, fails
			}
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
		},
	}
	call := func(cs *mcp.ClientSession, tool string) (*mcp.CallToolResult, any) {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__" + tool})
		if err != nil {
			t.Fatal(err)
		}
		return res, res.Meta["asked"]
	}
	cs := f.connect("2025-11-25", o)
	if _, asked := call(cs, "add"); asked != `{"a":{"action":"accept","content":{"name":"Your name?"}},"b":{"action":"decline"}}` {
		t.Errorf("asked: %v", asked)
	}
	if _, asked := call(cs, "quiet"); asked != "nobody" {
		t.Errorf("a server that may not ask: %v", asked)
	}
	if _, asked := call(f.connect("2025-11-25", nil), "add"); asked != "nobody" {
		t.Errorf("a client that cannot be asked: %v", asked)
	}
	if _, asked := call(f.connect("2026-07-28", o), "add"); asked != `{"a":{"action":"accept","content":{"name":"Your name?"}},"b":{"action":"decline"}}` {
		t.Errorf("asked in rounds: %v", asked)
	}
	if _, asked := call(f.connectPipes("2026-07-28", o), "add"); asked != `{"a":{"action":"accept","content":{"name":"Your name?"}},"b":{"action":"decline"}}` {
		t.Errorf("asked in rounds over pipes: %v", asked)
	}
	if _, asked := call(f.connect("2026-07-28", nil), "add"); asked != "nobody" {
		t.Errorf("a client that has no rounds: %v", asked)
	}
	fails = errors.New("no")
	res, _ := call(cs, "add")
	if text, ok := res.Content[0].(*mcp.TextContent); !res.IsError || !ok || !strings.Contains(text.Text, "did not answer") {
		t.Errorf("a client that fails: %+v", res)
	}
}
