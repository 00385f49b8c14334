package config

import (
	"fmt"
	"slices"
	"strconv"
)

// A decoder walks the tree and collects what is wrong with it.
type decoder struct {
	name    string
	dir     string
	getenv  func(string) string
	literal bool              // text is taken as it stands, see [ReadEntry]
	files   []string          // that ${file:…} refers to, readable or not
	heard   func(path string) // is told of every key that is looked for; nil: nobody listens

	problems []Problem
	warnings []Problem
}

func (d *decoder) problem(line int, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(line int, path, format string, args ...any) {
	d.warnings = append(d.warnings, Problem{Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &Error{Name: d.name, Problems: sortProblems(d.problems)}
}

func (d *decoder) sortedWarnings() []Problem { return sortProblems(d.warnings) }

// A field is a value at its place. The zero node means the key is absent, or null.
type field struct {
	d       *decoder
	n       *node
	path    string
	line    int  // of the key
	secret  bool // nothing of the value may be shown
	lenient bool // references may be unset; what depends on them is not judged
}

func (f field) present() bool { return f.n != nil }

// problem is about the value.
func (f field) problem(format string, args ...any) {
	line := f.line
	if f.n != nil && f.n.kind != kindMapping && f.n.kind != kindSequence {
		line = f.n.line // else it would be the line of what is inside
	}
	f.d.problem(line, f.path, format, args...)
}

// An object is a mapping whose keys are taken one by one; what nobody took is
// unknown. A missing mapping is one without keys.
type object struct {
	field
	members map[string]member
	order   []string
	asked   []string
}

// object reads a mapping. It reports anything else.
func (f field) object() *object {
	o := &object{field: f, members: make(map[string]member)}
	if f.n == nil {
		return o
	}
	if f.n.kind != kindMapping {
		f.problem("must be a mapping, not %s", f.n.kind)
		return o
	}
	for _, m := range f.n.members {
		if first, ok := o.members[m.key]; ok {
			f.d.problem(m.line, childPath(f.path, m.key, f.secret), "is here twice; first in line %d", first.line)
			continue
		}
		o.members[m.key] = m
		o.order = append(o.order, m.key)
	}
	return o
}

// get takes a key. Null is as good as absent.
func (o *object) get(key string) field {
	o.asked = append(o.asked, key)
	f := o.field
	f.n, f.path = nil, childPath(o.path, key, o.secret)
	if o.d.heard != nil {
		o.d.heard(f.path)
	}
	if m, ok := o.members[key]; ok {
		f.line = m.line
		if m.value.kind != kindNull {
			f.n = m.value
		}
	}
	return f
}

// has reports whether a key is there, with a value that is not null.
func (o *object) has(key string) bool {
	m, ok := o.members[key]
	return ok && m.value.kind != kindNull
}

// each takes all keys, in order. Null is a value here.
func (o *object) each(do func(key string, f field)) {
	for _, key := range o.order {
		f := o.get(key)
		f.n = o.members[key].value
		do(key, f)
	}
}

// unknown calls do for the keys that nobody took.
func (o *object) unknown(do func(key, path string, line int)) {
	for _, key := range o.order {
		if !slices.Contains(o.asked, key) {
			do(key, childPath(o.path, key, o.secret), o.members[key].line)
		}
	}
}

// close reports the keys that nobody took.
func (o *object) close() {
	o.unknown(func(key, path string, line int) {
		o.d.problem(line, path, "unknown key%s", didYouMean(key, o.asked))
	})
}

// list reads a list. It returns nil only if the key is absent.
func (f field) list() []field {
	if f.n == nil {
		return nil
	}
	if f.n.kind != kindSequence {
		f.problem("must be a list, not %s", f.n.kind)
		return []field{}
	}
	fs := make([]field, len(f.n.items))
	for i, n := range f.n.items {
		fs[i] = f
		fs[i].n, fs[i].line, fs[i].path = n, n.line, f.path+"["+strconv.Itoa(i)+"]"
	}
	return fs
}
