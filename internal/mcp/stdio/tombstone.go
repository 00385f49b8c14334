package stdio

import (
	"strconv"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// A tombstone stands for a request that was given up and that the server has
// not let go of. It goes with the late answer, with the connection, or when the
// grace is over; its maker's slot comes back then.
type tombstone struct {
	letGo func()
	timer *time.Timer
	until int64 // when the grace is over (see sinceStart)
	last  int64 // when it is over whatever progress comes, or 0 for never: the deadline that stood, and the grace
}

// giveUp ends the wait for an answer: the server is told to cancel, and err is the answer, unless the
// real one has just come. A request that is still in the queue is never sent.
func (l *lane) giveUp(c *call, r *rpc.Request, letGo func(), why string, err error) answer {
	l.mu.Lock()
	if l.calls[c.id] != c {
		// It was taken out to be answered.
		l.mu.Unlock()
		a := <-c.done
		letGo()
		return a
	}
	delete(l.calls, c.id)
	sent := !l.w.withdraw(&c.frame)
	if sent {
		l.buryLater(c, r, letGo)
	}
	l.mu.Unlock()

	c.mu.Lock()
	c.progress = nil
	c.mu.Unlock()

	if !sent {
		letGo()
		return answer{err: err}
	}
	f := &frame{buf: newBuf()}
	b := append(*f.buf, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendInt(b, c.id, 10)
	b = append(b, `,"reason":`...)
	b = raw.AppendQuote(b, why)
	*f.buf = append(b, "}}\n"...)
	// At the connection's end there is nothing to cancel any more.
	_ = l.w.submit(f, true)
	return answer{err: err}
}

// buryLater sets the tombstone of a call. It is called with l.mu held.
func (l *lane) buryLater(c *call, r *rpc.Request, letGo func()) {
	now := sinceStart()
	t := &tombstone{letGo: letGo, until: now + int64(l.grace)}
	if r.Idle > 0 || r.Total > 0 {
		t.last = now + int64(max(c.left(r), 0)) + int64(l.grace)
	}
	id := c.id
	t.timer = time.AfterFunc(time.Duration(t.until-now), func() { l.graceOver(id, t) })
	l.tombs[id] = t
}

// extend starts the grace anew, because the server still works on the request. It is called
// with the lane's lock held. The timer looks again when it fires.
func (l *lane) extend(t *tombstone) {
	if l.stuck != nil {
		return
	}
	t.until = sinceStart() + int64(l.grace)
	if t.last != 0 {
		t.until = min(t.until, t.last)
	}
}

func (l *lane) graceOver(id int64, t *tombstone) {
	l.mu.Lock()
	if l.tombs[id] != t {
		l.mu.Unlock()
		return
	}
	if left := t.until - sinceStart(); left > 0 {
		t.timer.Reset(time.Duration(left))
		l.mu.Unlock()
		return
	}
	if l.stuck != nil {
		l.mu.Unlock()
		l.stuck() // which lets go of everything
		return
	}
	delete(l.tombs, id)
	l.mu.Unlock()
	t.letGo()
}

// bury removes the tombstone with this id, if there is one: the server has let go.
func (l *lane) bury(id int64) {
	l.mu.Lock()
	t := l.tombs[id]
	if t != nil {
		delete(l.tombs, id)
		t.timer.Stop()
	}
	l.mu.Unlock()
	if t != nil {
		t.letGo()
	}
}
