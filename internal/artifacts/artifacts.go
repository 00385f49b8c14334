// Package artifacts keeps what tools returned, so that any part of it can be
// fetched later by a reference and a JSON pointer. Start with [Keeper]: its Keep
// makes an artifact of a result, its Open reads one.
//
// The whole result is stored once, as its server sent it, with an index of spans beside
// it (walk.go, index.go). Data, nested artifacts and values at pointers are
// windows on those bytes; nothing is decoded, so no digit and no key is lost.
package artifacts

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Options set up a [Keeper].
type Options struct {
	Store Store // must be set: see NewMemory and OpenRedis

	TTL          time.Duration // how long artifacts live; 0 is an hour
	PromoteBytes int           // compact bytes over which an object is a nested artifact; 0 is 2000
	SummaryAfter int           // characters over which a string is summarized; 0 is 1000
	SummaryChars int           // characters of a summary; 0 is 500
	Summaries    int           // entries of the cache of summaries; 0 is none

	// Types are types of artifacts besides the built-in ones, by alias, each with
	// a check of the JSON of one, or nil if any will do. They may replace built-in ones.
	Types map[string]func(doc []byte) error

	// Allows says whether the caller may call a tool of a server now: what it may not
	// call, it may not read either, though another key of the same user made it. Nil allows all.
	Allows func(c bridge.Caller, handle, tool string) bool

	Log *slog.Logger // nil discards
}

// A Keeper makes artifacts of results and reads them.
type Keeper struct {
	store     Store
	ttl       time.Duration
	promote   int
	after     int
	chars     int
	summaries *lru.Cache[summaryKey, string] // nil: no cache
	types     map[string]func([]byte) error
	allows    func(c bridge.Caller, handle, tool string) bool
	log       *slog.Logger

	kept, tooBig, failed atomic.Int64
	outage               outage
}

var _ bridge.Keeper = (*Keeper)(nil)

// New returns a keeper. It does no I/O; whoever made the store closes it.
func New(o Options) *Keeper {
	k := &Keeper{
		store: o.Store, ttl: cmp.Or(o.TTL, time.Hour), promote: cmp.Or(o.PromoteBytes, 2000),
		after: cmp.Or(o.SummaryAfter, 1000), chars: cmp.Or(o.SummaryChars, 500),
		types: allTypes(o.Types), allows: o.Allows, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}
	if k.allows == nil {
		k.allows = func(bridge.Caller, string, string) bool { return true }
	}
	if o.Summaries > 0 {
		k.summaries, _ = lru.New[summaryKey, string](o.Summaries) // fails only for sizes below 1
	}
	return k
}

// Stats counts what a keeper did and says how its store is.
type Stats struct {
	Kept   int64 // results that became artifacts
	TooBig int64 // results that were too big for the store
	Failed int64 // results that the store could not take
	Store  StoreStats
}

// Stats returns the numbers since the start.
func (k *Keeper) Stats() Stats {
	return Stats{Kept: k.kept.Load(), TooBig: k.tooBig.Load(), Failed: k.failed.Load(), Store: k.store.stats()}
}

// Keep implements [bridge.Keeper]. It returns when the result is stored, so that its reference
// works as soon as it is known; a store that is down or slow costs a bounded time, and soon none. A result that
// another keeper minted a reference for keeps that one, and may get its own JSON as its data.
func (k *Keeper) Keep(ctx context.Context, c bridge.Caller, t *bridge.Tool, r *bridge.Result, timing *bridge.Timing) *bridge.Artifact {
	start := time.Now()
	f := k.recognize(r)
	kept := r
	if f != nil && f.text {
		kept = new(*r)
		kept.SetData(f.doc)
	}
	rec, parts := k.record(c, t, kept, f)
	walked := time.Now()
	timing.Walk += walked.Sub(start)
	held, err := k.put(ctx, rec, parts)
	if errors.Is(err, errHeld) {
		// Other data has that reference. This result gets one of ours, as if it had come without.
		kept = r
		rec, _ = k.record(c, t, r, nil)
		held, err = k.put(ctx, rec, nil)
	}
	timing.Store += time.Since(walked)
	*r = *kept
	if err != nil {
		k.lost(ctx, t, r, err)
		return nil
	}
	k.kept.Add(1)
	if lost, ok := k.outage.over(); ok {
		k.log.LogAttrs(ctx, slog.LevelInfo, "results are kept as artifacts again", slog.Int64("lost", lost))
	}
	if held != nil {
		rec = held
	}
	return &bridge.Artifact{Ref: rec.Ref, Type: rec.Type, Expires: rec.Expires}
}

