package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"mcpbridge/internal/raw"
)

// A reader walks once over JSON that is known to be valid.
type reader struct {
	b      []byte
	i      int
	values int // values seen so far
	depth  int // levels that are still allowed
}

var (
	errTooDeep = errors.New("nested too deeply")
	errTooMany = errors.New("too many values")
	errNumber  = errors.New("a number too long to calculate with")
)

func (r *reader) space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\t' || r.b[r.i] == '\r') {
		r.i++
	}
}

// peek returns the next byte that is not white space, without taking it.
func (r *reader) peek() byte {
	r.space()
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

// str takes the string at the cursor, with its quotes.
func (r *reader) str() []byte {
	from := r.i
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			r.i++
		case '"':
			r.i++
			return r.b[from:r.i]
		}
	}
	return r.b[from:]
}

// scalar takes the number or literal at the cursor.
func (r *reader) scalar() []byte {
	from := r.i
	for r.i < len(r.b) && bytes.IndexByte([]byte(",]} \n\t\r"), r.b[r.i]) < 0 {
		r.i++
	}
	return r.b[from:r.i]
}

// enter takes an opening bracket and reports whether something is in it.
func (r *reader) enter(closing byte) (bool, error) {
	r.i++
	if r.depth--; r.depth < 0 {
		return false, errTooDeep
	}
	return !r.leave(closing), nil
}

// leave takes the closing bracket if it is next; the comma is taken too.
func (r *reader) leave(closing byte) bool {
	switch r.peek() {
	case closing, 0:
		r.i++
		r.depth++
		return true
	case ',':
		r.i++
	}
	return false
}

// name takes the name of a member and its colon.
func (r *reader) name() []byte {
	r.peek()
	k := r.str()
	r.peek()
	r.i++
	return k
}

// decode returns JSON as what the checker of schemas works on: numbers keep their
// digits. It stops at more than limit values.
func decode(b []byte, limit int) (v any, values int, err error) {
	r := reader{b: b, depth: maxDocNesting}
	v, err = r.value(limit)
	return v, r.values, err
}

func (r *reader) value(limit int) (any, error) {
	if r.values++; r.values > limit {
		return nil, errTooMany
	}
	switch r.peek() {
	case '{':
		obj := map[string]any{}
		more, err := r.enter('}')
		for ; more && err == nil; more = !r.leave('}') {
			k := raw.Unquote(r.name())
			if obj[k], err = r.value(limit); err != nil {
				return nil, err
			}
		}
		return obj, err
	case '[':
		arr := []any{}
		more, err := r.enter(']')
		for ; more && err == nil; more = !r.leave(']') {
			e, err := r.value(limit)
			if err != nil {
				return nil, err
			}
			arr = append(arr, e)
		}
		return arr, err
	case '"':
		return raw.Unquote(r.str()), nil
	case 't':
		r.scalar()
		return true, nil
	case 'f':
		r.scalar()
		return false, nil
	case 'n':
		r.scalar()
		return nil, nil
	default:
		n := r.scalar()
		if !moderate(n) {
			return nil, errNumber
		}
		return json.Number(n), nil
	}
}

// moderate reports whether exact arithmetic on a number is quick: with an exponent
// of a million it takes seconds.
func moderate(n []byte) bool {
	if len(n) > 4096 {
		return false
	}
	i := bytes.IndexAny(n, "eE")
	return i < 0 || len(bytes.TrimLeft(n[i+1:], "+-0")) <= 3
}

// A node is a JSON value as a tree that keeps the order of members and the bytes
// of scalars. Nodes are shared and never changed once they are read.
type node struct {
	kind    raw.Kind
	members []member
	elems   []*node
	raw     []byte // of a scalar; a string is valid UTF-8
	cells   int    // values in it, itself included
	height  int    // levels in it; 1 for a scalar
}

type member struct {
	key string
	val *node
}

// parse reads JSON of any kind into a tree.
func parse(b []byte) (*node, error) {
	if err := raw.CheckAny(b); err != nil {
		return nil, err
	}
	r := reader{b: b, depth: maxSchemaNesting}
	return r.node()
}

func (r *reader) node() (*node, error) {
	from := r.values
	r.values++
	n := &node{height: 1}
	switch r.peek() {
	case '{':
		n.kind = raw.Object
		more, err := r.enter('}')
		if err != nil {
			return nil, err
		}
		for ; more; more = !r.leave('}') {
			key := raw.Unquote(r.name())
			v, err := r.node()
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{key, v})
			n.height = max(n.height, v.height+1)
		}
		n.members = unique(n.members)
	case '[':
		n.kind = raw.Array
		more, err := r.enter(']')
		if err != nil {
			return nil, err
		}
		for ; more; more = !r.leave(']') {
			e, err := r.node()
			if err != nil {
				return nil, err
			}
			n.elems = append(n.elems, e)
			n.height = max(n.height, e.height+1)
		}
	case '"':
		n.kind, n.raw = raw.String, wellFormed(r.str())
	default:
		n.raw = r.scalar()
		n.kind = raw.KindOf(n.raw)
	}
	n.cells = r.values - from
	return n, nil
}

// unique keeps the last of members with the same name, as parsers do: a document
// with both would not be valid for all of them.
func unique(ms []member) []member {
	seen := make(map[string]int, len(ms))
	out := ms[:0]
	for _, m := range ms {
		if i, ok := seen[m.key]; ok {
			out[i].val = m.val
			continue
		}
		seen[m.key] = len(out)
		out = append(out, m)
	}
	return out
}

// wellFormed returns the quoted string, and if it is not Unicode (a byte that is
// no UTF-8, half a surrogate pair) one with U+FFFD there.
func wellFormed(s []byte) []byte {
	if utf8.Valid(s) && !bytes.Contains(s, []byte(`\ud`)) && !bytes.Contains(s, []byte(`\uD`)) {
		return s
	}
	return raw.AppendQuote(nil, raw.Unquote(s))
}

// get returns the member called key, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.val
		}
	}
	return nil
}

// text returns the string that n is, or "".
func (n *node) text() string {
	if n == nil || n.kind != raw.String {
		return ""
	}
	return raw.Unquote(n.raw)
}

// is reports whether n is of one of the kinds.
func (n *node) is(kinds ...raw.Kind) bool {
	return n != nil && slices.Contains(kinds, n.kind)
}

// isTrue reports whether n is the literal true.
func (n *node) isTrue() bool { return n.is(raw.Bool) && n.raw[0] == 't' }

// isFalse reports whether n is the literal false.
func (n *node) isFalse() bool { return n.is(raw.Bool) && n.raw[0] == 'f' }

// write appends the tree as JSON without white space.
func (n *node) write(w *writer) {
	switch n.kind {
	case raw.Object:
		w.open('{')
		for _, m := range n.members {
			w.key(m.key)
			m.val.write(w)
		}
		w.close('}')
	case raw.Array:
		w.open('[')
		for _, e := range n.elems {
			e.write(w)
		}
		w.close(']')
	default:
		w.comma()
		w.b = append(w.b, n.raw...)
	}
}

func object(ms ...member) *node { return &node{kind: raw.Object, members: ms} }
func array(es ...*node) *node   { return &node{kind: raw.Array, elems: es} }
func quoted(s string) *node     { return &node{kind: raw.String, raw: raw.AppendQuote(nil, s)} }
