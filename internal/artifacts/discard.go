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

// ReadText is that of a [Keeper] without artifacts.
func (Discard) ReadText(context.Context, bridge.Caller, string, string, int, int) (text string, next int, err error) {
	return "", 0, notFound()
}

// SearchText is that of a [Keeper] without artifacts.
func (Discard) SearchText(context.Context, bridge.Caller, string, string, func(pointer string, offset int, excerpt string)) (more bool, err error) {
	return false, notFound()
}
