package publish

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// modern is the first version of the protocol without sessions.
const modern = "2026-07-28"

// A request is what a message brought with it from outside the protocol.
type request struct {
	ctx     context.Context // ends when nobody waits for the answer any more; nil is never
	id      string          // names it in the log; may be empty
	message []byte          // the id of the only message, as JSON
	trace   bridge.Trace
	caller  bridge.Caller
	handles handles
	out     *splices // of whatever carries the answer
	args    []byte   // of the call, where the message has them no longer
	resume  []byte   // the members of params that go on with a call, as they were sent; nil if there are none
}

// handles narrow what is published to some servers; nil does not.
type handles map[string]bool

func (h handles) has(handle string) bool { return h == nil || h[handle] }

// A peer is one client: an SDK server of its own, with one session or, where the
// protocol has none, one request. Its list is nobody else's, so it can be told
// alone that it has changed.
type peer struct {
	s   *Server
	srv *mcp.Server

	ctx context.Context // ends what still runs in the session
	end context.CancelFunc

	logs atomic.Bool // the client has said which log messages it wants, for the whole session

	mu    sync.Mutex
	last  request                     // of the client's, whose view it is that changes; guarded by mu
	told  [subjects][sha256.Size]byte // digests of the lists as the client knows them, guarded by mu
	cares [subjects]bool              // the client has listed that, or asked for news; guarded by mu
}

// newPeer returns a peer for the client that sent rq. Its session, if it has one, gets the id.
func (s *Server) newPeer(rq request, id string) *peer {
	p := &peer{s: s, last: rq}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.srv = mcp.NewServer(
		&mcp.Implementation{Name: "mcp-bridge", Title: "MCP Bridge", Version: s.opts.Version},
		&mcp.ServerOptions{
			Instructions: instructions(s.narrowed(rq)),
			// Also while there are none: a server that has some may come.
			Capabilities: &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{ListChanged: true},
				Resources: &mcp.ResourceCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
				Completions: &mcp.CompletionCapabilities{}, Logging: &mcp.LoggingCapabilities{},
			},
			GetSessionID: func() string { return id },
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		})
	p.srv.AddReceivingMiddleware(p.receive)
	p.srv.AddSendingMiddleware(sendNotices)
	return p
}

// receive answers what the SDK's server cannot answer as the bridge does.
func (p *peer) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil { // the SDK has goroutines of its own, where it would end the process
				p.s.log.ErrorContext(ctx, "panic", "method", method, "error", fmt.Sprint(v), "stack", string(debug.Stack()))
				err = errFault
			}
		}()
		if answer := p.own(req); answer != nil {
			ctx, stop := p.bind(ctx, req)
			defer stop()
			return answer(ctx)
		}
		if r, ok := req.(*mcp.ServerRequest[*mcp.SetLoggingLevelParams]); ok {
			if !slices.Contains(levels, r.Params.Level) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no level %.100q", r.Params.Level)}
			}
			p.logs.Store(true)
		}
		if strings.HasPrefix(method, "resources/") {
			// The SDK has answers for these even where they are not offered.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not offered here", method)}
		}
		return next(ctx, method, req)
	}
}

// own returns what answers a request, or nil if the SDK does.
func (p *peer) own(req mcp.Request) func(context.Context) (mcp.Result, error) {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		return func(ctx context.Context) (mcp.Result, error) { return p.list(ctx, r) }
	case *mcp.CallToolRequest:
		return func(ctx context.Context) (mcp.Result, error) { return p.call(ctx, r) }
	case *mcp.ListResourcesRequest:
		return p.lister(req, resources, r.ProtocolVersion())
	case *mcp.ListResourceTemplatesRequest:
		return p.lister(req, templates, r.ProtocolVersion())
	case *mcp.ListPromptsRequest:
		return p.lister(req, prompts, r.ProtocolVersion())
	case *mcp.ReadResourceRequest:
		return func(ctx context.Context) (mcp.Result, error) { return p.read(ctx, r) }
	case *mcp.GetPromptRequest:
		return func(ctx context.Context) (mcp.Result, error) { return p.prompt(ctx, r) }
	case *mcp.CompleteRequest:
		return func(ctx context.Context) (mcp.Result, error) { return p.complete(ctx, r) }
	default:
		return nil
	}
}

// request returns what came with a message; over pipes that is what the session was opened with.
func (p *peer) request(req mcp.Request) request {
	if rq, ok := carriedBy(req.GetExtra()); ok {
		return rq
	}
	return p.latest()
}

// latest returns the last request, without what was its own.
func (p *peer) latest() request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// seen notes a request: what its caller may see can be another thing than at the session's begin.
func (p *peer) seen(rq request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = rq
}

