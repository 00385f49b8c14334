// Package remote connects to MCP servers over HTTP: Streamable HTTP in all its
// versions, and the deprecated HTTP+SSE.
//
// A [Conn] has two halves on one http.Transport. The SDK's client session does
// the handshake, hears notifications and answers requests of the server; what it
// reads and writes goes through a connection of ours (see link). The calls, which
// [Conn.Do] makes, are POSTs of their own: the caller's bytes are spliced into
// the frame as they are, and the answer's bytes are handed out as they came, so
// that no digit, key order or unknown block is lost, and one answer that cannot be read
// fails one call and not the session. The ids of the two halves never meet.
//
// Start at [Dial]; negotiate.go finds out what the server speaks, call.go is the
// life of a call, exchange.go its way over Streamable HTTP, and sse.go over HTTP+SSE. Where
// requests carry a token, tokens.go keeps it, discover.go finds out where it is to be had,
// and grant.go asks for it.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
)

// What [Options.Protocol] may be besides the name of a version.
const (
	Auto = "auto" // find out
	SSE  = "sse"  // the deprecated HTTP+SSE
)

// The protocol versions, newest first.
const (
	v20260728 = "2026-07-28" // no session: every request carries its own _meta
	v20251125 = "2025-11-25"
	v20250618 = "2025-06-18"
	v20250326 = "2025-03-26"
	v20241105 = "2024-11-05"
)

const (
	deleteWait = 2 * time.Second // for the answer to the DELETE of a session
	streamWait = 5 * time.Second // for the headers of a stream of notifications
	notifyWait = 5 * time.Second // for the answer to a notification
)

// Options say how to connect to one server.
type Options struct {
	rpc.Options

	URL      string      // http or https, used as given; what is in its query or before its @ is secret
	Headers  http.Header // sent with every request; their values are secret
	Tokens   *Tokens     // for every request, beside Headers without Authorization; nil for none; never with [SSE]
	Display  string      // what errors and logs call the server; empty is the URL without query
	Protocol string      // [Auto] (or empty), [SSE], or a version as "2025-11-25"

	TLS   TLS
	Proxy string // a URL; "none" for no proxy; empty for the environment's

	// Transport carries the requests in place of a transport made from TLS and Proxy. It is for tests.
	Transport http.RoundTripper

	// Zero are the constants of these names; tests shorten them.
	streamWait, listenFirst, grantWait time.Duration
}

// A Conn is a connection to one server.
type Conn struct {
	o       Options
	log     *slog.Logger
	url     *url.URL
	where   string      // what the server is called in errors and logs
	headers http.Header // what every request carries
	tokens  *Tokens     // nil without a credential
	secrets redaction

	agent       string      // what we call ourselves in headers
	configured  http.Header // headers without our own User-Agent
	credentials bool        // the requests carry some
	rt          http.RoundTripper
	limit       int64
	sse         *sseStream // nil for Streamable HTTP

	// ctx ends when the connection is closed, and with it every request; listening
	// ends earlier when the server has forgotten the session, and with it the streams of notifications.
	ctx       context.Context
	cancel    context.CancelCauseFunc
	listening context.Context
	deafen    context.CancelFunc
	wg        sync.WaitGroup // everything that runs on behalf of the connection

	link    *link
	session *mcp.ClientSession
	peer    *rpc.Peer
	era     atomic.Pointer[era]
	meta    string // the members that every _meta of the modern era has

	ids      atomic.Int64
	level    level
	rawNames atomic.Bool // the server compares Mcp-Name without decoding it
	warned   atomic.Bool // of messages that cannot be read

	closing sync.Once
	done    chan struct{} // closed with err

	mu    sync.Mutex
	calls map[string]*call // :: id -> call, guarded by mu
	err   *rpc.Failure     // why the connection has ended, guarded by mu
}

// An era is what the requests of a connection say of it.
type era struct {
	version string // empty before the handshake
	session string // empty if the server gave none
}

func (e *era) modern() bool { return e.version >= v20260728 }

var _ rpc.Conn = (*Conn)(nil)

// Dial connects to a server and does the handshake, all within o.Handshake. The
// connection lives on when ctx ends. The error is a [*rpc.Failure] or the context's own.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	c, err := newConn(ctx, o)
	if err != nil {
		return nil, err
	}
	wait := cmp.Or(o.Handshake, 20*time.Second)
	hctx, stop := context.WithTimeoutCause(ctx, wait, errHandshake)
	defer stop()
	err = c.ready(hctx)
	if err == nil {
		err = c.connect(hctx)
	}
	if err != nil {
		_ = c.Close() // what remains to be said is in err
		return nil, c.dialFailure(ctx, hctx, wait, err)
	}
	return c, nil
}

// clientInfo is what we call ourselves, as [rpc.NewClient] has it.
func clientInfo(o rpc.Options) (name, version string) {
	return cmp.Or(o.ClientName, "mcp-bridge"), cmp.Or(o.ClientVersion, "dev")
}

// agentOf is the same as a header has it.
func agentOf(o rpc.Options) string {
	name, version := clientInfo(o)
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, name+"/"+version)
}

var errHandshake = errors.New("the handshake's time was up")

