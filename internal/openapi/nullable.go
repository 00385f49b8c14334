package openapi

import (
	"slices"

	"mcpbridge/internal/raw"
)

// OpenAPI 3.0 has no type null and no lists of types: a schema of one type can be
// nullable, and that is all.

// nullOrEmpty are the members of a schema that null fits, and the empty string: with
// an enum of null Java's generator writes what does not compile, and nullable means
// nothing beside no type.
func (s *oldSchema) nullOrEmpty() []member {
	s.same = false
	return []member{{"type", quoted("string")}, {"nullable", yes}, {"maxLength", count(0)}}
}

// types writes what the type says, or what values of one type let it say:
// generators want to know it.
func (s *oldSchema) types() {
	t := s.from.get("type")
	values := s.from.get("enum")
	if c := s.from.get("const"); c != nil {
		values = array(c)
	}
	var names []string
	switch {
	case t != nil:
		for _, e := range append([]*node{}, typeList(t)...) {
			names = append(names, e.text())
		}
	case values != nil:
		if names = typesOfValues(values.elems); !oneType(names) {
			return
		}
	default:
		return
	}
	nullable := slices.Contains(names, "null")
	names = slices.DeleteFunc(names, func(n string) bool {
		return n == "null" || n == "integer" && slices.Contains(names, "number")
	})
	switch {
	case len(names) == 0 && s.has("enum"):
		if len(values.elems) == 1 && values.elems[0].is(raw.Null) {
			s.out = slices.DeleteFunc(s.out, func(m member) bool { return m.key == "enum" })
			s.out = append(s.nullOrEmpty(), s.out...)
			return
		}
		s.all = append(s.all, object(s.nullOrEmpty()...))
	case len(names) == 0:
		s.out = append(s.nullOrEmpty(), s.out...)
	case len(names) == 1:
		s.out = append(s.typed(names[0], nullable, nil), s.out...)
	default:
		s.distribute(names, nullable)
	}
}

func typeList(t *node) []*node {
	if t.is(raw.String) {
		return []*node{t}
	}
	return t.elems
}

// typed are the members that say a type; where that is array, there must be items,
// here or among the others.
func (s *oldSchema) typed(name string, nullable bool, others []member) []member {
	ms := append([]member{{"type", quoted(name)}}, others...)
	if nullable {
		ms = append(ms, member{"nullable", yes})
	}
	if name == "array" && !s.has("items") && !slices.ContainsFunc(others, func(m member) bool { return m.key == "items" }) {
		ms = append(ms, member{"items", object()})
	}
	return ms
}

// typeOf is the type that a keyword says something of.
var typeOf = map[string]string{
	"minLength": "string", "maxLength": "string", "pattern": "string",
	"multipleOf": "number", "minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
	"items": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"properties": "object", "additionalProperties": "object", "required": "object", "minProperties": "object", "maxProperties": "object",
}

// distribute writes a list of types as alternatives, each with what is said of it.
func (s *oldSchema) distribute(names []string, nullable bool) {
	said := map[string][]member{}
	s.out = slices.DeleteFunc(s.out, func(m member) bool {
		t := typeOf[m.key]
		said[t] = append(said[t], m)
		return t != ""
	})
	var kinds []*node
	for i, name := range names {
		about := name
		if name == "integer" {
			about = "number"
		}
		kinds = append(kinds, object(s.typed(name, nullable && i == 0, said[about])...))
	}
	s.add("anyOf", array(kinds...))
}

// oneType reports whether types are one, or one and null.
func oneType(names []string) bool {
	return len(names) == 1 && names[0] != "" || len(names) == 2 && slices.Contains(names, "null") && !slices.Contains(names, "")
}

// alternatives converts anyOf and oneOf. Null among them makes another of them
// nullable, if there is one that can be.
func (s *oldSchema) alternatives(m member) {
	var rest []*node
	nulls := 0
	for _, e := range m.val.elems {
		if isNull(e) {
			nulls++
		} else {
			rest = append(rest, e)
		}
	}
	kinds, same := s.o.schemas(rest)
	// What has become wider may fit beside another, and null beside null.
	exact := same && nulls < 2
	if nulls > 0 {
		i := slices.IndexFunc(kinds, canBeNull)
		if m.key == "oneOf" && slices.ContainsFunc(kinds, func(k *node) bool { return !refusesNull(k) }) {
			i = -1 // null could fit two
		}
		if i < 0 {
			kinds = append(kinds, object(s.nullOrEmpty()...))
			exact = false
		} else {
			kinds[i] = withNull(kinds[i])
		}
	}
	s.same = s.same && same
	if len(kinds) == 1 && nulls > 0 {
		s.lone(m.key, kinds[0])
		return
	}
	if m.key == "oneOf" && !exact {
		m.key, s.same = "anyOf", false
	}
	s.add(m.key, array(kinds...))
}

// lone writes the only alternative: in place of what held it, if that says nothing else.
func (s *oldSchema) lone(key string, kind *node) {
	for _, m := range s.from.members {
		if m.key != key && (keywords[m.key].asserts || m.key == "$ref") {
			s.all = append(s.all, kind)
			return
		}
	}
	for _, m := range kind.members {
		if s.from.get(m.key) == nil && !s.has(m.key) {
			s.out = append(s.out, m)
		}
	}
}

// isNull reports whether null fits the schema, and plainly nothing else.
func isNull(n *node) bool {
	isNull := false
	for _, m := range n.members {
		switch {
		case m.key == "type" && m.val.text() == "null",
			m.key == "const" && m.val.is(raw.Null),
			m.key == "enum" && len(m.val.elems) == 1 && m.val.elems[0].is(raw.Null):
			isNull = true
		case keywords[m.key].asserts || m.key == "$ref":
			return false
		}
	}
	return isNull
}

// canBeNull reports whether nullable is all that a converted schema lacks to take null.
func canBeNull(n *node) bool {
	for _, m := range n.members {
		switch m.key {
		case "allOf", "anyOf", "oneOf", "not":
			return false
		}
	}
	return n.get("type") != nil
}

func refusesNull(n *node) bool { return n.get("type") != nil && n.get("nullable") == nil }

// withNull is a schema that can be null, nullable.
func withNull(n *node) *node {
	ms := slices.Clone(n.members)
	for i, m := range ms {
		if m.key == "enum" && !slices.ContainsFunc(m.val.elems, func(e *node) bool { return e.is(raw.Null) }) {
			ms[i].val = array(append(slices.Clone(m.val.elems), null)...)
		}
	}
	if n.get("nullable") == nil {
		ms = append(ms, member{"nullable", yes})
	}
	return object(ms...)
}
