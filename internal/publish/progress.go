package publish

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/raw"
)

// maxProgress is how many notifications of a call wait for a client that is slow to
// take them; over it the oldest go, since each says how far the call has come.
const maxProgress = 64

// A progress passes on what a server says of one call's progress. A server is not
// held up by a client that does not read, so it has a goroutine of its own.
type progress struct {
	session *mcp.ServerSession
	ctx     context.Context // the request's, by which the SDK knows where notifications belong
	token   []byte

	mu      sync.Mutex
	waiting []json.RawMessage // guarded by mu
	sending bool              // the goroutine runs, guarded by mu
	closed  bool              // guarded by mu
	idle    *sync.Cond        // sending has become false
}

func newProgress(ctx context.Context, session *mcp.ServerSession, token any) *progress {
	p := &progress{session: session, ctx: ctx}
	p.idle = sync.NewCond(&p.mu)
	p.token, _ = json.Marshal(token) // came out of JSON
	return p
}

// put takes the params of one notification, as the server sent them.
func (p *progress) put(params json.RawMessage) {
	if raw.KindOf(raw.Get(params, "progress")) != raw.Number {
		return // not what the protocol calls progress; strict clients would choke on it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return // the answer is on its way, behind which there is no progress
	}
	if len(p.waiting) == maxProgress {
		p.waiting = p.waiting[1:]
	}
	p.waiting = append(p.waiting, withToken(params, p.token))
	if !p.sending {
		p.sending = true
		go p.send() // until nothing waits; close waits for it
	}
}

func (p *progress) send() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.sending = false
			p.idle.Broadcast()
			p.mu.Unlock()
			return
		}
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		ctx := context.WithValue(p.ctx, progressKey{}, next)
		// A client that has gone misses it, and its call is ended by other means.
		_ = p.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
	}
}

// close waits until all that was put has been sent, and takes no more.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.sending {
		p.idle.Wait()
	}
}

// withToken returns the params with the client's own token in place of the server's.
func withToken(params, token []byte) json.RawMessage {
	out := append(append([]byte(`{"progressToken":`), token...), '}')
	rest := raw.Cut(params, func(m raw.Member) bool { return m.Is("progressToken") })
	for m := range raw.Members(rest) {
		out = withMember(out, append(append(append([]byte{}, m.Key...), ':'), m.Val...))
	}
	return out
}

// progressKey is the context's key of the params that are to be sent.
type progressKey struct{}

// rawParams are params whose JSON is there already.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

func (p *rawParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

// sendProgress makes the SDK send the server's own bytes, where its type would round them.
func sendProgress(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if b, ok := ctx.Value(progressKey{}).(json.RawMessage); ok {
			ss, _ := req.GetSession().(*mcp.ServerSession)
			req = &mcp.ServerRequest[*rawParams]{Session: ss, Params: &rawParams{raw: b}}
		}
		return next(ctx, method, req)
	}
}
