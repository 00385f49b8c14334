package artifacts

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"mcpbridge/internal/raw"
)

const (
	listType       = "list"
	iterandsMember = "iterands"
)

// A shape is what the JSON of a built-in type must be: an object whose members, where
// they are there and not null, are of these kinds. One of some must be there.
type shape struct {
	kinds map[string][]raw.Kind
	some  []string
}

var (
	text   = []raw.Kind{raw.String}
	either = []raw.Kind{raw.String, raw.Number}
	many   = []raw.Kind{raw.String, raw.Array}

	linkKinds = map[string][]raw.Kind{"title": text, "url": text}
)

// builtIn are the types that need no configuration.
var builtIn = map[string]shape{
	"link":      {kinds: linkKinds, some: []string{"title", "url"}},
	"link:page": {kinds: linkKinds, some: []string{"title", "url"}},
	"link:cite": {
		kinds: joined(linkKinds, map[string][]raw.Kind{"authors": many, "year": either, "journal": text, "doi": text, "abstract": text}),
		some:  []string{"title", "url", "doi"},
	},
	"code":   {},
	"person": {},
	listType: {kinds: map[string][]raw.Kind{iterandsMember: {raw.Array}}, some: []string{iterandsMember}},
}

func joined(a, b map[string][]raw.Kind) map[string][]raw.Kind {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// allTypes returns the check of every type; that of mcp is nil, since all JSON is of it.
func allTypes(more map[string]func([]byte) error) map[string]func([]byte) error {
	all := map[string]func([]byte) error{mcpType: nil}
	for name, s := range builtIn {
		all[name] = s.check
	}
	maps.Copy(all, more)
	return all
}

func (s shape) check(doc []byte) error {
	if raw.KindOf(doc) != raw.Object {
		return errors.New("it is no object")
	}
	found := len(s.some) == 0
	for m := range raw.Members(doc) {
		name := m.Name()
		kind := raw.KindOf(m.Val)
		if kind == raw.Null {
			continue
		}
		if want, ok := s.kinds[name]; ok && !slices.Contains(want, kind) {
			return fmt.Errorf("its %s is of a wrong kind", name)
		}
		found = found || slices.Contains(s.some, name)
	}
	if !found {
		return fmt.Errorf("it has none of %q", s.some)
	}
	return nil
}
