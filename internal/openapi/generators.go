package openapi

import (
	"bytes"
	"slices"

	"mcpbridge/internal/raw"
)

// JSON Schema can say many things in several ways, and generators of clients know
// some of them only. This is where a schema gets the way that all of them know. It
// means the same as before.

// never is the schema that no value fits. Generators take false, like true, only
// where it says whether there may be other members.
func never() *node { return object(member{"not", object()}) }

// refusesAll reports whether a schema is one that no value fits.
func (n *node) refusesAll() bool {
	return n.isFalse() || n != nil && len(n.members) == 1 && n.members[0].key == "not" && takesAll(n.members[0].val)
}

func takesAll(n *node) bool { return n.isTrue() || n.is(raw.Object) && len(n.members) == 0 }

// told adds to a schema what its other members say already: the type of its
// constants, and that the elements of an array can be anything. Constants of
// several types become alternatives, each of one.
func (e *embedder) told(ms []member) []member {
	ms = closed(ms)
	said := object(ms...)
	typ, values := said.get("type"), constantsOf(said)
	names := typesOfValues(values)
	plain := len(names) == 1 && names[0] != ""
	switch {
	case slices.Equal(names, []string{"boolean"}) && (typ == nil || fitAll(values, typ)):
		return flags(ms, values)
	case plain && names[0] == "null" && (typ == nil || hasType(typ, "null")):
		return onlyNull(ms)
	case typ == nil && plain:
		return append([]member{{"type", quoted(names[0])}}, ms...)
	case len(names) > 0 && !plain && said.get("anyOf") == nil && (typ == nil || fitAll(values, typ)) && few(values):
		return byType(ms, values, names)
	case typ != nil && hasType(typ, "array") && said.get("items") == nil && said.get("prefixItems") == nil && !e.s.counts:
		return append(ms, member{"items", object()})
	default:
		return ms
	}
}

// closed writes that there are no other elements as a limit to their number.
func closed(ms []member) []member {
	said := object(ms...)
	if !said.get("items").refusesAll() {
		return ms
	}
	first := said.get("prefixItems")
	limit := count(len(elemsOf(first)))
	if most := said.get("maxItems"); most != nil && float(most) < float(limit) {
		limit = most
	}
	var out []member
	for _, m := range ms {
		switch {
		case m.key == "maxItems", m.key == "items" && first != nil:
		case m.key == "items":
			out = append(out, member{"items", object()})
		default:
			out = append(out, m)
		}
	}
	return append(out, member{"maxItems", limit})
}

// flags writes a list of booleans. Java's generator makes classes of constants, and
// those of booleans do not compile.
func flags(ms []member, values []*node) []member {
	out := []member{{"type", quoted("boolean")}}
	for _, m := range ms {
		switch m.key {
		case "type", "enum", "const", "allOf":
		default:
			out = append(out, m)
		}
	}
	all := slices.Clone(elemsOf(object(ms...).get("allOf")))
	if !slices.ContainsFunc(values, func(v *node) bool { return v.isTrue() != values[0].isTrue() }) {
		all = append(all, object(member{"const", values[0]}))
	}
	if len(all) > 0 {
		out = append(out, member{"allOf", array(all...)})
	}
	return out
}

func elemsOf(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.elems
}

// constantsOf are the values that a schema lists, if it does so once.
func constantsOf(n *node) []*node {
	one, several := n.get("const"), n.get("enum")
	switch {
	case one != nil && several == nil:
		return []*node{one}
	case several != nil && one == nil:
		return several.elems
	default:
		return nil
	}
}

func hasType(typ *node, name string) bool {
	return slices.ContainsFunc(typeList(typ), func(t *node) bool { return t.text() == name })
}

// fitAll reports whether all values have one of the types.
func fitAll(values []*node, typ *node) bool {
	return !slices.ContainsFunc(values, func(v *node) bool {
		name := typeOfValue(v)
		switch v.kind {
		case raw.Object:
			name = "object"
		case raw.Array:
			name = "array"
		}
		return !hasType(typ, name) && (name != "integer" || !hasType(typ, "number"))
	})
}

