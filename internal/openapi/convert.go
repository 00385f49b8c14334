package openapi

import (
	"slices"
	"strconv"

	"mcpbridge/internal/raw"
)

// keywords returns the members of a schema as they are in a document: identifiers
// and definitions go, what its dialect says otherwise than 2020-12 is said anew,
// and what its dialect does not know, or no dialect could read, is left out.
func (e *embedder) keywords(n *node, strict bool) []member {
	out := make([]member, 0, len(n.members))
	for _, m := range n.members {
		k, known := keywords[m.key]
		switch {
		case !known:
			if m.key == "id" && e.s.draft == 4 || !portable(m.val) {
				continue
			}
			out = append(out, m)
		case k.shape == structure || !k.knows(e.s.draft) || !k.shape.fits(m.val):
		default:
			out = e.keyword(out, n, m, k.shape, strict)
		}
	}
	return out
}

func (e *embedder) keyword(out []member, n *node, m member, s shape, strict bool) []member {
	switch m.key {
	case "type":
		if v := typesOf(m.val, n.get("nullable").isTrue()); v != nil {
			out = append(out, member{"type", v})
		}
	case "title", "description":
		if m.val.text() != "" {
			out = append(out, m)
		}
	case "items":
		switch {
		case !m.val.is(raw.Array):
			out = e.shaped(out, m, oneSchema, strict)
		case len(m.val.elems) > 0:
			out = e.shaped(out, member{"prefixItems", m.val}, schemaList, strict)
		}
	case "additionalItems":
		if n.get("items").is(raw.Array) {
			out = e.shaped(out, member{"items", m.val}, oneSchema, strict)
		}
	case "dependencies":
		out = e.dependencies(out, m.val, strict)
	case "dependentRequired", "dependentSchemas":
		for _, m := range e.shaped(nil, m, s, strict) {
			out = joined(out, m)
		}
	case "minimum", "maximum":
		if !n.get(exclusive(m.key)).isTrue() && portable(m.val) {
			out = append(out, m)
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		if m.val.isTrue() {
			m.val = n.get(inclusive(m.key))
		}
		if m.val.is(raw.Number) && portable(m.val) {
			out = append(out, m)
		}
	case "pattern":
		if isPattern(m.val.text()) {
			out = append(out, m)
		}
	case "patternProperties":
		named := slices.DeleteFunc(slices.Clone(m.val.members), func(p member) bool { return !isPattern(p.key) })
		out = e.shaped(out, member{m.key, object(named...)}, s, strict)
	case "unevaluatedProperties", "unevaluatedItems", "contentEncoding", "contentMediaType", "contentSchema":
		// Hosts of tools refuse schemas that have them.
		if strict {
			out = e.shaped(out, m, s, strict)
		}
	case "oneOf", "not", "if", "contains":
		out = e.shaped(out, m, s, true)
	default:
		out = e.shaped(out, m, s, strict)
	}
	return out
}

// shaped writes a keyword by the shape of its value.
func (e *embedder) shaped(out []member, m member, s shape, strict bool) []member {
	switch s {
	case oneSchema:
		if !m.val.is(raw.Bool) || !leftover(m.key) {
			m.val = constNull(e.schema(m.val, strict))
		}
	case schemaList:
		m.val = e.list(m.val, strict)
		if m.key == "prefixItems" {
			for i, el := range m.val.elems {
				m.val.elems[i] = constNull(el)
			}
		}
	case schemaMap:
		m.val = e.named(m.val, strict)
	case namesShape:
		m.val = distinct(m.val)
	case namesMap:
		m.val = stringLists(m.val)
	default:
		if !portable(m.val) {
			return out
		}
	}
	return append(out, m)
}

func (e *embedder) list(n *node, strict bool) *node {
	es := make([]*node, len(n.elems))
	for i, el := range n.elems {
		es[i] = e.schema(el, strict)
	}
	return array(es...)
}

func (e *embedder) named(n *node, strict bool) *node {
	ms := make([]member, len(n.members))
	for i, m := range n.members {
		ms[i] = member{m.key, constNull(e.schema(m.val, strict))}
	}
	return object(ms...)
}

// leftover reports whether a keyword is about what others leave over. There every
// reader knows true and false.
func leftover(key string) bool {
	return key == "additionalProperties" || key == "unevaluatedProperties" || key == "unevaluatedItems"
}

// dependencies become dependentSchemas and dependentRequired.
func (e *embedder) dependencies(out []member, deps *node, strict bool) []member {
	var subs, lists []member
	for _, m := range deps.members {
		if m.val.is(raw.Array) {
			lists = append(lists, m)
		} else {
			subs = append(subs, m)
		}
	}
	if len(subs) > 0 {
		out = joined(out, member{"dependentSchemas", e.named(object(subs...), strict)})
	}
	if len(lists) > 0 {
		out = joined(out, member{"dependentRequired", stringLists(object(lists...))})
	}
	return out
}

// joined appends dependencies, to those of their kind if there are some.
func joined(out []member, m member) []member {
	i := slices.IndexFunc(out, func(o member) bool { return o.key == m.key })
	if i < 0 {
		return append(out, m)
	}
	all := slices.Clone(out[i].val.members)
	for _, d := range m.val.members {
		at := slices.IndexFunc(all, func(o member) bool { return o.key == d.key })
		switch {
		case at < 0:
			all = append(all, d)
		case m.key == "dependentRequired":
			all[at].val = distinct(array(slices.Concat(all[at].val.elems, d.val.elems)...))
		default:
			all[at].val = object(member{"allOf", array(all[at].val, d.val)})
		}
	}
	out[i].val = object(all...)
	return out
}

// typesOf returns the types that are types, or nil; with null among them if it is nullable.
func typesOf(n *node, nullable bool) *node {
	all := n.elems
	if n.is(raw.String) {
		all = []*node{n}
	}
	var ts []*node
	add := func(t *node) {
		if isType(t) && !slices.ContainsFunc(ts, func(o *node) bool { return o.text() == t.text() }) {
			ts = append(ts, t)
		}
	}
	for _, t := range all {
		add(t)
	}
	if len(ts) == 0 {
		return nil
	}
	if nullable {
		add(quoted("null"))
	}
	if len(ts) == 1 && n.is(raw.String) {
		return ts[0]
	}
	return array(ts...)
}

// distinct returns the strings in a list, each once.
func distinct(n *node) *node {
	seen := map[string]bool{}
	es := []*node{}
	for _, el := range n.elems {
		if el.is(raw.String) && !seen[el.text()] {
			seen[el.text()] = true
			es = append(es, el)
		}
	}
	return array(es...)
}

func stringLists(n *node) *node {
	var ms []member
	for _, m := range n.members {
		if m.val.is(raw.Array) {
			ms = append(ms, member{m.key, distinct(m.val)})
		}
	}
	return object(ms...)
}

func exclusive(key string) string {
	if key == "minimum" {
		return "exclusiveMinimum"
	}
	return "exclusiveMaximum"
}

func inclusive(key string) string {
	if key == "exclusiveMinimum" {
		return "minimum"
	}
	return "maximum"
}

// portable reports whether a value can be anywhere in a document: with numbers that
// every reader can hold, and nothing that looks like a reference, which many
// follow also where it is data. Both cost them the whole document.
func portable(n *node) bool {
	if n.kind == raw.Number {
		_, err := strconv.ParseFloat(string(n.raw), 64)
		return err == nil
	}
	for _, m := range n.members {
		if m.key == "$ref" && m.val.is(raw.String) || !portable(m.val) {
			return false
		}
	}
	for _, e := range n.elems {
		if !portable(e) {
			return false
		}
	}
	return true
}
