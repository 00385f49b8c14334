package openapi

import (
	"slices"
	"strconv"

	"mcpbridge/internal/raw"
)

// An embedder writes the schemas of one tool as parts of a document: references
// are replaced by what they name, or lead to components; older dialects become
// 2020-12; what a document cannot hold goes. The rest stays as it is, in its order.
type embedder struct {
	prefix string // of the tool's components
	used   map[string]bool
	out    writer // members of #/components/schemas

	s     *source
	whole bool // references are kept, since without them the schema would explode
	keys  map[*target]string
	queue []*target // components that are still to be written
}

// schemaPath is how references to a document's schemas begin.
const schemaPath = "#/components/schemas/"

func newEmbedder(prefix string) *embedder {
	return &embedder{prefix: prefix, used: map[string]bool{}}
}

// Growth that references may bring: what is written without them may have so many
// values, or as many times those of the schema as sent.
const (
	growCells  = 4000
	growFactor = 4
)

func tooBig(root *node, cells, height int) bool {
	return cells > max(growCells, growFactor*root.cells) || height > maxSchemaNesting
}

// embed returns the schema in the form that it has in a document. The name stands
// for the root where it refers to itself.
func (e *embedder) embed(s *source, name string) *node {
	cells, height := s.expanded()
	e.s, e.keys, e.queue = s, map[*target]string{}, nil
	e.whole = tooBig(s.root, cells, height)
	s.order[0].name = name
	root := e.top(s.root)
	for len(e.queue) > 0 {
		t := e.queue[0]
		e.queue = e.queue[1:]
		e.out.key(e.keys[t])
		e.inside(t.schema, true).write(&e.out)
	}
	return root
}

// top is the root, which is written out even where it is a reference to a component.
func (e *embedder) top(n *node) *node {
	t := e.s.to[n]
	if t == nil || t.hollow {
		return e.inside(n, false)
	}
	return merge(e.top(t.schema), e.siblings(n, false))
}

// schema writes a schema that stands in another. The strict one is below oneOf, not
// and the like: accepting more there would refuse what was accepted.
func (e *embedder) schema(n *node, strict bool) *node {
	if t := e.s.targets[n]; e.whole && t != nil && n.is(raw.Object) && !t.hollow {
		return object(e.component(t))
	}
	return e.inside(n, strict)
}

func (e *embedder) inside(n *node, strict bool) *node {
	switch {
	case n.isTrue():
		return object()
	case n.isFalse():
		return never()
	}
	if _, ok := e.s.reference(n); ok {
		return e.join(n, strict)
	}
	return object(e.told(e.keywords(n, strict))...)
}

// join writes a reference and what stands beside it.
func (e *embedder) join(n *node, strict bool) *node {
	beside := e.siblings(n, strict)
	t := e.s.to[n]
	switch {
	case t == nil || t.hollow:
		return merge(object(member{"type", quoted("object")}), beside)
	case (t.cyclic || e.whole) && t.schema.is(raw.Object):
		return object(append([]member{e.component(t)}, beside...)...)
	default:
		return merge(e.inside(t.schema, strict), beside)
	}
}

// siblings are what stands beside a reference. Up to draft-07 it asserts nothing.
func (e *embedder) siblings(n *node, strict bool) []member {
	ms := e.told(e.keywords(n, strict))
	if e.s.draft < 2019 {
		ms = slices.DeleteFunc(ms, func(m member) bool { return keywords[m.key].asserts })
	}
	return ms
}

// component returns a reference to a target, which becomes a component.
func (e *embedder) component(t *target) member {
	key, ok := e.keys[t]
	if !ok {
		key = e.prefix + e.name(t.name)
		e.keys[t] = key
		e.queue = append(e.queue, t)
	}
	return member{"$ref", quoted(schemaPath + key)}
}

// name finds a free name for a component of this tool.
func (e *embedder) name(want string) string {
	want = clean(want)
	if want == "" || want == "_" {
		want = "schema"
	}
	want = want[:min(len(want), maxID)]
	name := want
	for i := 2; e.used[name]; i++ {
		name = want + "_" + strconv.Itoa(i)
	}
	e.used[name] = true
	return name
}

// merge joins a schema and what stood beside the reference to it: annotations
// there win over its own, assertions hold beside its own.
func merge(body *node, beside []member) *node {
	if len(beside) == 0 {
		return body
	}
	if slices.ContainsFunc(beside, func(m member) bool { return keywords[m.key].asserts }) {
		return object(allOf(body, beside)...)
	}
	ms := slices.Clone(body.members)
	for _, m := range beside {
		if i := slices.IndexFunc(ms, func(o member) bool { return o.key == m.key }); i >= 0 {
			ms[i] = m
		} else {
			ms = append(ms, m)
		}
	}
	return object(ms...)
}

func allOf(body *node, beside []member) []member {
	if len(body.members) == 0 {
		return beside
	}
	for i, m := range beside {
		if m.key == "allOf" {
			ms := slices.Clone(beside)
			ms[i].val = array(append([]*node{body}, m.val.elems...)...)
			return ms
		}
	}
	return append(slices.Clone(beside), member{"allOf", array(body)})
}
