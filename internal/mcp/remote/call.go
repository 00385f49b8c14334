package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// lingerWait is how long an answered exchange may go on, so that its TCP
// connection can be used again: many servers end a stream a moment after the answer.
const lingerWait = time.Second

// A call is one request on its way.
type call struct {
	id     string // in decimal
	req    *rpc.Request
	frame  []byte
	header http.Header // beside those of every request; may be nil
	era    *era        // nil is the connection's
	reach  reach

	forward *forwarded // nil for none

	// accepted, if set, sees the headers of an answer whose status is good; status is that of any answer.
	accepted func(http.Header)
	status   atomic.Int64
	rest     *reply // what remains of the answer, to be read when the call is done

	ctx    context.Context
	cancel context.CancelFunc
	clock  *rpc.Clock
	asked  context.Context // of questions to the caller; ends when nobody waits for the call any more
	began  time.Time
	letGo  func()
	done   chan struct{} // closed with result and err

	mu        sync.Mutex
	finished  bool
	abandoned bool
	holds     int         // what keeps the server from having let go: the exchange, the cancellation
	linger    *time.Timer // set with finished
	grace     *time.Timer // set with abandoned, unless the call ends at once
	graceFor  time.Duration
	latest    time.Time // when the grace ends whatever happens
	result    json.RawMessage
	err       error
}

func (c *Conn) newCall(r *rpc.Request, e *era) *call {
	k := &call{
		id: strconv.FormatInt(c.ids.Add(1), 10), req: r, era: e, began: time.Now(),
		letGo: func() {}, done: make(chan struct{}), holds: 1, forward: c.forward(r.Header),
	}
	if r.LetGo != nil {
		k.letGo = sync.OnceFunc(r.LetGo)
	}
	e = cmp.Or(e, c.era.Load())
	k.frame = c.frame(k.id, r, e.modern())
	if r.Wire != nil {
		*r.Wire = c.wire(k.id, e)
	}
	if e.modern() {
		k.header = c.modernHeaders(r)
	}
	return k
}

// frame splices the request of a call: what the caller gave is copied, never read.
func (c *Conn) frame(id string, r *rpc.Request, modern bool) []byte {
	const most = 224 // of what is written beside the parts
	b := make([]byte, 0, most+len(r.Method)+len(c.meta)+len(r.Meta)+len(r.Params)+len(r.Args))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"method":"`...)
	b = append(b, r.Method...)
	b = append(b, `","params":{`...)
	// Progress is asked for also where nobody watches it, since it resets the idle clock.
	token := r.Progress != nil || r.Idle > 0 && r.Method == "tools/call"
	if modern || token || len(r.Meta) > 0 {
		b = append(b, `"_meta":{`...)
		if modern {
			b = append(b, c.meta...)
			if r.Log != nil {
				b = append(b, `,"io.modelcontextprotocol/logLevel":"`+logLevel+`"`...)
			}
		}
		if token {
			if modern {
				b = append(b, ',')
			}
			b = append(b, `"progressToken":`...)
			b = append(b, id...)
		}
		if len(r.Meta) > 0 {
			if modern || token {
				b = append(b, ',')
			}
			b = append(b, r.Meta...)
		}
		b = append(b, '}')
		if len(r.Params)+len(r.Args) > 0 {
			b = append(b, ',')
		}
	}
	b = append(b, r.Params...)
	b = append(b, r.Args...)
	return append(b, `}}`...)
}

// Do implements [rpc.Conn]. A call whose time is up, or whose caller has gone,
// returns at once. In the eras of sessions the server is sent notifications/cancelled, and
// its late answer is waited for (CancelGrace, and as long again with each progress, but not for
// longer than the call itself would have been without any); since 2026-07-28 closing the stream is the cancellation.
func (c *Conn) Do(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	c.wantLogs(ctx, r)
	k := c.newCall(r, nil)
	if err := ctx.Err(); err != nil {
		k.letGo()
		return nil, err
	}
	timed, clock := rpc.NewClock(ctx, r.Idle, r.Total)
	defer clock.Stop()
	k.clock = clock
	defer k.ask(ctx)()
	if err := c.start(k); err != nil {
		k.letGo()
		return nil, err
	}
	select {
	case <-k.done:
		return k.result, k.err
	case <-timed.Done():
	}
	if !c.abandon(k, ctx.Err() == nil) { // it was answered in this very moment
		return k.result, k.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, &rpc.Failure{
		Reason: rpc.Deadline, Err: rpc.ErrDeadline,
		Msg: fmt.Sprintf("no answer came within %s", rpc.Duration(time.Since(k.began))),
	}
}

// start registers a call and lets it run, unless the connection has ended.
func (c *Conn) start(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.endedLocked()
	}
	k.ctx, k.cancel = context.WithCancel(c.ctx)
	c.calls[k.id] = k
	c.wg.Go(func() { c.run(k) })
	return nil
}

