package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// firstID is where the lane's request ids start. The SDK counts its own from 1; ours stay
// integers, which some servers insist on, and exact in the doubles of JavaScript.
const firstID = 1 << 40

// The reasons that a cancelled server is told.
const (
	callerLeft = "the caller went away"
	timeIsUp   = "the call's time was up"
)

// A lane carries requests beside the SDK's session, on the same pipes.
type lane struct {
	w     *writer
	grace time.Duration
	late  *atomic.Int64 // answers that nobody waited for
	// stuck ends the connection, where a request that was given up must not go on beside the
	// next one, who could be asked what that one asks; nil where it may.
	stuck func()
	// meta are the members that each request's _meta has on the stateless
	// protocol; empty before it. It is set before the first request.
	meta []byte

	mu    sync.Mutex
	last  int64
	calls map[int64]*call      // :: id -> who waits for the answer
	tombs map[int64]*tombstone // :: id -> a request that was given up and not let go
	ended *rpc.Failure         // set when the connection's end begins, as one that sent nothing
}

// A call is a request on its way.
type call struct {
	frame

	id   int64
	done chan answer  // gets one answer, from whoever takes the call out of the map
	seen atomic.Int64 // when its last progress came (see sinceStart), or 0

	asker // what the server asks in the middle of it

	mu       sync.Mutex
	progress func(json.RawMessage) // nil once nobody wants it
}

type answer struct {
	result json.RawMessage
	err    error
}

func newLane(w *writer, grace time.Duration, late *atomic.Int64) *lane {
	return &lane{
		w: w, grace: grace, late: late, last: firstID,
		calls: map[int64]*call{}, tombs: map[int64]*tombstone{},
	}
}

// do is [rpc.Conn]'s Do.
func (l *lane) do(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	letGo := r.LetGo
	if letGo == nil {
		letGo = func() {}
	}
	if err := ctx.Err(); err != nil {
		letGo()
		return nil, err
	}
	// What comes here was checked and flattened. Were it not, the second line could
	// be a request of the caller's own making.
	if onTwoLines(r.Params) || onTwoLines(r.Args) || onTwoLines(r.Meta) {
		letGo()
		return nil, &rpc.Failure{Reason: rpc.Protocol, Msg: "the request was not sent: its arguments are not on one line"}
	}

	c := &call{done: make(chan answer, 1), progress: r.Progress}
	if r.Ask != nil {
		defer c.begin(ctx, r.Ask)()
	}
	l.mu.Lock()
	if err := l.ended; err != nil {
		l.mu.Unlock()
		letGo()
		return nil, err
	}
	l.last++
	c.id = l.last
	l.calls[c.id] = c
	alone := len(l.calls) == 1
	l.mu.Unlock()

	if r.Wire != nil {
		*r.Wire = rpc.Wire{ID: strconv.FormatInt(c.id, 10), Pipe: true}
	}
	c.buf = newBuf()
	*c.buf = l.appendRequest(*c.buf, c.id, r)
	// When nothing can be sent any more, the connection's end is near and answers the call.
	if mine, _ := l.w.enqueue(&c.frame, false); mine {
		if !alone {
			// Those that are about to send something get the time to: what is written and read
			// together costs each a part of the system calls, and of waking the server (BenchmarkCall32).
			runtime.Gosched()
		}
		l.w.write()
	}

	a := l.await(ctx, c, r, letGo)
	return a.result, a.err
}

func onTwoLines(b []byte) bool { return bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0 }

func (l *lane) appendRequest(b []byte, id int64, r *rpc.Request) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = raw.AppendQuote(b, r.Method)
	b = append(b, `,"params":{`...)
	// Progress is asked for also where nobody watches it, since it resets the idle clock.
	token := r.Progress != nil || r.Idle > 0 && r.Method == "tools/call"
	if token || len(l.meta)+len(r.Meta) > 0 {
		b = append(b, `"_meta":{`...)
		if token {
			b = append(b, `"progressToken":`...)
			b = strconv.AppendInt(b, id, 10)
			if len(l.meta)+len(r.Meta) > 0 {
				b = append(b, ',')
			}
		}
		b = append(b, l.meta...)
		if len(l.meta) > 0 && len(r.Meta) > 0 {
			b = append(b, ',')
		}
		b = append(b, r.Meta...)
		b = append(b, '}')
		if len(r.Params)+len(r.Args) > 0 {
			b = append(b, ',')
		}
	}
	b = append(b, r.Params...)
	b = append(b, r.Args...)
	return append(b, "}}\n"...)
}

