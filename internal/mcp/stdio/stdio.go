// Package stdio talks to MCP servers that run as subprocesses. [Dial] starts
// one and shakes hands; the [Conn] it returns carries any number of requests at
// once on the server's standard input and output.
//
// The SDK's session does the handshake, the notifications and the requests that
// the server makes. Everything else goes through the lane (lane.go): frames are
// written to the same pipe with the caller's bytes spliced in, and answers
// are recognised by their ids and handed on as the bytes that came.
//
// A server runs in a process group of its own, which is gone when its Conn is
// closed (process.go), when its leader exits, and when this whole program is
// killed (supervisor.go). The last needs [Main] to be called first in main.
package stdio

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// Options say what to start, and with what patience.
type Options struct {
	rpc.Options

	Command string   // a name that is looked up in PATH, or a path, relative to Dir
	Args    []string // without the command itself; they are visible to all users of the machine
	Env     []string // the whole environment, as name=value; nil is an empty one. Its PATH is the one that is searched
	Dir     string   // the working directory; empty is our own

	Label  string   // names the server in the log; empty is Command
	Redact []string // values that never show in the log or in a message, though the server may print them

	Start        time.Duration // bounds starting the process; zero is 30 s
	CloseWait    time.Duration // from closing its input to SIGTERM; zero is 2 s
	TermWait     time.Duration // from SIGTERM to SIGKILL; zero is 2 s
	WriteTimeout time.Duration // how long it may leave its input unread before it is killed; zero is 10 s

	Supervisor *Supervisor // kills the process when we are killed; nil is none
	Era        *Era        // remembers the era of the server from one Dial to the next; may be nil
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With("server", cmp.Or(o.Label, o.Command))
	o.Handshake = cmp.Or(o.Handshake, 20*time.Second)
	o.CancelGrace = cmp.Or(o.CancelGrace, 5*time.Second)
	o.ResultBytes = cmp.Or(o.ResultBytes, 64<<20)
	o.Start = cmp.Or(o.Start, 30*time.Second)
	o.CloseWait = cmp.Or(o.CloseWait, 2*time.Second)
	o.TermWait = cmp.Or(o.TermWait, 2*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	return o
}

// An Era remembers whether a server refused the handshake of the session era
// (initialize) and speaks the stateless protocol, which starts with
// server/discover. The zero Era knows nothing; it may be shared.
type Era struct{ modern atomic.Bool }

// Stats count what a connection read that was no use to it.
type Stats struct {
	Skipped  int64 // lines on its output that are not JSON-RPC
	TooLarge int64 // frames over the limit
	Late     int64 // answers that nobody waits for any more, or ever did
}
