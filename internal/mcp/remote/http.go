package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParam     = "Mcp-Param-" // and the name that the tool's schema gives
	headerLastEvent = "Last-Event-Id"

	typeJSON   = "application/json"
	typeEvents = "text/event-stream"

	maxHops   = 3           // redirects followed for one request
	drainWait = time.Second // for the rest of an answer that is not needed
)

var errNoHeaders = errors.New("no answer in time")

// A request is one HTTP request to the server.
type request struct {
	method string
	url    *url.URL
	header http.Header // beside those that every request carries; may be nil
	era    *era        // nil is the connection's
	body   []byte
	wait   time.Duration // for the headers of the answer; zero is as long as the context allows
	reach  *reach        // may be nil

	forward *forwarded // what the caller sends along; may be nil
	bare    bool       // it carries no token
	parting bool       // it is the last one: no token is asked for
}

// A reach notes how far a request has come on its way to the server.
type reach struct {
	connected atomic.Bool // there is a connection to write it to
	written   atomic.Bool // all of it has been written
}

func (a *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil { // a server that lacks a part of the frame cannot act on it
				a.written.Store(true)
			}
		},
	})
}

// reset forgets a request that the server has refused unread.
func (a *reach) reset() {
	if a != nil {
		a.connected.Store(false)
		a.written.Store(false)
	}
}

// mayBeThere reports whether the server may have the whole request, after it
// failed. When it was cancelled the writer may have been still at it, unseen.
func (a *reach) mayBeThere(ctx context.Context) bool {
	return a.written.Load() || ctx.Err() != nil && a.connected.Load()
}

// A reply is the answer to a request. It must be closed.
type reply struct {
	*http.Response
	cancel  context.CancelFunc
	session bool       // the request named a session
	forward *forwarded // the request's; may be nil
}

// Close lets go of the connection, which is used again if the body has been read to its end.
func (r *reply) Close() {
	r.cancel()
	_ = r.Body.Close() // nothing is lost by it that is still wanted
}

// drain reads the little that remains, for the connection's sake, and closes.
// Nobody waits for the end of a stream.
func (r *reply) drain() {
	if r.mediaType() != typeEvents {
		stop := time.AfterFunc(drainWait, r.cancel)
		defer stop.Stop()
		_, _ = io.CopyN(io.Discard, r.Body, refusalBytes) // an error ends it as well
	}
	r.Close()
}

// drainStream reads the rest of an answered exchange until the context ends it.
func (r *reply) drainStream() {
	_, _ = io.CopyN(io.Discard, r.Body, refusalBytes) // an error ends it as well
	r.Close()
}

func (r *reply) mediaType() string {
	t, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

func (r *reply) ok() bool { return r.StatusCode >= 200 && r.StatusCode < 300 }

// send makes one request, with a token if there is a credential. A server that
// refuses the token has not run the request, and gets it once more with a new one. The
// error is a [*tokenError] if no token is to be had.
func (c *Conn) send(ctx context.Context, q *request) (*reply, error) {
	for again := true; ; again = false {
		tok, err := c.authorize(ctx, q)
		if err != nil {
			return nil, err
		}
		r, err := c.sendWith(ctx, q, tok)
		if err != nil || tok == nil || r.StatusCode != http.StatusUnauthorized {
			return r, err
		}
		c.tokens.refused(tok, challengeOf(r.Response))
		if !again || q.parting {
			return r, nil
		}
		r.drain()
		q.reach.reset()
	}
}

// sendWith makes one request with the token, which may be nil. A redirect is followed only to the same origin, only if
// it keeps the method (307, 308), and never with credentials; any other is returned as it is.
func (c *Conn) sendWith(ctx context.Context, q *request, tok *token) (*reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if q.reach != nil {
		ctx = q.reach.trace(ctx)
	}
	if q.wait > 0 {
		timer := time.AfterFunc(q.wait, func() { cancel(errNoHeaders) })
		defer timer.Stop()
	}
	e := q.era
	if e == nil {
		e = c.era.Load()
	}
	header := c.header(q, e, tok)
	to := q.url
	for hop, again := 0, q.reach != nil; ; hop++ {
		req := (&http.Request{Method: q.method, URL: to, Header: header, Host: header.Get("Host"), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
		if q.body != nil {
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil }
			req.Body, _ = req.GetBody() // never fails
			req.ContentLength = int64(len(q.body))
		}
		resp, err := c.rt.RoundTrip(req)
		if err != nil && again && q.reach.connected.Load() && !q.reach.mayBeThere(ctx) {
			again = false // a connection that the server closed while it was idle; not even a part of the frame is of use
			hop--
			continue
		}
		if err != nil {
			if errors.Is(context.Cause(ctx), errNoHeaders) {
				err = errNoHeaders
			}
			cancel(nil)
			return nil, err
		}
		r := &reply{Response: resp, cancel: func() { cancel(nil) }, session: e.session != "" || c.sse != nil, forward: q.forward}
		if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return r, nil
		}
		next, err := resp.Location()
		if err != nil || hop == maxHops || c.credentials || q.forward != nil || !sameOrigin(next, q.url) {
			return r, nil
		}
		next.User, next.Fragment = nil, ""
		to = next
		_ = resp.Body.Close()
	}
}

func (c *Conn) header(q *request, e *era, tok *token) http.Header {
	h := c.headers.Clone()
	q.forward.copyTo(h)
	maps.Copy(h, q.header)
	switch q.method {
	case http.MethodPost:
		h["Content-Type"] = []string{typeJSON}
		h["Accept"] = []string{typeJSON + ", " + typeEvents}
	case http.MethodGet:
		h["Accept"] = []string{typeEvents}
	}
	if e.version != "" && c.sse == nil {
		h[headerVersion] = []string{e.version}
	}
	if e.session != "" {
		h[headerSession] = []string{e.session}
	}
	if tok != nil {
		h["Authorization"] = []string{"Bearer " + tok.text}
	}
	return h
}

// target is where frames are POSTed to.
func (c *Conn) target() *url.URL {
	if c.sse != nil {
		return c.sse.endpoint
	}
	return c.url
}

// notify POSTs a frame that has no answer. What the server thinks of it does not
// matter unless it says that we may not talk to it, or that the session is gone.
func (c *Conn) notify(ctx context.Context, frame []byte, forward *forwarded) error {
	ctx, stop := context.WithTimeout(ctx, notifyWait)
	defer stop()
	defer context.AfterFunc(c.ctx, stop)()
	var way reach
	r, err := c.send(ctx, &request{method: http.MethodPost, url: c.target(), body: frame, forward: forward, reach: &way})
	if err != nil {
		return c.broken(ctx, err, way.mayBeThere(ctx))
	}
	if r.ok() {
		r.drain()
		return nil
	}
	defer r.Close()
	return c.refusal(r, "")
}