// bind returns a context that ends also with the session and when nobody waits for the answer.
func (p *peer) bind(ctx context.Context, req mcp.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := []func() bool{context.AfterFunc(p.ctx, func() { cancel(errEnded) })}
	if gone := p.request(req).ctx; gone != nil {
		stops = append(stops, context.AfterFunc(gone, func() { cancel(context.Cause(gone)) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// A subject is what clients hear of when it changes.
type subject uint8

const (
	ofTools subject = iota
	ofResources
	ofPrompts
	subjects
)

// tell lets the client know which of its lists differ from what it knows.
func (p *peer) tell() {
	p.mu.Lock()
	cares := p.cares
	p.mu.Unlock()
	if cares == [subjects]bool{} {
		return // and may not even have opened its session
	}
	view := p.s.narrowed(p.latest())
	for of := range subjects {
		if !cares[of] {
			continue
		}
		now := digest(view, of)
		p.mu.Lock()
		differs := now != p.told[of]
		p.told[of] = now
		p.mu.Unlock()
		if differs {
			p.ring(of)
		}
	}
}

// ring makes the SDK say that a list has changed, by adding something to it that nobody sees.
func (p *peer) ring(of subject) {
	const bell = "bell"
	switch of {
	case ofTools:
		p.srv.AddTool(&mcp.Tool{Name: bell, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	case ofResources:
		p.srv.AddResource(&mcp.Resource{Name: bell, URI: "bell:"}, nil)
	case ofPrompts:
		p.srv.AddPrompt(&mcp.Prompt{Name: bell}, nil)
	}
}

// knows notes which list the client has got.
func (p *peer) knows(of subject, view *bridge.Snapshot) {
	list := digest(view, of)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[of], p.cares[of] = list, true
}

// close ends the session and what runs in it, and waits for its end.
func (p *peer) close() {
	p.end()
	for ss := range p.srv.Sessions() {
		_ = ss.Close() // what the other side makes of it changes nothing
	}
}

// narrowed returns what the request's caller may see, of the servers that it asks for.
func (s *Server) narrowed(rq request) *bridge.Snapshot {
	view := s.opts.Bridge.View(rq.caller)
	if rq.handles == nil {
		return view
	}
	servers := slices.DeleteFunc(slices.Clone(view.Servers), func(e *bridge.Server) bool { return !rq.handles.has(e.Handle) })
	return bridge.NewSnapshot(view.Version, view.Ready, servers)
}

// patience is how long a list waits for servers of the caller's own.
const patience = 10 * time.Second

// settled returns the same once no server in it is still being connected for the
// first time, or that was waited for long enough: many clients list once, at
// their start, which may be the bridge's own.
func (s *Server) settled(ctx context.Context, rq request) (*bridge.Snapshot, error) {
	if err := s.attach(ctx, rq); err != nil {
		return nil, err
	}
	for {
		news := s.news()
		view := s.narrowed(rq)
		if view.Ready || !slices.ContainsFunc(view.Servers, func(e *bridge.Server) bool { return e.State == bridge.Connecting }) {
			return view, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// attach connects the servers that the caller does not share, as a call would, and
// waits for their first attempts. What is wrong with one, its calls will say.
func (s *Server) attach(ctx context.Context, rq request) error {
	b := s.opts.Bridge
	var pending []<-chan struct{}
	for _, e := range b.Catalogue.Snapshot(rq.caller).Servers {
		unknown := len(e.Tools) == 0 && (e.State == bridge.Idle || e.State == bridge.Connecting)
		if !unknown || !rq.handles.has(e.Handle) || !b.Policy.Sees(rq.caller, e.Handle) {
			continue
		}
		if first, err := b.Catalogue.Attach(rq.caller, e.Handle, true); err == nil && first != nil {
			pending = append(pending, first)
		}
	}
	if pending == nil {
		return nil
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for _, first := range pending {
		select {
		case <-first:
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

const (
	instructionChars = 2000     // of one server that are passed on
	instructionBytes = 32 << 10 // of all
)

// instructions are what clients are told of the tools: how they are named, and what their servers say.
func instructions(view *bridge.Snapshot) string {
	var b strings.Builder
	b.WriteString("The tools of several MCP servers: <server>__<tool> is a tool of that server. Their prompts are named alike, and bridge:<server>:<uri> is a resource of that server.")
	for _, e := range view.Servers {
		if e.Instructions == "" {
			continue
		}
		text := bridge.FirstChars(e.Instructions, instructionChars)
		if b.Len()+len(text) > instructionBytes {
			break
		}
		fmt.Fprintf(&b, "\n\n## %s\n\n%s", e.Handle, text)
	}
	return b.String()
}
