package main

import (
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/routes"
)

// called counts a call over MCP and shows it on the console; calls over HTTP come there by themselves.
func (a *app) called(c *bridge.Call, id string, code bridge.Kind, took time.Duration) {
	a.console.Record(c, routes.Ending{ID: id, Code: code, Took: took, In: int64(len(c.Args)), Out: int64(c.Received)})
	server := c.Handle
	if code == bridge.NotFound {
		server = "" // as with calls over HTTP, where it may be any text
	}
	a.observe(server, code, took)
}
