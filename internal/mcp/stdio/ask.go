package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// An asker answers what the server asks in the middle of a call.
type asker struct {
	ctx   context.Context // ends with the call
	ask   func(context.Context, json.RawMessage) ([]byte, error)
	waits atomic.Int32 // questions that are not answered yet
}

// begin lets the call answer questions until the returned function is called.
func (a *asker) begin(ctx context.Context, ask func(context.Context, json.RawMessage) ([]byte, error)) context.CancelFunc {
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(ctx)
	a.ask = ask
	return cancel
}

// elicitation hands a question to the call that is under way. A frame says nothing of the call
// that it belongs to, so there must be one call only; else it is reported as not taken.
func (c *Conn) elicitation(f *raw.Frame) bool {
	if !c.o.Elicitation || !c.o.Exclusive {
		return false
	}
	call := c.lane.only()
	if call == nil {
		return false
	}
	id, params := bytes.Clone(f.ID), bytes.Clone(f.Params)
	call.waits.Add(1)
	c.reading.Go(func() { // ends with the call at the latest
		result, err := call.ask(call.ctx, params)
		call.seen.Store(sinceStart())
		call.waits.Add(-1)
		if call.ctx.Err() != nil {
			return // the server is told that the call is cancelled, or has answered it
		}
		b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
		if err != nil {
			b = append(b, `,"error":{"code":-32603,"message":"the question could not be answered"}`...)
		} else {
			b = append(append(b, `,"result":`...), result...)
		}
		b = append(b, "}\n"...)
		_ = c.w.submit(&frame{buf: &b}, false) // when nothing can be sent any more, the connection's end is near
	})
	return true
}

// only returns the call that can be asked, if there is one and no other.
func (l *lane) only() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *call
	for _, c := range l.calls {
		if c.ask == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = c
	}
	return found
}

// offered are the options of a handshake. In the session era nothing ties a question to
// a call, so only who makes one at a time can be asked.
func offered(o rpc.Options, version string) rpc.Options {
	o.Elicitation = o.Elicitation && (o.Exclusive || version == statelessVersion)
	return o
}
