package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redisurl"
)

const (
	// chunkBytes is how much of a body is one value: far below what a server takes (512 MiB
	// by default), and little enough that it is not busy with one of them for long.
	chunkBytes = 8 << 20

	// What comes with a record in one answer. A body or an index that is not longer than
	// that is read in one round trip.
	headBody  = 8 << 10
	headSpans = pageBytes

	redisTimeout   = 2 * time.Second // for one exchange, beside the time for its bytes
	redisBandwidth = 16 << 20        // bytes per second at the least
	maxInFlight    = 256 << 20       // bytes that wait to be stored, so that a slow server does not fill the memory
)

// Redis is a store in a Redis, which several bridges may share. When that cannot be reached, storing and
// reading fail after a bounded time, and soon at once; it is tried again without a restart.
//
// The keys of an artifact share a hash tag, so that they lie on one node of a
// cluster. Callers and references appear in them as hashes.
type Redis struct {
	client redis.UniversalClient

	reach    guard // is it there
	room     guard // does it take more
	inFlight atomic.Int64
}

var _ Store = (*Redis)(nil)

// OpenRedis returns the store at a URL, in the forms that [redisurl.Options] reads; it does not
// connect yet. The error does not contain the URL.
func OpenRedis(rawURL string) (*Redis, error) {
	o, err := redisurl.Options(rawURL)
	if err != nil {
		return nil, err
	}
	// Each exchange has its own deadline, which takes its size into account; the library's only cap it.
	o.ReadTimeout, o.WriteTimeout = time.Minute, time.Minute
	o.DialTimeout, o.DialerRetries, o.PoolTimeout = redisTimeout/2, 1, redisTimeout/2
	o.MaxRetries = 1 // a connection may have died while it was idle
	o.MaxRedirects = 3
	o.PipelinePoolSize = -1
	return &Redis{client: redis.NewUniversalClient(o)}, nil
}

// Client returns the store's client, for what else is kept in the same Redis. The store closes it.
func (s *Redis) Client() redis.UniversalClient { return s.client }

// Close implements [Store].
func (s *Redis) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

func (s *Redis) stats() StoreStats {
	return StoreStats{Kind: "redis", Down: s.reach.down() || s.room.down()}
}

// do makes an exchange that moves about n bytes, unless the server is known to be down.
func (s *Redis) do(ctx context.Context, n int, f func(context.Context) error) error {
	if !s.reach.allow() {
		return unavailable(errors.New("not tried: it failed a moment ago"))
	}
	o := unknown
	defer func() { s.reach.done(o) }()
	wait := redisTimeout + time.Duration(n)*time.Second/redisBandwidth
	tctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := f(tctx)
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case err == nil || errors.Is(err, redis.Nil) || answered && !unready(err):
		o = worked
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	o = broke
	return unavailable(err)
}

// unready reports whether an error that a server answered means that it cannot serve now.
func unready(err error) bool {
	for _, code := range [...]string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "TRYAGAIN", "NOREPLICAS", "ERR max number", "NOAUTH", "WRONGPASS", "NOPERM"} {
		if strings.HasPrefix(err.Error(), code) {
			return true
		}
	}
	return false
}

const keyPrefix = "mcpbridge:artifact:"

// keys names what is stored of one artifact.
type keys struct{ tag, nonce string }

func keysOf(r *record) keys {
	if r.Whole != "" {
		return keys{r.owner.hash(r.Whole), r.Nonce}
	}
	return keys{r.owner.hash(r.Ref), r.Nonce}
}

func metaKey(o owner, ref string) string { return keyPrefix + "{" + o.hash(ref) + "}" }
func (k keys) spans() string             { return keyPrefix + "{" + k.tag + "}" + k.nonce + ":spans" }

func (k keys) chunk(i int) string {
	return keyPrefix + "{" + k.tag + "}" + k.nonce + ":" + strconv.Itoa(i)
}
func listKey(o owner) string { return keyPrefix + "list:{" + o.hash("") + "}" }

