package artifacts

import (
	"container/list"
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"
)

// recordBytes is about what a record takes besides its bytes.
const recordBytes = 1 << 10

// Memory is a store in this process, bounded by bytes: the oldest go first. Artifacts that
// expired go when the next one comes; nothing runs in the background.
type Memory struct {
	limit  int64
	secret string // what cursors are known by

	mu      sync.Mutex
	held    map[memoryKey]*held  // guarded by mu, as all below
	age     *list.List           // of *held, the oldest in front
	lists   map[owner]*list.List // of *held, the newest in front
	serial  uint64               // of the last one
	bytes   int64
	evicted int64
}

type memoryKey struct {
	owner owner
	ref   string
}

// held is one record with its bytes, or a part of another.
type held struct {
	*record
	serial uint64
	bytes  int64
	age    *list.Element // nil of a part
	mine   *list.Element // nil of a part
	parts  []*held
	whole  *held // of a part
}

var _ Store = (*Memory)(nil)

// NewMemory returns a store that holds up to limit bytes. With 0 it keeps nothing.
func NewMemory(limit int64) *Memory {
	return &Memory{limit: limit, secret: rand.Text(), held: make(map[memoryKey]*held), age: list.New(), lists: make(map[owner]*list.List)}
}

func (m *Memory) put(_ context.Context, r *record, parts []*record) (*record, error) {
	// A buffer that is larger than what is used of it is kept as a whole.
	h := &held{record: r, bytes: int64(cap(r.body) + cap(r.idx) + recordBytes*(1+len(parts)))}
	if h.bytes > m.limit {
		return nil, errTooBig
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(r.Created)
	if old := m.held[memoryKey{r.owner, r.Ref}]; old != nil {
		if old.Digest != r.Digest || !old.Foreign {
			return nil, errHeld
		}
		return old.record, nil
	}
	for m.bytes+h.bytes > m.limit {
		m.dropLocked(m.age.Front().Value.(*held))
		m.evicted++
	}
	m.serial++
	h.serial = m.serial
	m.held[memoryKey{r.owner, r.Ref}] = h
	m.bytes += h.bytes
	h.age = m.age.PushBack(h)
	mine := m.lists[r.owner]
	if mine == nil {
		mine = list.New()
		m.lists[r.owner] = mine
	}
	h.mine = mine.PushFront(h)
	for _, p := range parts {
		k := memoryKey{p.owner, p.Ref}
		if m.held[k] == nil {
			part := &held{record: p, whole: h}
			m.held[k] = part
			h.parts = append(h.parts, part)
		}
	}
	return nil, nil
}

// expireLocked forgets what has expired. All live equally long, so the oldest are first.
func (m *Memory) expireLocked(now time.Time) {
	for e := m.age.Front(); e != nil && !now.Before(e.Value.(*held).Expires); e = m.age.Front() {
		m.dropLocked(e.Value.(*held))
	}
}

func (m *Memory) dropLocked(h *held) {
	delete(m.held, memoryKey{h.owner, h.Ref})
	if h.whole != nil {
		return
	}
	for _, p := range h.parts {
		if k := (memoryKey{p.owner, p.Ref}); m.held[k] == p {
			delete(m.held, k)
		}
	}
	m.bytes -= h.bytes
	m.age.Remove(h.age)
	mine := m.lists[h.owner]
	if mine.Remove(h.mine); mine.Len() == 0 {
		delete(m.lists, h.owner)
	}
}

func (m *Memory) get(_ context.Context, o owner, ref string) (*record, source, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(time.Now())
	h := m.held[memoryKey{o, ref}]
	if h == nil {
		return nil, nil, errNone
	}
	from := h
	if h.whole != nil {
		from = h.whole
	}
	return h.record, memorySource{from.body, from.idx}, nil
}

func (m *Memory) list(_ context.Context, o owner, cursor string, limit int) ([]*record, string, error) {
	before := ^uint64(0)
	if cursor != "" {
		serial, _, _ := strings.Cut(cursor, ".")
		n, err := strconv.ParseUint(serial, 36, 64)
		if err != nil || m.cursor(o, n) != cursor {
			return nil, "", errCursor
		}
		before = n
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(time.Now())
	mine := m.lists[o]
	if mine == nil {
		return nil, "", nil
	}
	var rs []*record
	var last uint64
	for e := mine.Front(); e != nil; e = e.Next() {
		h := e.Value.(*held)
		if h.serial >= before {
			continue
		}
		if len(rs) == limit {
			return rs, m.cursor(o, last), nil
		}
		rs, last = append(rs, h.record), h.serial
	}
	return rs, "", nil
}

// cursor returns the cursor behind a record in an owner's list. No other owner's, and none of another process, is the same.
func (m *Memory) cursor(o owner, serial uint64) string {
	n := strconv.FormatUint(serial, 36)
	return n + "." + o.hash(m.secret + n)[:16]
}

func (m *Memory) remove(_ context.Context, o owner, ref string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(time.Now())
	h := m.held[memoryKey{o, ref}]
	if h == nil {
		return errNone
	}
	m.dropLocked(h)
	return nil
}

func (m *Memory) stats() StoreStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return StoreStats{Kind: "memory", Artifacts: m.age.Len(), Bytes: m.bytes, Evicted: m.evicted}
}

// Close implements [Store]; there is nothing to let go of.
func (m *Memory) Close() error { return nil }

// A memorySource has all bytes at hand.
type memorySource [2][]byte

func (s memorySource) whole(p part) []byte { return s[p] }

func (s memorySource) read(p part, from, to int) ([]byte, error) { return s[p][from:to], nil }
