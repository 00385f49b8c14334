// Package raw reads JSON where it lies. It checks bytes strictly, finds members
// and pointers in them, and splits JSON-RPC frames, always as spans of the bytes
// it was given: no value is decoded, so no digit, escape or key order is lost.
//
// [Check] and [CheckAny] decide whether bytes are JSON. All other functions take
// bytes that passed one of them, and give nothing useful for others.
package raw

import "bytes"

// A Kind is the type of a JSON value.
type Kind byte

// The kinds of JSON values. Invalid is what KindOf says of an empty span.
const (
	Invalid Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// KindOf returns the kind of the value v, which may have white space before it.
func KindOf(v []byte) Kind {
	i := skipSpace(v, 0)
	if i == len(v) {
		return Invalid
	}
	switch v[i] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		return Number
	}
}

// IsNull reports whether v is absent or the literal null.
func IsNull(v []byte) bool { k := KindOf(v); return k == Invalid || k == Null }

// skipSpace returns the index of the first byte at or after i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// Flatten turns every carriage return and line feed in b into a space, in place.
// In JSON that passed a check they stand only between tokens, so the value stays
// the same and fits on one line of a line-framed connection.
func Flatten(b []byte) {
	for _, c := range []byte("\n\r") {
		for rest := b; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
