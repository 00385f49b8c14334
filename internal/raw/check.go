package raw

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const (
	// maxExponent bounds the exponent of a number in a strict check, and maxNumber
	// its length in bytes: exact arithmetic on more than that takes seconds.
	maxExponent = 1000
	maxNumber   = 4096

	// anyDepth bounds the nesting of values that servers send.
	anyDepth = 10000
)

// A SyntaxError says where bytes stop being the JSON that was asked for.
type SyntaxError struct {
	Offset int // bytes before the fault
	Msg    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset) }

// Check reports whether b is exactly one JSON object (RFC 8259) without any of
// the liberties that parsers resolve differently: no duplicate keys, no invalid
// UTF-8, no nesting deeper than depth, no exponent beyond ±1000, no number
// of more than 4096 bytes, nothing but white space behind it.
// The error is a [*SyntaxError].
func Check(b []byte, depth int) error {
	// Room for the keys of most objects.
	s := scanner{b: b, depth: depth, strict: true, keys: make([]span, 0, 8)}
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return &SyntaxError{i, "not a JSON object"}
	}
	return s.whole(i)
}

// CheckAny reports whether b is exactly one JSON value of any kind, by the plain
// grammar: what a server sent and is passed on as it is. The error is a [*SyntaxError].
func CheckAny(b []byte) error {
	s := scanner{b: b, depth: anyDepth}
	return s.whole(skipSpace(b, 0))
}

// A scanner walks over one JSON text. Its methods take the index of a token's
// first byte and return the index behind it; the first fault ends the walk.
type scanner struct {
	b      []byte
	depth  int  // levels still allowed
	strict bool // also refuse what parsers disagree on
	keys   []span
	err    *SyntaxError
}

// A span is a range of bytes.
type span struct{ from, to int }

