package rpc

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewClient returns an SDK client that offers elicitation if o says so and nothing else, hands
// changed lists to o.ListChanged, and leaves input_required to us.
func NewClient(o Options) *mcp.Client {
	changed := func(list string) {
		if o.ListChanged != nil {
			o.ListChanged(list)
		}
	}
	offers := &mcp.ClientCapabilities{}
	if o.Elicitation {
		offers.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	return mcp.NewClient(
		&mcp.Implementation{Name: cmp.Or(o.ClientName, "mcp-bridge"), Version: cmp.Or(o.ClientVersion, "dev")},
		&mcp.ClientOptions{
			Logger:                     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
			Capabilities:               offers,
			MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
			ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { changed("tools") },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed("resources") },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed("prompts") },
		})
}

// PeerOf returns what a session's handshake told.
func PeerOf(s *mcp.ClientSession) *Peer {
	p := &Peer{}
	r := s.InitializeResult()
	if r == nil {
		return p
	}
	p.Protocol, p.Instructions = r.ProtocolVersion, r.Instructions
	if i := r.ServerInfo; i != nil {
		p.Name, p.Title, p.Version = i.Name, i.Title, i.Version
	}
	if c := r.Capabilities; c != nil {
		p.Capabilities = Capabilities{
			Tools: c.Tools != nil, Resources: c.Resources != nil, Prompts: c.Prompts != nil,
			Completions: c.Completions != nil,
			Logging:     c.Logging != nil, //nolint:staticcheck // deprecated, and still offered by the servers of the session era
		}
	}
	return p
}
