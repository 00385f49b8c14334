package routes

import (
	"net/http"

	"mcpbridge/internal/bridge"
)

// untraced are the routes that machines and pages ask for all the time, or for ever.
var untraced = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true, "/": true, "/console/events": true, "/docs/assets/{name}": true}

// enter makes the request a part of its caller's trace, now that its route is known.
func (x *exchange) enter(r *http.Request, route string) {
	x.trace = bridge.TraceOf(r.Header)
	if x.s.Trace != nil && !untraced[route] {
		x.trace, x.traced = x.s.Trace(x.trace, r.Method, route, x.start)
	}
}

// origin gives a call what says in logs and traces where it came from.
func (x *exchange) origin(c *bridge.Call) { c.ID, c.Trace = x.id, x.trace }
