package artifacts

import (
	"fmt"
	"strconv"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// shownKeys is how many keys an error lists.
const shownKeys = 20

// lookup resolves a JSON pointer (RFC 6901) that begins at v.
func (a *Artifact) lookup(v *Value, pointer string) (*Value, error) {
	if err := checkPointer(pointer); err != nil {
		return nil, err
	}
	at := *v
	at.trail = nil
	at.Pointer = pointer
	for done := 0; done < len(pointer); {
		end := len(pointer)
		if i := strings.IndexByte(pointer[done+1:], '/'); i >= 0 {
			end = done + 1 + i
		}
		next, ok := a.step(&at, unescapeToken.Replace(pointer[done+1:end]))
		if err := a.c.failed(); err != nil {
			return nil, err
		}
		if !ok {
			return nil, a.lost(&at, pointer, done)
		}
		at.span, at.wrapped, at.Kind = next, false, a.c.kind(next)
		done = end
		at.trail = append(at.trail, step{next.from, done})
	}
	if err := a.c.failed(); err != nil {
		return nil, err
	}
	return &at, nil
}

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// checkPointer refuses what is no JSON pointer at all.
func checkPointer(p string) error {
	bad := p != "" && p[0] != '/'
	for i := 0; i < len(p) && !bad; i++ {
		bad = p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1')
	}
	if bad {
		return &bridge.Error{
			Kind: bridge.Malformed, Op: "artifacts.lookup",
			Msg: "The pointer is not a JSON pointer (RFC 6901): it is empty or begins with a slash, and a tilde in it is written ~0, a slash in a key ~1.",
		}
	}
	return nil
}

// A step is a value that a pointer leads through: where it begins, and how much
// of the pointer leads to it.
type step struct{ from, pointer int }

// step returns the child of v that a reference token names.
func (a *Artifact) step(v *Value, token string) (span, bool) {
	switch {
	case v.wrapped:
		return v.span, token == "content"
	case v.Kind == raw.Object:
		return a.c.member(v.span, token)
	case v.Kind == raw.Array:
		// Digits without leading zeros (section 4).
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || strconv.Itoa(n) != token {
			return span{}, false
		}
		return a.c.item(v.span, n)
	}
	return span{}, false
}

// lost says how far a pointer resolved, and what is there.
func (a *Artifact) lost(v *Value, pointer string, done int) error {
	e := &bridge.Error{
		Kind: bridge.NotFound, Op: "artifacts.lookup",
		Members: map[string]any{"pointer": pointer, "resolved": pointer[:done]},
	}
	where := fmt.Sprintf("The pointer resolves only up to %q, where", pointer[:done])
	switch v.Kind {
	case raw.Object:
		keys, count := a.keys(v)
		e.Members["keys"], e.Members["keys_count"] = keys, count
		e.Msg = fmt.Sprintf("%s there is an object without such a key; the keys that it has are listed.", where)
	case raw.Array:
		n := a.c.count(v.span)
		e.Members["length"] = n
		e.Msg = fmt.Sprintf("%s there is an array of %d items, without such an index.", where, n)
	default:
		e.Msg = fmt.Sprintf("%s there is a value that has no members.", where)
	}
	if err := a.c.failed(); err != nil {
		return err
	}
	return e
}

// keys returns the first keys of an object, and how many there are.
func (a *Artifact) keys(v *Value) ([]string, int) {
	if v.wrapped {
		return []string{"content"}, 1
	}
	keys := []string{}
	for m := range a.c.children(v.span, 0) {
		if len(keys) == shownKeys {
			break
		}
		keys = append(keys, a.shortKey(m.key))
	}
	return keys, a.c.count(v.span)
}

// shortKey returns the text of a key, of a very long one the beginning.
func (a *Artifact) shortKey(key span) string {
	const most = 1 << 10
	k := a.c.need(key.from+1, key.to-key.from-2)
	if len(k) <= most {
		return unquoteInner(k)
	}
	return unquoteInner(k[:charsEnd(k, 0, most)]) + "…"
}
