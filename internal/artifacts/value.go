package artifacts

import (
	"fmt"
	"io"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A Value is a JSON value in an artifact, or a slice of one. It is read through
// the context that its artifact was opened with, and not by two goroutines at once.
type Value struct {
	Pointer string // where it is in its artifact
	Kind    raw.Kind

	a       *Artifact
	span    span
	wrapped bool   // it is {"content": and the span and }
	whole   bool   // it is seen in the whole result, not in the data
	trail   []step // the way to it
	before  string // what the span of a slice begins with, and ends with
	after   string
	first   int // the number of a slice's first part
}

// Size returns the length of its JSON in bytes.
func (v *Value) Size() int64 {
	open, end := v.ends()
	return int64(len(open) + v.span.to - v.span.from + len(end))
}

func (v *Value) ends() (before, after string) {
	if v.wrapped {
		return wrapOpen, wrapClose
	}
	return v.before, v.after
}

// WriteTo writes its JSON, as its server sent it. The errors are the writer's, or
// of kind StoreUnavailable, or NotFound when the artifact is gone by now.
func (v *Value) WriteTo(w io.Writer) (int64, error) {
	before, after := v.ends()
	n, err := io.WriteString(w, before)
	total := int64(n)
	for at := v.span.from; at < v.span.to && err == nil; at += n {
		b := v.a.c.load(at)
		if len(b) == 0 {
			return total, v.a.broken()
		}
		b = b[:min(len(b), v.span.to-at)]
		n, err = w.Write(b)
		total += int64(n)
	}
	if err != nil {
		return total, err
	}
	n, err = io.WriteString(w, after)
	return total + int64(n), err
}

// Total returns how many characters a string has, items an array, or keys an
// object; of anything else it is 0.
func (v *Value) Total() (int, error) {
	n := 1
	if !v.wrapped {
		n = v.a.c.count(v.span)
	}
	return n, v.a.c.failed()
}

// A Slice is a part of a string, an array or an object.
type Slice struct {
	*Value
	Total int // characters, items or keys of the whole
	Next  int // the offset of what comes behind it; -1 if nothing does
}

var errNegative = &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Slice", Msg: "offset and limit must not be negative."}

// Slice returns the characters, items or members from offset on, limit at most.
// What lies past the end is an empty slice. The error is of kind Malformed when
// one of them is negative, or the value has no parts.
func (v *Value) Slice(offset, limit int) (*Slice, error) {
	if offset < 0 || limit < 0 {
		return nil, errNegative
	}
	var before, after string
	switch v.Kind {
	case raw.String:
		before, after = `"`, `"`
	case raw.Array:
		before, after = "[", "]"
	case raw.Object:
		before, after = "{", "}"
	default:
		return nil, &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Slice", Msg: "Only a string, an array or an object can be sliced; this value is none of them."}
	}
	total, err := v.Total()
	if err != nil {
		return nil, err
	}
	s := &Slice{Value: new(*v), Total: total, Next: -1}
	offset = min(offset, total)
	limit = min(limit, total-offset)
	if offset+limit < total {
		s.Next = offset + limit
	}
	if limit == total {
		return s, nil
	}
	s.wrapped, s.before, s.after, s.first = false, before, after, offset
	switch {
	case limit == 0:
		s.span = span{}
	case v.Kind == raw.String:
		s.span = v.a.middle(v.span, offset, limit)
	default:
		s.span = v.a.parts(v.span, offset, limit)
	}
	return s, v.a.c.failed()
}

// parts returns where the children from offset on lie, with all between them.
func (a *Artifact) parts(v span, offset, limit int) span {
	var s span
	for m := range a.c.children(v, offset) {
		if s.to == 0 {
			s.from = m.begin()
			// The last one is found through the index, not by going over all.
			if limit > 64 && v.to-v.from >= bigBytes {
				for last := range a.c.children(v, offset+limit-1) {
					s.to = last.val.to
					return s
				}
			}
		}
		s.to = m.val.to
		if limit--; limit == 0 {
			break
		}
	}
	return s
}

// middle returns where the characters from offset on lie in the string at v.
func (a *Artifact) middle(v span, offset, limit int) span {
	from := a.char(v, offset)
	to := a.char(v, offset+limit)
	return span{min(from, v.to-1), min(to, v.to-1)}
}

// char returns where the n-th character of the string at v begins, or where the string's text ends.
func (a *Artifact) char(v span, n int) int {
	at, done := v.from+1, 0
	if v.to-v.from >= bigBytes {
		if j, ok := a.c.x.jumpOf(v.from); ok {
			if n >= j.count {
				return v.to - 1
			}
			if m, ok := a.c.x.markBefore(j, n); ok {
				at, done = int(m.at), int(m.n)
			}
		}
	}
	// Between two marks lie hardly more than bigBytes.
	s := a.c.need(at, min(v.to-1-at, 2*bigBytes))
	end, missing := skipChars(s, 0, n-done, at == v.from+1)
	if missing > 0 && at+end < v.to-1 {
		s = a.c.need(at, v.to-1-at)
		end, _ = skipChars(s, 0, n-done, at == v.from+1)
	}
	return at + end
}

// Text writes the text of a string, unquoted. The error is of kind Malformed if it is none.
func (v *Value) Text(w io.Writer) error {
	if v.Kind != raw.String {
		return &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Text", Msg: "Only a string has text; this value is none."}
	}
	from, to := v.span.from, v.span.to
	if v.before == "" {
		from, to = from+1, to-1
	}
	const piece = 64 << 10
	for from < to {
		s := v.a.c.need(from, min(to-from, piece+16))
		if len(s) == 0 {
			return v.a.broken()
		}
		n := len(s)
		if from+n < to { // the last few bytes may be the beginning of a character
			n = charsEnd(s, 0, piece-16)
		}
		if _, err := io.WriteString(w, unquoteInner(s[:n])); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// broken is why bytes that must be there cannot be read.
func (a *Artifact) broken() error {
	if err := a.c.failed(); err != nil {
		return err
	}
	return &bridge.Error{Kind: bridge.Internal, Op: "artifacts.read", Msg: "A stored artifact is incomplete.", Err: fmt.Errorf("the bytes of %s end early", a.meta.Ref)}
}
