// Package identity decides who may see and call what, and how much of it.
package identity

import (
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
)

// Rules implements [bridge.Policy]: each caller has the rule that it came with.
type Rules struct{}

var _ bridge.Policy = Rules{}

// builtin is the handle of the bridge's own tools, which a rule has to name.
const builtin = "bridge"

// Allows implements [bridge.Policy].
func (Rules) Allows(c bridge.Caller, handle, tool string) bool {
	r := c.Rule
	if r == nil {
		return handle != builtin
	}
	name := handle + "/" + tool
	return allows(r.Allow, handle, func(g string) bool { return bridge.MatchGlob(g, name) }) && !bridge.MatchAny(r.Deny, name)
}

// Sees implements [bridge.Policy].
func (Rules) Sees(c bridge.Caller, handle string) bool {
	r := c.Rule
	if r == nil {
		return handle != builtin
	}
	for _, g := range r.Deny {
		if all, ok := strings.CutSuffix(g, "/*"); g == "*" || ok && bridge.MatchGlob(all, handle) {
			return false
		}
	}
	return allows(r.Allow, handle, func(g string) bool { return mayMatch(g, handle) })
}

// allows reports whether one of the globs matches. None at all allows everything but the
// built-in server, which only a glob that spells its handle allows.
func allows(globs []string, handle string, matches func(glob string) bool) bool {
	if handle == builtin {
		return slices.ContainsFunc(globs, func(g string) bool { return strings.HasPrefix(g, builtin+"/") && matches(g) })
	}
	return globs == nil || slices.ContainsFunc(globs, matches)
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
