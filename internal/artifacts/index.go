package artifacts

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// An index is what the walker found, as it is stored beside the bytes: a header
// and four tables of little-endian 32-bit numbers, made so that a reader who gets only pieces of it
// needs few of them.
//
//	header  version, jumps, nested artifacts, marks, hashes
//	jump    from, to, count, next, first mark, marks, first hash     by from; next is the first one that begins behind it
//	nest    from, to, parent, first, children                        the data itself, then the children of each in turn
//	mark    n, at                                                    see jump
//	hash    sum, at                                                  see jump
const (
	indexVersion = 1
	headerBytes  = 5 * 4
	jumpBytes    = 7 * 4
	nestBytes    = 5 * 4
	markBytes    = 2 * 4
	hashBytes    = 2 * 4
)

// index encodes what was found.
func (w *walker) index() []byte {
	slices.SortFunc(w.jumps, func(a, b jump) int { return cmp.Compare(a.from, b.from) })
	marks, hashes := 0, 0
	for i := range w.jumps {
		marks += len(w.jumps[i].marks)
		hashes += len(w.jumps[i].hashes)
	}
	out := make([]byte, 0, headerBytes+len(w.jumps)*jumpBytes+len(w.nested)*nestBytes+marks*markBytes+hashes*hashBytes)
	out = appendNumbers(out, indexVersion, len(w.jumps), len(w.nested), marks, hashes)
	marks, hashes = 0, 0
	next := nexts(w.jumps)
	for i := range w.jumps {
		j := &w.jumps[i]
		out = appendNumbers(out, j.from, j.to, j.count, next[i], marks, len(j.marks), hashes)
		marks += len(j.marks)
		hashes += len(j.hashes)
	}
	out = w.appendNested(out)
	for i := range w.jumps {
		for _, m := range w.jumps[i].marks {
			out = appendNumbers(out, int(m.n), int(m.at))
		}
	}
	for i := range w.jumps {
		for _, h := range w.jumps[i].hashes {
			out = appendNumbers(out, int(h.sum), int(h.at))
		}
	}
	return out
}

