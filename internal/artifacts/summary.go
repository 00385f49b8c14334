package artifacts

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"mcpbridge/internal/raw"
)

// back is how many characters before its end a summary may be cut, to end between words.
const back = 50

// A summaryKey says what a summary is of: a string at a pointer in an artifact. The
// digest is there since a foreign reference may name something else some day.
type summaryKey struct {
	owner                owner
	ref, digest, pointer string
}

// Summarize writes the summary view of the value: its JSON with summaries in place of
// long strings and {"@ref": …, "@bytes": …} in place of nested artifacts. What can hold neither is
// written as it was sent. A slice of a string is not shortened again.
func (v *Value) Summarize(w io.Writer) error {
	if v.Kind == raw.String && v.before != "" {
		_, err := v.WriteTo(w)
		return err
	}
	out := bufio.NewWriterSize(w, 16<<10)
	s := v.summarizer(out)
	object := v.Kind == raw.Object
	switch {
	case v.wrapped:
		s.literal(wrapOpen)
		s.push("content")
		s.value(v.span, nil)
		s.literal(wrapClose)
	case v.before != "":
		s.literal(v.before)
		s.children(v.span, object, v.first, nil)
		s.literal(v.after)
	default:
		s.root = v.span.from
		s.value(v.span, nil)
	}
	if s.err == nil {
		s.err = v.a.c.failed()
	}
	if s.err != nil {
		return s.err
	}
	return out.Flush()
}

type summarizer struct {
	a       *Artifact
	w       *bufio.Writer
	err     error
	root    int // where the value begins that is shown, also if it is nested
	key     summaryKey
	pointer []byte    // of the current value, from the artifact that holds it
	ref     reference // that artifact
	holder  nestSpan
	next    int // the first of its nested artifacts that may still come
}

// summarizer begins at v: it finds the innermost artifact that holds it.
func (v *Value) summarizer(w *bufio.Writer) *summarizer {
	a := v.a
	s := &summarizer{a: a, w: w, root: -1, next: -1}
	s.ref, _ = parseRef(a.meta.Ref)
	nest := a.nest
	if v.whole {
		s.ref.path, nest = nil, 0
	}
	pointer := v.Pointer
	if nest >= 0 {
		x := a.c.x
		s.holder = x.nest(nest)
		for _, at := range v.trail {
			i := x.childFrom(s.holder, at.from)
			if n := i - s.holder.first; n < s.holder.children && x.nest(i).from == at.from {
				s.holder = x.nest(i)
				s.ref.path = append(slices.Clip(s.ref.path), n+1)
				pointer = v.Pointer[at.pointer:]
			}
		}
		s.next = x.childFrom(s.holder, v.span.from)
	}
	if v.whole && len(s.ref.path) == 0 {
		pointer = "result:" + pointer // it is not the data that this pointer begins in
	}
	s.pointer = []byte(pointer)
	s.key = summaryKey{owner: a.rec.owner, ref: s.ref.String(), digest: a.meta.digest}
	return s
}

// push adds a token to the pointer; the parent cuts it off again.
func (s *summarizer) push(token string) {
	s.pointer = append(append(s.pointer, '/'), escapeToken.Replace(token)...)
}

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

func (s *summarizer) literal(t string) {
	if s.err == nil {
		_, s.err = s.w.WriteString(t)
	}
}

// verbatim writes bytes as they were sent.
func (s *summarizer) verbatim(v span) {
	if s.err == nil {
		_, s.err = (&Value{a: s.a, span: v}).WriteTo(s.w)
	}
}

// value writes the value at v, which is the member of holder, an object, called key, if that is not nil.
func (s *summarizer) value(v span, in *member) {
	if s.err != nil {
		return
	}
	size := v.to - v.from
	switch c := s.a.c.byte(v.from); {
	case c == '{' && v.from != s.root && s.nested(v):
	case size <= s.a.k.after && size <= s.a.k.promote:
		s.verbatim(v)
	case c == '"':
		s.text(v, in)
	case c == '{':
		s.literal("{")
		s.children(span{s.a.c.space(v.from + 1), v.to - 1}, true, 0, &v)
		s.literal("}")
	case c == '[':
		s.literal("[")
		s.children(span{s.a.c.space(v.from + 1), v.to - 1}, false, 0, nil)
		s.literal("]")
	default:
		s.verbatim(v)
	}
}

