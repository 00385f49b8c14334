package publish

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// lastWords is how long the answers of calls that are ended may take to be written.
const lastWords = 2 * time.Second

// ServeStdio serves one client on a pair of pipes, a message a line, as the caller
// c; nothing but messages is written to out. It returns when in ends and what was
// asked before has been answered, grace after that at the latest, or when ctx ends;
// a Read of in that is under way then goes on until in ends. The error is of out, or of reading in.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, c bridge.Caller, grace time.Duration) error {
	w := &lockedWriter{w: out}
	p := s.newPeer(request{caller: c, out: &w.splices}, "")
	unwatch := s.watch(p)
	defer unwatch()
	// The session lets running calls finish before it closes, but cancels them when
	// its input ends. So an end of ctx is made an end of the input.
	pr, pw := io.Pipe()
	defer pr.Close()
	stop := context.AfterFunc(ctx, func() { pw.Close() })
	defer stop()
	lines := &lineReader{limit: int(s.opts.RequestBytes), out: w}
	var over atomic.Bool // in has ended, as it should
	go func() {          // ends with in
		err := lines.copy(pw, in)
		over.Store(err == nil)
		pw.CloseWithError(err)
	}()
	t := &pipeTransport{
		IOTransport: mcp.IOTransport{Reader: pr, Writer: lines.out, MaxLineLength: -1},
		end:         ctx.Done(), grace: grace,
	}
	done := make(chan error, 1)
	// Not under ctx: Run would report its end as an error, and wait for the calls.
	go func() { done <- p.srv.Run(context.WithoutCancel(ctx), t) }()
	select {
	case err := <-done:
		p.end()
		if over.Load() {
			return nil // a client that has gone may have closed out before the last word
		}
		return err
	case <-ctx.Done():
	}
	p.end()
	select {
	case err := <-done:
		return err
	case <-time.After(lastWords):
		return errors.New("the client does not take its answers")
	}
}

// A lineReader passes on the lines that are messages, and answers the others.
type lineReader struct {
	limit int
	out   *lockedWriter
}

func (l *lineReader) copy(dst io.Writer, in io.Reader) error {
	rd := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(rd, l.limit)
		if long {
			l.answer(codeInvalidRequest, fmt.Errorf("a message is larger than the limit of %d bytes", l.limit))
		} else if len(bytes.TrimSpace(line)) > 0 {
			if err := l.pass(dst, line); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// pass passes a message on, and the messages of a batch one by one.
func (l *lineReader) pass(dst io.Writer, line []byte) error {
	in, code, err := parseIncoming(line)
	if err != nil {
		l.answer(code, err)
		return nil
	}
	if !in.batch {
		_, err := dst.Write(append(bytes.TrimSpace(line), '\n'))
		return err
	}
	for _, e := range raw.Elements(line) {
		if _, err := dst.Write(append(bytes.Clone(e), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l *lineReader) answer(code int64, err error) {
	_, _ = l.out.Write(append(appendError(nil, nil, code, err.Error()), '\n')) // if out is broken, the session finds out
}

// readLine returns the next line without its end, or that it is longer than the limit; it has then been skipped.
func readLine(rd *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := rd.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// A lockedWriter is written to by the session and by the reader of lines, a line at a time.
type lockedWriter struct {
	splices splices

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// Write writes one line, and the results that are marked in it.
func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(b), w.splices.write(w.w, b)
}

// Close leaves the writer open, which is not ours.
func (w *lockedWriter) Close() error { return nil }

// A pipeTransport is the SDK's, but lets requests be answered that came before the
// end of the input, where the session itself drops their answers.
type pipeTransport struct {
	mcp.IOTransport
	end   <-chan struct{} // closed when nobody waits for answers any more
	grace time.Duration
}

// Connect implements [mcp.Transport].
func (t *pipeTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	return &pipeConn{Connection: c, t: t, open: map[jsonrpc.ID]bool{}}, err
}

type pipeConn struct {
	mcp.Connection
	t *pipeTransport

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // requests without an answer, guarded by mu
	last chan struct{}       // made when the input has ended, closed when none is open; guarded by mu
}

// Read reads a message. One goroutine calls it.
func (c *pipeConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" { // which ends with the input
		c.mu.Lock()
		c.open[r.ID] = true
		c.mu.Unlock()
	}
	if errors.Is(err, io.EOF) {
		last := make(chan struct{})
		c.mu.Lock()
		c.last = last
		c.settleLocked()
		c.mu.Unlock()
		select {
		case <-last:
		case <-time.After(c.t.grace):
		case <-c.t.end:
		}
	}
	return m, err
}

// Write writes a message.
func (c *pipeConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID)
		c.settleLocked()
		c.mu.Unlock()
	}
	return err
}

func (c *pipeConn) settleLocked() {
	if len(c.open) == 0 && c.last != nil {
		close(c.last)
		c.last = nil
	}
}
