package routes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/raw"
)

// heartbeat is how often a stream says that it is alive: more often than proxies lose patience.
const heartbeat = 15 * time.Second

// An eventStream is an answer of server-sent events (HTML Living Standard, section 9.2).
type eventStream struct {
	x    *exchange
	conn *http.ResponseController
	err  error // why nothing more can be sent
}

// events begins the answer. Each event is on its way at once; a reader that does not
// take one within WriteTimeout is cut off.
func (x *exchange) events() *eventStream {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect them
	h["Vary"] = varyCall
	x.WriteHeader(http.StatusOK)
	s := &eventStream{x: x, conn: http.NewResponseController(x.ResponseWriter)}
	s.write([]byte(": open\n\n"))
	return s
}

// event sends one event, whose data write writes. Each line of it is a line of the event.
func (s *eventStream) event(id uint64, typ string, write func(io.Writer) error) {
	var head []byte
	if id > 0 {
		head = strconv.AppendUint(append(head, "id: "...), id, 10)
		head = append(head, '\n')
	}
	head = append(append(head, "event: "...), typ...)
	s.write(append(head, "\ndata: "...))
	if s.err != nil {
		return
	}
	if err := write(lines{s}); err != nil && s.err == nil {
		s.err = err
	}
	s.write([]byte("\n\n"))
}

// bytes sends one event with this data.
func (s *eventStream) bytes(id uint64, typ string, data []byte) {
	s.event(id, typ, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// write sends bytes at once, each piece within a deadline.
func (s *eventStream) write(b []byte) {
	for len(b) > 0 && s.err == nil {
		n := min(len(b), writePiece)
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.x.s.WriteTimeout)) // a recorder in a test has none
		_, s.err = s.x.Write(b[:n])
		b = b[n:]
	}
	if s.err == nil {
		s.err = s.conn.Flush()
	}
}

// end takes the deadline off, for the connection's next request.
func (s *eventStream) end() { _ = s.conn.SetWriteDeadline(time.Time{}) }

// lines writes data in lines of an event. JSON has line breaks only between tokens,
// where any of the three kinds that an event knows is as good as another.
type lines struct{ s *eventStream }

func (l lines) Write(b []byte) (int, error) {
	n := len(b)
	if bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0 {
		b = bytes.ReplaceAll(b, []byte("\r"), []byte(" "))
		b = bytes.ReplaceAll(b, []byte("\n"), []byte("\ndata: "))
	}
	l.s.write(b)
	return n, l.s.err
}

// changes returns what there is to know of a job behind an event, and a channel that is closed when there is more.
type changes func(after uint64) (jobs.Record, []jobs.Event, <-chan struct{}, error)

// follow sends the events of a job as they come, and returns its record at its
// end, with the last event's ID.
func (s *eventStream) follow(ctx context.Context, after uint64, next changes) (rec jobs.Record, last uint64, err error) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		rec, events, more, err := next(after)
		if err != nil {
			return rec, after, err
		}
		for _, e := range events {
			after = e.ID
			if e.Type != jobs.EventEnd {
				s.bytes(e.ID, e.Type, e.Data)
			}
		}
		if s.err != nil {
			return rec, after, s.err
		}
		if rec.State.Final() {
			return rec, after, nil
		}
		select {
		case <-more:
		case <-beat.C:
			s.write([]byte(": still here\n\n"))
		case <-ctx.Done():
			return rec, after, noAnswer(ctx)
		}
	}
}

// stopping reports whether a request ends because the bridge has to.
func stopping(ctx context.Context) bool { return errors.Is(context.Cause(ctx), bridge.ErrStopping) }

// noAnswer is why the answer to a request whose context has ended will not come.
func noAnswer(ctx context.Context) error {
	if stopping(ctx) {
		return &bridge.Error{Kind: bridge.OutcomeUnknown, Op: "routes.noAnswer", Msg: "The bridge is stopping; the call is ended, and the server is told to cancel."}
	}
	return &bridge.Error{Kind: bridge.Canceled, Op: "routes.noAnswer", Msg: "The caller went away.", Err: ctx.Err()}
}

// streamCall answers a call with its events, the last of which is the plain answer.
func (x *exchange) streamCall(r *http.Request, j *jobs.Job) error {
	s := x.events()
	defer s.end()
	_, last, err := s.follow(r.Context(), 0, func(after uint64) (jobs.Record, []jobs.Event, <-chan struct{}, error) {
		rec, events, more := j.Changes(after)
		return rec, events, more, nil
	})
	switch {
	case err == nil:
	case s.err == nil && stopping(r.Context()):
		x.note(err)
		s.problem(r, last, err)
		return nil
	default:
		x.note(&bridge.Error{Kind: bridge.Canceled, Op: "routes.stream", Msg: "The caller went away.", Err: err})
		panic(http.ErrAbortHandler)
	}
	a, err := j.Outcome()
	x.call, x.asJob = j.Call(), j.Published()
	if err != nil {
		x.note(err)
		s.problem(r, last, err)
		return nil
	}
	x.breach = a.Breach
	if a.Artifact != nil && x.s.Artifacts != nil {
		s.artifact(r, a.Artifact.Ref, a.Artifact.Type)
	}
	s.event(last, "result", func(w io.Writer) error {
		for _, piece := range a.Result.Data() {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// artifact sends where the result is kept, which a plain answer has in its headers.
func (s *eventStream) artifact(r *http.Request, ref, typ string) {
	b := raw.AppendQuote([]byte(`{"artifact_ref":`), ref)
	b = raw.AppendQuote(append(b, `,"artifact_type":`...), typ)
	b = raw.AppendQuote(append(b, `,"artifact":`...), artifactRef(s.x, r, ref))
	s.bytes(0, "artifact", append(b, '}'))
}

// problem sends the problem that err is.
func (s *eventStream) problem(r *http.Request, id uint64, err error) {
	p := s.x.problem(err)
	p.link(s.x, r)
	b, jerr := p.MarshalJSON()
	if jerr != nil { // a member that cannot be JSON: a bug, but the rest is true
		p.members = nil
		b, _ = p.MarshalJSON()
	}
	s.bytes(id, "problem", b)
}
