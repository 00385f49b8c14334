package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// offered are the options of the handshake. On the one stream of HTTP+SSE nothing ties
// a question to a call, so only who makes one at a time can be asked.
func (c *Conn) offered() rpc.Options {
	o := c.o.Options
	o.Elicitation = o.Elicitation && (c.sse == nil || o.Exclusive)
	return o
}

// elicitation hands a question to its call: the one on whose stream it came or, where there is
// one call at a time, that. It reports false if it is nobody's, or we do not offer to be asked.
func (c *Conn) elicitation(k *call, m message) bool {
	if !c.offered().Elicitation || c.era.Load().modern() { // whose servers ask with their answer
		return false
	}
	if k == nil && c.o.Exclusive {
		k = c.asking()
	}
	if k == nil || k.req.Ask == nil {
		return false
	}
	id, params := bytes.Clone(m.ID), bytes.Clone(m.Params)
	hold := k.clock.Hold()
	c.wg.Go(func() { // ends with the call at the latest
		result, err := k.req.Ask(k.asked, json.RawMessage(params))
		hold()
		if k.asked.Err() != nil {
			return // the server has answered the call, or is told that it is cancelled
		}
		c.reply(k, id, result, err)
	})
	return true
}

// asking returns the call that can be asked, if there is one and no other.
func (c *Conn) asking() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *call
	for _, k := range c.calls {
		if k.req.Ask == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = k
	}
	return found
}

// reply POSTs what came of a question. A server that does not take it lets the call wait, which its clock ends.
func (c *Conn) reply(k *call, id, result []byte, err error) {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if err != nil {
		b = append(b, `,"error":{"code":-32603,"message":"the question could not be answered"}}`...)
	} else {
		b = append(append(append(b, `,"result":`...), result...), '}')
	}
	if err := c.notify(k.asked, b, k.forward); err != nil && k.asked.Err() == nil {
		c.log.LogAttrs(k.asked, slog.LevelWarn, "the answer to a question of the server was refused", slog.String("url", c.where), slog.String("error", err.Error()))
	}
}

// ask lets the call answer questions until the returned function is called.
func (k *call) ask(ctx context.Context) context.CancelFunc {
	var end context.CancelFunc
	k.asked, end = context.WithCancel(ctx)
	return end
}

// isQuestion tells what the SDK's session is not to see.
func isQuestion(m message) bool {
	return m.ID != nil && raw.Unquote(m.Method) == "elicitation/create"
}
