package main

import (
	"net/http"
	"slices"
	"sync/atomic"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
)

// headerNames returns the canonical names of the headers of callers' requests that
// servers are connected with or get passed on. The configuration refuses those
// that callers show the bridge who they are in.
func headerNames(lists ...[]config.Server) []string {
	var names []string
	for _, servers := range lists {
		for i := range servers {
			if s := &servers[i]; !s.Disabled {
				names = append(append(names, s.ForwardHeaders...), takenHeaders(s)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// callerHeaders are the headers that callers come with into the bridge. Their names
// change with the configuration. The zero value has none.
type callerHeaders struct{ names atomic.Pointer[[]string] }

// set replaces the names.
func (h *callerHeaders) set(names []string) { h.names.Store(&names) }

// fill gives the caller of a request the headers that servers need, and no other.
func (h *callerHeaders) fill(c *bridge.Caller, r *http.Request) {
	c.Headers = nil
	names := h.names.Load()
	if names == nil {
		return
	}
	for _, name := range *names {
		if values := r.Header[name]; len(values) > 0 {
			if c.Headers == nil {
				c.Headers = make(map[string][]string, len(*names))
			}
			c.Headers[name] = slices.Clone(values) // the server may use the request's again
		}
	}
}

// with returns identify with the headers filled in.
func (h *callerHeaders) with(identify func(*http.Request) (bridge.Caller, error)) func(*http.Request) (bridge.Caller, error) {
	return func(r *http.Request) (bridge.Caller, error) {
		c, err := identify(r)
		if err != nil {
			return c, err
		}
		h.fill(&c, r)
		return c, nil
	}
}
