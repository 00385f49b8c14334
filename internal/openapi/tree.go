package openapi

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"mcpbridge/internal/raw"
)

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
	if distinctKeys(ms) {
		return ms
	}
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

// distinctKeys reports, of few members, whether no two have the same name. A map
// costs more than comparing them.
func distinctKeys(ms []member) bool {
	for i, m := range ms {
		if i >= 16 || slices.ContainsFunc(ms[:i], func(o member) bool { return o.key == m.key }) {
			return false
		}
	}
	return true
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
