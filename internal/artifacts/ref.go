package artifacts

import (
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"
)

// mcpType is the type, and the alias in references, of what has no other.
const mcpType = "mcp"

// A reference names an artifact: <alias>~<id>, and of a nested one .<n> for each
// level behind it. Ours have 128 random bits as their id, which are 26 characters of base32.
type reference struct {
	root string // without the nested part
	path []int  // the nested part, from the outside in; each from 1
}

// mint returns a new reference of ours.
func mint() string { return mcpType + "~" + strings.ToLower(rand.Text()[:26]) }

// nonce returns a name for bytes that are stored side by side with others under one reference.
func nonce() string { return strings.ToLower(rand.Text()[:12]) }

// A reference is safe as a segment of a path and in a header.
var (
	refSyntax  = regexp.MustCompile(`^([a-z0-9-]+(?::[a-z0-9-]+)*)~([A-Za-z0-9_-]{1,128})((?:\.[1-9][0-9]{0,8})*)$`)
	maxAlias   = 128
	maxRef     = 64 << 10
	refOpen    = "«"
	refClose   = "»"
	refArticle = "artifact:"
)

// parseRef reads a reference in any of its spellings: «artifact:mcp~…», artifact:mcp~… or mcp~….
func parseRef(s string) (reference, bool) {
	if in, ok := strings.CutPrefix(s, refOpen); ok {
		if s, ok = strings.CutSuffix(in, refClose); !ok {
			return reference{}, false
		}
	}
	s = strings.TrimPrefix(s, refArticle)
	if len(s) > maxRef {
		return reference{}, false
	}
	m := refSyntax.FindStringSubmatch(s)
	if m == nil || len(m[1]) > maxAlias {
		return reference{}, false
	}
	r := reference{root: m[1] + "~" + m[2]}
	if m[3] != "" {
		for n := range strings.SplitSeq(m[3][1:], ".") {
			i, err := strconv.Atoi(n)
			if err != nil {
				return reference{}, false
			}
			r.path = append(r.path, i)
		}
	}
	return r, true
}

// alias returns the part of the reference that says what type of artifact it names.
func (r reference) alias() string {
	a, _, _ := strings.Cut(r.root, "~")
	return a
}

func (r reference) String() string {
	var b strings.Builder
	b.WriteString(r.root)
	for _, n := range r.path {
		b.WriteByte('.')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
