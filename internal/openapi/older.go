package openapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mcpbridge/internal/raw"
)

// older makes OpenAPI 3.0.3 of 3.1. What that version can say otherwise is said
// otherwise; what it cannot say is left out, in a way that the schema then accepts
// more, never less.
func older(components *node) conversion {
	o := &downgrade{wider: map[string]bool{}}
	o.survey(components.get("schemas"))
	one := func(n *node) *node { n, _ = o.schema(n); return n }
	in := func(n *node) *node { return contents(n, one) }
	return conversion{
		version: "3.0.3",
		operation: func(op *node) *node {
			return op.replace("requestBody", in).replace("responses", func(r *node) *node { return r.each(in) })
		},
		components: components.
			replace("schemas", func(s *node) *node { return s.each(one) }).
			replace("responses", func(r *node) *node { return r.each(in) }),
	}
}

// A downgrade converts the schemas of one document.
type downgrade struct {
	wider map[string]bool // :: component that accepts more than it did -> true

	// While components are looked at for the first time: those that the present one refers to.
	refs map[string]bool
}

// survey finds the components that accept more than they did, also because one
// that they refer to does.
func (o *downgrade) survey(schemas *node) {
	users := map[string][]string{} // :: component -> those that refer to it
	var found []string
	for _, m := range schemas.members {
		o.refs = map[string]bool{}
		if _, same := o.schema(m.val); !same {
			found = append(found, m.key)
		}
		for name := range maps.Keys(o.refs) {
			users[name] = append(users[name], m.key)
		}
	}
	o.refs = nil
	for len(found) > 0 {
		name := found[len(found)-1]
		found = found[:len(found)-1]
		if !o.wider[name] {
			o.wider[name] = true
			found = append(found, users[name]...)
		}
	}
}

// schema converts a schema, and reports whether it still accepts the same values.
func (o *downgrade) schema(n *node) (converted *node, same bool) {
	switch {
	case n.isTrue():
		return object(), true
	case n.isFalse():
		return object(member{"not", object()}), true
	}
	s := &oldSchema{o: o, from: n, same: true}
	for _, m := range n.members {
		s.keyword(m)
	}
	s.types()
	return s.end(), s.same
}

func (o *downgrade) schemas(ns []*node) (converted []*node, same bool) {
	same = true
	for _, n := range ns {
		c, ok := o.schema(n)
		converted, same = append(converted, c), same && ok
	}
	return converted, same
}

// An oldSchema is a schema of 3.0 in the making.
type oldSchema struct {
	o    *downgrade
	from *node
	out  []member
	ref  *node
	all  []*node // what goes below allOf
	same bool    // it accepts what it did, and no more
}

func (s *oldSchema) has(key string) bool {
	return slices.ContainsFunc(s.out, func(m member) bool { return m.key == key })
}

// add writes a keyword; a second one of the same name holds beside the first.
func (s *oldSchema) add(key string, v *node) {
	if s.has(key) {
		s.all = append(s.all, object(member{key, v}))
		return
	}
	s.out = append(s.out, member{key, v})
}

func (s *oldSchema) one(n *node) *node {
	c, same := s.o.schema(n)
	s.same = s.same && same
	return c
}

func (s *oldSchema) keyword(m member) {
	switch m.key {
	case "title", "description", "format", "default", "example", "deprecated",
		"multipleOf", "minLength", "maxLength", "pattern", "minItems", "uniqueItems", "minProperties", "maxProperties":
		s.add(m.key, m.val)
	case "readOnly", "writeOnly":
		// In 3.0 they forbid a value, here they only tell something.
		s.add("x-"+m.key, m.val)
	case "externalDocs":
		if m.val.get("url").is(raw.String) && len(m.val.members) == 1 {
			s.add(m.key, m.val)
		}
	case "examples":
		if es := m.val.elems; len(es) > 0 && s.from.get("example") == nil {
			s.add("example", es[0])
		}
		if len(m.val.elems) > 1 {
			s.add("x-examples", m.val)
		}
	case "$ref":
		name := strings.TrimPrefix(m.val.text(), schemaPath)
		if s.o.refs != nil {
			s.o.refs[name] = true
		}
		s.ref, s.same = object(m), s.same && !s.o.wider[name]
	case "enum", "const":
		s.values(m)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		s.bound(m)
	case "required":
		if len(m.val.elems) > 0 {
			s.add(m.key, m.val)
		}
	case "properties":
		s.add(m.key, m.val.each(s.one))
	case "additionalProperties":
		s.add(m.key, s.additional(m.val))
	case "items":
		if s.from.get("prefixItems") == nil {
			s.add(m.key, s.one(m.val))
		}
	case "prefixItems":
		s.tuple(m.val)
	case "maxItems":
		if s.from.get("prefixItems") == nil {
			s.add(m.key, m.val)
		}
	case "allOf":
		cs, same := s.o.schemas(m.val.elems)
		s.all, s.same = append(s.all, cs...), s.same && same
	case "anyOf", "oneOf":
		s.alternatives(m)
	case "not":
		if c, same := s.o.schema(m.val); same {
			s.add(m.key, c)
		} else {
			s.same = false // refusing more than was refused is what must not be
		}
	case "type":
	default:
		if strings.HasPrefix(m.key, "x-") {
			s.add(m.key, m.val)
		}
		s.same = s.same && !keywords[m.key].asserts
	}
}

