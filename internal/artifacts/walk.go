package artifacts

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// The walker notes every value of at least bigBytes, so that a reader can step
// over it unseen, and within such a value a mark about every bigBytes. A value that
// is hardly more than the noted ones inside it (ownBytes) is not noted itself, which keeps
// the index in proportion to the bytes however they are nested.
const (
	bigBytes = 4 << 10
	ownBytes = 256
)

// A walker goes once over valid JSON and notes where things lie. It is pure:
// nothing but the bytes and the limit decides what it finds.
type walker struct {
	b       []byte
	promote int    // compact bytes over which an object becomes a nested artifact
	l       layout // where the data lies in b

	frames []frame
	spaces int // white space between tokens so far

	jumps  []jump // in the order of their ends
	nested []nest // in walking order, with the parent's place in it
	holder int    // the innermost nested artifact around the current place; 0 is the data itself

	marks []mark // of the open frames, the innermost last
	keys  []uint32
}

// A jump is a value that readers can step over.
type jump struct {
	from, to int
	count    int // its characters, items or members
	marks    []mark
	hashes   []hash // of an object: its keys, by hash
}

// A mark says at which byte the n-th character, item or member begins.
type mark struct{ n, at uint32 }

// A hash is that of a member's key, and where the key begins.
type hash struct{ sum, at uint32 }

// A nest is an object that is an artifact of its own.
type nest struct {
	from, to int
	parent   int
}

// A frame is one open object or array.
type frame struct {
	from    int
	spaces  int  // white space before it
	count   int  // values in it so far
	covered int  // bytes of noted values in it
	marks   int  // where its marks begin
	keys    int  // where its keys begin
	marked  int  // the last mark
	nest    int  // its place in nested while that is open, else -1
	object  bool // else an array
	content bool // it holds content blocks
	block   bool // it is a content block
}

// walk indexes the bytes of an artifact, which are one valid JSON value or, when the data
// is not a part of the result, two. Objects of the data whose compact form is longer than promote
// bytes become nested artifacts, except its root and content blocks.
func walk(b []byte, l layout, promote int) []byte {
	w := walkers.Get().(*walker)
	defer w.release()
	w.b, w.l, w.promote = b, l, promote
	w.nested = append(w.nested, nest{l.from, l.to, -1})
	for i := 0; i < len(b); {
		i = w.value(i)
	}
	return w.index()
}

// walkers are kept for their room: most results are small, and many.
var walkers = sync.Pool{New: func() any { return &walker{frames: make([]frame, 0, 16)} }}

func (w *walker) release() {
	const most = 1 << 12 // entries of a table that are worth keeping
	if cap(w.keys) > most || cap(w.marks) > most || cap(w.jumps) > most || cap(w.nested) > most || cap(w.frames) > most {
		return
	}
	clear(w.jumps) // they hold on to tables of their own
	*w = walker{frames: w.frames[:0], jumps: w.jumps[:0], nested: w.nested[:0], marks: w.marks[:0], keys: w.keys[:0]}
	walkers.Put(w)
}

// value goes over the value at i, and the space before it, and returns the index behind it.
func (w *walker) value(i int) int {
	b := w.b
	depth := len(w.frames)
	key := false // the next string is a key
	for i < len(b) {
		switch c := b[i]; c {
		case ' ', '\n', '\r', '\t':
			w.spaces++
			i++
			continue
		case ',':
			key = w.frames[len(w.frames)-1].object
			i++
			continue
		case ':':
			key = false
			i++
			continue
		case '"':
			end := stringEnd(b, i)
			if key {
				w.key(i)
				i = end
				continue
			}
			w.item(i)
			if end-i >= bigBytes {
				w.text(i, end)
			}
			i = end
		case '{', '[':
			w.item(i)
			w.open(i, c == '{')
			key = c == '{'
			i++
			continue
		case '}', ']':
			i++
			w.close(i)
		default:
			w.item(i)
			i = scalarEnd(b, i)
		}
		if len(w.frames) == depth {
			return i
		}
	}
	return i
}

