package artifacts

import (
	"bytes"
	"iter"

	"mcpbridge/internal/raw"
)

const (
	nearBytes = 4 << 10   // what a cursor reads where it jumps to
	farBytes  = 512 << 10 // what it reads at most when it goes on and on
)

const keptWindows = 8

// A window is a piece of the bytes and where it begins.
type window struct {
	buf []byte
	at  int
}

// A span is a range of an artifact's bytes.
type span struct{ from, to int }

// A cursor goes over the bytes of a stored artifact, of which it may get only
// pieces, and steps over what the index knows. After a failure, which err keeps, it is at the end of all bytes.
type cursor struct {
	src  source
	x    *spanIndex
	size int
	err  error

	mem   bool // all bytes are at hand
	buf   []byte
	at    int                 // where buf begins
	ahead int                 // how much to read next
	kept  [keptWindows]window // what was read before, since the ends of values lie far from their beginnings
	turn  int                 // the one to go next

	next, nextFrom int // the first jump at or behind asked, and where it begins
	asked          int
}

func newCursor(src source, x *spanIndex, size int) *cursor {
	c := &cursor{src: src, x: x, size: size, asked: size + 1}
	if b := src.whole(body); b != nil {
		c.buf, c.mem = b, true
	}
	return c
}

// load returns bytes from i on: at least one, unless i is the end or the reading failed.
func (c *cursor) load(i int) []byte {
	if i >= c.at && i < c.at+len(c.buf) {
		return c.buf[i-c.at:]
	}
	if c.mem || c.err != nil || i >= c.size {
		return nil
	}
	if c.recall(i) {
		return c.buf[i-c.at:]
	}
	if i == c.at+len(c.buf) && i > 0 {
		c.ahead = min(2*c.ahead, farBytes)
	} else {
		c.ahead = nearBytes
	}
	c.fetch(i, i+c.ahead)
	return c.buf
}

// need returns the n bytes from i on, or fewer at the end.
func (c *cursor) need(i, n int) []byte {
	n = max(0, min(n, c.size-i))
	if b := c.load(i); len(b) >= n {
		return b[:n]
	}
	if c.mem || c.err != nil {
		return nil
	}
	c.fetch(i, i+max(n, nearBytes))
	return c.buf[:min(n, len(c.buf))]
}

// recall makes the window that holds i the current one, if there is one.
func (c *cursor) recall(i int) bool {
	for n := range c.kept {
		if w := &c.kept[n]; i >= w.at && i < w.at+len(w.buf) {
			c.buf, c.at = w.buf, w.at
			return true
		}
	}
	return false
}

func (c *cursor) fetch(from, to int) {
	b, err := c.src.read(body, from, min(to, c.size))
	if err != nil {
		c.err = err
		b = nil
	}
	c.buf, c.at = b, from
	if len(b) <= 2*nearBytes {
		c.kept[c.turn] = window{b, from}
		c.turn = (c.turn + 1) % keptWindows
	}
}

// byte returns the byte at i, or 0 at the end.
func (c *cursor) byte(i int) byte {
	if b := c.load(i); len(b) > 0 {
		return b[0]
	}
	return 0
}

// space returns the index of the first byte at or behind i that is no white space.
func (c *cursor) space(i int) int {
	for {
		switch c.byte(i) {
		case ' ', '\n', '\r', '\t':
			i++
		case 0:
			return c.size
		default:
			return i
		}
	}
}

// over returns the end of the value at i if the index has it.
func (c *cursor) over(i int) (int, bool) {
	if c.nextFrom < i || i < c.asked {
		c.ask(i, c.x.jumpFrom(i))
	}
	if c.nextFrom != i {
		return c.size, c.failed() != nil
	}
	j := c.x.jump(c.next)
	c.ask(j.to, j.next)
	if c.failed() != nil {
		return c.size, true
	}
	return j.to, true
}

func (c *cursor) ask(i, next int) {
	c.asked, c.next, c.nextFrom = i, next, c.size
	if next < c.x.jumps {
		c.nextFrom = c.x.number(headerBytes + next*jumpBytes)
	}
}

// skip returns the index behind the value at i.
func (c *cursor) skip(i int) int {
	depth := 0
	for i < c.size {
		switch c.byte(i) {
		case '"':
			i = c.skipString(i)
		case '{', '[':
			if to, ok := c.over(i); ok {
				i = to
			} else {
				depth++
				i++
			}
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		case 0:
			return c.size
		default:
			i = c.skipScalar(i)
		}
		if depth == 0 {
			return i
		}
	}
	return c.size
}

func (c *cursor) skipScalar(i int) int {
	for {
		b := c.load(i)
		if len(b) == 0 {
			return c.size
		}
		if n := scalarEnd(b, 0); n < len(b) {
			return i + n
		}
		i += len(b)
	}
}

