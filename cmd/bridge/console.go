package main

import (
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/routes"
)

// called shows a call over MCP on the console; calls over HTTP come there by themselves.
func (a *app) called(c *bridge.Call, id string, code bridge.Kind, took time.Duration) {
	a.console.Record(c, routes.Ending{ID: id, Code: code, Took: took, In: int64(len(c.Args))})
}
