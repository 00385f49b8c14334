package openapi

import (
	"iter"
	"net/url"
	"strconv"
	"strings"

	"mcpbridge/internal/raw"
)

// rootURI is what a schema without an $id is called, to resolve references in it.
const rootURI = "schema://tool/"

// A source is one schema as a server sent it, with all that its references can
// name. It is only read after it was made.
type source struct {
	root      *node
	draft     int
	formats   bool              // are checked
	resources map[string]*node  // :: absolute URI without fragment -> schema
	anchors   map[string]*node  // :: URI#anchor -> schema
	base      map[*node]string  // :: schema -> URI that references in it are relative to
	to        map[*node]*target // :: schema that is a reference -> what it names, if that is here
	targets   map[*node]*target
	order     []*target // of the targets: the root, then as they are met
	loose     int       // targets that stand where no schema is expected
	counts    bool      // a part of it depends on which elements of an array others looked at
}

// newSource indexes a schema.
func newSource(root *node, draft int) *source {
	s := &source{
		root: root, draft: draft,
		resources: map[string]*node{}, anchors: map[string]*node{}, base: map[*node]string{},
		to: map[*node]*target{}, targets: map[*node]*target{},
	}
	s.resources[rootURI] = root
	s.index(root, rootURI)
	s.analyze()
	return s
}

// index notes the base, the identifier and the anchors of every schema in n.
func (s *source) index(n *node, base string) {
	if _, seen := s.base[n]; seen || !n.is(raw.Object) {
		return
	}
	if id := s.id(n); id != "" {
		if u, frag := join(base, id); u != "" {
			if frag != "" {
				s.anchors[u+"#"+frag] = n // up to draft-07 an $id of "#name" is an anchor
			} else if base = u; s.resources[base] == nil {
				s.resources[base] = n
			}
		}
	}
	s.base[n] = base
	s.counts = s.counts || n.get("unevaluatedItems") != nil
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := n.get(key).text(); a != "" && keywords[key].knows(s.draft) {
			if _, taken := s.anchors[base+"#"+a]; !taken {
				s.anchors[base+"#"+a] = n
			}
		}
	}
	for _, sub := range s.subschemas(n) {
		s.index(sub, base)
	}
}

func (s *source) id(n *node) string {
	key := "$id"
	if s.draft == 4 {
		key = "id"
	}
	if s.draft < 2019 && n.get("$ref") != nil {
		return ""
	}
	return n.get(key).text()
}

// join resolves a reference, and returns the URI without its fragment, and that,
// decoded. Both are empty if it is no URI.
func join(base, ref string) (uri, fragment string) {
	b, err := url.Parse(base)
	if err != nil {
		return "", ""
	}
	r, err := url.Parse(ref)
	if err != nil {
		if strings.HasPrefix(ref, "#") { // a name with a stray percent sign, say
			return base, ref[1:]
		}
		return "", ""
	}
	u := b.ResolveReference(r)
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	return u.String(), fragment
}

// subschemas yields the schemas that n holds, each with the keyword that it stands under.
func (s *source) subschemas(n *node) iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) {
		for _, m := range n.members {
			k, known := keywords[m.key]
			if !known {
				continue
			}
			shape := k.shape
			if m.key == "$defs" || m.key == "definitions" {
				shape = schemaMap
			}
			var subs []*node
			switch shape {
			case oneSchema:
				subs = []*node{m.val}
			case schemaList:
				subs = m.val.elems
			case itemsShape:
				if subs = m.val.elems; m.val.is(raw.Object) {
					subs = []*node{m.val}
				}
			case schemaMap, depsShape:
				for _, p := range m.val.members {
					subs = append(subs, p.val)
				}
			}
			for _, sub := range subs {
				if sub.is(raw.Object) && !yield(m.key, sub) {
					return
				}
			}
		}
	}
}

// reference returns the reference that a schema is, and whether it is one.
func (s *source) reference(n *node) (string, bool) {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if r := n.get(key); r.is(raw.String) && keywords[key].knows(s.draft) {
			return r.text(), true
		}
	}
	return "", false
}

// resolve returns the schema that a reference in n names, or nil if it is not in
// this document: nothing is ever fetched.
func (s *source) resolve(n *node, ref string) *node {
	uri, frag := join(s.base[n], ref)
	doc := s.resources[uri]
	if doc == nil {
		return nil
	}
	if frag == "" {
		return doc
	}
	if frag[0] != '/' {
		return s.anchors[uri+"#"+frag]
	}
	n = doc
	for token := range strings.SplitSeq(frag[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch {
		case n.is(raw.Object):
			n = n.get(token)
		case n.is(raw.Array):
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.elems) {
				return nil
			}
			n = n.elems[i]
		default:
			return nil
		}
	}
	if n.is(raw.Array) { // the tuple of an older draft, which asserts nothing where a schema should be
		return anythingGoes
	}
	if !n.is(raw.Object, raw.Bool) {
		return nil
	}
	if _, known := s.base[n]; !known && n.is(raw.Object) {
		s.loose++
		s.index(n, uri)
	}
	return n
}

var anythingGoes = &node{kind: raw.Object, cells: 1, height: 1}

// lastToken is what a reference calls its target: the end of the pointer, or the anchor.
func lastToken(ref string) string {
	_, frag := join(rootURI, ref)
	i := strings.LastIndexByte(frag, '/')
	return strings.ReplaceAll(strings.ReplaceAll(frag[i+1:], "~1", "/"), "~0", "~")
}