// endedLocked is the failure of what is not begun any more.
func (c *Conn) endedLocked() error {
	f := *c.err
	if f.Reason != rpc.SessionExpired {
		f.Reason = rpc.NotSent
	}
	return &f
}

func (c *Conn) run(k *call) {
	defer k.cancel()
	if c.sse != nil {
		c.finish(k, c.exchangeSSE(k))
	} else {
		c.finish(k, c.exchange(k))
	}
	if k.rest != nil {
		k.rest.drainStream()
	}
	k.linger.Stop()
}

// An outcome is what became of a call.
type outcome struct {
	result json.RawMessage
	err    error
}

// answered reports whether the server has answered, so that it has let go.
func (o outcome) answered() bool {
	if o.err == nil {
		return true
	}
	if _, ok := errors.AsType[*rpc.Error](o.err); ok {
		return true
	}
	f, ok := asFailure(o.err)
	return ok && f.Reason == rpc.TooLarge
}

// finish ends a call. Only the first outcome counts.
func (c *Conn) finish(k *call, o outcome) {
	k.mu.Lock()
	if k.finished {
		k.mu.Unlock()
		return
	}
	k.finished = true
	k.result, k.err = o.result, k.forward.conceal(o.err)
	k.linger = time.AfterFunc(lingerWait, k.cancel)
	if k.grace != nil {
		k.grace.Stop()
	}
	k.holds--
	gone := k.holds == 0 || o.answered()
	k.mu.Unlock()

	c.mu.Lock()
	delete(c.calls, k.id)
	c.mu.Unlock()
	close(k.done)
	if gone {
		k.letGo()
	}
}

// abandon gives a call up. It reports false if the call has finished before.
func (c *Conn) abandon(k *call, late bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.finished {
		return false
	}
	k.abandoned = true
	if c.era.Load().modern() || !k.reach.connected.Load() {
		k.cancel()
		return true
	}
	now, grace := time.Now(), c.o.CancelGrace
	k.graceFor = grace
	k.latest = now.Add(grace)
	if !late {
		k.latest = k.latest.Add(k.left(now))
	}
	k.grace = time.AfterFunc(grace, k.cancel)
	k.holds++
	// The goroutine of the call still runs, so that there is something to wait for in Close.
	c.wg.Go(func() { c.tellCancelled(k, late) })
	return true
}

// left is how long the call would still be waited for without progress.
func (k *call) left(now time.Time) time.Duration {
	left := k.req.Idle
	if total := k.req.Total - now.Sub(k.began); k.req.Total > 0 && (left <= 0 || total < left) {
		left = total
	}
	return max(left, 0)
}

// tellCancelled sends the cancellation, ahead of everything else.
func (c *Conn) tellCancelled(k *call, late bool) {
	reason := "the caller went away"
	if late {
		reason = "the time for it was up"
	}
	frame := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + k.id + `,"reason":"` + reason + `"}}`
	if err := c.notify(c.ctx, []byte(frame), k.forward); err != nil {
		c.log.LogAttrs(c.ctx, slog.LevelDebug, "cancelling a request", slog.String("url", c.where), slog.String("error", err.Error()))
	}
	k.mu.Lock()
	k.holds--
	gone := k.holds == 0
	k.mu.Unlock()
	if gone {
		k.letGo()
	}
}

// progress takes the params of a progress notification for the call.
func (k *call) progress(params json.RawMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.finished:
	case k.abandoned:
		if left := time.Until(k.latest); k.grace != nil && left > 0 && k.grace.Stop() {
			k.grace.Reset(min(left, k.graceFor))
		}
	default:
		if k.clock != nil {
			k.clock.Progress()
		}
		if k.req.Progress != nil {
			k.req.Progress(params)
		}
	}
}
