package local

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastWords is how long the requests before the end of the input may take to be answered.
const lastWords = 2 * time.Second

// ServeDemo serves the demo on a pair of pipes, line by line, as the stdio
// transport wants it: nothing but frames is written to out. It returns nil when in
// ends or ctx does, after the calls that run then have stopped; a Read of in
// that is under way goes on until in ends. Any other error is of in, out, or what was read.
func ServeDemo(ctx context.Context, in io.Reader, out io.Writer) error {
	// The session lets running calls finish before it closes, but cancels them when
	// its input ends. So an end of ctx is made an end of the input.
	pr, pw := io.Pipe()
	defer pr.Close()
	stop := context.AfterFunc(ctx, func() { pw.Close() })
	defer stop()
	go func() {
		_, err := io.Copy(pw, in)
		pw.CloseWithError(err) // nil is the end of the input
	}()
	t := &pipeTransport{IOTransport: mcp.IOTransport{Reader: pr, Writer: nopCloser{out}}, end: ctx.Done()}
	// Not under ctx: Run would report its end as an error, and wait for the calls.
	return Demo().Run(context.WithoutCancel(ctx), t)
}

// A pipeTransport is the SDK's, but lets requests be answered that came before the
// end of the input, where the session itself drops their answers. So
// "printf … | bridge demo" answers every line.
type pipeTransport struct {
	mcp.IOTransport
	end <-chan struct{} // closed when nobody waits for answers any more
}

// Connect implements [mcp.Transport].
func (t *pipeTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	return &pipeConn{Connection: c, end: t.end}, err
}

type pipeConn struct {
	mcp.Connection
	end <-chan struct{}

	mu   sync.Mutex
	open int           // requests without an answer, guarded by mu
	last chan struct{} // made when the input has ended, closed when open is 0; guarded by mu
}

// Read reads a message. One goroutine calls it.
func (c *pipeConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.count(+1)
	}
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		c.last = make(chan struct{})
		c.mu.Unlock()
		c.count(0)
		select {
		case <-c.last:
		case <-time.After(lastWords):
		case <-c.end:
		}
	}
	return m, err
}

// Write writes a message.
func (c *pipeConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.count(-1)
	}
	return err
}

func (c *pipeConn) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	if c.open == 0 && c.last != nil {
		close(c.last)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
