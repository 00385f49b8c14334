package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"mcpbridge/internal/mcp/rpc"
)

// wire says how a request goes to the server.
func (c *Conn) wire(id string, e *era) rpc.Wire {
	w := rpc.Wire{ID: id}
	if e.session != "" {
		sum := sha256.Sum256([]byte(e.session))
		w.Session = hex.EncodeToString(sum[:8])
	}
	if c.o.Display != "" {
		return w
	}
	w.Host, w.Port = c.url.Hostname(), 80
	if c.url.Scheme == "https" {
		w.Port = 443
	}
	if n, err := strconv.Atoi(c.url.Port()); err == nil {
		w.Port = n
	}
	return w
}
