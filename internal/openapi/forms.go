package openapi

import (
	"slices"

	"mcpbridge/internal/raw"
)

// A Form is one way to write a document. The zero value is OpenAPI 3.1 as JSON.
type Form struct {
	// Older is OpenAPI 3.0.3, for generators that cannot read 3.1. Where that
	// version lacks a keyword, its schemas accept more.
	Older bool

	// Flat is for tool hosts that hardly resolve references: the schemas of a tool
	// refer to nothing, recursion ends after a few levels, and what a body composes
	// at its top is written as plain properties.
	Flat bool

	YAML bool
}

// forms are all that there are; a Form's place among them is its index.
const forms = 8

func (f Form) index() (i int) {
	for bit, set := range []bool{f.Older, f.Flat, f.YAML} {
		if set {
			i |= 1 << bit
		}
	}
	return i
}

func formAt(i int) Form { return Form{Older: i&1 != 0, Flat: i&2 != 0, YAML: i&4 != 0} }

// form writes the document in a form other than the first, from one that it is next to.
func (d *Document) form(f Form) Encoded {
	if f.YAML {
		f.YAML = false
		return d.encoded(toYAML(d.Form(f).Body), "application/yaml")
	}
	makeConversion, from := flatten, Form{}
	if f.Older {
		makeConversion, from.Flat = older, f.Flat
	}
	body := d.Form(from).Body
	return d.encoded(rewrite(body, makeConversion(tree(raw.Get(body, "components")))), "application/json")
}

// A conversion is what a form says otherwise than the one that it is made from.
type conversion struct {
	version    string // of OpenAPI, if that is another
	operation  func(op *node) *node
	components *node
}

// rewrite converts a document, one operation after the other: the tree of a whole
// document takes many times the memory of its bytes.
func rewrite(doc []byte, c conversion) []byte {
	w := &writer{b: make([]byte, 0, len(doc)+len(doc)/16)}
	w.open('{')
	for m := range raw.Members(doc) {
		w.key(m.Name())
		switch name := m.Name(); {
		case name == "openapi" && c.version != "":
			w.str(c.version)
		case name == "paths":
			w.open('{')
			for path := range raw.Members(m.Val) {
				w.key(path.Name()).open('{')
				for op := range raw.Members(path.Val) {
					w.key(op.Name())
					c.operation(tree(op.Val)).write(w)
				}
				w.close('}')
			}
			w.close('}')
		case name == "components":
			c.components.write(w)
		default:
			w.bytes(m.Val)
		}
	}
	return w.close('}').b
}

// tree reads a part of a document of ours.
func tree(b []byte) *node {
	r := reader{b: b, depth: maxDocNesting}
	n, err := r.node()
	if err != nil {
		panic("openapi: a document of ours is not JSON: " + err.Error())
	}
	return n
}

// replace returns n with another value for a member, if it has that.
func (n *node) replace(key string, f func(*node) *node) *node {
	i := slices.IndexFunc(n.members, func(m member) bool { return m.key == key })
	if i < 0 {
		return n
	}
	ms := slices.Clone(n.members)
	ms[i].val = f(ms[i].val)
	return object(ms...)
}

// each returns n with another value for every member.
func (n *node) each(f func(*node) *node) *node {
	ms := make([]member, len(n.members))
	for i, m := range n.members {
		ms[i] = member{m.key, f(m.val)}
	}
	return object(ms...)
}

// contents returns a request body or response with other schemas.
func contents(holder *node, f func(schema *node) *node) *node {
	return holder.replace("content", func(c *node) *node {
		return c.each(func(media *node) *node { return media.replace("schema", f) })
	})
}
