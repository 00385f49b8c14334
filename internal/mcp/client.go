package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// A Client makes calls on one connection, and says what its failures mean to callers.
type Client struct {
	conn rpc.Conn
	name string        // of the server, for messages
	id   uint64        // of the connection, unlike all others
	gone chan struct{} // closed when nothing of the connection is left
}

var _ bridge.Client = (*Client)(nil)

// Connected implements [bridge.Client].
func (c *Client) Connected() bool {
	select {
	case <-c.conn.Done():
		return false
	default:
		return true
	}
}

// Call implements [bridge.Client].
func (c *Client) Call(ctx context.Context, r bridge.Request, letGo func()) (*bridge.Result, error) {
	q := rpc.Request{
		Method: cmp.Or(string(r.Method), "tools/call"), Params: r.Tool.Params, Args: r.Args,
		Name: r.Tool.Name, Input: r.Tool.Input, Header: forwarded(r.Tool.Target, r.Caller),
		Idle: r.Idle, Total: r.Total, Progress: r.Progress, Log: r.Log, LetGo: letGo, Meta: r.Trace.Meta(),
	}
	if r.Wire != nil {
		q.Wire = new(rpc.Wire)
	}
	if r.Method == bridge.Complete {
		q.Name = "" // only what is called, got or read has one
	}
	if r.Method != bridge.CallTool && q.Progress == nil {
		q.Progress = func(json.RawMessage) {} // it is asked for all the same, since it resets the idle clock
	}
	if r.Resume != nil {
		if !c.conn.Peer().Modern() { // it would begin the call anew
			letGo()
			return nil, &bridge.Error{Kind: bridge.Malformed, Op: "mcp.Call", Msg: "There is no call that waits under this requestState, or no longer; make the call anew, without it."}
		}
		q.Params = slices.Concat(r.Resume, []byte{','}, r.Tool.Params)
	}
	asked := ctx
	if r.Ask != nil && r.Tool.Target.Asks {
		var end context.CancelCauseFunc
		asked, end = context.WithCancelCause(ctx)
		defer end(nil)
		q.Ask = asker(r.Ask, end)
	}
	b, err := c.conn.Do(asked, &q)
	if r.Wire != nil {
		*r.Wire = bridge.Wire{ID: q.Wire.ID, Protocol: c.conn.Peer().Protocol, Session: q.Wire.Session, Pipe: q.Wire.Pipe, Host: q.Wire.Host, Port: q.Wire.Port}
	}
	if err != nil && ctx.Err() == nil && asked.Err() != nil {
		return nil, context.Cause(asked) // nobody replied, which ends the call
	}
	if err != nil {
		err = c.explain(err, r.Tool)
		if r.Method != bridge.CallTool {
			err = refused(err, &r)
		}
		return nil, err
	}
	if c.conn.Peer().Modern() {
		if w := bridge.ParseWanted(b); w != nil {
			return &bridge.Result{Raw: b, Wanted: w}, nil
		}
	}
	res, err := r.Method.Parse(b)
	if err != nil {
		return nil, &bridge.Error{
			Kind: bridge.UpstreamError, Op: "mcp.Call", Err: err,
			Msg: fmt.Sprintf("The server %q answered something that is no result of %s: %v.", c.name, q.Method, err),
		}
	}
	return res, nil
}

// asker puts what a server asks in the middle of a call to the call's caller: one question after the
// other, each with an ID of its own, so that no reply can be taken for that to the next. The call
// ends with the error of one that gets no reply.
func asker(ask bridge.Asker, end func(error)) func(context.Context, json.RawMessage) ([]byte, error) {
	turn := make(chan int, 1) // holds how many there were
	turn <- 0
	return func(ctx context.Context, params json.RawMessage) ([]byte, error) {
		var n int
		select {
		case n = <-turn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { turn <- n + 1 }()
		id := strconv.Itoa(n + 1)
		replies, err := ask(ctx, []bridge.Question{bridge.ParseQuestion(id, params)})
		if err != nil {
			end(err)
			return nil, err
		}
		return replies[id].Append(nil), nil
	}
}

// forwarded returns those of the caller's headers that go along with each call of the target, or nil.
func forwarded(t *bridge.Target, c bridge.Caller) map[string][]string {
	var h map[string][]string
	for _, name := range t.Forward {
		if values := c.Headers[name]; len(values) > 0 {
			if h == nil {
				h = make(map[string][]string, len(t.Forward))
			}
			h[name] = values
		}
	}
	return h
}

const (
	upstreamChars = 1000    // of a server's error message are shown to callers
	upstreamBytes = 8 << 10 // of its data at most: a page to visit first (-32042 of 2025-11-25) may have a long URL
)

// explain turns what a connection says into what a caller is told. t is the tool
// that was called, or nil for any other request.
func (c *Client) explain(err error, t *bridge.Tool) error {
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		msg := bridge.FirstChars(e.Message, upstreamChars)
		m := map[string]any{"upstream_code": e.Code, "upstream_message": msg}
		if raw.KindOf(e.Data) != raw.Invalid && len(e.Data) <= upstreamBytes {
			m["upstream_data"] = e.Data
		}
		return &bridge.Error{
			Kind: bridge.UpstreamError, Op: "mcp.Call", Members: m, Err: err,
			Msg: fmt.Sprintf("The server %q answered error %d: %s", c.name, e.Code, msg),
		}
	}
	f, ok := errors.AsType[*rpc.Failure](err)
	if !ok {
		return err // the caller's context, or ours already
	}
	e := &bridge.Error{Op: "mcp.Call", Err: err, Msg: fmt.Sprintf("The server %q: %s", c.name, f.Msg)}
	switch f.Reason {
	case rpc.NotSent:
		e.Kind, e.Replay = bridge.Unavailable, true
	case rpc.SessionExpired:
		e.Kind, e.Replay = bridge.Unavailable, true
	case rpc.Lost:
		e.Kind, e.Fault, e.Conn = bridge.OutcomeUnknown, true, c.id
		if t == nil {
			e.Kind = bridge.Unavailable // a list is read again, whatever became of it
			break
		}
		e.Replay = repeatable(t)
		e.Msg = fmt.Sprintf("The connection to the server %q was lost before it answered, so it is not known whether the tool ran: %s", c.name, f.Msg)
	case rpc.Deadline:
		e.Kind, e.Fault = bridge.DeadlineExceeded, true
		e.Msg = fmt.Sprintf("The server %q did not answer in time and was told to cancel: %s", c.name, f.Msg)
	case rpc.TooLarge:
		e.Kind = bridge.ResultTooLarge
	case rpc.Auth:
		// What is forbidden to one call, for want of a scope it may be, others may do all the same.
		e.Kind, e.Fault = bridge.UpstreamAuth, t == nil || f.Status != http.StatusForbidden
	case rpc.Protocol:
		e.Kind, e.Fault = bridge.UpstreamError, true
	default:
		e.Kind, e.Fault = bridge.Unavailable, true
	}
	return e
}

// repeatable reports whether the server says that running the tool twice does no more than running it once.
func repeatable(t *bridge.Tool) bool {
	yes := func(b *bool) bool { return b != nil && *b }
	return yes(t.Annotations.ReadOnly) || yes(t.Annotations.Idempotent)
}