// lost counts a result that is not kept, and logs it: one that is too big alone, of many that the store does not take the last.
func (k *Keeper) lost(ctx context.Context, t *bridge.Tool, r *bridge.Result, err error) {
	lost := int64(1)
	if errors.Is(err, errTooBig) {
		k.tooBig.Add(1)
	} else {
		k.failed.Add(1)
		if lost = k.outage.failed(); lost == 0 {
			return
		}
	}
	k.log.LogAttrs(ctx, slog.LevelWarn, "results are not kept as artifacts", slog.Int64("lost", lost),
		slog.String("handle", t.Handle), slog.String("tool", t.Name), slog.Int("bytes", len(r.Raw)), slog.Any("error", err))
}

// record makes the record of a result and those of its parts that have references of their own.
func (k *Keeper) record(c bridge.Caller, t *bridge.Tool, r *bridge.Result, f *foreign) (*record, []*record) {
	b, l := pack(r)
	now := time.Now()
	rec := &record{
		Ref: mint(), Type: mcpType, Handle: t.Handle, Tool: t.Name,
		Created: now, Expires: now.Add(k.ttl),
		Body: len(b), Result: l.result, From: l.from, To: l.to, Wraps: l.wrapped, Blocks: l.blocks, More: r.More(),
		owner: ownerOf(c), body: b,
	}
	if len(b) <= math.MaxUint32 {
		rec.idx = walk(b, l, k.promote)
		rec.Spans = len(rec.idx)
	}
	return rec, k.adopt(rec, f)
}

func (k *Keeper) put(ctx context.Context, rec *record, parts []*record) (*record, error) {
	if rec.idx == nil { // over 4 GiB, which the index cannot address
		return nil, errTooBig
	}
	return k.store.put(ctx, rec, parts)
}

// Open returns the caller's artifact that a reference names, in any of its
// spellings. The artifact is read through ctx. The errors are of kind NotFound, also for what belongs to others or is no
// reference at all, and StoreUnavailable.
func (k *Keeper) Open(ctx context.Context, c bridge.Caller, ref string) (*Artifact, error) {
	name, ok := parseRef(ref)
	if !ok {
		return nil, notFound()
	}
	rec, src, err := k.store.get(ctx, ownerOf(c), name.root)
	if err != nil {
		return nil, opened(err)
	}
	if !k.allows(c, rec.Handle, rec.Tool) {
		return nil, notFound()
	}
	a := &Artifact{k: k, rec: rec, meta: metaOf(rec)}
	x := openIndex(src, rec.Spans)
	a.c = newCursor(src, x, rec.Body)
	if err := a.descend(name); err != nil {
		return nil, err
	}
	return a, nil
}

func notFound() error {
	return &bridge.Error{Kind: bridge.NotFound, Op: "artifacts.Open", Msg: "There is no such artifact: it may have expired, or it is not yours. GET /artifacts lists what there is."}
}

// opened turns a store's error into the caller's.
func opened(err error) error {
	if errors.Is(err, errNone) {
		return notFound()
	}
	return err
}

// A Page is a part of the list of a caller's artifacts.
type Page struct {
	Artifacts []Meta
	Next      string // the cursor of the next page; empty at the end
}

var errCursor = &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.List", Msg: "The cursor is not one that this list gave out; leave it out to begin anew."}

