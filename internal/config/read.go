package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
	if f.d.literal {
		return scalar{value: Value{parts: literal(f.n.text), secret: f.secret}, kind: kindString}, f.literalText(f.n.text)
	}
	e := expander{getenv: f.d.getenv, dir: f.d.dir, callers: callers}
	e.expand(f.n.text, 0)
	f.d.files = append(f.d.files, e.files...)
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
