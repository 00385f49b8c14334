package openapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// maxID is the longest operationId: what tool hosts take as a function's name.
const maxID = 64

// OperationID names a tool among all tools: <handle>__<tool> where that can be
// read back (the handle holds no "__" and does not end in "_", all is within
// [A-Za-z0-9_-]{1,64}), else the cleaned names and a short hash of the exact
// ones. It depends on these two names alone, so it never changes because another
// tool comes or goes.
func OperationID(handle, tool string) string {
	id := handle + "__" + tool
	if handle != "" && plainID(id) && plainID(tool) && !strings.Contains(handle, "__") && !strings.HasSuffix(handle, "_") {
		return id
	}
	return hashedID(id, handle, tool)
}

// ToolID names a tool among those of its handle: its own name where that is an
// identifier of at most 64 characters, else the cleaned name and a short hash.
func ToolID(tool string) string {
	if plainID(tool) {
		return tool
	}
	return hashedID(tool, tool)
}

// mcpoID names a tool as mcpo does, by the path and method of its operation, where
// that is at most 64 characters.
func mcpoID(tool string) string {
	id := "tool_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, tool) + "_post"
	if len(id) > maxID {
		return hashedID(id, tool)
	}
	return id
}

const hashChars = 8

// plainID reports whether s can stand as an operationId as it is. What looks like
// a cleaned name with its hash cannot, else a name could be chosen that equals one.
func plainID(s string) bool {
	if s == "" || len(s) > maxID || clean(s) != s {
		return false
	}
	i := len(s) - hashChars - 1
	return i < 0 || s[i] != '_' || strings.Trim(s[i+1:], "0123456789abcdef") != ""
}

// hashedID returns the readable part of text, and a hash of the exact names.
func hashedID(text string, names ...string) string {
	text = clean(text)
	text = text[:min(len(text), maxID-hashChars-1)]
	return cmp.Or(strings.Trim(text, "_-"), "tool") + "_" + shortHash(names...)
}

// shortHash is a hash of names that fits into identifiers.
func shortHash(names ...string) string { return longHash(names...)[:hashChars] }

// longHash tells lists of names apart, also ("a", "bc") from ("ab", "c").
func longHash(names ...string) string {
	h := sha256.New()
	for _, n := range names {
		sum := sha256.Sum256([]byte(n))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:maxID]
}

// clean replaces every run of bytes outside [A-Za-z0-9_-] by one underscore.
func clean(s string) string {
	var b strings.Builder
	bad := false
	for _, c := range []byte(s) {
		ok := c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		switch {
		case ok:
			b.WriteByte(c)
		case !bad:
			b.WriteByte('_')
		}
		bad = !ok
	}
	return b.String()
}

// componentPrefix returns <handle>.<tool>. for the keys of a tool's own schemas
// among the components, which allow [A-Za-z0-9._-] only.
func componentPrefix(handle, tool string) string {
	h, t := clean(handle), clean(tool)
	h, t = h[:min(len(h), maxID)], t[:min(len(t), maxID)]
	if h != handle || t != tool || h == "" || t == "" {
		return h + "." + t + "-" + shortHash(handle, tool) + "."
	}
	return h + "." + t + "."
}

// segment returns a name as one segment of a path in a document: braces too are
// encoded, which would make it a template.
func segment(name string) string { return url.PathEscape(name) }

// carried reports whether a name can be a segment of a path. Clients resolve dots
// away, encoded or not, and an empty segment names the directory; such tools can
// be called by POST /tools/{handle}?tool=, which no document can express.
func carried(name string) bool { return name != "" && name != "." && name != ".." }
