package publish

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// maxNotices is how many notifications of a call wait for a client that is slow to take them, and
// noticeBytes how many bytes; over it the oldest go, since the later ones say how far the call has come.
const (
	maxNotices  = 64
	noticeBytes = 1 << 20
)

// notices pass on what a server says while it works on one call: its progress, and log
// messages. A server is not held up by a client that does not read, so they have a goroutine of their own.
type notices struct {
	session *mcp.ServerSession
	ctx     context.Context // the request's, by which the SDK knows where notifications belong
	token   []byte          // of progress; nil if the client wants none
	logs    bool            // it wants log messages

	mu      sync.Mutex
	waiting []notice // guarded by mu
	size    int      // of what waits, in bytes; guarded by mu
	sending bool     // the goroutine runs, guarded by mu
	closed  bool     // guarded by mu
	idle    *sync.Cond
}

// A notice is one notification: a log message of a level, or progress.
type notice struct {
	level  mcp.LoggingLevel // "" is progress
	params json.RawMessage
}

func newNotices(ctx context.Context, session *mcp.ServerSession, token any, logs bool) *notices {
	n := &notices{session: session, ctx: ctx, logs: logs}
	n.idle = sync.NewCond(&n.mu)
	if token != nil {
		n.token, _ = json.Marshal(token) // came out of JSON
	}
	return n
}

// attach makes a call say what is wanted of it.
func (n *notices) attach(c *bridge.Call, progress, message func(json.RawMessage)) {
	if n.token != nil {
		c.Progress = progress
	}
	if n.logs {
		c.Log = message
	}
}

// progress takes the params of a notification of progress, as the server sent them.
func (n *notices) progress(params json.RawMessage) {
	if n.token == nil || raw.KindOf(raw.Get(params, "progress")) != raw.Number {
		return // not what the protocol calls progress; strict clients would choke on it
	}
	n.put(notice{params: withToken(params, n.token)})
}

// levels are those of log messages, the least first.
var levels = []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// message takes the params of a log message, as the server sent them. The session knows which level its client wants.
func (n *notices) message(params json.RawMessage) {
	level := mcp.LoggingLevel(raw.GetString(params, "level"))
	if n.logs && slices.Contains(levels, level) && raw.Get(params, "data") != nil {
		n.put(notice{level: level, params: params})
	}
}

func (n *notices) put(one notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return // the answer is on its way, behind which nothing comes
	}
	n.size += len(one.params)
	for len(n.waiting) > 0 && (len(n.waiting) == maxNotices || n.size > noticeBytes) {
		n.takeLocked()
	}
	n.waiting = append(n.waiting, one)
	if !n.sending {
		n.sending = true
		go n.send() // until nothing waits; close waits for it
	}
}

// takeLocked returns the oldest one, which waits no more.
func (n *notices) takeLocked() notice {
	one := n.waiting[0]
	n.waiting = n.waiting[1:]
	n.size -= len(one.params)
	return one
}

func (n *notices) send() {
	for {
		n.mu.Lock()
		if len(n.waiting) == 0 {
			n.sending = false
			n.idle.Broadcast()
			n.mu.Unlock()
			return
		}
		next := n.takeLocked()
		n.mu.Unlock()
		ctx := context.WithValue(n.ctx, noticeKey{}, next.params)
		// A client that has gone misses it, and its call is ended by other means.
		if next.level == "" {
			_ = n.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
		} else {
			_ = n.session.Log(ctx, &mcp.LoggingMessageParams{Level: next.level})
		}
	}
}

// close waits until all that was put has been sent, and takes no more.
func (n *notices) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for n.sending {
		n.idle.Wait()
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

// noticeKey is the context's key of the params that are to be sent.
type noticeKey struct{}

// rawParams are params whose JSON is there already.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

func (p *rawParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

// sendNotices makes the SDK send the server's own bytes, where its types would round numbers.
func sendNotices(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if b, ok := ctx.Value(noticeKey{}).(json.RawMessage); ok {
			ss, _ := req.GetSession().(*mcp.ServerSession)
			req = &mcp.ServerRequest[*rawParams]{Session: ss, Params: &rawParams{raw: b}}
		}
		return next(ctx, method, req)
	}
}
