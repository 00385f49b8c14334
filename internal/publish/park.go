package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A held call is one of a client of 2026-07-28 whose server may ask in the middle of it, as those
// with sessions do. The client is answered with the question, and replies by making
// the call again; the call waits for that here, under a state that names it.
//
// What a server of 2026-07-28 asks needs none of this: see [relay].
type held struct {
	owner bridge.Owner
	name  string // of the tool, as published

	ctx     context.Context
	cancel  context.CancelCauseFunc
	asks    chan []bridge.Question
	replies chan map[string]bridge.Reply
	done    chan struct{} // closed with res and err
	res     *result
	err     error

	notices atomic.Pointer[notices] // of the request that waits, or waited last

	asked []bridge.Question // what it waits for; only whoever has taken the call out of the parked ones reads it
	timer *time.Timer       // ends a call whose client does not come back; the same
}

var (
	errTooLate = &bridge.Error{Kind: bridge.DeadlineExceeded, Op: "publish.park", Msg: "The server asked something, and the client did not answer it in time."}
	errCrowded = &bridge.Error{Kind: bridge.RateLimited, Op: "publish.park", RetryAfter: 10 * time.Second, Msg: "The server asks something, but too many calls wait for an answer already; answer some of them, or try again later."}
)

// holds reports whether a client replies to questions by making its call again.
func holds(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return req.ProtocolVersion() >= modern && caps != nil && caps.Elicitation != nil
}

// hold runs a call apart from the request that begins it, which may end before it.
func (p *peer) hold(ctx context.Context, rq request, req *mcp.CallToolRequest) (mcp.Result, error) {
	k := &held{
		owner: rq.caller.Owner(), name: req.Params.Name,
		asks: make(chan []bridge.Question), replies: make(chan map[string]bridge.Reply), done: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	k.notices.Store(p.listen(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""}))
	p.s.mu.Lock()
	closed := p.s.closed
	if !closed {
		p.s.closing.Go(func() { // ends with k.ctx at the latest
			defer close(k.done)
			defer func() {
				if v := recover(); v != nil {
					p.s.log.ErrorContext(ctx, "panic", "method", "tools/call", "error", fmt.Sprint(v), "stack", string(debug.Stack()))
					k.err = errFault
				}
			}()
			k.res, k.err = p.run(k.ctx, rq, req, k)
		})
	}
	p.s.mu.Unlock()
	if closed {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errClosed.Error()}
	}
	return p.await(ctx, rq, k)
}

// await answers a request with the result of its call, or with what the server asks.
func (p *peer) await(ctx context.Context, rq request, k *held) (mcp.Result, error) {
	hangUp := context.AfterFunc(ctx, func() { k.cancel(context.Cause(ctx)) })
	defer hangUp()
	defer k.notices.Load().close() // before the answer goes out
	select {
	case <-k.done:
	case k.asked = <-k.asks:
		hangUp() // from here on the request's end is not that of the call
		state, err := p.s.park(k)
		if err == nil {
			return k.question(rq, state)
		}
		k.cancel(err)
		<-k.done
	}
	if k.err != nil {
		return nil, k.err
	}
	k.res.out, k.res.modern = rq.out, true
	return k.res, nil
}

// ask is a [bridge.Asker].
func (k *held) ask(ctx context.Context, questions []bridge.Question) (map[string]bridge.Reply, error) {
	select {
	case k.asks <- questions:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case replies := <-k.replies:
		return replies, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (k *held) progress(params json.RawMessage) { k.notices.Load().progress(params) }

func (k *held) message(params json.RawMessage) { k.notices.Load().message(params) }

// question is the answer of a request whose call waits for its client.
func (k *held) question(rq request, state string) (mcp.Result, error) {
	wanted := mcp.InputRequestMap{}
	for _, q := range k.asked {
		wanted[q.ID] = elicitation(q)
	}
	b, err := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": wanted, "requestState": state})
	if err != nil {
		return nil, err
	}
	return &result{raw: b, out: rq.out, modern: true}, nil
}

// goOn brings a client's replies to the call that waits for them.
func (p *peer) goOn(ctx context.Context, rq request, req *mcp.CallToolRequest) (mcp.Result, error) {
	resume, err := rq.resumed(req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	k := p.s.unpark(req.Params.RequestState, rq.caller.Owner(), req.Params.Name)
	if k == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no call that waits under this requestState, or no longer; make the call anew, without it"}
	}
	replies, whole, err := parseReplies(k.asked, raw.Get(append(append([]byte{'{'}, resume...), '}'), "inputResponses"))
	if err != nil || !whole { // what is missing is asked again
		state, full := p.s.park(k)
		if full != nil {
			k.cancel(full)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call was ended"}
		}
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%v; the call waits under another state now", err), Data: json.RawMessage(fmt.Sprintf("{%q:%q}", "requestState", state))}
		}
		return k.question(rq, state)
	}
	k.notices.Store(p.listen(ctx, asked{req, req.Session, req.Params.Meta, req.ProtocolVersion(), ""}))
	select {
	case k.replies <- replies:
	case <-k.done: // it was ended in between
	}
	return p.await(ctx, rq, k)
}

// parseReplies reads the replies to questions, and reports whether there is one to each.
func parseReplies(asked []bridge.Question, responses []byte) (_ map[string]bridge.Reply, whole bool, err error) {
	replies := make(map[string]bridge.Reply, len(asked))
	for _, q := range asked {
		v := raw.Get(responses, q.ID)
		if v == nil {
			return nil, false, nil
		}
		r := bridge.Reply{Action: raw.GetString(v, "action")}
		switch r.Action {
		case bridge.Accept:
			r.Content = json.RawMessage(raw.Get(v, "content"))
			if r.Content != nil && raw.KindOf(r.Content) != raw.Object {
				return nil, false, errors.New("the content of a response is no object")
			}
		case bridge.Decline, bridge.Cancel:
		default:
			return nil, false, errors.New(`a response has no action that is "accept", "decline" or "cancel"`)
		}
		replies[q.ID] = r
	}
	return replies, true, nil
}

// park keeps a call that waits for its client, and returns the state that names it.
func (s *Server) park(k *held) (state string, err error) {
	state = s.states + newID()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, other := range s.parked {
		if other.owner == k.owner {
			n++
		}
	}
	switch {
	case s.closed:
		return "", errClosed
	case n >= s.opts.SessionsPerOwner, len(s.parked) >= s.opts.Sessions:
		return "", errCrowded
	}
	s.parked[state] = k
	k.timer = time.AfterFunc(s.opts.InputWait, func() {
		if s.unpark(state, k.owner, k.name) != nil {
			k.cancel(errTooLate)
		}
	})
	return state, nil
}

// unpark returns the call that waits under the state, which from then on nobody else can have. To
// other owners, and as another tool, it does not exist.
func (s *Server) unpark(state string, owner bridge.Owner, name string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.parked[state]
	if k == nil || k.owner != owner || k.name != name {
		return nil
	}
	delete(s.parked, state)
	k.timer.Stop()
	return k
}

// waitsHere reports whether a state is one of ours.
func (s *Server) waitsHere(state string) bool { return strings.HasPrefix(state, s.states) }