func (s *Redis) put(ctx context.Context, r *record, parts []*record) (*record, error) {
	n := len(r.body) + len(r.idx)
	if !s.room.allow() {
		return nil, unavailable(errors.New("not tried: it was full a moment ago"))
	}
	o := unknown
	defer func() { s.room.done(o) }()
	if s.inFlight.Add(int64(n)) > maxInFlight && s.inFlight.Load() > int64(n) {
		s.inFlight.Add(-int64(n))
		return nil, unavailable(errors.New("not tried: too much waits to be stored"))
	}
	defer s.inFlight.Add(-int64(n))

	var w *written
	err := s.do(ctx, n, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) (err error) {
			w, err = write(ctx, p, r, parts)
			return err
		})
		return err
	})
	switch {
	case err == nil:
		o = worked
	case bridge.KindOf(err) != bridge.StoreUnavailable && ctx.Err() == nil: // most likely OOM
		o = broke
		s.unlink(ctx, append(bodyKeys(r), w.keys(r, parts)...))
		return nil, unavailable(err)
	default:
		return nil, err
	}
	// Nobody else mints the reference that we did: where it is taken, that was this pipeline's first
	// attempt, whose answer was lost.
	if w.claims[0].Val() || !r.Foreign {
		return nil, nil
	}
	held, err := decode([]byte(w.there.Val()), r.owner)
	if err == nil && held.Nonce == r.Nonce { // the same
		return nil, nil
	}
	// The reference was taken already; what was just stored beside it goes again.
	s.unlink(ctx, append(bodyKeys(r), w.keys(r, parts)...))
	if err != nil || held.Digest != r.Digest || !held.Foreign {
		return nil, errHeld
	}
	return held, nil
}

// written is what a pipeline of writes will have found.
type written struct {
	claims []*redis.BoolCmd // whether the record and its parts got their references
	there  *redis.StringCmd // the record that has the reference now
}

// keys returns the keys of the records that were stored.
func (w *written) keys(r *record, parts []*record) (names []string) {
	for i, c := range w.claims {
		if c.Val() {
			names = append(names, metaKey(r.owner, append([]*record{r}, parts...)[i].Ref))
		}
	}
	return names
}

// write queues all that is to be stored. The record comes last, so that
// whoever finds it finds the rest.
func write(ctx context.Context, p redis.Pipeliner, r *record, parts []*record) (*written, error) {
	ttl := max(time.Until(r.Expires), time.Millisecond)
	k := keysOf(r)
	for i := 0; i*chunkBytes < len(r.body); i++ {
		p.Set(ctx, k.chunk(i), r.body[i*chunkBytes:min((i+1)*chunkBytes, len(r.body))], ttl)
	}
	p.Set(ctx, k.spans(), r.idx, ttl)
	w := &written{}
	for _, one := range append([]*record{r}, parts...) {
		meta, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		w.claims = append(w.claims, p.SetNX(ctx, metaKey(one.owner, one.Ref), meta, ttl))
	}
	if r.Foreign {
		w.there = p.Get(ctx, metaKey(r.owner, r.Ref))
	}
	list := listKey(r.owner)
	p.ZAddNX(ctx, list, redis.Z{Score: score(r.Created), Member: r.Ref})
	p.ZRemRangeByScore(ctx, list, "-inf", "("+strconv.FormatFloat(score(r.Created.Add(-ttl)), 'f', 0, 64))
	p.PExpire(ctx, list, ttl)
	return w, nil
}

// unlink takes back what was stored but is not to be found, as far as that goes at once; the rest expires.
func (s *Redis) unlink(ctx context.Context, names []string) {
	_ = s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, n := range names {
				p.Unlink(ctx, n)
			}
			return nil
		})
		return err
	})
}

func bodyKeys(r *record) []string {
	k := keysOf(r)
	names := []string{k.spans()}
	for i := 0; i*chunkBytes < r.Body; i++ {
		names = append(names, k.chunk(i))
	}
	return names
}

// score orders a list: microseconds, which a float64 holds exactly.
func score(t time.Time) float64 { return float64(t.UnixMicro()) }

func decode(b []byte, o owner) (*record, error) {
	r := &record{owner: o}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, unavailable(fmt.Errorf("a stored record cannot be read: %w", err))
	}
	return r, nil
}

func (s *Redis) get(ctx context.Context, o owner, ref string) (*record, source, error) {
	k := keys{tag: o.hash(ref)}
	var meta, index, first *redis.StringCmd
	err := s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			meta = p.Get(ctx, metaKey(o, ref))
			index = p.GetRange(ctx, k.spans(), 0, headSpans-1)
			first = p.GetRange(ctx, k.chunk(0), 0, headBody-1)
			return nil
		})
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil, errNone
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := decode([]byte(meta.Val()), o)
	if err != nil {
		return nil, nil, err
	}
	src := &redisSource{s: s, ctx: ctx, keys: keysOf(r)}
	if src.keys == k {
		src.head[body], src.head[spans] = []byte(first.Val()), []byte(index.Val())
	}
	src.size[body], src.size[spans] = r.Body, r.Spans
	return r, src, nil
}

