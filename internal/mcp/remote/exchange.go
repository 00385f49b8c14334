package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const (
	resumeTries = 5                      // without a new event, for one call
	resumeFirst = 250 * time.Millisecond // doubles with each try
	resumeLeast = 100 * time.Millisecond // whatever the server wants
	resumeMost  = time.Minute
)

// exchange POSTs the call and reads its answer.
func (c *Conn) exchange(k *call) outcome {
	r, err := c.post(k)
	if err != nil {
		return outcome{err: err}
	}
	switch r.mediaType() {
	case typeJSON:
		return c.whole(k, r)
	case typeEvents:
		return c.stream(k, r)
	default:
		defer r.Close()
		stop := time.AfterFunc(refusalWait, r.cancel)
		defer stop.Stop()
		body, _ := io.ReadAll(io.LimitReader(r.Body, refusalBytes)) // what came before an error will do
		what := "nothing"
		if t := r.mediaType(); t != "" {
			what = clip(c.secrets.Text(t))
		}
		return outcome{err: c.protocolFailure(r.StatusCode, "answered HTTP %d with %s and not JSON or events%s", r.StatusCode, what, colon(c.excerpt(body, k.forward)))}
	}
}

// post sends the frame of a call and returns the answer if its status is good.
func (c *Conn) post(k *call) (*reply, error) {
	for again := true; ; again = false {
		r, err := c.send(k.ctx, &request{method: http.MethodPost, url: c.target(), header: k.header, era: k.era, body: k.frame, forward: k.forward, reach: &k.reach})
		if err != nil {
			err := c.broken(k.ctx, err, k.reach.mayBeThere(k.ctx))
			c.unwelcome(k, err)
			return nil, err
		}
		k.status.Store(int64(r.StatusCode))
		if r.ok() {
			if k.accepted != nil {
				k.accepted(r.Header)
			}
			return r, nil
		}
		err = c.refusal(r, k.id)
		r.Close()
		// Servers built on an SDK that compares Mcp-Name as it stands refuse what the
		// specification wants encoded. The call has not run, so it is sent again in their way.
		if e, ok := errors.AsType[*rpc.Error](err); ok && again && e.Code == codeHeaderMismatch && encodeHeader(k.req.Name) != k.req.Name {
			c.rawNames.Store(k.header.Get(headerName) != k.req.Name)
			k.header = c.modernHeaders(k.req)
			continue
		}
		c.unwelcome(k, err)
		return nil, err
	}
}

// whole reads an answer that is one JSON text.
func (c *Conn) whole(k *call, r *reply) outcome {
	k.rest = r
	body, err := readAll(r.Body, r.ContentLength, c.limit)
	if errors.Is(err, errOver) {
		return outcome{err: c.tooLarge()}
	}
	if err != nil {
		return outcome{err: c.broken(k.ctx, err, true)}
	}
	msgs, err := messages(body)
	if err != nil {
		return outcome{err: c.protocolFailure(r.StatusCode, "answered something that is no JSON-RPC message (%v): %s", err, c.excerpt(body, k.forward))}
	}
	for _, m := range msgs {
		// An error without an id is one that the server could not attribute; nothing else was sent here.
		if m.Response() && (matches(m.ID, k.id) || raw.IsNull(m.ID) && !raw.IsNull(m.Error)) {
			return c.answer(k, m)
		}
		c.dispatch(k, m)
	}
	return outcome{err: c.protocolFailure(r.StatusCode, "answered without a response to the request: %s", c.excerpt(body, k.forward))}
}

// readAll reads at most limit bytes; size is how many there should be, or negative.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, errOver
	}
	if size < 0 {
		b, err := io.ReadAll(io.LimitReader(r, limit+1))
		if int64(len(b)) > limit {
			return nil, errOver
		}
		return b, err
	}
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}

// stream reads an answer that comes as events, up to the response. A stream that
// breaks off is resumed where the era and the server's event ids allow it.
func (c *Conn) stream(k *call, r *reply) outcome {
	cur := &cursor{retry: -1}
	tries := 0
	for {
		o, err := c.follow(k, r, cur)
		if err == nil {
			k.rest = r
			return o
		}
		r.Close()
		k.mu.Lock()
		abandoned := k.abandoned
		k.mu.Unlock()
		if errors.Is(err, io.EOF) {
			err = errors.New("the stream ended")
		}
		lost := outcome{err: c.broken(k.ctx, err, true)}
		if cur.last == "" || abandoned || k.ctx.Err() != nil || cmp.Or(k.era, c.era.Load()).modern() {
			return lost
		}
		if cur.moved {
			tries, cur.moved = 0, false
		}
		if r, err = c.resume(k, cur, &tries); err != nil {
			return outcome{err: err}
		}
		if r == nil {
			return lost
		}
	}
}