var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// await waits for the answer, the caller's leaving, or the end of the request's time.
//
// The clock is computed from when the frame was written and when progress came; the one
// timer only says when to look.
func (l *lane) await(ctx context.Context, c *call, r *rpc.Request, letGo func()) answer {
	var up <-chan time.Time
	if r.Idle > 0 || r.Total > 0 {
		t := timers.Get().(*time.Timer)
		t.Reset(c.left(r))
		defer func() {
			t.Stop()
			timers.Put(t)
		}()
		up = t.C
		for {
			select {
			case a := <-c.done:
				letGo()
				return a
			case <-ctx.Done():
				return l.giveUp(c, r, letGo, whyLeft(ctx), ctx.Err())
			case <-up:
				left := c.left(r)
				if left <= 0 {
					return l.giveUp(c, r, letGo, timeIsUp, &rpc.Failure{Reason: rpc.Deadline, Msg: overtime(c, r)})
				}
				t.Reset(left)
			}
		}
	}
	select {
	case a := <-c.done:
		letGo()
		return a
	case <-ctx.Done():
		return l.giveUp(c, r, letGo, whyLeft(ctx), ctx.Err())
	}
}

// whyLeft says why a caller left, for the server.
func whyLeft(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return timeIsUp
	}
	return callerLeft
}

// left is the time that the request has left; before it is written, all of it.
func (c *call) left(r *rpc.Request) time.Duration {
	now := sinceStart()
	sent := c.written.Load()
	if sent == 0 {
		sent = now
	}
	var left time.Duration
	if r.Total > 0 {
		left = time.Duration(sent + int64(r.Total) - now)
	}
	if r.Idle > 0 {
		last := max(sent, c.seen.Load())
		if c.waits.Load() > 0 { // for a person, which is not the server's silence
			last = now
		}
		idle := time.Duration(last + int64(r.Idle) - now)
		if r.Total <= 0 || idle < left {
			left = idle
		}
	}
	return left
}

func overtime(c *call, r *rpc.Request) string {
	if r.Total > 0 && sinceStart() >= c.written.Load()+int64(r.Total) {
		return "the server did not answer within " + rpc.Duration(r.Total)
	}
	return "the server neither answered nor reported progress for " + rpc.Duration(r.Idle)
}

// take takes a call out of the map; whoever gets it owes it an answer.
func (l *lane) take(id int64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	delete(l.calls, id)
	return c
}

// deliver hands an answer to the call with this id. One that comes too late
// clears the tombstone.
func (l *lane) deliver(id int64, a answer) {
	if c := l.take(id); c != nil {
		c.done <- a
		return
	}
	l.late.Add(1)
	l.bury(id)
}

// waits reports whether a call with this id waits for its answer.
func (l *lane) waits(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id] != nil
}

// progressed resets the idle clock of a call, or the grace of one that was given up. The
// params are valid during the call only.
func (l *lane) progressed(token int64, params []byte) {
	l.mu.Lock()
	c := l.calls[token]
	if c == nil {
		if t := l.tombs[token]; t != nil {
			l.extend(t)
		}
	}
	l.mu.Unlock()
	if c == nil {
		return
	}
	c.seen.Store(sinceStart())
	c.mu.Lock()
	defer c.mu.Unlock() // Do must not return, having given up, while this runs
	if c.progress != nil {
		c.progress(bytes.Clone(params))
	}
}

// refuse answers every call from here on with err. Those under way are not touched.
func (l *lane) refuse(err *rpc.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = err
}

// end fails everything that is under way: unsent for calls of which nothing was written, lost
// for the others. The writer must be closed already.
func (l *lane) end(unsent, lost *rpc.Failure) {
	l.mu.Lock()
	l.ended = unsent
	calls, tombs := l.calls, l.tombs
	l.calls, l.tombs = nil, nil
	for _, t := range tombs {
		t.timer.Stop()
	}
	l.mu.Unlock()
	for _, c := range calls {
		if c.touched.Load() {
			c.done <- answer{err: lost}
		} else {
			c.done <- answer{err: unsent}
		}
	}
	for _, t := range tombs {
		t.letGo()
	}
}