func (s *scanner) whole(i int) error {
	i = s.value(i)
	if s.err == nil {
		if i = skipSpace(s.b, i); i < len(s.b) {
			s.fail(i, "data behind the value")
		}
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// fail notes the fault and returns the end of the text, which stops every loop.
func (s *scanner) fail(i int, msg string) int {
	if s.err == nil {
		if i >= len(s.b) {
			msg = "the text ends too early"
		}
		s.err = &SyntaxError{min(i, len(s.b)), msg}
	}
	return len(s.b)
}

func (s *scanner) value(i int) int {
	if i >= len(s.b) {
		return s.fail(i, "")
	}
	switch c := s.b[i]; c {
	case '{':
		return s.object(i, nil)
	case '[':
		return s.array(i)
	case '"':
		return s.str(i)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return s.number(i)
		}
		return s.fail(i, "not a JSON value")
	}
}

// object walks over the object at i and hands each member's spans to each, if that is set.
func (s *scanner) object(i int, each func(key, val span)) int {
	if s.depth--; s.depth < 0 {
		return s.fail(i, "nested too deeply")
	}
	first := len(s.keys)
	i = skipSpace(s.b, i+1)
	if i < len(s.b) && s.b[i] == '}' {
		s.depth++
		return i + 1
	}
	for {
		if i >= len(s.b) || s.b[i] != '"' {
			return s.fail(i, "not a key in double quotes")
		}
		key := span{i, s.str(i)}
		i = skipSpace(s.b, key.to)
		if i >= len(s.b) || s.b[i] != ':' {
			return s.fail(i, "no colon behind the key")
		}
		val := span{from: skipSpace(s.b, i+1)}
		val.to = s.value(val.from)
		if s.err != nil {
			return len(s.b)
		}
		if s.strict {
			s.keys = append(s.keys, key)
		}
		if each != nil {
			each(key, val)
		}
		if i = skipSpace(s.b, val.to); i >= len(s.b) {
			return s.fail(i, "")
		}
		switch s.b[i] {
		case ',':
			i = skipSpace(s.b, i+1)
		case '}':
			if s.strict {
				s.unique(s.keys[first:])
				s.keys = s.keys[:first]
			}
			s.depth++
			return i + 1
		default:
			return s.fail(i, "no comma or brace behind the member")
		}
	}
}

// unique fails at the second of two equal keys. Few keys are compared as they
// are; many, or escaped ones, through a set.
func (s *scanner) unique(keys []span) {
	const few = 8
	if len(keys) <= few && !s.escaped(keys) {
		for i, k := range keys {
			for _, l := range keys[:i] {
				if bytes.Equal(s.b[k.from:k.to], s.b[l.from:l.to]) {
					s.fail(k.from, "the same key twice")
					return
				}
			}
		}
		return
	}
	seen := make(map[string]struct{}, len(keys))
	for _, k := range keys {
		name := Unquote(s.b[k.from:k.to])
		if _, ok := seen[name]; ok {
			s.fail(k.from, "the same key twice")
			return
		}
		seen[name] = struct{}{}
	}
}

func (s *scanner) escaped(keys []span) bool {
	for _, k := range keys {
		if bytes.IndexByte(s.b[k.from:k.to], '\\') >= 0 {
			return true
		}
	}
	return false
}

func (s *scanner) array(i int) int {
	if s.depth--; s.depth < 0 {
		return s.fail(i, "nested too deeply")
	}
	i = skipSpace(s.b, i+1)
	if i < len(s.b) && s.b[i] == ']' {
		s.depth++
		return i + 1
	}
	for {
		i = skipSpace(s.b, s.value(i))
		if i >= len(s.b) {
			return s.fail(i, "")
		}
		switch s.b[i] {
		case ',':
			i = skipSpace(s.b, i+1)
		case ']':
			s.depth++
			return i + 1
		default:
			return s.fail(i, "no comma or bracket behind the element")
		}
	}
}

func (s *scanner) str(i int) int {
	from := i
	for i = special(s.b, i+1); i < len(s.b); i = special(s.b, i+1) {
		switch s.b[i] {
		case '"':
			if s.strict && !utf8.Valid(s.b[from:i]) {
				return s.fail(from, "a string is not valid UTF-8")
			}
			return i + 1
		case '\\':
			if i = s.escape(i); s.err != nil {
				return i
			}
		default:
			return s.fail(i, "a control character in a string")
		}
	}
	return s.fail(i, "")
}

// escape takes the index of a backslash and returns that of the escape's last byte.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.b) {
		return s.fail(len(s.b), "")
	}
	switch s.b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(s.b) || !isHex(s.b[j]) {
				return s.fail(j, "a \\u escape without four hex digits")
			}
		}
		return i + 5
	default:
		return s.fail(i, "an unknown escape")
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) literal(i int, word string) int {
	if !bytes.HasPrefix(s.b[i:], []byte(word)) {
		return s.fail(i, "not a JSON value")
	}
	return i + len(word)
}

func (s *scanner) number(i int) int {
	from := i
	if s.b[i] == '-' {
		i++
	}
	switch {
	case i < len(s.b) && s.b[i] == '0':
		i++
	case i < len(s.b) && s.b[i] >= '1' && s.b[i] <= '9':
		i = s.digits(i)
	default:
		return s.fail(i, "a number without digits")
	}
	if i < len(s.b) && s.b[i] == '.' {
		j := s.digits(i + 1)
		if j == i+1 {
			return s.fail(j, "a number without digits behind the point")
		}
		i = j
	}
	if i < len(s.b) && (s.b[i] == 'e' || s.b[i] == 'E') {
		i++
		if i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		j := s.digits(i)
		if j == i {
			return s.fail(j, "a number without digits in its exponent")
		}
		if s.strict && exponentOver(s.b[i:j]) {
			return s.fail(from, "an exponent beyond ±1000")
		}
		i = j
	}
	if s.strict && i-from > maxNumber {
		return s.fail(from, "a number of more than 4096 bytes")
	}
	return i
}

func (s *scanner) digits(i int) int {
	for i < len(s.b) && s.b[i] >= '0' && s.b[i] <= '9' {
		i++
	}
	return i
}

func exponentOver(digits []byte) bool {
	n := 0
	for _, d := range digits {
		if n = n*10 + int(d-'0'); n > maxExponent {
			return true
		}
	}
	return false
}
