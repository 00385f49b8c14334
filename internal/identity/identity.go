// Package identity decides who may see and call what, and how much of it.
package identity

import (
	"mcpbridge/internal/bridge"
)

// A Rule is what a caller may do. The zero Rule allows everything, without bounds.
type Rule struct {
	Allow []string // globs on handle/tool; nil allows all, empty but not nil nothing
	Deny  []string // globs on handle/tool, stronger than Allow
	Limits
}

// Everyone takes all callers as one anonymous one, under one rule.
type Everyone struct{ Rule }

var _ bridge.Policy = Everyone{}

// Allows implements [bridge.Policy]. Of a server of which no tool is known, the
// tool is "": it is seen if any tool of it could be allowed.
func (e Everyone) Allows(_ bridge.Caller, handle, tool string) bool {
	name := handle + "/" + tool
	return (e.Allow == nil || bridge.MatchAny(e.Allow, name)) && !bridge.MatchAny(e.Deny, name)
}
