package openapi

import (
	"container/list"
	"hash/maphash"
	"sync"

	"mcpbridge/internal/bridge"
)

// What is kept: one document for each view of all tools, and one for each view of
// a server. Over these bounds the one unused for longest goes first.
const (
	maxDocuments     = 512
	maxDocumentBytes = 256 << 20 // rendered
)

// cache keeps documents by what they show, so that callers with the same view
// share them, and a changed catalogue makes only those anew that it changes.
type cache struct {
	mu      sync.Mutex
	entries map[uint64]*list.Element // :: key of a view -> *entry, guarded by mu
	recent  list.List                // of *entry, the most recently used first, guarded by mu
	turn    uint64                   // changes of the catalogue so far, guarded by mu
}

type entry struct {
	key     uint64
	servers []*bridge.Server // keeps what the key was made of alive: no new tool gets an old one's address
	doc     *Document
	turn    uint64 // in which it was last used
}

// get returns the document kept under key; if there is none, a new one that
// render will make when it is first asked for.
func (c *cache) get(key uint64, servers []*bridge.Server, render func() []byte) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[key]; ok {
		c.recent.MoveToFront(el)
		e := el.Value.(*entry)
		e.turn = c.turn
		return e.doc
	}
	if c.entries == nil {
		c.entries = map[uint64]*list.Element{}
	}
	bytes := int64(0)
	for el := c.recent.Front(); el != nil; el = el.Next() {
		bytes += el.Value.(*entry).doc.size.Load()
	}
	for c.recent.Len() >= maxDocuments || bytes > maxDocumentBytes {
		bytes -= c.recent.Back().Value.(*entry).doc.size.Load()
		c.dropLocked(c.recent.Back())
	}
	doc := newDocument(render)
	c.entries[key] = c.recent.PushFront(&entry{key: key, servers: servers, doc: doc, turn: c.turn})
	return doc
}

func (c *cache) dropLocked(el *list.Element) {
	delete(c.entries, c.recent.Remove(el).(*entry).key)
}

// advance tells the cache that the catalogue has changed. What nobody used since
// it changed the last time shows tools that are gone, and would keep them alive.
func (c *cache) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for el := c.recent.Back(); el != nil; {
		prev := el.Prev()
		if el.Value.(*entry).turn < c.turn {
			c.dropLocked(el)
		}
		el = prev
	}
	c.turn++
}

var seed = maphash.MakeSeed()

// viewKey names a view by what a document shows of it. A tool never changes once
// it is in a snapshot, so its address stands for all of it.
func viewKey(kind string, servers []*bridge.Server) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	text := func(s string) {
		maphash.WriteComparable(&h, len(s))
		h.WriteString(s)
	}
	text(kind)
	for _, s := range servers {
		text(s.Handle)
		text(s.Title)
		text(s.Description)
		text(s.Version)
		text(s.Instructions)
		maphash.WriteComparable(&h, len(s.Tools))
		for _, t := range s.Tools {
			maphash.WriteComparable(&h, t)
		}
	}
	return h.Sum64()
}
