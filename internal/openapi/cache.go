package openapi

import (
	"container/list"
	"hash/maphash"
	"sync"

	"mcpbridge/internal/bridge"
)

// maxDocuments bounds the documents that are kept: one for each view of all
// tools, and one for each view of a server. The one unused for longest goes first.
const maxDocuments = 512

// cache keeps documents by what they show, so that callers with the same view
// share them, and a changed catalogue makes only those anew that it changes.
type cache struct {
	mu      sync.Mutex
	entries map[uint64]*list.Element // :: key of a view -> *entry, guarded by mu
	recent  list.List                // of *entry, the most recently used first, guarded by mu
}

type entry struct {
	key     uint64
	servers []*bridge.Server // keeps what the key was made of alive: no new tool gets an old one's address
	doc     *Document
}

// get returns the document kept under key; if there is none, a new one that
// render will make when it is first asked for.
func (c *cache) get(key uint64, servers []*bridge.Server, render func() []byte) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*entry).doc
	}
	if c.entries == nil {
		c.entries = map[uint64]*list.Element{}
	}
	if c.recent.Len() >= maxDocuments {
		delete(c.entries, c.recent.Remove(c.recent.Back()).(*entry).key)
	}
	doc := newDocument(render)
	c.entries[key] = c.recent.PushFront(&entry{key: key, servers: servers, doc: doc})
	return doc
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
