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
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion()}, c, func(view *bridge.Snapshot) (err error) {
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
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion()}, c, func(view *bridge.Snapshot) (err error) {
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
	return p.ask(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion()}, c, func(view *bridge.Snapshot) (err error) {
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
}

// ask makes a call of what find finds, in what the caller may see, and fills in.
func (p *peer) ask(ctx context.Context, a asked, c *bridge.Call, find func(*bridge.Snapshot) error) (mcp.Result, error) {
	rq := p.request(a.req)
	c.Caller = rq.caller
	start := time.Now()
	res, err := p.answer(ctx, rq, a, c, find)
	p.s.logCall(ctx, rq, c, time.Since(start), err)
	if err != nil {
		return nil, refusal(err, a.version >= modern)
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
	if token := a.meta["progressToken"]; token != nil {
		pr := newProgress(ctx, a.session, token)
		defer pr.close() // before the answer goes out
		c.Progress = pr.put
	}
	got, err := p.s.opts.Bridge.Invoke(ctx, c)
	if err != nil {
		return nil, err
	}
	res := &result{out: rq.out, raw: got.Result.Raw, modern: a.version >= modern}
	if got.Artifact != nil {
		res.ref = got.Artifact.Ref
	}
	if res.modern && c.Method == bridge.ReadResource {
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
// protocol, the server's own if it answered one.
func refusal(err error, isModern bool) error {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		_, err = failure(err)
		return err
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Msg}
	about := map[string]any{"code": e.Kind}
	maps.Copy(about, e.Members)
	if e.RetryAfter > 0 {
		about["retry_after"] = seconds(e.RetryAfter)
	}
	switch code, answered := e.Members["upstream_code"].(int64); {
	case answered:
		out.Code = code
		out.Message, _ = e.Members["upstream_message"].(string)
	case e.Kind == bridge.NotFound, e.Kind == bridge.Malformed, e.Kind == bridge.InvalidArguments:
		out.Code = jsonrpc.CodeInvalidParams
	case e.Msg == "":
		return errFault
	}
	if out.Code == codeNoResource && isModern {
		out.Code = jsonrpc.CodeInvalidParams
	}
	if b, err := json.Marshal(map[string]any{errorKey: about}); err == nil {
		out.Data = b
	}
	return out
}