// dialFailure says why there is no connection.
func (c *Conn) dialFailure(ctx, hctx context.Context, wait time.Duration, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(context.Cause(hctx), errHandshake) {
		return &rpc.Failure{Reason: rpc.Handshake, Msg: fmt.Sprintf("%s did not finish the handshake within %s", c.where, rpc.Duration(wait))}
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		return &rpc.Failure{Reason: rpc.Handshake, Msg: fmt.Sprintf("%s answered error %d to the handshake: %s", c.where, e.Code, clip(c.secrets.Text(e.Message)))}
	}
	f, ok := errors.AsType[*rpc.Failure](err)
	if !ok {
		return &rpc.Failure{Reason: rpc.Handshake, Msg: fmt.Sprintf("%s could not be understood: %s", c.where, c.secrets.Text(err.Error()))}
	}
	// To a call these say whether it may have run; here they all mean that there is no server to be had.
	if f.Reason == rpc.NotSent || f.Reason == rpc.Lost || f.Reason == rpc.Protocol && f.Status >= 500 {
		return &rpc.Failure{Reason: rpc.Start, Msg: f.Msg, Status: f.Status, Err: f.Err}
	}
	if f.Reason == rpc.SessionExpired || f.Reason == rpc.TooLarge {
		return &rpc.Failure{Reason: rpc.Handshake, Msg: f.Msg, Status: f.Status, Err: f.Err}
	}
	return f
}

func newConn(ctx context.Context, o Options) (*Conn, error) {
	bad := func(msg string, err error) (*Conn, error) {
		return nil, &rpc.Failure{Reason: rpc.Start, Msg: msg, Err: err}
	}
	u, err := url.Parse(o.URL)
	if err != nil { // which repeats the URL, secrets and all
		return bad("the URL of the server cannot be parsed", nil)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return bad("the URL of the server is not one of http or https with a host", nil)
	}
	u.Fragment, u.RawFragment = "", ""
	switch o.Protocol {
	case "", Auto, SSE, v20260728, v20251125, v20250618, v20250326, v20241105:
	default:
		return bad(fmt.Sprintf("unknown protocol %q", o.Protocol), nil)
	}
	headers, err := fixedHeaders(o.Headers, u)
	if err != nil {
		return bad(err.Error(), nil)
	}
	switch {
	case o.Tokens == nil:
	case o.Protocol == SSE:
		return bad("a credential cannot be used over HTTP+SSE, where a token that was refused cannot be replaced", nil)
	case headers.Get("Authorization") != "":
		return bad("a credential cannot be used beside an Authorization header", nil)
	}
	rt := o.Transport
	if rt == nil {
		if rt, err = newTransport(o.TLS, o.Proxy); err != nil {
			return bad(err.Error(), nil)
		}
	}
	c := &Conn{
		o: o, url: u, where: cmp.Or(o.Display, display(u)), headers: headers, configured: headers.Clone(), rt: rt,
		tokens: o.Tokens, secrets: redaction{secretsOf(headers, u, o.Display != ""), o.Tokens},
		log:   cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		limit: cmp.Or(o.ResultBytes, 64<<20),
		done:  make(chan struct{}),
		calls: map[string]*call{},
		meta:  clientMeta(o.Options),
		agent: agentOf(o.Options),
	}
	c.credentials = len(headers) > 0 || o.Tokens != nil
	u.User = nil // it is in the headers now
	if headers.Get("User-Agent") == "" {
		headers.Set("User-Agent", c.agent)
	}
	c.o.CancelGrace = cmp.Or(o.CancelGrace, 5*time.Second)
	c.o.streamWait = cmp.Or(o.streamWait, streamWait)
	c.o.grantWait = cmp.Or(o.grantWait, grantWait)
	c.o.listenFirst = cmp.Or(o.listenFirst, listenFirst)
	// Servers count our ids apart from the SDK's, which start at 1; all of ours fit in 32 bits for a long time.
	c.ids.Store(1 << 30)
	c.era.Store(&era{})
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.listening, c.deafen = context.WithCancel(c.ctx)
	return c, nil
}

// Peer implements [rpc.Conn].
func (c *Conn) Peer() *rpc.Peer { return c.peer }

// Done implements [rpc.Conn].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [rpc.Conn].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// end marks the connection as ended, for the first reason it is given. Calls that
// are under way go on until they are answered or the connection is closed.
func (c *Conn) end(why *rpc.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	close(c.done)
	c.deafen()
	if c.link != nil {
		_ = c.link.Close() // always nil
	}
}

var errClosed = &rpc.Failure{Reason: rpc.NotSent, Msg: "the connection has been closed"}

// Close ends the connection: calls that are under way fail, the session is
// deleted (which is waited for 2 s at most), and all goroutines and sockets are gone when it returns.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.end(errClosed)
		c.cancel(errClosed)
		c.deleteSession()
		if c.session != nil {
			// Its error is that of reading from the link, which we have just closed.
			_ = c.session.Close()
		}
		c.wg.Wait()
		if t, ok := c.rt.(*http.Transport); ok && c.o.Transport == nil {
			t.CloseIdleConnections()
		}
	})
	return nil
}

// deleteSession tells the server that the session is not needed any more. A
// server may refuse that (405), and there is nothing to do about other answers.
func (c *Conn) deleteSession() {
	e := c.era.Load()
	if e.session == "" || e.modern() {
		return
	}
	if f, ok := errors.AsType[*rpc.Failure](c.Err()); ok && f.Reason == rpc.SessionExpired {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), deleteWait)
	defer stop()
	r, err := c.send(ctx, &request{method: http.MethodDelete, url: c.url, parting: true})
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "deleting the session", slog.String("url", c.where), slog.String("error", c.secrets.Text(err.Error())))
		return
	}
	r.drain()
}
