package publish

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/raw"
)

// read answers resources/read.
func (p *peer) read(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	c := &bridge.Call{Method: bridge.ReadResource}
	resume, err := p.request(req).resumed(req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	relay(c, req.ProtocolVersion(), req.ClientCapabilities(), resume)
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), req.Params.URI}, c, func(view *bridge.Snapshot) (err error) {
		c.Handle, c.Tool, err = locate(view, req.Params.URI)
		return err
	})
}

// prompt answers prompts/get.
func (p *peer) prompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	c := &bridge.Call{Method: bridge.GetPrompt}
	if req.Params.Arguments != nil {
		var err error
		if c.Args, err = json.Marshal(req.Params.Arguments); err != nil {
			return nil, err
		}
	}
	resume, err := p.request(req).resumed(req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	relay(c, req.ProtocolVersion(), req.ClientCapabilities(), resume)
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""}, c, func(view *bridge.Snapshot) (err error) {
		c.Handle, c.Tool, err = findPrompt(view, req.Params.Name)
		return err
	})
}

// complete answers completion/complete.
func (p *peer) complete(ctx context.Context, req *mcp.CompleteRequest) (mcp.Result, error) {
	if req.Params.Ref == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no ref"}
	}
	c := &bridge.Call{Method: bridge.Complete}
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""}, c, func(view *bridge.Snapshot) (err error) {
		ref := *req.Params.Ref
		if ref.Type == "ref/prompt" {
			c.Handle, ref.Name, err = findPrompt(view, ref.Name)
		} else {
			c.Handle, ref.URI, err = locate(view, ref.URI)
		}
		if err != nil {
			return err
		}
		c.Args, err = json.Marshal(&mcp.CompleteParams{Ref: &ref, Argument: req.Params.Argument, Context: req.Params.Context})
		return err
	})
}

// An asked is what all requests have that are asked of a server.
type asked struct {
	req     mcp.Request
	session *mcp.ServerSession
	meta    mcp.Meta
	version string
	uri     string // of the resource that is read; else ""
}

// ask makes a call of what find finds, in what the caller may see, and fills in.
func (p *peer) ask(ctx context.Context, a asked, c *bridge.Call, find func(*bridge.Snapshot) error) (mcp.Result, error) {
	rq := p.request(a.req)
	name := "" // a resource's may be any, and hold what arguments do
	if r, ok := a.req.(*mcp.GetPromptRequest); ok {
		name = r.Params.Name
	}
	c.Caller = rq.caller
	start := time.Now()
	end := p.trace(a, string(c.Method), name, c)
	res, err := p.answer(ctx, rq, a, c, find)
	end(err)
	p.s.logCall(ctx, rq, c, time.Since(start), err)
	if err != nil {
		return nil, refusal(err, a)
	}
	return res, nil
}

func (p *peer) answer(ctx context.Context, rq request, a asked, c *bridge.Call, find func(*bridge.Snapshot) error) (*result, error) {
	if find(p.s.narrowed(rq)) != nil { // its server may still have to be connected
		view, err := p.s.settled(ctx, rq)
		if err != nil {
			return nil, err
		}
		if err := find(view); err != nil {
			return nil, err
		}
	}
	n := p.listen(ctx, a)
	defer n.close() // before the answer goes out
	n.attach(c, n.progress, n.message)
	got, err := p.s.opts.Bridge.Invoke(ctx, c)
	if err != nil {
		return nil, err
	}
	res := &result{out: rq.out, raw: got.Result.Raw, modern: a.version >= modern}
	if got.Artifact != nil {
		res.ref = got.Artifact.Ref
	}
	if res.modern && c.Method == bridge.ReadResource && got.Result.Wanted == nil {
		res.raw = private(res.raw)
	}
	return res, nil
}

// private returns a result that says that only its caller may keep it, since another one may not see it.
func private(v []byte) []byte {
	v = raw.Cut(v, func(m raw.Member) bool { return m.Is("cacheScope") })
	if raw.Get(v, "ttlMs") == nil {
		v = withMember(v, []byte(`"ttlMs":0`))
	}
	return withMember(v, []byte(`"cacheScope":"private"`))
}

// findPrompt returns the prompt that is published under name.
func findPrompt(view *bridge.Snapshot, name string) (handle, prompt string, err error) {
	if handle, prompt, ok := strings.Cut(name, separator); ok && openapi.OperationID(handle, prompt) == name {
		if srv := view.Server(handle); srv != nil && srv.Prompt(prompt) != nil {
			return handle, prompt, nil
		}
	}
	for _, srv := range view.Servers {
		for _, p := range srv.Prompts {
			if openapi.OperationID(srv.Handle, p.Name) == name {
				return srv.Handle, p.Name, nil
			}
		}
	}
	return "", "", &bridge.Error{Kind: bridge.NotFound, Op: "publish.find", Msg: "unknown prompt: " + bridge.FirstChars(name, 200)}
}

// codeNoResource is the code of a resource that is not there, before 2026-07-28.
const codeNoResource = -32002

// refusal returns what a client is told of what failed and was no tool: an error of the
// protocol, the server's own if it answered one. What could not be read is named as the client did.
func refusal(err error, a asked) error {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		_, err = failure(err, false)
		return err
	}
	if code, answered := upstreamCode(e); answered {
		if code == codeNoResource && a.version >= modern {
			code = jsonrpc.CodeInvalidParams
		}
		return answeredError(e, code, a.uri)
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Msg, Data: about(e, nil, a.uri)}
	switch {
	case e.Kind == bridge.NotFound, e.Kind == bridge.Malformed, e.Kind == bridge.InvalidArguments:
		out.Code = jsonrpc.CodeInvalidParams
	case e.Msg == "":
		return errFault
	}
	return out
}

// upstreamCode returns the code of an error that a server answered, if it answered one.
func upstreamCode(e *bridge.Error) (code int64, answered bool) {
	code, answered = e.Members["upstream_code"].(int64)
	return code, answered
}

// answeredError is the server's own error, under the code.
func answeredError(e *bridge.Error, code int64, uri string) error {
	data, _ := e.Members["upstream_data"].(json.RawMessage)
	msg, _ := e.Members["upstream_message"].(string)
	return &jsonrpc.Error{Code: code, Message: msg, Data: about(e, data, uri)}
}

// about is what programs are told of a failure, beside what its server says of it. The URI, if there is one, takes the place of the server's.
func about(e *bridge.Error, data json.RawMessage, uri string) json.RawMessage {
	m := map[string]any{"code": e.Kind}
	maps.Copy(m, e.Members)
	if e.RetryAfter > 0 {
		m["retry_after"] = seconds(e.RetryAfter)
	}
	all := map[string]any{}
	if raw.KindOf(data) == raw.Object {
		for v := range raw.Members(data) {
			all[v.Name()] = json.RawMessage(v.Val)
		}
	}
	if uri != "" {
		all["uri"] = uri
	}
	all[errorKey] = m
	b, err := json.Marshal(all)
	if err != nil {
		return nil // a member that cannot be JSON: a bug, but the rest is true
	}
	return b
}
