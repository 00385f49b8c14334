package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// A link is the connection that the SDK's session believes it has. Of what the
// session writes, initialize and server/discover are answered from what we
// have negotiated or refused, subscriptions/listen becomes a stream of ours,
// and answers and notifications are POSTed. Nothing a server sends or refuses makes
// a write or read fail once the handshake is done, since the SDK would give up the session for it.
type link struct {
	c  *Conn
	in chan jsonrpc.Message

	discover json.RawMessage // the server's answer to our probe; nil in the eras of sessions

	closing sync.Once
	closed  chan struct{}

	mu     sync.Mutex
	err    error              // why the handshake failed, guarded by mu
	status int                // of the HTTP answer to initialize, guarded by mu
	stop   context.CancelFunc // of the subscription; guarded by mu
}

var _ mcp.Connection = (*link)(nil)

func newLink(c *Conn) *link {
	return &link{c: c, in: make(chan jsonrpc.Message, 16), closed: make(chan struct{})}
}

// SessionID implements [mcp.Connection].
func (l *link) SessionID() string { return l.c.era.Load().session }

// Close implements [mcp.Connection]. The SDK calls it under a lock: it only tells Read.
func (l *link) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Read implements [mcp.Connection].
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	case m := <-l.in:
		return m, nil
	}
}

func (l *link) push(ctx context.Context, m jsonrpc.Message) {
	select {
	case l.in <- m:
	case <-l.closed:
	case <-ctx.Done():
	}
}

// Write implements [mcp.Connection].
func (l *link) Write(ctx context.Context, m jsonrpc.Message) error {
	req, ok := m.(*jsonrpc.Request)
	if !ok { // an answer to a request of the server, of which there are none since 2026-07-28
		if l.c.era.Load().modern() {
			return nil
		}
		return l.send(ctx, m, false)
	}
	switch {
	case req.Method == "initialize":
		if l.discover != nil {
			return l.fail(&rpc.Failure{Reason: rpc.Handshake, Msg: l.c.where + " answered something to server/discover that cannot be used"})
		}
		return l.initialize(ctx, req)
	case req.Method == "server/discover" && l.discover != nil:
		l.push(ctx, &jsonrpc.Response{ID: req.ID, Result: l.discover})
		return nil
	case req.Method == "subscriptions/listen":
		return l.subscribe(req)
	case req.Method == "notifications/cancelled":
		// Of initialize, which may not be cancelled, or of a subscription, which ends with its stream.
		l.unsubscribe()
		return nil
	case req.IsCall():
		return fmt.Errorf("%s is not sent by the session", req.Method)
	default:
		return l.send(ctx, req, req.Method == "notifications/initialized")
	}
}

// send POSTs a message that has no answer. Only the last one of the handshake may
// fail, and only if the server cannot be reached or refuses our credentials.
func (l *link) send(ctx context.Context, m jsonrpc.Message, handshake bool) error {
	frame, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return l.fail(err)
	}
	err = l.c.notify(ctx, frame, nil)
	if err == nil {
		return nil
	}
	f, ok := asFailure(err)
	if handshake && ok && (f.Status == 0 || f.Reason == rpc.Auth || f.Reason == rpc.SessionExpired) {
		return l.fail(err)
	}
	l.c.log.LogAttrs(ctx, slog.LevelDebug, "a message to the server was refused", slog.String("url", l.c.where), slog.String("error", err.Error()))
	return nil
}

// initialize makes the call of that name in the SDK's place, so that its answer is
// bounded, its refusal understood, and what it says of the session noted.
func (l *link) initialize(ctx context.Context, req *jsonrpc.Request) error {
	c := l.c
	k := c.newCall(&rpc.Request{Method: req.Method, Params: members(req.Params)}, nil)
	k.accepted = func(h http.Header) {
		if id := h.Get(headerSession); c.sse == nil && id != "" {
			c.era.Store(&era{session: id})
		}
	}
	o := c.handshakeCall(ctx, k)
	l.mu.Lock()
	l.status = int(k.status.Load())
	l.mu.Unlock()
	if o.err != nil {
		return l.fail(o.err)
	}
	version := raw.GetString(o.result, "protocolVersion")
	switch version {
	case v20251125, v20250618, v20250326, v20241105:
	default:
		return l.fail(&rpc.Failure{Reason: rpc.Handshake, Msg: fmt.Sprintf("%s wants to speak protocol version %q, which we do not", c.where, clip(c.secrets.Text(version)))})
	}
	c.era.Store(&era{version: version, session: c.era.Load().session})
	l.push(ctx, &jsonrpc.Response{ID: req.ID, Result: o.result})
	return nil
}

// handshakeCall makes a call that ends with ctx.
func (c *Conn) handshakeCall(ctx context.Context, k *call) outcome {
	if err := c.start(k); err != nil {
		return outcome{err: err}
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		k.cancel()
		<-k.done
	}
	return outcome{k.result, k.err}
}

// members returns what is between the braces of an object.
func members(object []byte) []byte {
	if len(object) < 2 {
		return nil
	}
	return object[1 : len(object)-1]
}

func (l *link) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	return err
}

func (l *link) failure() (status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.err
}

// subscribe opens the stream of notifications of 2026-07-28. It does not wait
// for it: a server that has none, or is slow, is none the worse for it.
func (l *link) subscribe(req *jsonrpc.Request) error {
	frame, err := jsonrpc.EncodeMessage(req)
	if err != nil {
		return err
	}
	id, err := json.Marshal(req.ID.Raw())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(l.c.listening)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		stop()
		return errors.New("there is a subscription already")
	}
	l.stop = stop
	l.c.wg.Go(func() {
		defer stop()
		l.c.listen(ctx, &feed{id: string(id), request: request{
			method: http.MethodPost, url: l.c.url, body: frame,
			header: http.Header{headerMethod: {req.Method}},
		}})
	})
	return nil
}

func (l *link) unsubscribe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}