// skipString returns the index behind the string whose quote is at i. One that ends in what has been
// read already needs no look into the index.
func (c *cursor) skipString(i int) int {
	if c.mem {
		if to, ok := c.over(i); ok {
			return to
		}
		return i + stringEnd(c.buf[i:], 0)
	}
	if b := c.load(i); len(b) > 0 && stringIn(b) {
		return i + stringEnd(b, 0)
	}
	if to, ok := c.over(i); ok {
		return to
	}
	for n := 2 * nearBytes; c.err == nil; n *= 2 {
		b := c.need(i, n)
		if len(b) == 0 || i+n >= c.size && !stringIn(b) {
			break
		}
		if stringIn(b) {
			return i + stringEnd(b, 0)
		}
	}
	return c.size
}

// stringIn reports whether the string at the beginning of b ends in b.
func stringIn(b []byte) bool {
	n := stringEnd(b, 0)
	if n < len(b) {
		return true
	}
	if n < 2 || b[n-1] != '"' {
		return false
	}
	slashes := len(b[1:n-1]) - len(bytes.TrimRight(b[1:n-1], `\`))
	return slashes%2 == 0
}

// str returns the bytes of the string at i with its quotes, and the index behind it.
func (c *cursor) str(i int) ([]byte, int) {
	to := c.skipString(i)
	return c.need(i, to-i), to
}

// A child is an item of an array or a member of an object.
type child struct {
	n   int  // its number
	key span // of a member
	val span
}

// begin returns where the child begins.
func (m child) begin() int {
	if m.key.to > 0 {
		return m.key.from
	}
	return m.val.from
}

// children yields the children of the object or array at v, from the n-th on.
// What it yields is valid also when the cursor was used elsewhere in between.
func (c *cursor) children(v span, n int) iter.Seq[child] {
	return func(yield func(child) bool) {
		object := c.byte(v.from) == '{'
		i, first := c.space(v.from+1), 0
		if n > 0 && v.to-v.from >= bigBytes {
			if j, ok := c.x.jumpOf(v.from); ok {
				if k, ok := c.x.markBefore(j, n); ok {
					first, i = int(k.n), int(k.at)
				}
			}
		}
		for m := range c.inside(span{i, v.to - 1}, object, first) {
			if m.n >= n && !yield(m) {
				return
			}
		}
	}
}

// inside yields the children that lie in v, a range between the braces of an object
// or the brackets of an array; n is the number of the first.
func (c *cursor) inside(v span, object bool, n int) iter.Seq[child] {
	return func(yield func(child) bool) {
		for i := v.from; i < v.to; n++ {
			m := child{n: n}
			if object {
				m.key = span{i, c.skipString(i)}
				i = c.space(c.space(m.key.to) + 1)
			}
			m.val = span{i, c.skip(i)}
			if c.failed() != nil || !yield(m) {
				return
			}
			if i = m.val.to; i < v.to {
				i = c.space(i)
			}
			if i < v.to {
				i = c.space(i + 1)
			}
		}
	}
}

// count returns how many characters, items or members the value at v has.
func (c *cursor) count(v span) int {
	if v.to-v.from >= bigBytes {
		if j, ok := c.x.jumpOf(v.from); ok {
			return j.count
		}
	}
	switch c.byte(v.from) {
	case '"':
		return countChars(c.need(v.from+1, v.to-v.from-2))
	case '{', '[':
		n := 0
		for range c.children(v, 0) {
			n++
		}
		return n
	}
	return 0
}

// member returns the value of the object's member called name. Of equal keys the last one counts.
func (c *cursor) member(v span, name string) (span, bool) {
	if c.byte(v.from) != '{' {
		return span{}, false
	}
	if v.to-v.from >= bigBytes {
		if j, ok := c.x.jumpOf(v.from); ok {
			for _, at := range c.x.keysOf(j, hashName([]byte(name))) {
				key, to := c.str(at)
				if len(key) > 0 && keyIs(key, 0, name) {
					i := c.space(c.space(to) + 1)
					return span{i, c.skip(i)}, c.err == nil
				}
			}
			return span{}, false
		}
	}
	var found span
	for m := range c.children(v, 0) {
		if keyIs(c.need(m.key.from, m.key.to-m.key.from), 0, name) {
			found = m.val
		}
	}
	return found, found.to > 0 && c.err == nil
}

// item returns the n-th item of the array at v.
func (c *cursor) item(v span, n int) (span, bool) {
	if v.to-v.from >= bigBytes {
		if j, ok := c.x.jumpOf(v.from); ok && n >= j.count {
			return span{}, false
		}
	}
	for m := range c.children(v, n) {
		return m.val, true
	}
	return span{}, false
}

func (c *cursor) kind(v span) raw.Kind { return raw.KindOf([]byte{c.byte(v.from)}) }

// failed returns what went wrong in the reading so far.
func (c *cursor) failed() error {
	if c.err == nil {
		c.err = c.x.err
	}
	return c.err
}
