package openapi

import (
	"slices"
	"strings"

	"mcpbridge/internal/raw"
)

// How often a schema may occur in itself in a flat document, and how many values
// there may be in a schema without its references. Of one that would be larger,
// less is unrolled.
const (
	unrolled  = 3
	flatCells = 2 * growCells
)

// flatContent stands for [contentSchema], with what most tools return.
var flatContent = mustParse(`{"type":"object","properties":{"content":{"type":"array","items":{
	"type":"object","properties":{"type":{"type":"string"},"text":{"type":"string"}},"required":["type"]}}},"required":["content"]}`)

func mustParse(s string) *node {
	n, err := parse([]byte(s))
	if err != nil {
		panic("openapi: a fixed schema is not JSON: " + err.Error())
	}
	return n
}

// flatten turns a document into one whose tools' schemas hold no references, and
// whose bodies have all their properties at the top.
func flatten(doc *node) *node {
	schemas := map[string]*node{}
	for _, m := range doc.get("components").get("schemas").members {
		schemas[m.key] = m.val
	}
	schemas["Content"] = flatContent
	doc = operations(doc, func(op *node) *node {
		return op.replace("requestBody", func(body *node) *node {
			return contents(body, func(n *node) *node { return hoist(unroll(n, schemas)) })
		}).replace("responses", func(r *node) *node {
			return r.replace("200", func(ok *node) *node {
				return contents(ok, func(n *node) *node { return unroll(n, schemas) })
			})
		})
	})
	return doc.replace("components", func(c *node) *node {
		return c.replace("schemas", func(s *node) *node {
			// A tool's own have dots in their names; those that stay are what problems refer to.
			return object(slices.DeleteFunc(slices.Clone(s.members), func(m member) bool { return strings.Contains(m.key, ".") || m.key == "Content" })...)
		})
	})
}

// unroll replaces the references in a schema by what they name.
func unroll(n *node, schemas map[string]*node) *node {
	for times := unrolled; ; times-- {
		u := &unroller{schemas: schemas, times: times, within: map[string]int{}, cells: flatCells}
		if out, _ := u.schema(n, 0); u.cells > 0 || times == 1 {
			return out
		}
	}
}

type unroller struct {
	schemas map[string]*node
	times   int            // that a schema may occur in itself
	within  map[string]int // :: component -> times that the present place is in it
	cells   int            // that may still be written
}

// schema returns a schema without references, and whether it still accepts the
// same values; else it accepts more.
func (u *unroller) schema(n *node, level int) (out *node, same bool) {
	u.cells--
	if !n.is(raw.Object) {
		return n, true
	}
	same = true
	var beside []member
	var body *node
	for _, m := range n.members {
		ok := true
		switch keywords[m.key].shape {
		case oneSchema, itemsShape:
			m.val, ok = u.schema(m.val, level+1)
		case schemaList:
			es := make([]*node, len(m.val.elems))
			for i, e := range m.val.elems {
				var one bool
				es[i], one = u.schema(e, level+1)
				ok = ok && one
			}
			m.val = array(es...)
		case schemaMap:
			m.val = m.val.each(func(e *node) *node {
				out, one := u.schema(e, level+1)
				ok = ok && one
				return out
			})
		case structure:
			body, ok = u.target(strings.TrimPrefix(m.val.text(), schemaPath), level+1)
			same = same && ok
			continue
		default:
			u.cells -= len(m.val.elems)
		}
		same = same && ok
		if !ok {
			switch m.key {
			case "oneOf": // what has become wider may fit beside another
				m.key = "anyOf"
			case "not", "if", "then", "else", "maxContains", "unevaluatedProperties", "unevaluatedItems":
				continue
			}
		}
		beside = append(beside, m)
	}
	beside = u.tidy(beside, same)
	if body == nil {
		return object(beside...), same
	}
	return merge(body, beside), same
}

// tidy mends what would refuse more now that a part accepts more: then and else
// without their if, bounds of how many elements fit, what is left over by others.
func (u *unroller) tidy(ms []member, same bool) []member {
	if same {
		return ms
	}
	hasIf, hasAnyOf := false, 0
	for _, m := range ms {
		hasIf = hasIf || m.key == "if"
		if m.key == "anyOf" {
			hasAnyOf++
		}
	}
	var out, second []member
	for _, m := range ms {
		switch {
		case m.key == "then" || m.key == "else":
			if hasIf {
				out = append(out, m)
			}
		case m.key == "maxContains" || m.key == "unevaluatedProperties" || m.key == "unevaluatedItems":
		case m.key == "anyOf" && hasAnyOf > 1:
			hasAnyOf--
			second = append(second, m)
		default:
			out = append(out, m)
		}
	}
	if len(second) > 0 {
		return allOf(object(second...), out)
	}
	return out
}