// few reports whether the objects and lists among values are so few and small that
// they can be written at length.
func few(values []*node) bool {
	cells := 0
	for _, v := range values {
		if typeOfValue(v) == "" {
			cells += v.cells
		}
	}
	return cells <= 100
}

// byType writes a list of values as alternatives.
func byType(ms []member, values []*node, names []string) []member {
	var kinds []*node
	for _, name := range names {
		if name == "null" {
			kinds = append(kinds, object(member{"type", quoted(name)}))
			continue
		}
		var own []*node
		for _, v := range values {
			switch t := typeOfValue(v); {
			case t != name && (t != "integer" || name != "number"):
			case t == "":
				kinds = append(kinds, only(v))
			default:
				own = append(own, v)
			}
		}
		switch {
		case name == "boolean":
			kinds = append(kinds, object(flags(nil, own)...))
		case len(own) > 0:
			kinds = append(kinds, object(member{"type", quoted(name)}, member{"enum", array(own...)}))
		}
	}
	out := make([]member, 0, len(ms))
	for _, m := range ms {
		switch {
		case m.key == "type":
		case m.key != "enum" && m.key != "const":
			out = append(out, m)
		case len(kinds) == 1 && !slices.ContainsFunc(ms, func(m member) bool {
			return keywords[m.key].asserts && m.key != "type" && m.key != "enum" && m.key != "const"
		}):
			out = append(out, kinds[0].members...)
		default:
			out = append(out, member{"anyOf", array(kinds...)})
		}
	}
	return out
}

// only is a schema that one value fits. No generator takes an object or a list for
// a constant, so that it is told member by member.
func only(v *node) *node {
	switch v.kind {
	case raw.Object:
		props, names := make([]member, len(v.members)), make([]*node, len(v.members))
		for i, m := range v.members {
			props[i], names[i] = member{m.key, only(m.val)}, quoted(m.key)
		}
		ms := []member{{"type", quoted("object")}}
		if len(props) > 0 {
			ms = append(ms, member{"properties", object(props...)}, member{"required", array(names...)})
		}
		return object(append(ms, member{"additionalProperties", no})...)
	case raw.Array:
		ms := []member{{"type", quoted("array")}}
		if len(v.elems) == 0 {
			return object(append(ms, member{"items", object()}, member{"maxItems", count(0)})...)
		}
		es := make([]*node, len(v.elems))
		for i, e := range v.elems {
			es[i] = only(e)
		}
		return object(append(ms, member{"prefixItems", array(es...)}, member{"minItems", count(len(es))}, member{"maxItems", count(len(es))})...)
	case raw.Null:
		return object(member{"const", v})
	case raw.Bool:
		return object(flags([]member{{"const", v}}, []*node{v})...)
	default:
		return object(member{"type", quoted(typeOfValue(v))}, member{"const", v})
	}
}

// onlyNull writes null as a type, which is its best known form among alternatives.
func onlyNull(ms []member) []member {
	out := []member{{"type", quoted("null")}}
	for _, m := range ms {
		if m.key != "type" && m.key != "enum" && m.key != "const" {
			out = append(out, m)
		}
	}
	return out
}

// constNull writes the type null as a constant: where it is no alternative, Java's
// generator takes it for a class.
func constNull(n *node) *node {
	i := slices.IndexFunc(n.members, func(m member) bool { return m.key == "type" && m.val.text() == "null" })
	if i < 0 || n.get("enum") != nil || n.get("const") != nil {
		return n
	}
	ms := slices.Clone(n.members)
	ms[i] = member{"const", null}
	return object(ms...)
}

// typesOfValues returns the types of scalars among values; objects and lists are
// of the type "".
func typesOfValues(values []*node) []string {
	var names []string
	for _, v := range values {
		if name := typeOfValue(v); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if i := slices.Index(names, "integer"); i >= 0 && slices.Contains(names, "number") {
		names = slices.Delete(names, i, i+1)
	}
	return names
}

// typeOfValue returns the type of a scalar, else "".
func typeOfValue(v *node) string {
	switch v.kind {
	case raw.String:
		return "string"
	case raw.Bool:
		return "boolean"
	case raw.Null:
		return "null"
	case raw.Number:
		if bytes.ContainsAny(v.raw, ".eE") {
			return "number"
		}
		return "integer"
	default:
		return ""
	}
}
