package raw

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// A Member is one name and value of an object, as they stand in its bytes.
type Member struct {
	Key []byte // with its quotes and escapes
	Val []byte // without white space around it

	from, to int // the member in its object, from the key's first byte to the value's last
}

// Name returns the member's key, unquoted.
func (m Member) Name() string { return Unquote(m.Key) }

// Is reports whether the member's key is name.
func (m Member) Is(name string) bool { return equalKey(m.Key, name) }

// Members yields the members of the object v in their order. It yields nothing if v is no object.
func Members(v []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if KindOf(v) != Object {
			return
		}
		i := skipSpace(v, skipSpace(v, 0)+1)
		for i < len(v) && v[i] == '"' {
			key := skip(v, i)
			from := skipSpace(v, skipSpace(v, key)+1)
			to := skip(v, from)
			if !yield(Member{Key: v[i:key], Val: v[from:to], from: i, to: to}) {
				return
			}
			i = skipSpace(v, skipSpace(v, to)+1)
		}
	}
}

// Elements yields the elements of the array v with their indices. It yields nothing if v is no array.
func Elements(v []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		if KindOf(v) != Array {
			return
		}
		i := skipSpace(v, skipSpace(v, 0)+1)
		for n := 0; i < len(v) && v[i] != ']'; n++ {
			to := skip(v, i)
			if !yield(n, v[i:to]) {
				return
			}
			i = skipSpace(v, skipSpace(v, to)+1)
		}
	}
}

// Get returns the value of the member called name of the object v, or nil.
// Of equal keys the last one counts, as most parsers have it.
func Get(v []byte, name string) []byte {
	var val []byte
	for m := range Members(v) {
		if m.Is(name) {
			val = m.Val
		}
	}
	return val
}

// GetString returns the member called name of the object v if it is a string, else "".
func GetString(v []byte, name string) string {
	if s := Get(v, name); KindOf(s) == String {
		return Unquote(s)
	}
	return ""
}

// Cut returns the object v without the members for which drop is true, all other
// bytes as they were. It returns v itself when nothing is dropped.
func Cut(v []byte, drop func(Member) bool) []byte {
	var out []byte
	last, kept := 0, 0 // v[:last] is done; members kept so far
	pending := -1      // start of a dropped run whose comma is still to go
	for m := range Members(v) {
		if drop(m) {
			if pending < 0 {
				pending = m.from
				if out == nil {
					out = make([]byte, 0, len(v))
				}
				out = append(out, v[last:m.from]...)
				if kept > 0 { // take back the comma and space before this member
					out = out[:bytes.LastIndexByte(out, ',')]
				}
			}
			last = m.to
			continue
		}
		if pending >= 0 {
			if kept > 0 {
				out = append(out, ',')
			}
			last, pending = m.from, -1
		}
		kept++
	}
	if out == nil {
		return v
	}
	return append(out, v[last:]...)
}

// skip returns the index behind the value at i of JSON that is known to be valid.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	default:
		for i < len(b) && bytes.IndexByte([]byte(",]} \t\r\n"), b[i]) < 0 {
			i++
		}
		return i
	}
}

// skipString returns the index behind the string at i: its end is the first quote with an even
// number of backslashes before it.
func skipString(b []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return len(b)
		}
		at += n + 1
		k := at - 2
		for k > i && b[k] == '\\' {
			k--
		}
		if (at-k)%2 == 0 {
			return at
		}
	}
}

// equalKey reports whether the quoted key is name.
func equalKey(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return len(key) == len(name)+2 && string(key[1:len(key)-1]) == name
	}
	return Unquote(key) == name
}

// Unquote returns the text of a JSON string with its quotes. A lone surrogate or
// an invalid byte becomes U+FFFD.
func Unquote(s []byte) string {
	if len(s) < 2 {
		return ""
	}
	if in := s[1 : len(s)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
	}
	var out string
	if json.Unmarshal(s, &out) != nil {
		return ""
	}
	return out
}

// AppendQuote appends s to dst as a JSON string. Only what JSON demands is
// escaped; an invalid byte becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
