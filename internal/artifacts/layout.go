package artifacts

import (
	"slices"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A layout says where the data of an artifact lies in its bytes, which are the
// whole result as its server sent it and, when the data is not a part of that, the data behind it.
type layout struct {
	result   int  // bytes of the result
	from, to int  // the data, or what Content puts its braces around
	wrapped  bool // the data is {"content": and the bytes and }
	blocks   int  // where the array of content blocks begins, if it is a part of the data; else -1
}

const (
	wrapOpen  = `{"content":`
	wrapClose = `}`
)

// pack returns the bytes to store for a result and where its data lies in them.
// The bytes are the result's own where that keeps no much larger buffer alive.
func pack(r *bridge.Result) ([]byte, layout) {
	all := []byte(r.Raw)
	l := layout{result: len(all), blocks: -1}
	data := r.Data()
	switch {
	case len(data) == 1 && locate(all, data[0], &l):
		if r.Structured == nil && r.Content != nil {
			c := layout{}
			if locate(all, r.Content, &c) {
				l.blocks = c.from
			}
		}
	case len(data) == 3 && locate(all, data[1], &l):
		l.wrapped = true
		l.blocks = l.from
	default: // the data was made of text inside the result, or there was none
		all = slices.Concat(append([][]byte{all}, data...)...)
		l.from, l.to = l.result, len(all)
	}
	for l.from < l.to && raw.KindOf(all[l.from:l.from+1]) == raw.Invalid { // white space
		l.from++
	}
	if spare := cap(all) - len(all); spare > len(all)/2 {
		all = slices.Clone(all)
	}
	return all, l
}

// locate finds part, a slice of all, in it.
func locate(all, part []byte, l *layout) bool {
	from := cap(all) - cap(part)
	if len(part) == 0 || from < 0 || from+len(part) > len(all) || &all[from] != &part[0] {
		return false
	}
	l.from, l.to = from, from+len(part)
	return true
}