// A member is where a value stands in an object.
type member struct {
	object span
	key    string
}

func (s *summarizer) children(v span, object bool, n int, of *span) {
	base := len(s.pointer)
	first := true
	for m := range s.a.c.inside(v, object, n) {
		if s.err != nil {
			return
		}
		if !first {
			s.literal(",")
		}
		first = false
		var in *member
		if object {
			key := bytes.Clone(s.a.c.need(m.key.from, m.key.to-m.key.from))
			s.literal(string(key))
			s.literal(":")
			name := raw.Unquote(key)
			s.push(name)
			if of != nil {
				in = &member{*of, name}
			}
		} else {
			s.push(strconv.Itoa(m.n))
		}
		s.value(m.val, in)
		s.pointer = s.pointer[:base]
	}
}

// nested writes the reference of a nested artifact, if the object at v is one.
func (s *summarizer) nested(v span) bool {
	if s.next < 0 || v.to-v.from <= s.a.k.promote {
		return false
	}
	x := s.a.c.x
	for ; s.next < s.holder.first+s.holder.children; s.next++ {
		switch n := x.nest(s.next); {
		case x.err != nil || n.from > v.from:
			return false
		case n.from == v.from:
			s.literal(fmt.Sprintf(`{"@ref":"%s.%d","@bytes":%d}`, s.key.ref, s.next-s.holder.first+1, v.to-v.from))
			s.next++
			return true
		}
	}
	return false
}

// text writes a string, or what stands for it if it is long.
func (s *summarizer) text(v span, in *member) {
	c := s.a.c
	n := c.count(v)
	if n <= s.a.k.after {
		s.verbatim(v)
		return
	}
	cache := s.a.k.summaries
	key := s.key
	key.pointer = string(s.pointer)
	if cache != nil {
		if t, ok := cache.Get(key); ok {
			s.literal(t)
			return
		}
	}
	t, ok := s.a.binarySummary(v, in)
	if !ok {
		t = fmt.Sprintf("[SUMMARY: %d chars] %s...", n, s.a.firstWords(v, s.a.k.chars))
	}
	if s.err = c.failed(); s.err != nil {
		return
	}
	t = string(raw.AppendQuote(nil, t))
	if cache != nil {
		cache.Add(key, t)
	}
	s.literal(t)
}

// firstWords returns the first n characters of the string at v, or a few less, so that it ends between words.
func (a *Artifact) firstWords(v span, n int) string {
	to := a.char(v, n+1)
	rs := []rune(unquoteInner(a.c.need(v.from+1, to-v.from-1)))
	if len(rs) <= n {
		return string(rs)
	}
	for cut := n; cut >= n-back && cut > 0; cut-- {
		if unicode.IsSpace(rs[cut]) {
			return strings.TrimRightFunc(string(rs[:cut]), unicode.IsSpace)
		}
	}
	return string(rs[:n])
}

// binarySummary describes the base64 of a block of bytes: an image's or audio's data, a resource's blob.
func (a *Artifact) binarySummary(v span, in *member) (string, bool) {
	if in == nil || in.key != "data" && in.key != "blob" {
		return "", false
	}
	typ := a.member(in.object, "type")
	media := a.member(in.object, "mimeType")
	if in.key == "data" && typ != "image" && typ != "audio" || in.key == "blob" && a.member(in.object, "uri") == "" {
		return "", false
	}
	if media == "" {
		media = "application/octet-stream"
	}
	n := a.c.count(v)
	tail := a.char(v, n-2)
	pad := strings.Count(unquoteInner(a.c.need(tail, v.to-1-tail)), "=")
	return fmt.Sprintf("[SUMMARY: %s, %d bytes]", media, (n-pad)*3/4), true
}

// member returns the text of the object's member, if that is a string of a sensible length.
func (a *Artifact) member(object span, name string) string {
	v, ok := a.c.member(object, name)
	if !ok || a.c.byte(v.from) != '"' || v.to-v.from > 1<<10 {
		return ""
	}
	return raw.Unquote(a.c.need(v.from, v.to-v.from))
}
