package main

import (
	"context"

	"mcpbridge/internal/local"
)

type demoCmd struct{}

// Run serves the demo over the standard streams until they end.
func (c *demoCmd) Run(ctx context.Context, io streams) error {
	return local.ServeDemo(ctx, io.stdin, io.stdout)
}