// A redisSource reads an artifact piece by piece.
type redisSource struct {
	s    *Redis
	ctx  context.Context //nolint:containedctx // an open artifact is read through the context it was opened with
	keys keys
	size [2]int
	head [2][]byte // what came with the record
}

func (r *redisSource) whole(p part) []byte {
	if len(r.head[p]) == r.size[p] {
		return r.head[p]
	}
	return nil
}

func (r *redisSource) read(p part, from, to int) ([]byte, error) {
	if to <= len(r.head[p]) {
		return r.head[p][from:to], nil
	}
	var got []*redis.StringCmd
	err := r.s.do(r.ctx, to-from, func(ctx context.Context) error {
		_, err := r.s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			if p == spans {
				got = append(got, pipe.GetRange(ctx, r.keys.spans(), int64(from), int64(to-1)))
				return nil
			}
			for i := from / chunkBytes; i*chunkBytes < to; i++ {
				lo, hi := max(from-i*chunkBytes, 0), min(to-i*chunkBytes, chunkBytes)
				got = append(got, pipe.GetRange(ctx, r.keys.chunk(i), int64(lo), int64(hi-1)))
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, to-from)
	for _, g := range got {
		b = append(b, g.Val()...)
	}
	if len(b) != to-from { // it expired, or was deleted
		return nil, notFound()
	}
	return b, nil
}

func (s *Redis) list(ctx context.Context, o owner, cursor string, limit int) ([]*record, string, error) {
	least, last := "+inf", ""
	if cursor != "" {
		n, ref, ok := strings.Cut(cursor, ".")
		us, err := strconv.ParseInt(n, 36, 64)
		if name, isRef := parseRef(ref); !ok || err != nil || !isRef || name.String() != ref || strconv.FormatInt(us, 36) != n {
			return nil, "", errCursor
		}
		least, last = strconv.FormatInt(us, 10), ref
	}
	refs, more, err := s.refs(ctx, o, least, last, limit)
	if err != nil || len(refs) == 0 {
		return nil, "", err
	}
	rs, err := s.records(ctx, o, refs)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if more {
		end := refs[len(refs)-1]
		next = strconv.FormatInt(int64(end.Score), 36) + "." + end.Member.(string)
	}
	return rs, next, nil
}

// refs returns up to limit entries of an owner's list behind one, and whether there are more.
func (s *Redis) refs(ctx context.Context, o owner, least, last string, limit int) (refs []redis.Z, more bool, err error) {
	batch := int64(limit) + 16
	for offset := int64(0); ; offset += batch {
		var zs []redis.Z
		err := s.do(ctx, 0, func(ctx context.Context) (err error) {
			zs, err = s.client.ZRevRangeByScoreWithScores(ctx, listKey(o), &redis.ZRangeBy{Min: "-inf", Max: least, Offset: offset, Count: batch}).Result()
			return err
		})
		if err != nil {
			return nil, false, err
		}
		for _, z := range zs {
			// Those of one microsecond are in the descending order of their references.
			if last != "" && strconv.FormatFloat(z.Score, 'f', 0, 64) == least && z.Member.(string) >= last {
				continue
			}
			if len(refs) == limit {
				return refs, true, nil
			}
			refs = append(refs, z)
		}
		if int64(len(zs)) < batch {
			return refs, false, nil
		}
	}
}

// records reads the records of a list's entries. Those that are gone by now are left out.
func (s *Redis) records(ctx context.Context, o owner, refs []redis.Z) ([]*record, error) {
	got := make([]*redis.StringCmd, len(refs))
	err := s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, z := range refs {
				got[i] = p.Get(ctx, metaKey(o, z.Member.(string)))
			}
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var rs []*record
	for _, g := range got {
		if errors.Is(g.Err(), redis.Nil) {
			continue
		}
		if g.Err() != nil {
			return nil, unavailable(g.Err())
		}
		r, err := decode([]byte(g.Val()), o)
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}

func (s *Redis) remove(ctx context.Context, o owner, ref string) error {
	r, _, err := s.get(ctx, o, ref)
	if err != nil {
		return err
	}
	return s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Unlink(ctx, metaKey(o, ref))
			p.ZRem(ctx, listKey(o), ref)
			if r.Whole == "" {
				for _, n := range bodyKeys(r) {
					p.Unlink(ctx, n)
				}
			}
			return nil
		})
		return err
	})
}
