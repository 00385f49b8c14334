package mcp

import (
	"path"
	"strings"
)

// matchGlob reports whether the whole name matches the glob, in the syntax of
// [path.Match] but for slashes, which are characters like any other: a tool's
// name is one name. A glob that is malformed matches nothing.
func matchGlob(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}