// follow reads one stream until the response to the call. The error is why it
// ended without one.
func (c *Conn) follow(k *call, r *reply, cur *cursor) (outcome, error) {
	events := newEventReader(r.Body, c.limit, cur)
	defer events.release()
	for {
		ev, err := events.next()
		if errors.Is(err, errOver) {
			return outcome{err: c.tooLarge()}, nil
		}
		if err != nil {
			return outcome{}, err
		}
		if ev.name != "" && ev.name != "message" || len(bytes.TrimSpace(ev.data)) == 0 {
			continue
		}
		msgs, err := messages(ev.data)
		if err != nil {
			if ev.torn {
				return outcome{}, io.ErrUnexpectedEOF
			}
			return outcome{err: c.protocolFailure(r.StatusCode, "sent an event that is no JSON-RPC message (%v): %s", err, c.excerpt(ev.data, k.forward))}, nil
		}
		for _, m := range msgs {
			if m.Response() && matches(m.ID, k.id) {
				return c.answer(k, m), nil
			}
			c.dispatch(k, m)
		}
	}
}

// resume opens the rest of a broken stream (a GET with Last-Event-ID). It returns
// nil when the tries are used up.
func (c *Conn) resume(k *call, cur *cursor, tries *int) (*reply, error) {
	for *tries < resumeTries {
		wait := resumeFirst << *tries
		*tries++
		if cur.retry >= 0 {
			wait = min(max(cur.retry, resumeLeast), resumeMost)
		}
		if !sleep(k.ctx, wait) {
			return nil, c.broken(k.ctx, k.ctx.Err(), true)
		}
		r, err := c.send(k.ctx, &request{method: http.MethodGet, url: c.url, header: http.Header{headerLastEvent: {cur.last}}, forward: k.forward, wait: c.o.streamWait})
		if err != nil {
			continue
		}
		if r.StatusCode == http.StatusOK && r.mediaType() == typeEvents {
			return r, nil
		}
		err = c.refusal(r, "")
		r.Close()
		if r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests {
			continue
		}
		// Whatever this says of the GET, the call itself was accepted and may have run.
		return nil, &rpc.Failure{Reason: rpc.Lost, Status: r.StatusCode, Msg: "the stream broke off before the answer and could not be resumed: " + err.Error()}
	}
	return nil, nil
}

// sleep waits for d, varied a little so that many do not come back at once. It
// reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d + rand.N(d/4+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A message is one JSON-RPC message and its bytes.
type message struct {
	raw.Frame
	bytes []byte
}

// messages reads one message, or the several of a batch, which 2025-03-26 allowed.
func messages(b []byte) ([]message, error) {
	if raw.KindOf(b) != raw.Array {
		f, err := raw.ParseFrame(b)
		return []message{{f, b}}, err
	}
	if err := raw.CheckAny(b); err != nil {
		return nil, err
	}
	var all []message
	for _, e := range raw.Elements(b) {
		f, err := raw.ParseFrame(e)
		if err != nil {
			return nil, err
		}
		all = append(all, message{f, e})
	}
	return all, nil
}

// answer is what a response to the call says.
func (c *Conn) answer(k *call, m message) outcome {
	if raw.IsNull(m.Error) {
		if m.Result == nil {
			return outcome{err: c.protocolFailure(0, "answered neither a result nor an error")}
		}
		return outcome{result: json.RawMessage(m.Result)}
	}
	e := rpcError(m.Error)
	if e == nil {
		return outcome{err: c.protocolFailure(0, "answered an error that is no object: %s", c.excerpt(m.Error, k.forward))}
	}
	k.forward.hide(e)
	if era := c.era.Load(); e.Code == codeInvalidRequest && aboutSession(e) && era.version != "" && !era.modern() {
		return outcome{err: c.expired(0, e.Message)}
	}
	c.secrets.Error(e)
	return outcome{err: e}
}

// dispatch takes a message that answers no call of ours. k is the call on whose stream it came, or nil.
// Progress goes to its call, on whatever stream it comes, questions and log messages to
// that of their stream; all else that is no response is the SDK's, which refuses questions.
func (c *Conn) dispatch(k *call, m message) {
	if m.Method == nil {
		c.log.LogAttrs(c.ctx, slog.LevelDebug, "a response to no request", slog.String("url", c.where), slog.String("id", c.excerpt(m.ID, nil)))
		return
	}
	if m.ID == nil && raw.Unquote(m.Method) == "notifications/progress" {
		if k := c.lookup(raw.Get(m.Params, "progressToken")); k != nil {
			k.progress(json.RawMessage(m.Params))
			return
		}
	}
	if isQuestion(m) && c.elicitation(k, m) || isMessage(m) && k.message(m.Params) {
		return
	}
	msg, err := jsonrpc.DecodeMessage(m.bytes)
	if err != nil {
		c.unreadable(err)
		return
	}
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil { // the probe has none
		l.push(c.ctx, msg)
	}
}

// unreadable notes a message that is skipped. A server that sends many fills no log.
func (c *Conn) unreadable(err error) {
	level := slog.LevelDebug
	if c.warned.CompareAndSwap(false, true) {
		level = slog.LevelWarn
	}
	c.log.LogAttrs(c.ctx, level, "a message of the server cannot be read", slog.String("url", c.where), slog.String("error", c.secrets.Text(err.Error())))
}

// lookup returns the call with the id, which may be in quotes; nil if there is none.
func (c *Conn) lookup(id []byte) *call {
	if len(id) > 1 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[string(id)]
}
