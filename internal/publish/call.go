package publish

import (
	"context"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// call answers tools/call.
func (p *peer) call(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	rq := p.request(req)
	switch {
	case holds(req) && p.s.waitsHere(req.Params.RequestState):
		return p.goOn(ctx, rq, req)
	case holds(req):
		return p.hold(ctx, rq, req)
	}
	res, err := p.run(ctx, rq, req, nil)
	if err != nil {
		return nil, err
	}
	res.out, res.modern = rq.out, req.ProtocolVersion() >= modern
	return res, nil
}

// run makes the call, whatever becomes of it. It is held apart from its request if k is set.
func (p *peer) run(ctx context.Context, rq request, req *mcp.CallToolRequest, k *held) (*result, error) {
	c := &bridge.Call{Args: req.Params.Arguments, Caller: rq.caller}
	if rq.args != nil {
		c.Args = rq.args
	}
	if raw.IsNull(c.Args) {
		c.Args = nil // as if there were none
	}
	start := time.Now()
	a := asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""}
	end := p.trace(a, "tools/call", req.Params.Name, c)
	res, err := p.invoke(ctx, rq, req, c, k)
	end(err)
	p.s.logCall(ctx, rq, c, time.Since(start), err)
	if err != nil {
		return failure(err, c.Resume != nil)
	}
	return res, nil
}

// invoke runs the call, which it completes.
func (p *peer) invoke(ctx context.Context, rq request, req *mcp.CallToolRequest, c *bridge.Call, k *held) (*result, error) {
	t, err := p.s.find(ctx, rq, req.Params.Name)
	if err != nil {
		return nil, err
	}
	c.Handle, c.Tool = t.Handle, t.Name
	if k == nil {
		n := p.listen(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""})
		defer n.close() // before the answer goes out
		n.attach(c, n.progress, n.message)
	} else {
		k.notices.Load().attach(c, k.progress, k.message)
	}
	switch {
	case !t.Target.Asks:
	case k != nil:
		c.Ask = k.ask
	default:
		c.Ask = asker(ctx, req)
	}
	resume, err := rq.resumed(req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	relay(c, req.ProtocolVersion(), req.ClientCapabilities(), resume)
	a, err := p.s.opts.Bridge.Invoke(ctx, c)
	if err != nil {
		return nil, err
	}
	res := &result{raw: a.Result.Raw}
	if a.Artifact != nil {
		res.ref = a.Artifact.Ref
	}
	return res, nil
}

// listen returns what passes on to the client what it wants to hear of a request.
func (p *peer) listen(ctx context.Context, a asked) *notices {
	logs := p.logs.Load()
	if a.version >= modern { // which has a level in each request
		_, logs = a.meta[mcp.MetaKeyLogLevel]
	}
	return newNotices(ctx, a.session, a.meta["progressToken"], logs)
}

// find returns the tool that is published under name to the request's caller. Its
// server may still have to be connected.
func (s *Server) find(ctx context.Context, rq request, name string) (*bridge.Tool, error) {
	b := s.opts.Bridge
	t := s.names.find(b.Catalogue.Snapshot(rq.caller), name)
	if t == nil {
		view, err := s.settled(ctx, rq)
		if err != nil {
			return nil, err
		}
		t = s.names.find(view, name)
	}
	if t == nil || !rq.handles.has(t.Handle) || !b.Policy.Allows(rq.caller, t.Handle, t.Name) {
		return nil, unknownTool(name)
	}
	return t, nil
}

func unknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool: " + bridge.FirstChars(name, 200)}
}

// kindOf returns the kind of what a call ended with, empty for a success.
func kindOf(err error) bridge.Kind {
	if err == nil {
		return ""
	}
	if _, ok := err.(*jsonrpc.Error); ok { //nolint:errorlint // not one that a cause has in its tree
		return bridge.NotFound
	}
	return bridge.KindOf(err)
}

// logCall writes a call's line, which says who called what and how it went, never what was in it.
func (s *Server) logCall(ctx context.Context, rq request, c *bridge.Call, d time.Duration, err error) {
	ctx = context.WithoutCancel(ctx)
	attrs := []slog.Attr{
		slog.String("handle", c.Handle), slog.String(c.Subject()),
		slog.Duration("duration", d), slog.Duration("queue", c.Timing.Queue), slog.Duration("upstream", c.Timing.Upstream),
		slog.Int("bytes_in", len(c.Args)), slog.Int("bytes_out", c.Received),
	}
	if rq.id != "" {
		attrs = append(attrs, slog.String("request_id", rq.id))
	}
	if rq.caller.ID != "" {
		attrs = append(attrs, slog.String("caller", bridge.FirstChars(rq.caller.ID, 200)))
	}
	if rq.caller.User != "" && rq.caller.User != rq.caller.ID {
		attrs = append(attrs, slog.String("user", bridge.FirstChars(rq.caller.User, 200)))
	}
	if id := c.Trace.ID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	level := slog.LevelInfo
	kind := kindOf(err)
	if err != nil {
		attrs = append(attrs, slog.String("code", string(kind)))
		switch kind {
		case bridge.ToolError, bridge.InvalidArguments, bridge.InvalidResult, bridge.NotFound:
			// Their texts quote what was sent.
		case bridge.Internal:
			level = slog.LevelError
			fallthrough
		default:
			attrs = append(attrs, slog.String("error", bridge.FirstChars(err.Error(), 500)))
		}
	}
	s.log.LogAttrs(ctx, level, "mcp call", attrs...)
	if s.opts.Called != nil {
		s.opts.Called(c, rq.id, kind, d)
	}
}