func appendNumbers(b []byte, ns ...int) []byte {
	for _, n := range ns {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// nexts returns, for each jump, the first that begins behind its end.
func nexts(js []jump) []int {
	next := make([]int, len(js))
	var open []int
	for i := range js {
		for n := len(open); n > 0 && js[open[n-1]].to <= js[i].from; n-- {
			next[open[n-1]] = i
			open = open[:n-1]
		}
		open = append(open, i)
	}
	for _, i := range open {
		next[i] = len(js)
	}
	return next
}

// appendNested writes the nested artifacts so that the children of one stand
// together: the n-th child of any is found in two steps.
func (w *walker) appendNested(out []byte) []byte {
	children := make([]int, len(w.nested))
	for _, n := range w.nested[1:] {
		children[n.parent]++
	}
	// In walking order parents come before their children, but cousins between siblings.
	first := make([]int, len(w.nested)) // where the next child of each goes
	place := make([]int, len(w.nested)) // :: in walking order -> in the table
	order := make([]int, 1, len(w.nested))
	kids := make([]int, len(w.nested)+1)
	for i, c := range children {
		kids[i+1] = kids[i] + c
	}
	byParent := make([]int, len(w.nested)) // the children of each, side by side
	fill := slices.Clone(kids)
	for i, n := range w.nested[1:] {
		byParent[fill[n.parent]] = i + 1
		fill[n.parent]++
	}
	for at := 0; at < len(order); at++ {
		i := order[at]
		place[i] = at
		first[i] = len(order)
		order = append(order, byParent[kids[i]:kids[i+1]]...)
	}
	for _, i := range order {
		n := w.nested[i]
		parent := 0
		if i > 0 {
			parent = place[n.parent]
		}
		out = appendNumbers(out, n.from, n.to, parent, first[i], children[i])
	}
	return out
}

// A part is one of the two byte sequences of a stored artifact.
type part uint8

const (
	body part = iota
	spans
)

// A source gives the bytes of a stored artifact. The errors are of kind NotFound
// when it is gone by now, and StoreUnavailable.
type source interface {
	// whole returns all bytes of the part if they are at hand, else nil.
	whole(p part) []byte
	// read returns the bytes from from to to, which lie in the part.
	read(p part, from, to int) ([]byte, error)
}

// pageBytes is how much of an index is read at once.
const pageBytes = 4 << 10

// A spanIndex reads an index piece by piece. It keeps what it has read.
type spanIndex struct {
	src   source
	size  int
	pages map[int][]byte // :: number of the page -> its bytes
	err   error          // the first failure; everything behind it is empty

	jumps, nests, marks, hashes     int // how many
	nestsAt, marksAt, hashesAt, end int // where the tables begin
}

func openIndex(src source, size int) *spanIndex {
	x := &spanIndex{src: src, size: size, pages: make(map[int][]byte)}
	if b := src.whole(spans); b != nil {
		x.pages = nil
	}
	x.jumps, x.nests, x.marks, x.hashes = x.number(4), x.number(8), x.number(12), x.number(16)
	x.nestsAt = headerBytes + x.jumps*jumpBytes
	x.marksAt = x.nestsAt + x.nests*nestBytes
	x.hashesAt = x.marksAt + x.marks*markBytes
	x.end = x.hashesAt + x.hashes*hashBytes
	return x
}

// number returns the number at a byte of the index.
func (x *spanIndex) number(at int) int {
	if x.pages == nil {
		return int(binary.LittleEndian.Uint32(x.src.whole(spans)[at:]))
	}
	// No number lies across two pages.
	n := at / pageBytes
	p, ok := x.pages[n]
	if !ok && x.err == nil {
		p, x.err = x.src.read(spans, n*pageBytes, min((n+1)*pageBytes, x.size))
		x.pages[n] = p
	}
	if at%pageBytes+4 > len(p) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(p[at%pageBytes:]))
}

// jumpAt reads the i-th jump.
type jumpSpan struct{ from, to, count, next, marksAt, marks, hashesAt int }

func (x *spanIndex) jump(i int) jumpSpan {
	at := headerBytes + i*jumpBytes
	return jumpSpan{x.number(at), x.number(at + 4), x.number(at + 8), x.number(at + 12), x.number(at + 16), x.number(at + 20), x.number(at + 24)}
}

// jumpFrom returns the number of the first jump at or behind the byte at.
func (x *spanIndex) jumpFrom(at int) int {
	return sort.Search(x.jumps, func(i int) bool { return x.number(headerBytes+i*jumpBytes) >= at })
}

// jumpOf returns the jump of exactly the value at a byte.
func (x *spanIndex) jumpOf(at int) (jumpSpan, bool) {
	i := x.jumpFrom(at)
	if i == x.jumps || x.err != nil {
		return jumpSpan{}, false
	}
	j := x.jump(i)
	return j, j.from == at
}

// markBefore returns the last mark of a jump for which before is true of its n or, if byAt, its place.
func (x *spanIndex) markBefore(j jumpSpan, n int) (m mark, ok bool) {
	i := sort.Search(j.marks, func(i int) bool { return x.number(x.marksAt+(j.marksAt+i)*markBytes) > n })
	if i == 0 || x.err != nil {
		return mark{}, false
	}
	at := x.marksAt + (j.marksAt+i-1)*markBytes
	return mark{uint32(x.number(at)), uint32(x.number(at + 4))}, true
}

// keysOf returns where the keys with this hash begin, the last one first.
func (x *spanIndex) keysOf(j jumpSpan, sum uint32) []int {
	entry := func(i int) int { return x.hashesAt + (j.hashesAt+i)*hashBytes }
	// The hashes are spread evenly: the right one is near the place that it itself names.
	lo, hi := 0, j.count // it is in [lo, hi]
	guess := int(uint64(sum) * uint64(j.count) >> 32)
	for step := 256; ; step *= 4 {
		l, h := max(lo, guess-step), min(hi, guess+step)
		if (l == lo || uint32(x.number(entry(l))) < sum) && (h == hi || uint32(x.number(entry(h))) > sum) {
			lo, hi = l, h
			break
		}
	}
	i := lo + sort.Search(hi-lo, func(i int) bool { return uint32(x.number(entry(lo+i))) >= sum })
	var found []int
	for ; i < j.count && x.err == nil && uint32(x.number(entry(i))) == sum; i++ {
		found = append(found, x.number(entry(i)+4))
	}
	slices.Reverse(found)
	return found
}

// A nestSpan is one nested artifact, or, as number 0, the data that holds all others.
type nestSpan struct{ from, to, parent, first, children int }

func (x *spanIndex) nest(i int) nestSpan {
	at := x.nestsAt + i*nestBytes
	return nestSpan{x.number(at), x.number(at + 4), x.number(at + 8), x.number(at + 12), x.number(at + 16)}
}

// childFrom returns the number of the first child of n that begins at or behind the byte at.
func (x *spanIndex) childFrom(n nestSpan, at int) int {
	return n.first + sort.Search(n.children, func(i int) bool { return x.number(x.nestsAt+(n.first+i)*nestBytes) >= at })
}
