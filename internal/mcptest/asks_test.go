package mcptest

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAsks has the SDK's own client answer what the server asks.
func TestAsks(t *testing.T) {
	stdio := func(args ...string) func(t *testing.T) mcp.Transport {
		return func(t *testing.T) mcp.Transport {
			command, argv, env := Command(t, Asks, args...)
			cmd := exec.Command(command, argv...)
			cmd.Env = Env(env...)
			return &mcp.CommandTransport{Command: cmd}
		}
	}
	remote := func(args ...string) func(t *testing.T) mcp.Transport {
		return func(t *testing.T) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: Start(t, HTTPAsks, args...).URL}
		}
	}
	for _, tt := range []struct {
		name, version string
		transport     func(t *testing.T) mcp.Transport
	}{
		{"stdio", "2026-07-28", stdio()}, // the SDK's client asks for it
		{"stdio modern", "2026-07-28", stdio("modern")},
		{"http", "2025-11-25", remote()},
		{"http stateless", "2026-07-28", remote("stateless")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			NoLeaks(t)
			reported := make(chan string, 10)
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "colour": "red", "age": 36}}, nil
				},
				Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					reported <- r.Params.Message
				},
			}).Connect(t.Context(), tt.transport(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cs.Close() })
			if got := cs.InitializeResult().ProtocolVersion; got != tt.version {
				t.Errorf("it speaks %s, want %s", got, tt.version)
			}
			modern := tt.version == modernVersion
			if modern {
				if r, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "busy"}); err != nil || r.Messages[0].Content.(*mcp.TextContent).Text != "at last" {
					t.Errorf("busy = %+v, %v", r, err)
				}
				if r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ask:busy"}); err != nil || r.Contents[0].Text != "at last" {
					t.Errorf("ask:busy = %+v, %v", r, err)
				}
			} else {
				r, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "a"}})
				if err != nil || r.Completion.Values[0] != "answered: accept" {
					t.Errorf("completion = %+v, %v", r, err)
				}
			}
			for _, c := range []struct{ tool, args, want string }{
				{"ask", `{}`, "hello Ada"},
				{"ask_both", `{}`, "Ada is red"},
				{"ask_again", `{}`, "Ada is 36"},
				{"busy", `{"times":2}`, "at last"},
				{"work", `{"steps":2,"seconds":0.01}`, "2 steps done"},
			} {
				if !modern && (c.tool == "ask_again" || c.tool == "busy") {
					continue // the SDK's server has a client of these versions asked once
				}
				p := &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.args)}
				p.SetProgressToken("t")
				r, err := cs.CallTool(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Content[0].(*mcp.TextContent).Text; got != c.want {
					t.Errorf("%s = %q, want %q", c.tool, got, c.want)
				}
			}
			if r, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"}); err != nil || r.Messages[0].Content.(*mcp.TextContent).Text != "greet Ada" {
				t.Errorf("greet = %+v, %v", r, err)
			}
			if r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ask:name"}); err != nil || r.Contents[0].Text != "the name is Ada" {
				t.Errorf("ask:name = %+v, %v", r, err)
			}
			for _, want := range []string{"step 1", "step 2"} {
				if got := <-reported; got != want {
					t.Errorf("progress %q, want %q", got, want)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { // ends with ctx
				_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "hang", Arguments: json.RawMessage(`{}`)})
				ended <- err
			}()
			for _, c := range []struct{ args, want string }{{`{"running":1}`, "0 ended, 1 running"}, {`{"ended":1}`, "1 ended, 0 running"}} {
				r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "hung", Arguments: json.RawMessage(c.args)})
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Content[0].(*mcp.TextContent).Text; got != c.want {
					t.Errorf("hung(%s) = %q, want %q", c.args, got, c.want)
				}
				cancel()
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancel") {
				t.Errorf("hang ended with %v", err)
			}
		})
	}
}
