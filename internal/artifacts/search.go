package artifacts

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A Search says what to look for in the text of a value: in its strings, not in their keys.
type Search struct {
	Text   string // found whatever its case; must not be empty
	Limit  int    // matches; 0 is 10
	Around int    // characters of text shown before a match, and behind it; 0 is 200
}

// A Match is one place where a text was found.
type Match struct {
	Pointer string // of the string that holds it
	Offset  int    // characters before it in that string
	Excerpt string // the match and what is around it
}

// Search returns the matches in the value in the order of its bytes, and whether there are more.
// The errors are of kind Malformed without a text to look for, and those of reading.
func (v *Value) Search(o Search) (found []Match, more bool, err error) {
	if o.Text == "" {
		return nil, false, &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Search", Msg: "There is no text to search for."}
	}
	if o.Limit <= 0 {
		o.Limit = 10
	}
	if o.Around <= 0 {
		o.Around = 200
	}
	s := newSearcher(v, o)
	switch {
	case v.wrapped:
		s.path = append(s.path, child{})
		s.value(v.span)
	case v.before == "":
		s.value(v.span)
	case v.Kind == raw.String:
		s.string(v.span, v.first)
	default:
		s.children(v.span, v.Kind == raw.Object, v.first)
	}
	if err := v.a.c.failed(); err != nil {
		return nil, false, err
	}
	return s.found, s.more, nil
}

// A searcher goes over the strings of a value, character by character, by the algorithm of Knuth, Morris and
// Pratt: no text is decoded but what is shown.
type searcher struct {
	a     *Artifact
	c     *cursor
	o     Search
	text  []rune // folded
	back  []int  // :: characters that match -> how many of them still do when the next does not
	plain [utf8.RuneSelf]rune

	from  string  // the pointer of the value that is searched
	whole bool    // that is wrapped
	path  []child // from there to the current value
	found []Match
	more  bool // one too many was found, which ends it
}

func newSearcher(v *Value, o Search) *searcher {
	s := &searcher{a: v.a, c: v.a.c, o: o, found: []Match{}, from: v.Pointer, whole: v.wrapped}
	for c := range s.plain {
		s.plain[c] = fold(rune(c))
	}
	for _, r := range o.Text {
		s.text = append(s.text, fold(r))
	}
	s.back = make([]int, len(s.text)+1)
	for i, k := 1, 0; i < len(s.text); i++ {
		for k > 0 && s.text[k] != s.text[i] {
			k = s.back[k]
		}
		if s.text[k] == s.text[i] {
			k++
		}
		s.back[i+1] = k
	}
	return s
}

func (s *searcher) value(v span) {
	switch s.c.byte(v.from) {
	case '{':
		s.children(span{s.c.space(v.from + 1), v.to - 1}, true, 0)
	case '[':
		s.children(span{s.c.space(v.from + 1), v.to - 1}, false, 0)
	case '"':
		s.string(span{v.from + 1, v.to - 1}, 0)
	}
}

func (s *searcher) children(v span, object bool, n int) {
	for m := range s.c.inside(v, object, n) {
		s.path = append(s.path, m)
		s.value(m.val)
		s.path = s.path[:len(s.path)-1]
		if s.more {
			return
		}
	}
}

// string searches the inside of a string, whose first character is number n.
func (s *searcher) string(v span, n int) {
	const piece = 256 << 10
	if v.to-v.from < len(s.text) {
		return
	}
	first := n
	state := 0
	for at := v.from; at < v.to; {
		b := s.c.need(at, min(v.to-at, piece+16))
		if len(b) == 0 {
			return
		}
		if at+len(b) < v.to { // the last bytes may be the beginning of a character
			b = b[:charsEnd(b, 0, len(b)-16)]
		}
		for i := 0; i < len(b); {
			var r rune
			if c := b[i]; c < utf8.RuneSelf && c != '\\' {
				r = s.plain[c]
				i++
			} else {
				r, i = nextRune(b, i)
			}
			n++
			for state > 0 && s.text[state] != r {
				state = s.back[state]
			}
			if s.text[state] != r {
				continue
			}
			if state++; state < len(s.text) {
				continue
			}
			state = 0
			if !s.match(v, first, n-len(s.text)) {
				return
			}
		}
		at += len(b)
	}
}

// nextRune returns the folded character at i and where the next one begins.
func nextRune(b []byte, i int) (rune, int) {
	var r rune
	if b[i] == '\\' {
		r = escaped(b, i)
		i = escapeEnd(b, i)
	} else {
		var n int
		r, n = utf8.DecodeRune(b[i:])
		i += n
	}
	for i < len(b) && continues(b[i]) { // see chars.go
		i++
	}
	return fold(r), i
}

// match notes a match at a character of the string whose inside is v, from its character number first on. It returns
// false when that is one too many.
func (s *searcher) match(v span, first, n int) bool {
	if len(s.found) == s.o.Limit {
		s.more = true
		return false
	}
	from := max(first, n-s.o.Around)
	show := s.a.middle(span{v.from - 1, v.to + 1}, from-first, n+len(s.text)+s.o.Around-from)
	s.found = append(s.found, Match{Pointer: s.pointer(), Offset: n, Excerpt: unquoteInner(s.c.need(show.from, show.to-show.from))})
	return true
}

// pointer returns the pointer of the current value.
func (s *searcher) pointer() string {
	p := []byte(s.from)
	for i, m := range s.path {
		p = append(p, '/')
		switch {
		case s.whole && i == 0:
			p = append(p, "content"...)
		case m.key.to > 0:
			p = append(p, escapeToken.Replace(unquoteInner(s.c.need(m.key.from+1, m.key.to-m.key.from-2)))...)
		default:
			p = strconv.AppendInt(p, int64(m.n), 10)
		}
	}
	return string(p)
}

// fold returns one of all the cases of a character.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	// The scripts of East Asia have no cases, and long texts.
	if r >= 0x2E80 && r < 0xA640 || r >= 0xAC00 && r < 0xD7B0 {
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least < utf8.RuneSelf {
		return fold(least)
	}
	return least
}