// List returns the caller's artifacts behind a cursor, the newest first, limit at
// most, and fewer where it may not read some. Nested artifacts and parts of lists are not in it. The errors are of kind Malformed and StoreUnavailable.
func (k *Keeper) List(ctx context.Context, c bridge.Caller, cursor string, limit int) (*Page, error) {
	if limit < 1 {
		return nil, &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.List", Msg: "limit must be at least 1."}
	}
	rs, next, err := k.store.list(ctx, ownerOf(c), cursor, limit)
	if err != nil {
		return nil, err
	}
	p := &Page{Artifacts: make([]Meta, 0, len(rs)), Next: next}
	for _, r := range rs {
		if k.allows(c, r.Handle, r.Tool) {
			p.Artifacts = append(p.Artifacts, metaOf(r))
		}
	}
	return p, nil
}

// Delete forgets an artifact of the caller's, with everything nested in it. The errors are of
// kind NotFound, Malformed for a nested artifact, which is a part of its parent, and StoreUnavailable.
func (k *Keeper) Delete(ctx context.Context, c bridge.Caller, ref string) error {
	name, ok := parseRef(ref)
	if !ok {
		return notFound()
	}
	if _, err := k.Open(ctx, c, ref); err != nil {
		return err
	}
	if name.path != nil {
		return &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Delete", Msg: "A nested artifact is a part of its parent and cannot be deleted alone; delete " + name.root + "."}
	}
	return opened(k.store.remove(ctx, ownerOf(c), name.root))
}

// A Meta says what an artifact is.
type Meta struct {
	Ref, Handle, Tool, Type string
	Parent                  string // the reference of the artifact that it is nested in; empty if it is not

	Size             int64 // bytes of its data
	More             bool  // the whole result holds something that the data does not show
	Created, Expires time.Time

	digest string
}

func metaOf(r *record) Meta {
	return Meta{
		Ref: r.Ref, Handle: r.Handle, Tool: r.Tool, Type: r.Type, Parent: r.Whole, Size: int64(r.size()), More: r.More,
		Created: r.Created, Expires: r.Expires, digest: r.Digest,
	}
}

// An Artifact is an open artifact: it is read through the context that it was opened with, and
// not by two goroutines at once.
type Artifact struct {
	k    *Keeper
	rec  *record
	meta Meta
	c    *cursor

	data span
	wrap bool
	nest int // its number in the index; -1 if it is too small to have one
}

// Meta says what it is.
func (a *Artifact) Meta() Meta { return a.meta }

// descend finds the data of the artifact: the record's own, or that of a nested artifact.
func (a *Artifact) descend(name reference) error {
	x := a.c.x
	a.data, a.wrap = span{a.rec.From, a.rec.To}, a.rec.Wraps
	if a.rec.Whole != "" {
		a.nest = -1
		root := x.nest(0)
		if i := x.childFrom(root, a.data.from); i < root.first+root.children && x.nest(i).from == a.data.from {
			a.nest = i
		}
	}
	for i, n := range name.path {
		if a.nest < 0 {
			return notFound()
		}
		at := x.nest(a.nest)
		if n > at.children {
			if x.err != nil {
				return x.err
			}
			return notFound()
		}
		a.nest = at.first + n - 1
		in := x.nest(a.nest)
		a.data, a.wrap = span{in.from, in.to}, false
		a.meta.Parent = reference{name.root, name.path[:i]}.String()
		a.meta.Type = mcpType
	}
	a.meta.Ref = name.String()
	if name.path != nil {
		a.meta.Size = int64(a.data.to - a.data.from)
	}
	return a.c.failed()
}

// Data returns the value at a JSON pointer (RFC 6901) in the artifact's data. The
// errors are of kind NotFound, with how far the pointer resolved and what keys are there, of kind Malformed
// for what is no pointer, and StoreUnavailable.
func (a *Artifact) Data(pointer string) (*Value, error) {
	v := &Value{a: a, span: a.data, wrapped: a.wrap, Kind: raw.Object}
	if !a.wrap {
		v.Kind = a.c.kind(a.data)
	}
	return a.lookup(v, pointer)
}

// Result returns the value at a JSON pointer in the whole result that the
// artifact, or the one that it is nested in, was made of. The errors are those of Data.
func (a *Artifact) Result(pointer string) (*Value, error) {
	return a.lookup(&Value{a: a, span: span{a.c.space(0), a.rec.Result}, Kind: raw.Object, whole: true}, pointer)
}