// values converts const to enum.
func (s *oldSchema) values(m member) {
	if m.key == "const" {
		m.val = array(m.val)
	}
	s.add("enum", m.val)
}

// bound converts numeric exclusive bounds to flags.
func (s *oldSchema) bound(m member) {
	base := strings.ToLower(strings.TrimPrefix(m.key, "exclusive"))
	in, ex := s.from.get(base), s.from.get(exclusive(base))
	useExclusive := ex.is(raw.Number)
	if useExclusive && in.is(raw.Number) {
		i, e := float(in), float(ex)
		useExclusive = base == "minimum" && e >= i || base == "maximum" && e <= i
	}
	switch {
	case m.key == base && !useExclusive:
		s.add(base, in)
	case m.key != base && useExclusive:
		s.add(base, ex)
		s.add(m.key, yes)
	}
}

var (
	yes   = &node{kind: raw.Bool, raw: []byte("true")}
	no    = &node{kind: raw.Bool, raw: []byte("false")}
	null  = &node{kind: raw.Null, raw: []byte("null")}
	count = func(n int) *node { return &node{kind: raw.Number, raw: strconv.AppendInt(nil, int64(n), 10)} }
)

func float(n *node) float64 {
	f, _ := strconv.ParseFloat(string(n.raw), 64) // documents hold no number that cannot be read
	return f
}

// additional converts what other properties must be. Names with a pattern of their
// own become such others.
func (s *oldSchema) additional(n *node) *node {
	patterns := s.from.get("patternProperties")
	if patterns == nil || len(patterns.members) == 0 || n.isTrue() {
		if n.is(raw.Bool) {
			return n
		}
		return s.one(n)
	}
	kinds := []*node{n}
	for _, p := range patterns.members {
		kinds = append(kinds, p.val)
	}
	return s.either(kinds)
}

// either is a schema for what fits one of several.
func (s *oldSchema) either(kinds []*node) *node {
	var cs []*node
	seen := map[string]bool{}
	for _, k := range kinds {
		if k.refusesAll() {
			continue
		}
		c := s.one(k)
		if len(c.members) == 0 {
			return c
		}
		if b := string(bytesOf(c)); !seen[b] {
			seen[b] = true
			cs = append(cs, c)
		}
	}
	switch len(cs) {
	case 0:
		return object(member{"not", object()})
	case 1:
		return cs[0]
	default:
		return object(member{"anyOf", array(cs...)})
	}
}

// tuple converts positions: every element fits one of them.
func (s *oldSchema) tuple(n *node) {
	rest := s.from.get("items")
	kinds := n.elems
	longest := s.from.get("maxItems")
	switch {
	case longest != nil && float(longest) <= float64(len(kinds)): // there is no rest
	case rest == nil:
		kinds = []*node{yes}
	default:
		kinds = append([]*node{rest}, kinds...)
	}
	s.add("items", s.either(kinds))
	if longest != nil {
		s.add("maxItems", longest)
	}
	s.same = false
}

// end joins what was made.
func (s *oldSchema) end() *node {
	if s.ref != nil {
		if len(s.out)+len(s.all) == 0 {
			return s.ref
		}
		s.all = append([]*node{s.ref}, s.all...)
	}
	if len(s.all) > 0 {
		s.out = append(s.out, member{"allOf", array(s.all...)})
	}
	return object(s.out...)
}
