package artifacts

import (
	"context"

	"mcpbridge/internal/bridge"
)

// Discard is a [bridge.Keeper] that keeps nothing: calls are answered without a reference.
type Discard struct{}

var _ bridge.Keeper = Discard{}

// Keep implements [bridge.Keeper].
func (Discard) Keep(context.Context, bridge.Caller, *bridge.Tool, *bridge.Result, *bridge.Timing) *bridge.Artifact {
	return nil
}