// target returns the component of a name, or, where it has been often enough or
// there is no room, what can be said of it in short.
func (u *unroller) target(name string, level int) (out *node, same bool) {
	t := u.schemas[name]
	if u.within[name] >= u.times || u.cells <= 0 || level > maxSchemaNesting {
		return outline(t), false
	}
	u.within[name]++
	defer func() { u.within[name]-- }()
	return u.schema(t, level)
}

// outline is what the type alone says of a schema.
func outline(n *node) *node {
	t := n.get("type")
	if t == nil {
		return object()
	}
	return object(member{"type", t})
}

// hoist writes what a body composes at its top as plain properties: those of allOf
// as they are; those of alternatives and conditions as optional ones, each with
// every form that any of them gives it. A property that one alternative describes
// and another does not mention gets the one description: it is to be filled in by
// who reads it, and the tool's own schema is what decides.
func hoist(n *node) *node {
	h := hoisted{forms: map[string][]*node{}}
	if !h.composed(n) {
		return n
	}
	required := h.collect(n)
	ms := []member{{"type", quoted("object")}}
	for _, m := range n.members {
		switch m.key {
		case "type", "properties", "required", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas":
		default:
			ms = append(ms, m)
		}
	}
	props := make([]member, len(h.names))
	for i, name := range h.names {
		props[i] = member{name, oneForm(h.forms[name])}
	}
	ms = append(ms, member{"properties", object(props...)})
	if len(required) > 0 {
		es := make([]*node, len(required))
		for i, name := range required {
			es[i] = quoted(name)
		}
		ms = append(ms, member{"required", array(es...)})
	}
	return object(ms...)
}

type hoisted struct {
	names []string
	forms map[string][]*node
}

// composed reports whether there is anything to hoist.
func (h *hoisted) composed(n *node) bool {
	return slices.ContainsFunc(n.members, func(m member) bool {
		switch m.key {
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas":
			return true
		}
		return false
	})
}

// collect notes the properties of a schema and of all that it composes, and
// returns the names that are always required.
func (h *hoisted) collect(n *node) (required []string) {
	need := func(names []string) {
		for _, name := range names {
			if !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
	}
	for _, m := range n.get("properties").list() {
		if h.forms[m.key] == nil {
			h.names = append(h.names, m.key)
		}
		h.forms[m.key] = append(h.forms[m.key], m.val)
	}
	if r := n.get("required"); r != nil {
		for _, e := range r.elems {
			need([]string{e.text()})
		}
	}
	for _, m := range n.members {
		switch m.key {
		case "allOf":
			for _, e := range m.val.elems {
				need(h.collect(e))
			}
		case "anyOf", "oneOf":
			var common []string
			for i, e := range m.val.elems {
				names := h.collect(e)
				if i == 0 {
					common = names
					continue
				}
				common = slices.DeleteFunc(common, func(c string) bool { return !slices.Contains(names, c) })
			}
			need(common)
		case "if", "then", "else":
			h.collect(m.val)
		case "dependentSchemas":
			for _, d := range m.val.members {
				h.collect(d.val)
			}
		}
	}
	return required
}

// list returns the members of n, of none if there is no n.
func (n *node) list() []member {
	if n == nil {
		return nil
	}
	return n.members
}

// oneForm is the schema of a property that has several.
func oneForm(kinds []*node) *node {
	var distinct []*node
	seen := map[string]bool{}
	for _, k := range kinds {
		if b := string(bytesOf(k)); !seen[b] {
			seen[b] = true
			distinct = append(distinct, k)
		}
	}
	if len(distinct) == 1 {
		return distinct[0]
	}
	// A place that only names the property, or only describes it, says no form.
	told := slices.DeleteFunc(slices.Clone(distinct), anything)
	switch {
	case len(told) == 0:
		return distinct[0]
	case len(told) == 1:
		return told[0]
	}
	if merged := constants(told); merged != nil {
		return merged
	}
	return object(member{"anyOf", array(told...)})
}

// constants joins the discriminators of alternatives, each of one or a few values, to one list.
func constants(kinds []*node) *node {
	var values []*node
	var first []member
	seen := map[string]bool{}
	for i, k := range kinds {
		var own []*node
		for _, m := range k.members {
			switch {
			case m.key == "const":
				own = []*node{m.val}
			case m.key == "enum":
				own = m.val.elems
			case m.key == "type":
				if i == 0 {
					first = append(first, m)
				} else if t := first; len(t) != 1 || string(bytesOf(t[0].val)) != string(bytesOf(m.val)) {
					return nil
				}
			case keywords[m.key].asserts:
				return nil
			}
		}
		if own == nil || (k.get("type") == nil) != (len(first) == 0) {
			return nil
		}
		for _, v := range own {
			if b := string(bytesOf(v)); !seen[b] {
				seen[b] = true
				values = append(values, v)
			}
		}
	}
	return object(append(first, member{"enum", array(values...)})...)
}
