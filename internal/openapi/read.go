package openapi

import (
	"bytes"
	"encoding/json"
	"errors"

	"mcpbridge/internal/raw"
)

// A reader walks once over JSON that is known to be valid.
type reader struct {
	b      []byte
	i      int
	values int // values seen so far
	depth  int // levels that are still allowed
}

var (
	errTooDeep = errors.New("nested too deeply")
	errTooMany = errors.New("too many values")
	errNumber  = errors.New("a number too long to calculate with")
)

func (r *reader) space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\t' || r.b[r.i] == '\r') {
		r.i++
	}
}

// peek returns the next byte that is not white space, without taking it.
func (r *reader) peek() byte {
	r.space()
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

// str takes the string at the cursor, with its quotes.
func (r *reader) str() []byte {
	from := r.i
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			r.i++
		case '"':
			r.i++
			return r.b[from:r.i]
		}
	}
	return r.b[from:]
}

// scalar takes the number or literal at the cursor.
func (r *reader) scalar() []byte {
	from := r.i
	for r.i < len(r.b) && bytes.IndexByte([]byte(",]} \n\t\r"), r.b[r.i]) < 0 {
		r.i++
	}
	return r.b[from:r.i]
}

// enter takes an opening bracket and reports whether something is in it.
func (r *reader) enter(closing byte) (bool, error) {
	r.i++
	if r.depth--; r.depth < 0 {
		return false, errTooDeep
	}
	return !r.leave(closing), nil
}

// leave takes the closing bracket if it is next; the comma is taken too.
func (r *reader) leave(closing byte) bool {
	switch r.peek() {
	case closing, 0:
		r.i++
		r.depth++
		return true
	case ',':
		r.i++
	}
	return false
}

// name takes the name of a member and its colon.
func (r *reader) name() []byte {
	r.peek()
	k := r.str()
	r.peek()
	r.i++
	return k
}

// decode returns JSON as what the checker of schemas works on: numbers keep their
// digits. It stops at more than limit values.
func decode(b []byte, limit int) (v any, values int, err error) {
	r := reader{b: b, depth: maxDocNesting}
	v, err = r.value(limit)
	return v, r.values, err
}

func (r *reader) value(limit int) (any, error) {
	if r.values++; r.values > limit {
		return nil, errTooMany
	}
	switch r.peek() {
	case '{':
		obj := map[string]any{}
		more, err := r.enter('}')
		for ; more && err == nil; more = !r.leave('}') {
			k := raw.Unquote(r.name())
			if obj[k], err = r.value(limit); err != nil {
				return nil, err
			}
		}
		return obj, err
	case '[':
		arr := []any{}
		more, err := r.enter(']')
		for ; more && err == nil; more = !r.leave(']') {
			e, err := r.value(limit)
			if err != nil {
				return nil, err
			}
			arr = append(arr, e)
		}
		return arr, err
	case '"':
		return raw.Unquote(r.str()), nil
	case 't':
		r.scalar()
		return true, nil
	case 'f':
		r.scalar()
		return false, nil
	case 'n':
		r.scalar()
		return nil, nil
	default:
		n := r.scalar()
		if !moderate(n) {
			return nil, errNumber
		}
		return json.Number(n), nil
	}
}

// moderate reports whether exact arithmetic on a number is quick: with an exponent
// of a million it takes seconds.
func moderate(n []byte) bool {
	if len(n) > 4096 {
		return false
	}
	i := bytes.IndexAny(n, "eE")
	return i < 0 || len(bytes.TrimLeft(n[i+1:], "+-0")) <= 3
}
