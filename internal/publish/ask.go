package publish

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// asker returns what brings a server's questions during a call to the client, or
// nil for a client that cannot be asked: it does not offer to, or its version of
// the protocol knows questions only as answers, of which [held] is about.
func asker(ctx context.Context, req *mcp.CallToolRequest) bridge.Asker {
	caps := req.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil || req.ProtocolVersion() >= modern {
		return nil
	}
	return func(asked context.Context, questions []bridge.Question) (map[string]bridge.Reply, error) {
		// The request's own context says on which stream the client is waiting.
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(asked, func() { cancel(context.Cause(asked)) })()
		replies := make(map[string]bridge.Reply, len(questions))
		for _, q := range questions {
			res, err := req.Session.Elicit(ctx, elicitation(q))
			if err != nil {
				return nil, &bridge.Error{Kind: bridge.UpstreamError, Op: "publish.ask", Msg: "The server asked something, and the client did not answer it.", Err: err}
			}
			r := bridge.Reply{Action: res.Action}
			if res.Action == bridge.Accept && res.Content != nil {
				if r.Content, err = json.Marshal(res.Content); err != nil {
					return nil, err
				}
			}
			replies[q.ID] = r
		}
		return replies, nil
	}
}

// elicitation returns a question as the protocol has it.
func elicitation(q bridge.Question) *mcp.ElicitParams {
	p := &mcp.ElicitParams{Mode: q.Mode, Message: q.Message, URL: q.URL}
	if q.Schema != nil {
		p.RequestedSchema = q.Schema
	}
	if q.Mode == "url" {
		p.ElicitationID = newID() // by which the end of it could be told, which servers tell nobody but us
	}
	return p
}
