package mcp

import (
	"fmt"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// An Own says how a server is connected that callers do not share.
type Own struct {
	ByTenant bool     // the callers of one tenant share it; otherwise each user has its own
	Headers  []string // canonical names of the headers of a caller's request that For takes
	// Template is equal for two of them only if their For makes the same endpoint for the same caller.
	Template [32]byte
	// For makes the endpoint of one caller. Its errors are of kind Forbidden, and say what the caller lacks.
	For func(bridge.Caller) (Endpoint, error)
}

// owner returns whom the caller's endpoint of the server called handle belongs to.
func (o *Own) owner(c *bridge.Caller, handle string) (bridge.Owner, error) {
	switch {
	case o.ByTenant && c.Tenant == "":
		return bridge.Owner{}, forbidden("The server %q is connected for each tenant apart, and you come without one: use a key or token with a tenant.", handle)
	case o.ByTenant:
		return bridge.Owner{Tenant: c.Tenant}, nil
	case c.User == "":
		return bridge.Owner{}, forbidden("The server %q is connected for each user apart, and you come as nobody: use a key or token with a user.", handle)
	default:
		return c.Owner(), nil
	}
}

func forbidden(format string, args ...any) error {
	return &bridge.Error{Kind: bridge.Forbidden, Op: "mcp.Attach", Msg: fmt.Sprintf(format, args...)}
}

// resolve returns the server as it is connected for one caller. The owner is that of a
// server of a user's own, else nil.
func (s *ServerConfig) resolve(c *bridge.Caller, owner *bridge.Owner) (ServerConfig, error) {
	r := *s
	if s.Own != nil {
		if owner == nil {
			o, err := s.Own.owner(c, s.Handle)
			if err != nil {
				return r, err
			}
			owner = &o
		}
		e, err := s.Own.For(*c)
		if err != nil {
			return r, err
		}
		r.Endpoint, r.Own = e, nil
	}
	if owner != nil && r.Endpoint != nil {
		r.Endpoint = owned{r.Endpoint, *owner}
	}
	return r, nil
}

// owned is an endpoint that belongs to somebody: it differs from the same endpoint of
// anybody else, and so do its client, its process, its circuit and its accounts.
type owned struct {
	Endpoint
	owner bridge.Owner
}

// ID implements [Endpoint].
func (e owned) ID() bridge.EndpointID {
	inner := e.Endpoint.ID()
	// Of a struct: no owner can be mistaken for part of another one.
	sum := exactly(struct {
		endpoint [32]byte
		owner    bridge.Owner
	}{inner.Sum, e.owner})
	return bridge.EndpointID{Sum: sum, Label: inner.Label}
}

// String implements [Endpoint].
func (e owned) String() string { return e.Endpoint.String() + " #for:" + digest(12, e.owner) }

// Demand implements [Endpoint].
func (e owned) Demand() bridge.Demand {
	inner, id := e.Endpoint.ID(), e.ID()
	d := slices.Clone(e.Endpoint.Demand())
	for i := range d {
		if d[i].Account.Endpoint == inner {
			d[i].Account.Endpoint = id
		}
	}
	return d
}

func (e owned) start() time.Duration {
	if e, ok := e.Endpoint.(interface{ start() time.Duration }); ok {
		return e.start()
	}
	return 0
}
