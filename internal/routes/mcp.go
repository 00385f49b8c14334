package routes

import "net/http"

// mcpRoutes lets MCP clients in, behind the checks that all requests pass. The
// protocol is MCP's own, so it is no operation of the document.
func (s *server) mcpRoutes() {
	if s.MCP == nil {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange) // no middleware of the router wraps it
		x.enter(r, "/mcp")
		c, err := x.identify(r)
		if err != nil {
			x.fail(r, err)
			return
		}
		x.read = true // the bound for bodies that nobody reads is not for streams
		s.MCP(x, r, c, x.trace)
	}
	for _, path := range [...]string{"/mcp", "/mcp/"} {
		for _, m := range [...]string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			s.mux.MethodFunc(m, path, serve)
		}
	}
}
