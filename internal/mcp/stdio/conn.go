package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
)

const (
	// exitWait is how long a process that closed one of its pipes may take to
	// exit, so that its status can be told.
	exitWait = 500 * time.Millisecond
	// wordsWait is how long the last of its standard error is waited for then.
	wordsWait = 200 * time.Millisecond
	// sessionWait bounds the SDK's own end, which waits for handlers of the server's requests.
	sessionWait = 5 * time.Second
)

// A Conn is a live server process whose handshake is done.
type Conn struct {
	o    *Options
	peer *rpc.Peer
	proc *process
	tail *tail
	w    *writer
	lane *lane

	toSDK   chan jsonrpc.Message
	hello   hello
	refused atomic.Pointer[jsonrpc.Error] // the error that answered initialize

	skipped, tooLarge, late atomic.Int64
	skips                   limiter // of the reading goroutine
	noise                   string  // the beginning of the first line skipped, in quotes; of the reading goroutine

	once      sync.Once
	why       cause                       // guarded by done
	err       atomic.Pointer[rpc.Failure] // why it ended; set before done is closed, and again when more is known
	done      chan struct{}               // closed when the end has begun: nothing new is taken, and nobody has learned of it yet
	gone      chan struct{}               // closed when nothing is left of it
	connected chan struct{}               // closed when session is set, or never will be
	session   *mcp.ClientSession          // nil if the handshake failed
	heard     chan struct{}               // closed when its output is read to the end
	reading   sync.WaitGroup              // the goroutines that read its output and standard error, and watch it
}

var _ rpc.Conn = (*Conn)(nil)

// newConn begins to read what a process says.
func newConn(o *Options, p *process) (*Conn, error) {
	c := &Conn{
		o: o, proc: p, tail: newTail(o.Log, o.Redact),
		toSDK: make(chan jsonrpc.Message), skips: limiter{perSecond: skipRate},
		done: make(chan struct{}), gone: make(chan struct{}), connected: make(chan struct{}), heard: make(chan struct{}),
	}
	w, err := newWriter(p.stdin, o.WriteTimeout, func(err error) { c.end(cause{write: err}) })
	if err != nil {
		return nil, err
	}
	c.w, c.lane = w, newLane(w, o.CancelGrace, &c.late)
	if o.Exclusive {
		c.lane.stuck = func() { c.end(cause{stuck: true}) }
	}
	// Both end with the pipes, which are closed at the connection's end.
	c.reading.Go(func() { c.tail.read(p.stderr) })
	c.reading.Go(func() {
		r := reader{in: p.stdout, limit: int(o.ResultBytes), line: c.line, dropped: c.dropped}
		_ = r.run() // whatever the reason, the process can tell nothing any more
		close(c.heard)
		c.end(cause{})
	})
	// A process that left the group may hold the pipes open.
	c.reading.Go(func() {
		select {
		case <-p.exited:
			c.end(cause{exited: true})
		case <-c.done:
		}
	})
	return c, nil
}

// Peer implements [rpc.Conn].
func (c *Conn) Peer() *rpc.Peer { return c.peer }

// Do implements [rpc.Conn].
func (c *Conn) Do(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	return c.lane.do(ctx, r)
}

// Done implements [rpc.Conn].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [rpc.Conn]. At first it says how the end was noticed, and soon, when
// that is known, what became of the process.
func (c *Conn) Err() error {
	if err := c.err.Load(); err != nil {
		return err
	}
	return nil
}

// Stats returns what was read in vain so far.
func (c *Conn) Stats() Stats {
	return Stats{Skipped: c.skipped.Load(), TooLarge: c.tooLarge.Load(), Late: c.late.Load()}
}

// Pid returns the number of the process, which is its group's too.
func (c *Conn) Pid() int { return c.proc.cmd.Process.Pid }

// Stderr returns the last lines that the server wrote to standard error.
func (c *Conn) Stderr() []string { return c.tail.Lines() }

