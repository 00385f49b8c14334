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

// flatten makes tools' schemas hold no references, and their bodies have all
// properties at the top.
func flatten(components *node) conversion {
	schemas := map[string]*node{}
	for _, m := range components.get("schemas").members {
		schemas[m.key] = m.val
	}
	schemas["Content"] = flatContent
	return conversion{
		operation: func(op *node) *node {
			return op.replace("requestBody", func(body *node) *node {
				return contents(body, func(n *node) *node { return hoist(unroll(n, schemas)) })
			}).replace("responses", func(r *node) *node {
				return r.replace("200", func(ok *node) *node {
					return contents(ok, func(n *node) *node { return unroll(n, schemas) })
				})
			})
		},
		components: components.replace("schemas", func(s *node) *node {
			// A tool's own have dots in their names; those that stay are what problems refer to.
			return object(slices.DeleteFunc(slices.Clone(s.members), func(m member) bool { return strings.Contains(m.key, ".") || m.key == "Content" })...)
		}),
	}
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
