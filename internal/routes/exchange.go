package routes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

const (
	statusCanceled = 499 // the caller went away; seen only in logs, where nginx made it known

	loggedName  = 200 // bytes of a name from a caller that a log line shows
	loggedError = 500 // bytes of an error's text

	writePiece = 256 << 10 // bytes that are written within one deadline
)

// An exchange is one request and its answer: the response writer that handlers
// get, and what the log line at the end will say.
type exchange struct {
	http.ResponseWriter
	s     *server
	id    string
	start time.Time
	bare  bool // the request was for the base path without a slash

	varies bool // the answer depends on the request's Origin
	mcpo   bool // the request is for the tree of mcpo, which has a form of its own for errors

	status int   // zero until the header is written
	in     int   // bytes of the request's body
	read   bool  // somebody has tried to read the request's body
	out    int64 // bytes of the answer's body

	trace  bridge.Trace                   // what the request's calls are part of
	traced func(int, bridge.Kind, string) // ends the request's span; nil if there is none

	call    *bridge.Call // if the request is one
	asJob   bool         // it is a job that can be found
	caller  bridge.Caller
	unknown bool // the caller could not be found
	breach  string
	code    bridge.Kind
	err     error // why the request failed, for the log
}

func newExchange(s *server, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, s: s, start: time.Now(), id: requestID(r.Header)}
	w.Header().Set("Request-Id", x.id)
	return x
}

// requestID returns the id that the request brings, if it is one that can stand
// in a header and a log without harm, or else a new one.
func requestID(h http.Header) string {
	for _, name := range [...]string{"Request-Id", "X-Request-Id"} {
		if v := h[name]; len(v) == 1 && safeID(v[0]) {
			return v[0]
		}
	}
	return rand.Text()
}

// safeID reports whether s is 1 to 64 letters, digits, or characters that ids have between these.
func safeID(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// Unwrap lets http.ResponseController find the writer underneath.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
		if x.varies {
			x.Header().Add("Vary", "Origin") // only now: handlers set Vary as if there were no other
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes. It writes large answers in pieces, each within a
// deadline of its own: a caller that stops reading would keep the whole of one in memory, and a slow
// one is not such a caller.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if len(b) <= writePiece {
		n, err := x.ResponseWriter.Write(b)
		x.out += int64(n)
		return n, err
	}
	conn := http.NewResponseController(x.ResponseWriter)
	defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
	written := 0
	for written < len(b) {
		_ = conn.SetWriteDeadline(time.Now().Add(x.s.WriteTimeout)) // a recorder in a test has none
		n, err := x.ResponseWriter.Write(b[written:min(len(b), written+writePiece)])
		written += n
		x.out += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// send writes a whole answer, whose other headers are set.
func (x *exchange) send(r *http.Request, status int, mediaType string, body []byte) {
	h := x.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = x.Write(body) // nobody to tell if it fails: the caller went away
	}
}

// fail answers with the problem that err is.
func (x *exchange) fail(r *http.Request, err error) {
	x.note(err)
	if x.code == bridge.Canceled && r.Context().Err() != nil {
		// Nobody is there to read an answer, and none may look like a success.
		x.status = statusCanceled
		panic(http.ErrAbortHandler)
	}
	x.refuse(r, err)
}

// refuse answers with err in the form that the path has for errors.
func (x *exchange) refuse(r *http.Request, err error) {
	if x.mcpo {
		x.failMCPO(r, err)
		return
	}
	x.problem(err).write(x, r)
}

// note keeps err for the log line at the end.
func (x *exchange) note(err error) {
	x.err, x.code = err, bridge.KindOf(err)
}

// end is deferred: it turns a panic into a problem and writes the log line.
func (x *exchange) end(r *http.Request, panicked any) {
	abort := false
	switch err, ok := panicked.(error); {
	case panicked == nil:
	case ok && errors.Is(err, http.ErrAbortHandler):
		abort = true
	default:
		x.note(panicError{fmt.Sprintf("%v\n%s", panicked, debug.Stack())})
		if abort = x.status != 0; !abort {
			x.refuse(r, x.err)
		}
	}
	if r.ContentLength != 0 && !x.read {
		// The server reads past the body before it takes the next request; what
		// never comes must not hold it for ever. It takes the deadline off itself.
		_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now().Add(x.s.BodyTimeout))
	}
	x.observe()
	if x.traced != nil {
		x.traced(x.status, x.code, x.id)
	}
	if x.unknown && x.err != nil {
		x.s.strangers.note(x, r)
	} else {
		x.logLine(r)
	}
	if abort {
		// What was sent is not whole, so the connection must not end as if it were.
		panic(http.ErrAbortHandler)
	}
}

