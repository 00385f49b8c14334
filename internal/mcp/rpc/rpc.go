// Package rpc is what the connections to MCP servers have in common, whatever
// carries them: the request, the peer, the clock of a call, and the failures.
// Packages stdio and remote implement [Conn]; package mcp uses it.
package rpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// A Conn is one live connection to an MCP server whose handshake is done.
// Requests are multiplexed on it; all methods may be called concurrently.
type Conn interface {
	// Peer says what the handshake told of the server. It never changes.
	Peer() *Peer

	// Do sends one request and returns the bytes of its result, exactly as the server
	// sent them and checked to be valid JSON. Its errors are an [*Error] that the server answered,
	// a [*Failure], or the context's own.
	Do(ctx context.Context, r *Request) (json.RawMessage, error)

	// Done is closed when the connection has ended, for whatever reason; Err then says why.
	Done() <-chan struct{}
	Err() error

	// Close ends the connection and waits until all that belongs to it is gone: its
	// process group, its goroutines, its streams. It takes bounded time and may be called twice.
	Close() error
}

// A Request is one JSON-RPC request.
type Request struct {
	Method string // "tools/call"

	// Params are the members of the params object, without its braces and without _meta,
	// on one line: `"name":"echo","arguments":`. Args, a JSON value on one line, is
	// written right behind them, so that a caller's bytes are spliced and not copied around.
	Params []byte
	Args   []byte

	// Meta are members of _meta beside those that the connection writes, on one line: `"traceparent":"00-…"`.
	Meta []byte

	// Name is the tool's or prompt's name, or the resource's URI: what the modern
	// HTTP transport repeats in its Mcp-Name header. Empty for lists.
	Name string
	// Input is the tool's input schema, from which the modern HTTP transport takes
	// what x-mcp-header asks for; nil if there is none.
	Input json.RawMessage

	// Header are headers of this request alone, by canonical name; only HTTP transports send them.
	Header map[string][]string

	// Idle is the time without progress, and Total the time in all, after which the request is
	// given up and the server told to cancel. The clock starts when the frame is written. Zero is unbounded.
	Idle, Total time.Duration

	// Progress, if set, makes the request carry a progress token, and gets the params
	// of each progress notification for it, in order, before Do returns. It must not block.
	Progress func(params json.RawMessage)

	// Log, if set, gets the params of each log message that the transport ties to this request. It must not block.
	Log func(params json.RawMessage)

	// Ask, if set, answers what the server asks during this request: it gets the
	// params of an elicitation and returns its result, on one line. An error refuses it. The
	// idle clock stands still meanwhile. Its context ends with the request.
	Ask func(ctx context.Context, params json.RawMessage) ([]byte, error)

	// LetGo, if set, is called exactly once when the server has let go of the request: with
	// its answer; with the end of the connection; or, after Do was given up, when the
	// late answer came or the grace for it is over.
	LetGo func()

	// Wire, if set, is filled in before the request is written.
	Wire *Wire
}

// A Wire says how a request went to its server.
type Wire struct {
	ID      string // of the request, as text
	Session string // a digest of the session's id, by which nobody gets into the session; empty without one
	Pipe    bool   // over pipes, and not over HTTP
	Host    string // of the server's URL; empty if that is secret
	Port    int
}

// A Peer is the server at the other end.
type Peer struct {
	Name, Title, Version string // what it calls itself
	Protocol             string // the protocol version in use: "2025-11-25"
	Instructions         string
	Capabilities         Capabilities
}

// Modern reports whether the peer speaks the stateless protocol of 2026-07-28 or
// later, where every request carries its own _meta.
func (p *Peer) Modern() bool { return p.Protocol >= "2026-07-28" }

// Capabilities are what a server offers.
type Capabilities struct {
	Tools, Resources, Prompts, Completions, Logging bool
}

// Options are what every connection needs, whatever carries it.
type Options struct {
	ClientName    string // what we call ourselves; empty is "mcp-bridge"
	ClientVersion string

	Handshake   time.Duration // bounds the handshake; zero is 20 s
	CancelGrace time.Duration // how long a cancelled call is waited for; zero is 5 s
	ResultBytes int64         // bounds one answer; zero is 64 MiB

	// Elicitation offers the server to ask, wherever its questions can be tied to a request. Exclusive
	// says that there is one call at a time, so that any question is that call's.
	Elicitation, Exclusive bool

	// ListChanged, if set, is called when the server says that a list of its has
	// changed: "tools", "resources" or "prompts". It must not block.
	ListChanged func(list string)

	Log *slog.Logger // nil discards
}
