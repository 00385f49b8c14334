// Package identity decides who may see and call what, and how much of it.
package identity

import (
	"context"

	"mcpbridge/internal/bridge"
)

// Everyone is the policy without keys: every caller may call everything, without a budget.
type Everyone struct{}

var (
	_ bridge.Policy = Everyone{}
	_ bridge.Budget = Everyone{}
)

// Allows implements [bridge.Policy].
func (Everyone) Allows(bridge.Caller, string, string) bool { return true }

// Spend implements [bridge.Budget].
func (Everyone) Spend(context.Context, bridge.Caller) (func(), error) { return func() {}, nil }
