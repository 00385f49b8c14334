package remote

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// logLevel is the least of the log messages that a call asks for, if its caller wants any.
const logLevel = "info"

// levelWait is how long the first call that wants log messages waits for the server to take the level.
const levelWait = 2 * time.Second

// A level is what the eras of sessions have in the place of a level in each request: one of the whole session.
type level struct {
	once sync.Once
	call *call // that sets it; nil if it could not be begun
}

// wantLogs sees to it that the server sends log messages during a call that wants them. It asks
// once, and only where a stream of the call's own ties them to it. Whatever the server makes of
// that, the call is made.
func (c *Conn) wantLogs(ctx context.Context, r *rpc.Request) {
	if r.Log == nil || c.sse != nil || c.era.Load().modern() || !c.peer.Capabilities.Logging {
		return
	}
	first := false
	c.level.once.Do(func() {
		first = true
		k := c.newCall(&rpc.Request{Method: "logging/setLevel", Params: []byte(`"level":"` + logLevel + `"`), Header: r.Header}, nil)
		if c.start(k) == nil {
			c.level.call = k
			time.AfterFunc(levelWait, k.cancel) // harmless when it is over
		}
	})
	k := c.level.call
	if k == nil {
		return
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		return
	}
	if k.err != nil && first {
		c.log.LogAttrs(ctx, slog.LevelDebug, "the level of log messages was not set", slog.String("url", c.where), slog.String("error", k.err.Error()))
	}
}

// message gives a log message to the call on whose stream it came, and reports whether the call wants it.
func (k *call) message(params []byte) bool {
	if k == nil || k.req.Log == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.finished && !k.abandoned {
		k.req.Log(json.RawMessage(params))
	}
	return true
}

// isMessage tells what the SDK's session is not to see.
func isMessage(m message) bool {
	return m.ID == nil && raw.Unquote(m.Method) == "notifications/message"
}