// stringEnd returns the index behind the string whose quote is at i.
func stringEnd(b []byte, i int) int {
	from := i
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		if b[i-1] != '\\' {
			return i + 1
		}
		j := i - 1
		for j > from && b[j] == '\\' {
			j--
		}
		if (i-j)%2 == 1 { // an even number of backslashes escape each other
			return i + 1
		}
	}
}

// scalarEnd returns the index behind the number or literal at i.
func scalarEnd(b []byte, i int) int {
	for i < len(b) && !ends[b[i]] {
		i++
	}
	return i
}

// ends are the bytes that a number or a literal ends before.
var ends = [256]bool{',': true, ']': true, '}': true, ' ': true, '\n': true, '\r': true, '\t': true}

// key notes the key of a member of the innermost object.
func (w *walker) key(at int) {
	w.keys = append(w.keys, uint32(at))
	w.mark(&w.frames[len(w.frames)-1], at)
}

// item counts a value. In an array it may be marked; in an object its key was.
func (w *walker) item(at int) {
	if len(w.frames) == 0 {
		return
	}
	f := &w.frames[len(w.frames)-1]
	if !f.object {
		w.mark(f, at)
	}
	f.count++
}

func (w *walker) mark(f *frame, at int) {
	if at-f.marked >= bigBytes {
		w.marks = append(w.marks, mark{uint32(f.count), uint32(at)})
		f.marked = at
	}
}

func (w *walker) open(at int, object bool) {
	f := frame{from: at, spaces: w.spaces, marks: len(w.marks), keys: len(w.keys), marked: at, nest: -1, object: object}
	outer := frame{}
	if n := len(w.frames); n > 0 {
		outer = w.frames[n-1]
	}
	f.content = !object && at == w.l.blocks
	f.block = outer.content
	if object && at > w.l.from && at < w.l.to && !f.block && !(outer.block && w.named("resource")) {
		// Its length is not known yet. It gets its place now, since those inside come behind it.
		f.nest = len(w.nested)
		w.nested = append(w.nested, nest{from: at, parent: w.holder})
		w.holder = f.nest
	}
	w.frames = append(w.frames, f)
}

// named reports whether the member whose value comes next is called name.
func (w *walker) named(name string) bool {
	return len(w.keys) > 0 && keyIs(w.b, int(w.keys[len(w.keys)-1]), name)
}

func (w *walker) close(end int) {
	n := len(w.frames) - 1
	f := w.frames[n]
	w.frames = w.frames[:n]
	size := end - f.from
	if f.nest >= 0 {
		w.settle(f, end)
	}
	covered := f.covered
	if size >= bigBytes && size-f.covered >= ownBytes {
		j := jump{from: f.from, to: end, count: f.count, marks: slices.Clone(w.marks[f.marks:])}
		if f.object {
			j.hashes = w.hashes(w.keys[f.keys:])
		}
		w.jumps = append(w.jumps, j)
		covered = size
	}
	w.marks = w.marks[:f.marks]
	w.keys = w.keys[:f.keys]
	if n > 0 {
		w.frames[n-1].covered += covered
	}
}

// settle decides whether an object that has ended is an artifact of its own.
func (w *walker) settle(f frame, end int) {
	w.holder = w.nested[f.nest].parent
	if end-f.from-(w.spaces-f.spaces) > w.promote {
		w.nested[f.nest].to = end
		return
	}
	// All inside it are shorter still, and came behind it.
	w.nested = w.nested[:f.nest]
}

// text notes a long string.
func (w *walker) text(from, end int) {
	j := jump{from: from, to: end}
	inner := w.b[from+1 : end-1]
	for at := 0; at < len(inner); {
		if at > 0 {
			j.marks = append(j.marks, mark{uint32(j.count), uint32(from + 1 + at)})
		}
		next, n := chars(inner, at, bigBytes)
		j.count += n
		at = next
	}
	w.jumps = append(w.jumps, j)
	if n := len(w.frames); n > 0 {
		w.frames[n-1].covered += end - from
	}
}

func (w *walker) hashes(keys []uint32) []hash {
	hs := make([]hash, len(keys))
	for i, at := range keys {
		hs[i] = hash{keyHash(w.b, int(at)), at}
	}
	slices.SortFunc(hs, func(a, b hash) int {
		return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.at, b.at))
	})
	return hs
}
