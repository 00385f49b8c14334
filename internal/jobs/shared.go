package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
)

// shared is what a manager shares with those of other bridges. Every bridge writes the
// jobs that it runs, and reads those of the others. One that shows no sign of life
// for the time of a lease is dead, and with it what it ran.
type shared struct {
	m     *Manager
	r     *Redis
	node  string // names this bridge
	lease time.Duration
	log   *slog.Logger

	broken chan struct{} // gets one when the Redis has failed
	down   atomic.Bool   // it cannot be reached

	stateMu sync.Mutex
	since   time.Time // from when on it was always reached, guarded by stateMu
	lost    time.Time // when it was found to have lost its data, guarded by stateMu

	mirror
	watches
	exchanges
}

const (
	defaultLease = 10 * time.Second
	beatsALease  = 3

	exchangeTime = 2 * time.Second // for one exchange, beside the time for its bytes
	bandwidth    = 16 << 20        // bytes per second at the least
	firstPause   = 250 * time.Millisecond
	lastPause    = 5 * time.Second
)

func newShared(m *Manager) *shared {
	s := &shared{
		m: m, r: m.o.Redis, node: newID(), lease: m.o.Lease, log: m.o.Log,
		broken:    make(chan struct{}, 1),
		mirror:    mirror{dirty: make(map[*Job]struct{}), others: make(map[bridge.Owner]others), wake: make(chan struct{}, 1)},
		watches:   watches{all: make(map[string]*watch)},
		exchanges: exchanges{pending: make(map[string]chan *Problem), inbox: make(chan message, 256), patience: answerTime},
	}
	return s
}

// run mirrors the jobs, listens, and answers others until ctx ends.
func (s *shared) run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { s.beats(ctx) })
	work.Go(func() { s.writes(ctx) })
	work.Go(func() { s.listens(ctx) })
	work.Go(func() { s.obeys(ctx) })
	work.Wait()
}

// close writes how the last jobs ended, and says that this bridge is gone.
func (s *shared) close() {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	if s.flush(ctx) == nil {
		_ = s.r.leave(ctx, s.node) // else it expires
	}
}

// hashOf names an owner, or what the owner has under a name, where names are visible to others.
func hashOf(o bridge.Owner, name string) string {
	h := sha256.New()
	for _, s := range [...]string{o.User, o.Tenant, name} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // so that no two lists read the same
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// unreachable is the error of what needs the Redis.
func unreachable(err error) error {
	return &bridge.Error{Kind: bridge.StoreUnavailable, Op: "jobs.redis", Err: err, RetryAfter: time.Second, Msg: "The store of jobs cannot be reached at the moment; try again."}
}

// do makes an exchange that moves about n bytes, unless the Redis is known to be down.
func (s *shared) do(ctx context.Context, n int, f func(ctx context.Context) error) error {
	if s.down.Load() {
		return unreachable(nil)
	}
	tctx, cancel := context.WithTimeout(ctx, exchangeTime+time.Duration(n)*time.Second/bandwidth)
	defer cancel()
	err := f(tctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !answered(err):
		s.fail(err)
	}
	return unreachable(err)
}

// fail notes that the Redis cannot be reached. Only the beats find out when it can be again.
func (s *shared) fail(err error) {
	if s.down.Swap(true) {
		return
	}
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "the Redis of jobs cannot be reached: other bridges' jobs and calls with an Idempotency-Key have to wait", slog.String("error", err.Error()))
	select {
	case s.broken <- struct{}{}:
	default:
	}
	s.wakeAll() // who waits is to be told
}

// beats says in time that this bridge is alive, until ctx ends.
func (s *shared) beats(ctx context.Context) {
	pause := firstPause
	var refreshed time.Time
	for {
		tctx, cancel := context.WithTimeout(ctx, exchangeTime)
		known, err := s.r.beat(tctx, s.node, s.lease)
		cancel()
		wait := s.lease / beatsALease
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.fail(err)
			wait, pause = min(pause, wait), min(2*pause, lastPause)
		default:
			pause = firstPause
			s.alive(known)
			s.tend(ctx)
			// What runs is written now and then, so that it does not expire.
			if now := time.Now(); now.Sub(refreshed) > leasesALife/2*s.lease {
				refreshed = now
				s.m.touchAll(false)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.broken:
			timer.Reset(min(firstPause, wait))
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// alive notes that the Redis was reached. If it does not know this bridge any more,
// it may have lost everything, and others may have taken this bridge for dead.
func (s *shared) alive(known bool) {
	up := s.down.Load()
	s.stateMu.Lock()
	if !known && !s.since.IsZero() {
		s.lost = time.Now()
	}
	if up || !known || s.since.IsZero() {
		s.since = time.Now()
	}
	s.stateMu.Unlock()
	s.down.Store(false)
	if up {
		s.log.LogAttrs(context.Background(), slog.LevelInfo, "the Redis of jobs can be reached again")
	}
	if !known {
		s.m.touchAll(true)
	}
	if up {
		s.wakeMirror()
	}
}

// dead reports which nodes are, as far as that can be known: others have not been
// able to show a sign of life while there was no Redis.
func (s *shared) dead(ctx context.Context, nodes ...string) ([]string, error) {
	s.stateMu.Lock()
	sure := !s.since.IsZero() && time.Since(s.since) > s.lease
	s.stateMu.Unlock()
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return n == s.node || n == "" })
	if !sure || len(nodes) == 0 {
		return nil, nil
	}
	var alive map[string]bool
	err := s.do(ctx, 0, func(ctx context.Context) (err error) {
		alive, err = s.r.alive(ctx, nodes...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(nodes, func(n string) bool { return alive[n] }), nil
}