// Close implements [rpc.Conn]. Requests under way fail at once; the server has
// CloseWait to exit by itself, and TermWait more after SIGTERM.
func (c *Conn) Close() error {
	c.end(cause{closed: true})
	<-c.gone
	return nil
}

// A cause is why a connection ends. The zero cause is the end of the server's output.
type cause struct {
	closed bool  // by us
	stuck  bool  // a cancelled call goes on, beside which there must be no other
	exited bool  // the process has
	write  error // writing failed
}

// end begins the end of the connection; it does not wait. Only the first cause counts.
//
// Whoever learns of the end, by an answer or by LetGo, may look for another connection at
// once, and must not take this one for a live one: done is closed before all that.
func (c *Conn) end(why cause) {
	c.once.Do(func() {
		c.why = why
		msg := c.notice(why)
		c.err.Store(&rpc.Failure{Reason: rpc.Lost, Msg: msg})
		close(c.done)
		c.lane.refuse(&rpc.Failure{Reason: rpc.NotSent, Msg: msg})
		c.w.refuse(errRefused)
		go c.finish() // ends in bounded time, and closes gone
	})
}

// finish takes the connection apart: first who waits on it, then the process,
// then all that reads, then the SDK's session.
func (c *Conn) finish() {
	defer close(c.gone)
	msg := c.epitaph(c.why)
	c.w.close()
	lost := &rpc.Failure{Reason: rpc.Lost, Msg: msg}
	c.err.Store(lost)
	c.lane.end(&rpc.Failure{Reason: rpc.NotSent, Msg: msg}, lost)

	if !c.proc.stop(c.o.CloseWait, c.o.TermWait) {
		c.o.Log.Error("a process survives SIGKILL", "pid", c.Pid())
	}
	// Its last words need not be waited for: whoever tells them has.
	_ = c.proc.stdout.Close()
	_ = c.proc.stderr.Close()
	c.reading.Wait()

	// The session's Close waits for handlers, which the end of the wire has cancelled.
	<-c.connected
	if c.session != nil {
		closed := make(chan struct{})
		go func() { // ends with the session's handlers
			_ = c.session.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(sessionWait):
			c.o.Log.Error("a handler of the server's requests does not end")
		}
	}
	c.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "a server's connection ended",
		slog.Int("pid", c.Pid()), slog.String("reason", msg), slog.String("process", c.proc.fate()))
}

// notice says why the connection ends, as far as that is known at once.
func (c *Conn) notice(why cause) string {
	switch {
	case why.closed:
		return "the connection was closed"
	case why.stuck:
		return "the server went on with a cancelled call for " + rpc.Duration(c.o.CancelGrace) + ", and was ended, since it gets one call at a time"
	case why.exited:
		return c.proc.fate()
	case errors.Is(why.write, errStuck):
		return "the server did not read its input for " + rpc.Duration(c.o.WriteTimeout) + " and was killed"
	case why.write != nil:
		return "it closed its input (" + reason(why.write).Error() + ")"
	default:
		return "it closed its output"
	}
}

// epitaph says why the connection ends, having waited a moment for the process
// to exit and for what it said last, answers among it.
func (c *Conn) epitaph(why cause) string {
	msg := c.notice(why)
	switch {
	case why.closed, why.stuck:
		return msg
	case errors.Is(why.write, errStuck):
		c.proc.signal(killSignal)
		c.proc.wait(killWait)
		return msg
	case !c.proc.wait(exitWait):
		return msg + ", but " + c.proc.fate() + c.tail.words()
	}
	<-c.heard // soon after the exit, whoever holds the pipe
	t := time.NewTimer(wordsWait)
	defer t.Stop()
	select {
	case <-c.tail.ended:
	case <-t.C:
	}
	return c.proc.fate() + c.tail.words()
}

// sizeOf writes a number of bytes as people do.
func sizeOf(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
