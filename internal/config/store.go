package config

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
)

// A Store keeps entries that come through the administration API. Its methods
// may be used at the same time.
type Store interface {
	// Name says what it is, for people: "redis", or "state file".
	Name() string
	// Load returns all entries there are. A record that cannot be read has an error
	// of its own and costs no other.
	Load(ctx context.Context) ([]Entry, error)
	// Watch calls changed whenever Load may return something else than before, until ctx ends.
	Watch(ctx context.Context, changed func())
	// Write puts an entry, or takes it away when data is nil, if the condition holds. It
	// returns the entry as it is then, and whether there was one before.
	//
	// The error is a [*VersionError] if the condition does not hold, and has [ErrNoEntry]
	// in its tree if there is nothing to take away.
	Write(ctx context.Context, key EntryKey, data json.RawMessage, c Condition) (Entry, bool, error)
	// Close ends what the store holds.
	Close() error
}

// A Condition says which version of an entry a write is for. The zero Condition is for any, or none.
type Condition struct {
	Versions []string // one of these; "*" is any that is there
	New      bool     // there must be no such entry
}

// holds reports whether the condition holds for a version, which is empty without an entry.
func (c Condition) holds(version string) bool {
	switch {
	case c.New && version != "":
		return false
	case c.Versions == nil:
		return true
	}
	return version != "" && (slices.Contains(c.Versions, "*") || slices.Contains(c.Versions, version))
}

// A VersionError says that an entry is of another version than a write was for.
type VersionError struct {
	Current string // empty: there is no such entry
}

func (e *VersionError) Error() string {
	if e.Current == "" {
		return "there is no such entry"
	}
	return "the entry is of another version: " + e.Current
}

// ErrNoEntry is in the tree of an error about an entry that is not there.
var ErrNoEntry = errors.New("there is no such entry")

// newVersion returns a version that no entry has had.
func newVersion() string { return rand.Text()[:16] }

// A record is how an entry is kept.
type record struct {
	Handle  string          `json:"handle"`
	User    string          `json:"user,omitempty"`
	Tenant  string          `json:"tenant,omitempty"`
	Version string          `json:"version"`
	Entry   json.RawMessage `json:"entry"`
}

func newRecord(k EntryKey, version string, data json.RawMessage) record {
	return record{Handle: k.Handle, User: k.User, Tenant: k.Tenant, Version: version, Entry: data}
}

func (r record) key() EntryKey { return EntryKey{Handle: r.Handle, User: r.User, Tenant: r.Tenant} }

// entry is the record as an entry; one that nobody could have written has an error.
func (r record) entry() Entry {
	e := Entry{Key: r.key(), Version: r.Version, Data: r.Entry}
	if r.Version == "" || len(r.Entry) == 0 {
		e.Err = errors.New("the record lacks its version, or the entry itself")
	}
	return e
}
