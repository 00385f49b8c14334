package mcptest

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// offer adds to a server that asks what asks, or puts off, beside tools.
func offer(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Asks for a name."}, greetPrompt)
	s.AddPrompt(&mcp.Prompt{Name: "busy", Description: "Is put off twice."}, busyPrompt)
	s.AddResource(&mcp.Resource{URI: "ask:name", Name: "name", MIMEType: "text/plain"}, nameResource)
	s.AddResource(&mcp.Resource{URI: "ask:busy", Name: "busy", MIMEType: "text/plain"}, busyResource)
}

var whoAreYou = mcp.InputRequestMap{"name": &mcp.ElicitParams{Mode: "form", Message: "Who are you?", RequestedSchema: nameSchema}}

// named returns the name that was replied to whoAreYou, or the action if that is not accept.
func named(responses mcp.InputResponseMap) any {
	e, ok := responses["name"].(*mcp.ElicitResult)
	switch {
	case !ok:
		return "missing"
	case e.Action != "accept":
		return e.Action
	default:
		return e.Content["name"]
	}
}

func promptOf(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}

func greetPrompt(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if r.Params.InputResponses == nil {
		return &mcp.GetPromptResult{InputRequests: whoAreYou, RequestState: AskState}, nil
	}
	if r.Params.RequestState != AskState {
		return promptOf("another state"), nil
	}
	return promptOf(fmt.Sprintf("greet %v", named(r.Params.InputResponses))), nil
}

func busyPrompt(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if len(r.Params.RequestState) < 2 {
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{}, RequestState: r.Params.RequestState + "x"}, nil
	}
	return promptOf("at last"), nil
}

func resourceOf(uri, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}
}

func nameResource(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	if r.Params.InputResponses == nil {
		// The SDK wants a list, though an empty one, before it asks clients with sessions.
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{}, InputRequests: whoAreYou}, nil
	}
	return resourceOf(r.Params.URI, fmt.Sprintf("the name is %v", named(r.Params.InputResponses))), nil
}

func busyResource(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	if len(r.Params.RequestState) < 2 {
		return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{}, RequestState: r.Params.RequestState + "x"}, nil
	}
	return resourceOf(r.Params.URI, "at last"), nil
}

// completeAsking asks in the middle of a completion, which only servers with sessions can, and says what came of it.
func completeAsking(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	said := ""
	e, err := r.Session.Elicit(ctx, whoAreYou["name"].(*mcp.ElicitParams))
	if err != nil {
		said = "refused: " + err.Error()
	} else {
		said = "answered: " + e.Action
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{said}}}, nil
}
