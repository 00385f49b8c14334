package openapi

import "slices"

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
	convert := flatten
	from := Form{}
	if f.Older {
		convert, from.Flat = older, f.Flat
	}
	r := reader{b: d.Form(from).Body, depth: maxDocNesting}
	doc, err := r.node()
	if err != nil {
		panic("openapi: a document of ours is not JSON: " + err.Error())
	}
	return d.encoded(bytesOf(convert(doc)), "application/json")
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

// operations returns a document with other operations.
func operations(doc *node, f func(op *node) *node) *node {
	return doc.replace("paths", func(paths *node) *node {
		return paths.each(func(item *node) *node { return item.each(f) })
	})
}

// contents returns a request body or response with other schemas.
func contents(holder *node, f func(schema *node) *node) *node {
	return holder.replace("content", func(c *node) *node {
		return c.each(func(media *node) *node { return media.replace("schema", f) })
	})
}
