package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A decoder walks the tree and collects what is wrong with it.
type decoder struct {
	name   string
	dir    string
	getenv func(string) string

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

// A scalar is the text of a value, references replaced.
type scalar struct {
	value    Value
	expanded bool
	kind     kind
}

// scalar reads text, a number or a boolean. It returns false if there is
// nothing to go on with: absent, reported already, or not to be judged.
func (f field) scalar(callers bool) (scalar, bool) {
	if f.n == nil {
		return scalar{}, false
	}
	switch f.n.kind {
	case kindMapping, kindSequence:
		f.problem("must be text, not %s", f.n.kind)
		return scalar{}, false
	case kindNull:
		f.problem(`is null; write "" for empty text`)
		return scalar{}, false
	case kindNumber, kindBool:
		return scalar{value: Value{parts: literal(f.n.text), secret: f.secret}, kind: f.n.kind}, true
	}
	e := expander{getenv: f.d.getenv, dir: f.d.dir, callers: callers}
	e.expand(f.n.text, 0)
	if len(e.problems) > 0 {
		if !f.lenient {
			for _, p := range e.problems {
				f.problem("%s", p)
			}
		}
		return scalar{}, false
	}
	v := Value{parts: e.parts, secret: f.secret || e.expanded}
	return scalar{value: v, expanded: e.expanded, kind: kindString}, true
}

// value reads text that may be a secret.
func (f field) value() (Value, bool) {
	s, ok := f.scalar(false)
	return s.value, ok
}

// subject is how a message names the value: as it is, unless that is secret.
func (f field) subject(s scalar) string {
	if s.value.secret {
		return "the value"
	}
	text := []rune(s.value.Text())
	if len(text) > 60 {
		return strconv.Quote(string(text[:57])) + "…"
	}
	return strconv.Quote(string(text))
}

// read reads a value with a parser whose errors continue a sentence about it.
// It may be written as one of the kinds; what came from a reference is text
// whatever it means, and is always taken.
func read[T any](f field, parse func(string) (T, error), kinds ...kind) (v T, ok bool) {
	s, ok := f.scalar(false)
	if !ok {
		return v, false
	}
	if !s.expanded && !slices.Contains(kinds, s.kind) {
		f.problem("must be %s, not %s", kinds[0], s.kind)
		return v, false
	}
	v, err := parse(s.value.Text())
	if err != nil {
		f.problem("%s %s", f.subject(s), err)
		return v, false
	}
	return v, true
}

// set reads the key into dst, which keeps its default if there is no good value.
func set[T any](o *object, key string, dst *T, parse func(string) (T, error), kinds ...kind) {
	if v, ok := read(o.get(key), parse, kinds...); ok {
		*dst = v
	}
}

// The kinds in which values of a type may be written.
var (
	textKinds   = []kind{kindString, kindNumber, kindBool}
	scaledKinds = []kind{kindString, kindNumber}
)

func (o *object) text(key string, dst *string, checks ...func(string) error) {
	set(o, key, dst, checked(checks), textKinds...)
}

// checked is a parser that leaves text as it is.
func checked(checks []func(string) error) func(string) (string, error) {
	return func(s string) (string, error) {
		for _, check := range checks {
			if err := check(s); err != nil {
				return "", err
			}
		}
		return s, nil
	}
}

func (o *object) bool(key string, dst *bool) { set(o, key, dst, parseBool, kindBool) }

// int reads a number of at least lowest.
func (o *object) int(key string, dst *int, lowest int) {
	set(o, key, dst, func(s string) (int, error) {
		n, err := parseInt(s)
		if err == nil && n < lowest {
			err = fmt.Errorf("is below %d", lowest)
		}
		return n, err
	}, kindNumber)
}

// duration reads a duration of at least lowest.
func (o *object) duration(key string, dst *time.Duration, lowest time.Duration) {
	set(o, key, dst, func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		if err == nil && d < lowest {
			err = fmt.Errorf("is below %v", lowest)
		}
		return d, err
	}, scaledKinds...)
}

func (o *object) size(key string, dst *int64, lowest int64) {
	set(o, key, dst, func(s string) (int64, error) {
		n, err := parseSize(s)
		if err == nil && n < lowest {
			err = fmt.Errorf("is below %d", lowest)
		}
		return n, err
	}, scaledKinds...)
}

// oneOf reads a word.
func oneOf[T ~string](o *object, key string, dst *T, words ...T) {
	set(o, key, dst, func(s string) (T, error) {
		if slices.Contains(words, T(s)) {
			return T(s), nil
		}
		return "", fmt.Errorf("is not one of %s", listing(words))
	}, textKinds...)
}

// listOrOne takes one value for a list of one.
func (f field) listOrOne() []field {
	if f.n == nil || f.n.kind == kindSequence {
		return f.list()
	}
	return []field{f}
}

// texts reads each item as text. It returns nil only for nil.
func texts(items []field, checks ...func(string) error) []string {
	if items == nil {
		return nil
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		if text, ok := read(item, checked(checks), textKinds...); ok {
			list = append(list, text)
		}
	}
	return list
}

func listing[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$-]{1,60}$`)

// childPath adds a key to a path. Keys of mappings whose values are secret are
// shown only if they look like names: a slip can make a key out of a secret.
func childPath(path, key string, secret bool) string {
	switch {
	case plainKey.MatchString(key):
		if path == "" {
			return key
		}
		return path + "." + key
	case secret:
		return path + "[…]"
	}
	if runes := []rune(key); len(runes) > 60 {
		key = string(runes[:57]) + "…"
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// didYouMean names the known key that is closest to a wrong one.
func didYouMean(key string, known []string) string {
	best, bestDistance := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		distance := editDistance(strings.ToLower(key), strings.ToLower(k))
		if distance < bestDistance && distance*2 < len(k) {
			best, bestDistance = k, distance
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance counts the bytes to insert, delete or replace.
func editDistance(a, b string) int {
	if len(a) > 60 || len(b) > 60 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
