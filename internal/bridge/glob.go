package bridge

import (
	"path"
	"strings"
)

// MatchGlob reports whether the whole name matches the glob, in the syntax of
// [path.Match] but for slashes, which are characters like any other: a tool's
// name is one name, whatever it looks like. A glob that is malformed matches nothing.
func MatchGlob(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// MatchAny reports whether one of the globs matches the name.
func MatchAny(globs []string, name string) bool {
	for _, g := range globs {
		if MatchGlob(g, name) {
			return true
		}
	}
	return false
}
