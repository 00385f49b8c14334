package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// ServeHTTP answers one request of Streamable HTTP, which the caller c makes as part of the
// trace t. Who that is, Host and Origin have been checked.
//
// A client says by its version of the protocol which of two it speaks: that with
// sessions, whose requests name theirs, or the later one without.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, c bridge.Caller, t bridge.Trace) {
	lw := &liveWriter{ResponseWriter: w, conn: http.NewResponseController(w), timeout: s.opts.WriteTimeout}
	rq := request{ctx: r.Context(), id: w.Header().Get("Request-Id"), trace: t, caller: c, out: &lw.splices}
	var err error
	if rq.handles, err = handlesOf(r); err != nil {
		refuse(lw, http.StatusBadRequest, nil, codeInvalidRequest, err.Error())
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(lw, r, rq)
	case http.MethodGet, http.MethodDelete:
		if r.Header.Get(versionHeader) >= modern {
			lw.Header().Set("Allow", "POST")
			refuse(lw, http.StatusMethodNotAllowed, nil, codeInvalidRequest, "this version of the protocol knows only POST")
			return
		}
		s.withSession(lw, r, rq, nil)
	default:
		lw.Header().Set("Allow", "GET, POST, DELETE")
		refuse(lw, http.StatusMethodNotAllowed, nil, codeInvalidRequest, "there is no such method here")
	}
}

// handlesOf returns the servers that a request asks for.
func handlesOf(r *http.Request) (handles, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errors.New("the query cannot be read: it has a wrong escape or a semicolon")
	}
	values, ok := q["handles"]
	if !ok {
		return nil, nil
	}
	h := handles{}
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			h[name] = true
		}
	}
	return h, nil
}

// post takes a message or a batch.
func (s *Server) post(w *liveWriter, r *http.Request, rq request) {
	body, err := s.readBody(w, r)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refuse(w, http.StatusRequestEntityTooLarge, nil, codeInvalidRequest, fmt.Sprintf("the body is larger than the limit of %d bytes", s.opts.RequestBytes))
			return
		}
		refuse(w, http.StatusBadRequest, nil, codeInvalidRequest, "the body did not arrive whole, or not in time")
		return
	}
	in, code, err := parseIncoming(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, nil, code, err.Error())
		return
	}
	rq.message = in.id()
	if r.Header.Get(versionHeader) >= modern || in.version >= modern {
		s.once(w, r, rq, in)
		return
	}
	if r.Header.Get(sessionHeader) == "" && in.initialize {
		s.begin(w, r, rq, in)
		return
	}
	s.withSession(w, r, rq, in)
}

// readBody reads the whole body, in bounded time.
func (s *Server) readBody(w *liveWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.opts.RequestBytes {
		return nil, &http.MaxBytesError{Limit: s.opts.RequestBytes}
	}
	if r.ContentLength != 0 {
		// net/http takes it off at the body's end, over HTTP/1, which is all that is served.
		_ = w.conn.SetReadDeadline(time.Now().Add(s.opts.BodyTimeout))
	}
	return io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, s.opts.RequestBytes))
}

// once answers a request of the protocol without sessions.
func (s *Server) once(w *liveWriter, r *http.Request, rq request, in *incoming) {
	p := s.newPeer(rq, "")
	defer p.end()
	if in.method == "subscriptions/listen" {
		e, err := s.register(p, rq, "")
		if err != nil {
			s.full(w, in, err)
			return
		}
		defer s.end(e)
		view := s.narrowed(rq)
		for of := range subjects {
			p.knows(of, view) // from here on
		}
		ctx, stop := s.streaming(r.Context(), w)
		defer stop()
		r = r.WithContext(ctx)
	}
	in.resume = resumeOf(in.params)
	rq.resume = in.resume
	apart := in.method == "tools/call" && !s.checkParams(p, rq, in.name) // else the SDK compares them with headers
	if apart {
		rq.args = in.args
	}
	in.take(apart)
	s.pass(s.stateless, w, r, rq, p, in)
}

// begin opens a session for the client that sends initialize.
func (s *Server) begin(w *liveWriter, r *http.Request, rq request, in *incoming) {
	id := newID()
	p := s.newPeer(rq, id)
	e, err := s.register(p, rq, id)
	if err != nil {
		p.end()
		s.full(w, in, err)
		return
	}
	defer s.release(e)
	s.pass(s.stateful, w, r, rq, p, in)
	for ss := range p.srv.Sessions() {
		if ss.InitializeParams() != nil {
			return
		}
	}
	s.end(e) // the SDK did not take it
}

