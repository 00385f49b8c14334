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
	s := &searcher{c: v.a.c, o: o, found: []Match{}, pointer: []byte(v.Pointer)}
	for _, r := range o.Text {
		s.text = append(s.text, fold(r))
	}
	switch {
	case v.wrapped:
		s.pointer = append(s.pointer, "/content"...)
		s.value(v.span)
	case v.before != "" && v.Kind != raw.String:
		s.children(v.span, v.Kind == raw.Object, v.first)
	case v.before == "":
		s.value(v.span)
	default:
		s.string(v.span)
	}
	return s.found, s.more, v.a.c.failed()
}

type searcher struct {
	c       *cursor
	o       Search
	text    []rune // folded
	pointer []byte
	found   []Match
	more    bool // one too many was found, which ends it
}

func (s *searcher) value(v span) {
	switch s.c.byte(v.from) {
	case '{':
		s.children(span{s.c.space(v.from + 1), v.to - 1}, true, 0)
	case '[':
		s.children(span{s.c.space(v.from + 1), v.to - 1}, false, 0)
	case '"':
		s.string(span{v.from + 1, v.to - 1})
	}
}

func (s *searcher) children(v span, object bool, n int) {
	base := len(s.pointer)
	for m := range s.c.inside(v, object, n) {
		c := s.c.byte(m.val.from)
		if c != '{' && c != '[' && (c != '"' || m.val.to-m.val.from-2 < len(s.text)) {
			continue
		}
		s.pointer = append(s.pointer, '/')
		if object {
			s.pointer = append(s.pointer, escapeToken.Replace(raw.Unquote(s.c.need(m.key.from, m.key.to-m.key.from)))...)
		} else {
			s.pointer = strconv.AppendInt(s.pointer, int64(m.n), 10)
		}
		s.value(m.val)
		s.pointer = s.pointer[:base]
		if s.more {
			return
		}
	}
}

// string searches the inside of a string, piece by piece. Each piece but the first begins with as much of the one
// before as a match and the text around it may need.
func (s *searcher) string(v span) {
	const piece = 256 << 10
	var kept []rune // the end of what was searched
	done := 0       // characters before kept
	from := 0       // where in kept the search goes on
	for at := v.from; at < v.to && !s.more; {
		b := s.c.need(at, min(v.to-at, piece+16))
		if len(b) == 0 {
			return
		}
		n := len(b)
		if at+n < v.to {
			n = charsEnd(b, 0, min(piece, n))
		}
		at += n
		kept = append(kept, []rune(unquoteInner(b[:n]))...)
		last := at >= v.to
		end := len(kept) // matches may begin before it
		if !last {
			end = max(from, len(kept)-len(s.text)-s.o.Around)
		}
		from = s.runes(kept, from, end, done)
		if cut := from - s.o.Around; cut > 0 {
			kept = append(kept[:0], kept[cut:]...)
			done, from = done+cut, from-cut
		}
	}
}

// runes searches for matches that begin in rs[from:to], and returns where to go on.
func (s *searcher) runes(rs []rune, from, to, done int) int {
	i := from
	for i < to {
		if !s.matches(rs[i:]) {
			i++
			continue
		}
		if len(s.found) == s.o.Limit {
			s.more = true
			return i
		}
		end := i + len(s.text)
		s.found = append(s.found, Match{
			Pointer: string(s.pointer), Offset: done + i,
			Excerpt: string(rs[max(0, i-s.o.Around):min(len(rs), end+s.o.Around)]),
		})
		i = end
	}
	return i
}

func (s *searcher) matches(rs []rune) bool {
	if len(rs) < len(s.text) || fold(rs[0]) != s.text[0] {
		return false
	}
	for i, r := range s.text[1:] {
		if fold(rs[i+1]) != r {
			return false
		}
	}
	return true
}

// fold returns one of all the cases of a character.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
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