// observe counts a call that has ended. A job is counted at its end, by who runs it.
func (x *exchange) observe() {
	if x.call == nil || x.asJob || x.status == http.StatusAccepted {
		return
	}
	took := time.Since(x.start)
	if !x.unknown {
		x.s.Console.Record(x.call, Ending{ID: x.id, Status: x.status, Code: x.code, Took: took, In: int64(x.in), Out: x.out})
	}
	if x.s.Observe == nil {
		return
	}
	server := x.call.Handle
	if x.code == bridge.NotFound || x.unknown || x.code != "" && x.s.Bridge.Catalogue.Snapshot(x.caller).Server(server) == nil {
		server = "" // it may be any text: what fails may do so before anybody looks for the server
	}
	x.s.Observe(server, x.code, took)
}

// logLine writes one line for a call, and for any other request that failed.
// It says who called what and how it went, never what was in it.
func (x *exchange) logLine(r *http.Request) {
	level := slog.LevelInfo
	switch {
	case x.code == bridge.Internal:
		level = slog.LevelError
	case x.status >= 500:
		level = slog.LevelWarn
	}
	// The request may have ended, which must not keep its line from being written.
	ctx := context.WithoutCancel(r.Context())
	if x.call == nil && x.err == nil || !x.s.log.Enabled(ctx, level) {
		return
	}
	buf := lineAttrs.Get().(*[20]slog.Attr)
	defer lineAttrs.Put(buf)
	attrs := append(buf[:0], slog.String("request_id", x.id), slog.Int("status", x.status), slog.Duration("duration", time.Since(x.start)))
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	if x.caller.ID != "" {
		attrs = append(attrs, slog.String("caller", cut(x.caller.ID, loggedName)))
	}
	if x.caller.User != "" && x.caller.User != x.caller.ID {
		attrs = append(attrs, slog.String("user", cut(x.caller.User, loggedName)))
	}
	if id := x.trace.ID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.logged()))
	}
	if x.call == nil {
		attrs = append(attrs, slog.String("method", cut(r.Method, loggedName)), slog.String("path", cut(r.URL.EscapedPath(), loggedName)))
		x.s.log.LogAttrs(ctx, level, "request failed", together(attrs))
		return
	}
	attrs = append(attrs, slog.String("handle", cut(x.call.Handle, loggedName)), slog.String(x.call.Subject()),
		slog.Int("bytes_in", x.in), slog.Int64("bytes_out", x.out))
	for name, d := range steps(&x.call.Timing) {
		attrs = append(attrs, slog.Duration(name, d))
	}
	if x.breach != "" {
		attrs = append(attrs, slog.String("breach", cut(x.breach, loggedName)))
	}
	x.s.log.LogAttrs(ctx, level, "call", together(attrs))
}

// lineAttrs are what lines are made of: a line of more than five attributes would else allocate for them
// (BenchmarkCall). No handler may keep them.
var lineAttrs = sync.Pool{New: func() any { return new([20]slog.Attr) }}

// together makes one attribute of many, whose line is that of the many.
func together(attrs []slog.Attr) slog.Attr { return slog.Attr{Value: slog.GroupValue(attrs...)} }

// A panicError is a panic and where it came from.
type panicError struct{ text string }

func (e panicError) Error() string { return "panic: " + e.text }

// logged is what the log line says of why the request failed.
func (x *exchange) logged() string {
	if e, ok := errors.AsType[*bridge.Error](x.err); ok && e.Kind == bridge.NotFound && x.call != nil && x.call.Method != bridge.CallTool {
		return e.Op // its text quotes the URI
	}
	return logged(x.err)
}

// logged is what a log line says of err.
func logged(err error) string {
	if _, ok := errors.AsType[panicError](err); ok {
		return err.Error()
	}
	switch bridge.KindOf(err) {
	case bridge.ToolError, bridge.InvalidArguments, bridge.InvalidResult:
		// Their texts quote arguments and results.
		e, _ := errors.AsType[*bridge.Error](err)
		return e.Op
	default:
		return cut(err.Error(), loggedError)
	}
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
