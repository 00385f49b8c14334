package routes

import (
	"bytes"
	"compress/gzip"
	"container/list"
	"sync"
)

// maxZipped bounds the compressed documents that are kept, in bytes.
const maxZipped = 32 << 20

// A zipCache keeps compressed bodies by their entity tags, so that each is
// compressed once however many ask for it. Those unused for longest go first. The
// zero value is ready.
type zipCache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // :: entity tag -> *zipEntry, guarded by mu
	recent  list.List                // of *zipEntry, the most recently used first, guarded by mu
	bytes   int                      // of all plain bodies of the entries, guarded by mu
}

type zipEntry struct {
	etag string
	size int
	body func() []byte
}

// get returns body compressed. Compressing happens outside the lock, and those
// who ask for the same body meanwhile wait for it.
func (c *zipCache) get(etag string, body []byte) []byte {
	return c.entry(etag, body).body()
}

func (c *zipCache) entry(etag string, body []byte) *zipEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[etag]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*zipEntry)
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	e := &zipEntry{etag: etag, size: len(body), body: sync.OnceValue(func() []byte { return compress(body) })}
	c.entries[etag] = c.recent.PushFront(e)
	for c.bytes += e.size; c.bytes > maxZipped && c.recent.Len() > 1; {
		old := c.recent.Remove(c.recent.Back()).(*zipEntry)
		delete(c.entries, old.etag)
		c.bytes -= old.size
	}
	return e
}

func compress(body []byte) []byte {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write(body); err != nil {
		panic(err) // a buffer takes everything
	}
	if err := zw.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}
