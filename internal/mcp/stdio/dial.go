package stdio

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
)

// The versions that a handshake starts with. In the first, the server may choose an older one.
const (
	sessionVersion   = "2025-11-25"
	statelessVersion = "2026-07-28"
)

const killSignal = syscall.SIGKILL

// Dial starts the server and shakes hands with it. Initialize comes first; a
// server that answers it with an error is started again and asked by
// server/discover. ctx bounds the dialing only. When Dial fails, no process is
// left. Its errors are a [*rpc.Failure] or ctx's own.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	o = o.withDefaults()
	version := sessionVersion
	if o.Era != nil && o.Era.modern.Load() {
		version = statelessVersion
	}
	c, refused, err := dial(ctx, &o, version)
	if refused && version == sessionVersion {
		o.Log.InfoContext(ctx, "the server refused initialize; it is started again and asked by server/discover")
		var again error
		// An old server that refuses for a reason of its own refuses twice: the first reason is told.
		if c, refused, again = dial(ctx, &o, statelessVersion); !refused {
			err = again
		}
	}
	if o.Era != nil {
		// What failed is asked from the beginning the next time.
		o.Era.modern.Store(err == nil && c.peer.Modern())
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial does it with one version. It reports whether the server answered initialize with an error.
func dial(ctx context.Context, o *Options, version string) (_ *Conn, refused bool, _ error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	p, err := start(ctx, o)
	if err != nil {
		return nil, false, err
	}
	c, err := newConn(o, p)
	if err != nil {
		p.stop(0, 0)
		_ = p.stdout.Close()
		_ = p.stderr.Close()
		return nil, false, &rpc.Failure{Reason: rpc.Start, Msg: "the server's input cannot be used", Err: err}
	}
	hctx, cancel := context.WithTimeout(ctx, o.Handshake)
	defer cancel()
	// The SDK's Connect would wait for its own end, in which the wire has no part.
	stop := context.AfterFunc(hctx, func() { c.end(cause{closed: true}) })
	session, err := rpc.NewClient(offered(o.Options, version)).Connect(hctx, wire{c}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	// The SDK may have noticed the context's end before our function was started.
	late := !stop() || err != nil && hctx.Err() != nil
	if err == nil {
		c.session = session
		c.peer = rpc.PeerOf(session)
		if c.peer.Modern() {
			c.lane.meta = c.hello.meta(c.peer.Protocol)
		}
	}
	close(c.connected)
	if err == nil && !late {
		return c, false, nil
	}

	words := c.tail.words()
	_ = c.Close() // it has read all there is
	question := "initialize"
	if version == statelessVersion {
		question = "server/discover"
	}
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case late:
		return nil, false, handshake("the server did not answer " + question + " within " + rpc.Duration(o.Handshake) + c.babble() + words)
	case c.refused.Load() != nil:
		e := &rpc.Error{Code: c.refused.Load().Code, Message: c.refused.Load().Message}
		c.tail.redact.Error(e)
		return nil, true, handshake(fmt.Sprintf("the server refused initialize: error %d: %s", e.Code, printable(e.Message)))
	case !c.why.closed:
		return nil, false, handshake("the server ended during the handshake: " + c.err.Load().Msg + c.babble())
	default:
		// It may hold any words of the server's.
		return nil, false, &rpc.Failure{Reason: rpc.Handshake, Msg: "the handshake failed" + c.babble(), Err: errors.New(c.tail.clean([]byte(err.Error())))}
	}
}

func handshake(msg string) *rpc.Failure { return &rpc.Failure{Reason: rpc.Handshake, Msg: msg} }
