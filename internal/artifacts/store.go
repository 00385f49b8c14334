package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"mcpbridge/internal/bridge"
)

// A Store keeps records until they expire. A record is found only by its owner.
// The errors that say that the store cannot be reached are of kind StoreUnavailable.
type Store interface {
	// put stores a record and its parts at once. When a foreign reference is held
	// already it stores nothing: the record that is there comes back, or errHeld if that has other data.
	put(ctx context.Context, r *record, parts []*record) (held *record, err error)
	// get returns the record that the owner has under the reference, and its bytes, or errNone.
	get(ctx context.Context, o owner, ref string) (*record, source, error)
	// list returns the owner's records behind a cursor, the newest first. The next
	// cursor is empty at the end.
	list(ctx context.Context, o owner, cursor string, limit int) (rs []*record, next string, err error)
	// remove forgets a record, or returns errNone.
	remove(ctx context.Context, o owner, ref string) error
	// stats says what the store holds, as far as it knows.
	stats() StoreStats
	// Close lets go of the store's connections. It may be called twice.
	Close() error
}

// StoreStats says how a store is. What a Redis holds is not known: others use it too.
type StoreStats struct {
	Kind      string // "memory" or "redis"
	Artifacts int    // in memory
	Bytes     int64  // in memory
	Evicted   int64  // from memory before their time, to make room
	Down      bool   // the store could not be reached when that was last tried, or was full
}

var (
	errNone   = errors.New("no such artifact")
	errHeld   = errors.New("the reference is held by other data")
	errTooBig = errors.New("too big for the store")
)

// An owner is the identity that artifacts belong to.
type owner bridge.Owner

func ownerOf(c bridge.Caller) owner { return owner(c.Owner()) }

// hash names the owner, or what the owner has under a reference, where names are visible to others.
func (o owner) hash(ref string) string {
	h := sha256.New()
	for _, s := range []string{o.User, o.Tenant, ref} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // so that no two lists read the same
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// A record is one stored artifact without its bytes. A part of another one has none of its own.
type record struct {
	Ref     string
	Handle  string
	Tool    string
	Type    string
	Created time.Time
	Expires time.Time
	Foreign bool   // the reference was minted elsewhere
	Digest  string // of the data, if foreign

	Whole  string `json:",omitzero"` // the reference of the artifact whose bytes hold this one
	Nonce  string `json:",omitzero"` // tells apart bytes stored under one reference
	Body   int    // bytes
	Spans  int    // bytes of the index
	Result int    // bytes of the result, at the beginning of the body
	From   int    // the data
	To     int
	Wraps  bool `json:",omitzero"`
	Blocks int  // where the array of content blocks begins, if it is in the data; else -1
	More   bool `json:",omitzero"` // the result holds more than its data shows

	owner     owner
	body, idx []byte // only to be stored, or in memory
}

// size returns the length of the data.
func (r *record) size() int {
	n := r.To - r.From
	if r.Wraps {
		n += len(wrapOpen) + len(wrapClose)
	}
	return n
}

// unavailable is the error of a store that cannot be reached.
func unavailable(err error) error {
	return &bridge.Error{
		Kind: bridge.StoreUnavailable, Op: "artifacts.store", RetryAfter: retryAfter,
		Msg: "The store of artifacts cannot be reached now; try again in a moment. Calls are answered meanwhile, without references.", Err: err,
	}
}

const retryAfter = 5 * time.Second
