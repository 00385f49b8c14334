package openapi

import (
	"slices"
)

// hoist writes what a body composes at its top as plain properties, so that it
// accepts what it did, and more: a property that only some alternatives describe
// can be anything in the others, and is shown with what is said of it.
func hoist(n *node) *node {
	if !slices.ContainsFunc(n.members, func(m member) bool { return composes(m.key) }) {
		return n
	}
	h := hoisted(n)
	ms := []member{{"type", quoted("object")}}
	for _, m := range n.members {
		switch {
		case composes(m.key), m.key == "type", m.key == "properties", m.key == "required":
		default:
			ms = append(ms, m)
		}
	}
	props := make([]member, len(h.names))
	for i, name := range h.names {
		props[i] = member{name, h.forms[name].schema()}
	}
	ms = append(ms, member{"properties", object(props...)})
	if len(h.required) > 0 {
		es := make([]*node, len(h.required))
		for i, name := range h.required {
			es[i] = quoted(name)
		}
		ms = append(ms, member{"required", array(es...)})
	}
	return object(ms...)
}

func composes(key string) bool {
	switch key {
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas":
		return true
	}
	return false
}

// A form is what is known of a property: that it fits one of some schemas, or, if
// it is open, perhaps none of them.
type form struct {
	kinds []*node
	open  bool
}

// outlines are the properties of an object, and the names that it must have.
type outlines struct {
	names    []string // of forms, as they are met
	forms    map[string]form
	required []string
	closed   bool // there are no others
}

func (o *outlines) set(name string, f form) {
	if _, ok := o.forms[name]; !ok {
		o.names = append(o.names, name)
	}
	o.forms[name] = f
}

func (o *outlines) need(names []string) {
	for _, name := range names {
		if !slices.Contains(o.required, name) {
			o.required = append(o.required, name)
		}
	}
}

// hoisted returns the properties of a schema and of all that it composes.
func hoisted(n *node) *outlines {
	o := &outlines{forms: map[string]form{}}
	for _, m := range n.get("properties").list() {
		o.set(m.key, form{kinds: []*node{m.val}, open: anything(m.val)})
	}
	for _, e := range elemsOf(n.get("required")) {
		o.need([]string{e.text()})
	}
	o.closed = n.get("additionalProperties").isFalse() && len(n.get("patternProperties").list()) == 0
	for _, m := range n.members {
		switch m.key {
		case "allOf":
			for _, e := range m.val.elems {
				o.and(hoisted(e))
			}
		case "anyOf", "oneOf":
			var kinds []*outlines
			for _, e := range m.val.elems {
				kinds = append(kinds, hoisted(e))
			}
			o.and(either(kinds))
		case "if":
			rest := object()
			o.and(either([]*outlines{hoisted(m.val), hoisted(rest)}))
			sides := []*outlines{hoisted(rest), hoisted(rest)}
			for i, key := range []string{"then", "else"} {
				if side := n.get(key); side != nil {
					sides[i] = hoisted(side)
				}
			}
			o.and(either(sides))
		case "dependentSchemas":
			for _, d := range m.val.members {
				o.and(either([]*outlines{hoisted(d.val), hoisted(object())}))
			}
		}
	}
	return o
}

// and adds what holds besides. Of two forms of a property the later one says more,
// and lacks at most the description.
func (o *outlines) and(other *outlines) {
	for _, name := range other.names {
		f := other.forms[name]
		own, known := o.forms[name]
		switch {
		case !known:
		case own.open && f.open:
			f.kinds = slices.Concat(own.kinds, f.kinds)
		case f.open:
			f = own
		case len(own.kinds) == 1 && len(f.kinds) == 1:
			f.kinds = []*node{annotated(f.kinds[0], own.kinds[0])}
		}
		o.set(name, f)
	}
	o.need(other.required)
}

// either returns what is known of a value that fits one of several.
func either(kinds []*outlines) *outlines {
	o := &outlines{forms: map[string]form{}}
	for i, k := range kinds {
		for _, name := range k.names {
			o.set(name, form{kinds: slices.Concat(o.forms[name].kinds, k.forms[name].kinds), open: o.forms[name].open || k.forms[name].open})
		}
		if i == 0 {
			o.need(k.required)
		}
		o.required = slices.DeleteFunc(o.required, func(name string) bool { return !slices.Contains(k.required, name) })
	}
	for _, name := range o.names {
		f := o.forms[name]
		for _, k := range kinds {
			if _, mentions := k.forms[name]; !mentions && !k.closed {
				f.open = true
			}
		}
		o.set(name, f)
	}
	return o
}

// annotated returns n with what another schema of the same value tells beside it.
func annotated(n, other *node) *node {
	ms := slices.Clone(n.members)
	for _, m := range other.members {
		if !refuses(m.key) && n.get(m.key) == nil {
			ms = append(ms, m)
		}
	}
	return object(ms...)
}

// list returns the members of n, of none if there is no n.
func (n *node) list() []member {
	if n == nil {
		return nil
	}
	return n.members
}

// schema is the schema of a property of this form.
func (f form) schema() *node {
	var distinct, told []*node
	seen := map[string]bool{}
	for _, k := range f.kinds {
		b := string(bytesOf(k))
		if seen[b] {
			continue
		}
		seen[b] = true
		distinct = append(distinct, k)
		if !anything(k) {
			told = append(told, k)
		}
	}
	var one *node
	switch merged := constants(told); {
	case len(told) == 0:
		return distinct[0]
	case len(told) == 1:
		one = told[0]
	case merged != nil:
		one = merged
	case f.open:
		return object(member{"anyOf", array(append(told, object())...)})
	default:
		return object(member{"anyOf", array(told...)})
	}
	if !f.open {
		return one
	}
	var says, rules []member
	for _, m := range one.members {
		if refuses(m.key) {
			rules = append(rules, m)
		} else {
			says = append(says, m)
		}
	}
	return object(append(says, member{"anyOf", array(object(rules...), object())})...)
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