// withSession passes a request to the session that it names.
func (s *Server) withSession(w *liveWriter, r *http.Request, rq request, in *incoming) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		refuse(w, http.StatusBadRequest, in.id(), codeInvalidRequest, "the request names no session in "+sessionHeader+"; a client begins with initialize")
		return
	}
	e := s.acquire(id, rq.caller.Owner())
	if e == nil {
		// A client takes 404 for the order to begin anew.
		refuse(w, http.StatusNotFound, in.id(), codeNoSession, "there is no such session, or no longer; begin a new one with initialize")
		return
	}
	defer s.release(e)
	e.peer.seen(rq)
	switch {
	case r.Method == http.MethodDelete:
		s.end(e)
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method == http.MethodGet:
		ctx, stop := s.streaming(r.Context(), w)
		defer stop()
		r = r.WithContext(ctx)
	case in.unknown():
		if in.id() == nil {
			w.WriteHeader(http.StatusAccepted) // a notification that means nothing here
			return
		}
		refuse(w, http.StatusOK, in.id(), codeMethodNotFound, fmt.Sprintf("there is no method %.100q", in.method))
		return
	}
	s.pass(s.stateful, w, r, rq, e.peer, in)
}

// streaming returns a context for a request that waits for news: it ends when
// streams do. Until stop is called the stream shows every now and then that it lives.
func (s *Server) streaming(ctx context.Context, w *liveWriter) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.streams, cancel)
	var beats sync.WaitGroup
	beats.Go(func() { w.beat(ctx, s.opts.Heartbeat) }) // ended by stop
	return ctx, func() {
		unhook()
		cancel()
		beats.Wait()
	}
}

// full refuses a session that there is no room for.
func (s *Server) full(w *liveWriter, in *incoming, err error) {
	w.Header().Set("Retry-After", "10")
	refuse(w, http.StatusServiceUnavailable, in.id(), codeBusy, err.Error())
}

// A passage is a request on its way through the SDK.
type passage struct {
	request
	peer *peer
}

type passageKey struct{}

// passed are the headers that the SDK reads. It keeps those that it gets for its
// handlers, which have no use for credentials.
var passed = [...]string{"Accept", "Content-Type", "Last-Event-Id", versionHeader, sessionHeader, "Mcp-Method", "Mcp-Name"}

// pass hands a request to the SDK.
func (s *Server) pass(h http.Handler, w *liveWriter, r *http.Request, rq request, p *peer, in *incoming) {
	rq.ctx = r.Context()
	out := r.WithContext(context.WithValue(r.Context(), passageKey{}, &passage{rq, p}))
	out.Header = http.Header{"Authorization": {"Bearer -"}} // see carried
	for _, name := range passed {
		if v := r.Header[name]; v != nil {
			out.Header[name] = v
		}
	}
	for name, v := range r.Header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			out.Header[name] = v
		}
	}
	if in != nil {
		out.Body = in.reader()
	}
	h.ServeHTTP(w, out)
}

// carried makes what came with a request reach the handlers of its messages. In a
// session the SDK's handlers have the context of the request that opened it; of the
// present one they get only what is known of its token, so that is where it goes.
func carried(h http.Handler) http.Handler {
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{Extra: map[string]any{"": ctx.Value(passageKey{})}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// carriedBy returns what came with the request that brought a message, if one did.
func carriedBy(extra *mcp.RequestExtra) (request, bool) {
	if extra == nil || extra.TokenInfo == nil {
		return request{}, false
	}
	p, ok := extra.TokenInfo.Extra[""].(*passage)
	if !ok {
		return request{}, false
	}
	return p.request, true
}

// serverOf is how the SDK asks for the server of a request.
func serverOf(r *http.Request) *mcp.Server {
	return r.Context().Value(passageKey{}).(*passage).peer.srv
}

// A liveWriter gives up on a client that stopped reading: without a deadline it
// would hold its session's stream, and what is written to it, for ever.
type liveWriter struct {
	http.ResponseWriter
	conn    *http.ResponseController
	timeout time.Duration
	splices splices

	mu    sync.Mutex // held while something is written
	begun bool       // something was written, guarded by mu
}

// Unwrap lets http.ResponseController find the writer underneath.
func (w *liveWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes b, and the results that are marked in it.
func (w *liveWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
	return len(b), w.splices.write(pieces{w}, b)
}

// writePiece is how much is written within one deadline: a slow client is not one that stopped.
const writePiece = 256 << 10

type pieces struct{ w *liveWriter }

func (p pieces) Write(b []byte) (int, error) {
	defer p.w.limit()()
	for rest := b; len(rest) > 0; {
		p.w.limit()
		n, err := p.w.ResponseWriter.Write(rest[:min(len(rest), writePiece)])
		if err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

// FlushError sends what was written, within the deadline.
func (w *liveWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.limit()()
	return w.conn.Flush()
}

// beat writes a comment to a stream of events each time, so that nothing on the way
// takes it for dead, and so that it is found out if it is.
func (w *liveWriter) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		if w.begun {
			lift := w.limit()
			_, _ = io.WriteString(w.ResponseWriter, ": \n\n")
			_ = w.conn.Flush() // the server ends the request of a connection that is broken
			lift()
		}
		w.mu.Unlock()
	}
}

func (w *liveWriter) limit() (lift func()) {
	if w.conn.SetWriteDeadline(time.Now().Add(w.timeout)) != nil { // a recorder in a test has none
		return func() {}
	}
	return func() { _ = w.conn.SetWriteDeadline(time.Time{}) }
}
