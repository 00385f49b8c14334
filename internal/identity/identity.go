// Package identity decides who may see and call what, and how much of it.
package identity

import (
	"slices"
	"strings"

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

// Allows implements [bridge.Policy].
func (e Everyone) Allows(_ bridge.Caller, handle, tool string) bool {
	name := handle + "/" + tool
	return (e.Allow == nil || bridge.MatchAny(e.Allow, name)) && !bridge.MatchAny(e.Deny, name)
}

// Sees implements [bridge.Policy].
func (e Everyone) Sees(_ bridge.Caller, handle string) bool {
	for _, g := range e.Deny {
		if all, ok := strings.CutSuffix(g, "/*"); g == "*" || ok && bridge.MatchGlob(all, handle) {
			return false
		}
	}
	return e.Allow == nil || slices.ContainsFunc(e.Allow, func(g string) bool { return mayMatch(g, handle) })
}

// mayMatch reports whether the glob matches handle/tool for some tool.
func mayMatch(glob, handle string) bool {
	for i, c := range glob {
		switch c {
		case '/': // the glob's part before it is the handle's
			if bridge.MatchGlob(glob[:i], handle) {
				return true
			}
		case '*': // the star takes the slash, and all of the tool that the rest does not
			if bridge.MatchGlob(glob[:i+1], handle+"/") {
				return true
			}
		}
	}
	return false
}
