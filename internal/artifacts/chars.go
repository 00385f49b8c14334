package artifacts

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"mcpbridge/internal/raw"
)

// A character of a JSON string is a code point: an escape is one, and so are two
// escapes that are a surrogate pair. A byte that continues no character belongs to the one before it,
// so that cutting between characters loses no byte of text that is not valid UTF-8.

// Eight bytes are looked at in one step: each constant repeats a byte in all of a word.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	slants = '\\' * ones
)

// chars goes from the boundary at in s, the inside of a string, to the first one that is at least n bytes behind it, or to
// the end, and counts the characters on the way. Bytes at the very beginning that continue nothing are one.
func chars(s []byte, at, n int) (end, count int) {
	end = min(at+n, len(s))
	if at == 0 && end > 0 && continues(s[0]) {
		count++
	}
	for at+8 <= end {
		w := binary.LittleEndian.Uint64(s[at:])
		x := w ^ slants
		hit := (x - ones) &^ x & highs
		// The high bit of each byte that continues a character.
		inner := w & ^(w << 1) & highs
		if hit == 0 {
			count += 8 - bits.OnesCount64(inner)
			at += 8
			continue
		}
		k := bits.TrailingZeros64(hit) / 8
		count += k + 1 - bits.OnesCount64(inner&(1<<(8*k)-1))
		at = escapeEnd(s, at+k)
	}
	for at < end {
		switch {
		case s[at] == '\\':
			count++
			at = escapeEnd(s, at)
			continue
		case !continues(s[at]):
			count++
		}
		at++
	}
	for at < len(s) && continues(s[at]) {
		at++
	}
	return at, count
}

// countChars returns the number of characters in s, the inside of a string.
func countChars(s []byte) int {
	_, n := chars(s, 0, len(s))
	return n
}

func continues(c byte) bool { return c&0xC0 == 0x80 }

// escapeEnd returns the index behind the escape at i, and behind both escapes of a surrogate pair.
func escapeEnd(s []byte, i int) int {
	if i+1 >= len(s) || s[i+1] != 'u' {
		return min(i+2, len(s))
	}
	if surrogate(s, i, 'd', '8') && i+12 <= len(s) && s[i+6] == '\\' && s[i+7] == 'u' && surrogate(s, i+6, 'd', 'c') {
		return i + 12
	}
	return min(i+6, len(s))
}

// surrogate reports whether the \u escape at i is of the half that begins with the digits d and lo to lo+3.
func surrogate(s []byte, i int, d, lo byte) bool {
	if i+6 > len(s) || s[i+2]|0x20 != d {
		return false
	}
	c := s[i+3]
	if lo == '8' {
		return c >= '8' && c <= '9' || c|0x20 == 'a' || c|0x20 == 'b'
	}
	return c|0x20 >= 'c' && c|0x20 <= 'f'
}

// charsEnd returns the first boundary between characters that is at least n bytes behind at, which is one itself.
func charsEnd(s []byte, at, n int) int {
	end, _ := chars(s, at, n)
	return end
}

// skipChars returns the boundary n characters behind at in s, and how many of
// them there were not.
func skipChars(s []byte, at, n int, first bool) (end, missing int) {
	if n > 0 && first && at < len(s) && continues(s[at]) {
		n--
		for at < len(s) && continues(s[at]) {
			at++
		}
	}
	for ; n > 0 && at < len(s); n-- {
		if s[at] == '\\' {
			at = escapeEnd(s, at)
		} else {
			at++
		}
		for at < len(s) && continues(s[at]) {
			at++
		}
	}
	return at, n
}

// escaped returns the character that the escape at i stands for. Half a surrogate pair is U+FFFD.
func escaped(s []byte, i int) rune {
	if i+1 >= len(s) {
		return utf8.RuneError
	}
	switch c := s[i+1]; c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		r := hex4(s, i+2)
		if utf16.IsSurrogate(r) {
			if escapeEnd(s, i)-i < 12 {
				return utf8.RuneError
			}
			return utf16.DecodeRune(r, hex4(s, i+8))
		}
		return r
	default:
		return rune(c)
	}
}

// hex4 returns the number that the four hex digits at i are.
func hex4(s []byte, i int) (r rune) {
	for _, c := range s[i:min(i+4, len(s))] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unquoteInner returns the text of the inside of a string, or of a part of it that is cut between characters.
func unquoteInner(s []byte) string {
	q := make([]byte, 0, len(s)+2)
	q = append(append(append(q, '"'), s...), '"')
	return raw.Unquote(q)
}

// keyIs reports whether the key whose quote is at i is name. Where nothing could be read there is no key.
func keyIs(b []byte, i int, name string) bool {
	if i >= len(b) {
		return false
	}
	k := b[i:stringEnd(b, i)]
	if bytes.IndexByte(k, '\\') < 0 {
		return len(k) == len(name)+2 && string(k[1:len(k)-1]) == name
	}
	return raw.Unquote(k) == name
}

// keyHash returns the hash of the key whose quote is at i.
func keyHash(b []byte, i int) uint32 {
	k := b[i:stringEnd(b, i)]
	if bytes.IndexByte(k, '\\') < 0 {
		return hashName(k[1 : len(k)-1])
	}
	return hashName([]byte(raw.Unquote(k)))
}

// hashName is FNV-1a with a final mix, since lookups rely on hashes being spread evenly.
func hashName(name []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range name {
		h = (h ^ uint32(c)) * 16777619
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
