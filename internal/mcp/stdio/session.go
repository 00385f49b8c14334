package stdio

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/raw"
)

// A wire is what the SDK's session sees of a Conn: the handshake, notifications,
// and what the server asks.
type wire struct{ c *Conn }

var (
	_ mcp.Transport  = wire{}
	_ mcp.Connection = wire{}
)

// Connect implements [mcp.Transport].
func (w wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements [mcp.Connection]. There are no sessions on a pipe.
func (w wire) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (w wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.c.toSDK:
		return m, nil
	case <-w.c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. It does not wait for the pipe.
func (w wire) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		w.c.hello.note(r)
	}
	b = append(b, '\n')
	return w.c.w.submit(&frame{buf: &b}, false)
}

// Close implements [mcp.Connection]. It does not wait.
func (w wire) Close() error {
	w.c.end(cause{closed: true})
	return nil
}

// hello is what the SDK said of us in its handshake, which the lane's requests
// repeat on the stateless protocol.
type hello struct {
	initialize         atomic.Pointer[jsonrpc.ID] // of the request; the reading goroutine asks for it
	info, capabilities []byte
}

// note looks at a request of the SDK's.
func (h *hello) note(r *jsonrpc.Request) {
	switch r.Method {
	case "initialize":
		h.initialize.Store(&r.ID)
		h.info, h.capabilities = raw.Get(r.Params, "clientInfo"), raw.Get(r.Params, "capabilities")
	case "server/discover":
		meta := raw.Get(r.Params, "_meta")
		h.info, h.capabilities = raw.Get(meta, mcp.MetaKeyClientInfo), raw.Get(meta, mcp.MetaKeyClientCapabilities)
	}
}

// meta returns the members of _meta that each request carries in this version.
func (h *hello) meta(version string) []byte {
	b := raw.AppendQuote(nil, mcp.MetaKeyProtocolVersion)
	b = append(b, ':')
	b = raw.AppendQuote(b, version)
	add := func(key string, val []byte) {
		if val != nil {
			b = append(b, ',')
			b = raw.AppendQuote(b, key)
			b = append(b, ':')
			b = append(b, val...)
		}
	}
	add(mcp.MetaKeyClientInfo, h.info)
	add(mcp.MetaKeyClientCapabilities, h.capabilities)
	return b
}

// parseID returns the id of one of the lane's requests that an answer or a
// progress notification names. Some servers turn numbers into doubles.
func parseID(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > tokenBytes {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil && strings.ContainsAny(string(b), ".eE") {
		var f float64
		if f, err = strconv.ParseFloat(string(b), 64); err == nil && f == float64(int64(f)) {
			n = int64(f)
		}
	}
	return n, err == nil && n > firstID && n < 1<<53
}
