package openapi

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/raw"
)

// cutNulls returns the document without the members that are null, where the
// schema says plainly that they are properties, not required, and not to be null;
// all other bytes stay. It returns doc itself if there are none. It goes into
// parts of the document along properties and items, through references, allOf,
// and the one alternative of an anyOf or oneOf that the type of the value leaves.
// Where it depends on more than that what a member is, nothing is cut.
func cutNulls(s *jsonschema.Schema, doc []byte) []byte {
	n := nulls{reader: reader{b: doc, depth: maxDocNesting}}
	n.value([]*jsonschema.Schema{s})
	if len(n.cuts) == 0 {
		return doc
	}
	slices.SortFunc(n.cuts, func(a, b [2]int) int { return a[0] - b[0] })
	out := make([]byte, 0, len(doc))
	last := 0
	for _, c := range n.cuts {
		out = append(out, doc[last:c[0]]...)
		last = c[1]
	}
	return append(out, doc[last:]...)
}

type nulls struct {
	reader
	cuts [][2]int // ranges of bytes to leave out; they do not overlap
}

// value walks over the value at the cursor, to which all the schemas apply.
func (n *nulls) value(in []*jsonschema.Schema) {
	switch n.peek() {
	case '{':
		n.object(plain(in, "object"))
	case '[':
		in = plain(in, "array")
		more, err := n.enter(']')
		for i := 0; more && err == nil; more = !n.leave(']') {
			n.value(items(in, i))
			i++
		}
	case '"':
		n.str()
	default:
		n.scalar()
	}
}

func (n *nulls) object(in []*jsonschema.Schema) {
	kept := -1    // end of the last member that stays
	dropped := -1 // start of one that goes and has none that stays before it
	more, err := n.enter('}')
	for ; more && err == nil; more = !n.leave('}') {
		n.peek()
		from := n.i
		if dropped >= 0 {
			n.cuts = append(n.cuts, [2]int{dropped, from}) // with the comma behind it
			dropped = -1
		}
		name := raw.Unquote(n.name())
		isNull := n.peek() == 'n'
		n.value(properties(in, name))
		switch {
		case !isNull || !unwanted(in, name):
			kept = n.i
		case kept >= 0:
			n.cuts = append(n.cuts, [2]int{kept, n.i}) // with the comma before it
			kept = n.i
		default:
			dropped = from
		}
		if dropped >= 0 && n.peek() == '}' {
			n.cuts = append(n.cuts, [2]int{dropped, n.i})
			dropped = -1
		}
	}
}

// unwanted reports whether a null for the property must not be, and need not be.
func unwanted(in []*jsonschema.Schema, name string) bool {
	for _, s := range in {
		if slices.Contains(s.Required, name) {
			return false
		}
	}
	return slices.ContainsFunc(properties(in, name), func(p *jsonschema.Schema) bool { return p.Validate(nil) != nil })
}

func properties(in []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var ps []*jsonschema.Schema
	for _, s := range in {
		if p := s.Properties[name]; p != nil {
			ps = append(ps, p)
		}
	}
	return ps
}

// items returns the schemas of an array's element.
func items(in []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var es []*jsonschema.Schema
	for _, s := range in {
		list, rest := s.PrefixItems, s.Items2020
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			rest = items
		case []*jsonschema.Schema:
			list = items
			rest, _ = s.AdditionalItems.(*jsonschema.Schema)
		}
		if i < len(list) {
			es = append(es, list[i])
		} else if rest != nil {
			es = append(es, rest)
		}
	}
	return es
}

// plain returns the schemas that certainly apply to a value of that type if it is
// valid: those given, what they refer to, their allOf, and lone alternatives.
func plain(in []*jsonschema.Schema, kind string) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	var add func(s *jsonschema.Schema)
	add = func(s *jsonschema.Schema) {
		if s == nil || slices.Contains(out, s) {
			return
		}
		out = append(out, s)
		add(s.Ref)
		for _, sub := range s.AllOf {
			add(sub)
		}
		add(lone(s.AnyOf, kind))
		add(lone(s.OneOf, kind))
	}
	for _, s := range in {
		add(s)
	}
	return out
}

// lone returns the one alternative that allows the type, or nil.
func lone(alternatives []*jsonschema.Schema, kind string) *jsonschema.Schema {
	var found *jsonschema.Schema
	for _, s := range alternatives {
		if !allows(s, kind) {
			continue
		}
		if found != nil {
			return nil
		}
		found = s
	}
	return found
}

// allows reports whether a schema may allow values of a type, going by its own
// types and those of what it refers to.
func allows(s *jsonschema.Schema, kind string) bool {
	for range 10 {
		if s.Bool != nil {
			return *s.Bool
		}
		if s.Types != nil && !slices.Contains(s.Types.ToStrings(), kind) {
			return false
		}
		if s.Ref == nil {
			return true
		}
		s = s.Ref
	}
	return true
}
