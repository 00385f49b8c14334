package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// watches hear of the changes of other bridges' jobs, all over one connection.
type watches struct {
	watchMu sync.Mutex
	all     map[string]*watch // :: tag -> who waits for its job, guarded by watchMu
	sub     *subscription     // nil while there is none, guarded by watchMu
}

// A watch is of one job. All of it is guarded by watchMu.
type watch struct {
	waiters map[*waiter]struct{}
	idle    time.Time // since when nobody waits
	node    string    // that runs the job, as far as known
}

// A waiter waits for one change.
type waiter struct {
	changed chan struct{}
	stop    func() bool // waiting for the end of its context
}

// watch returns a channel that is closed when a job may have changed. Who waits for it has to read the job
// once more after that. Nobody has to end it but ctx.
func (s *shared) watch(ctx context.Context, tag string) <-chan struct{} {
	s.watchMu.Lock()
	w := s.all[tag]
	var sub *subscription
	if w == nil {
		w = &watch{waiters: make(map[*waiter]struct{})}
		s.all[tag] = w
		sub = s.sub
	}
	one := &waiter{changed: make(chan struct{})}
	w.waiters[one] = struct{}{}
	one.stop = context.AfterFunc(ctx, func() {
		s.watchMu.Lock()
		defer s.watchMu.Unlock()
		delete(w.waiters, one)
		w.idle = time.Now()
	})
	s.watchMu.Unlock()
	if sub != nil {
		// What changes before this is heard is not missed: that it is heard wakes, too.
		sctx, cancel := context.WithTimeout(ctx, exchangeTime)
		defer cancel()
		_ = sub.add(sctx, recordKey(tag)) // if that fails, next does
	}
	return one.changed
}

// wake wakes those who wait for one job.
func (s *shared) wake(tag string) {
	s.watchMu.Lock()
	var all []*waiter
	if w := s.watches.all[tag]; w != nil {
		all = w.takeLocked()
	}
	s.watchMu.Unlock()
	wakeThem(all)
}

// wakeAll wakes everybody.
func (s *shared) wakeAll() {
	s.watchMu.Lock()
	var all []*waiter
	for _, w := range s.watches.all {
		all = append(all, w.takeLocked()...)
	}
	s.watchMu.Unlock()
	wakeThem(all)
}

func (w *watch) takeLocked() (all []*waiter) {
	for one := range w.waiters {
		all = append(all, one)
	}
	clear(w.waiters)
	w.idle = time.Now()
	return all
}

func wakeThem(all []*waiter) {
	for _, one := range all {
		one.stop()
		close(one.changed)
	}
}

// listens hears what is told, until ctx ends. Whatever may have been missed wakes everybody.
func (s *shared) listens(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.listen(ctx); err != nil && !answered(err) && ctx.Err() == nil {
			s.fail(err)
		}
		s.wakeAll()
		timer := time.NewTimer(firstPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (s *shared) listen(ctx context.Context) error {
	if s.down.Load() {
		return nil
	}
	own := nodeKey(s.node)
	sctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	sub, err := s.r.subscribe(sctx, own)
	if err != nil {
		return err
	}
	channels := []string{own}
	s.watchMu.Lock()
	s.sub = sub // from here on watches come by themselves
	for tag := range s.watches.all {
		channels = append(channels, recordKey(tag))
	}
	s.watchMu.Unlock()
	defer func() {
		s.watchMu.Lock()
		s.sub = nil
		s.watchMu.Unlock()
		sub.close()
	}()
	ends := context.AfterFunc(ctx, sub.close) // next does not look at ctx
	defer ends()
	if err := sub.add(sctx, channels...); err != nil {
		return err
	}
	for {
		channel, text, err := sub.next(ctx, s.lease)
		switch {
		case err != nil:
			return err
		case channel != own:
			if tag, ok := jobOf(channel); ok {
				s.wake(tag)
			}
		case text != "":
			s.hear(text)
		}
	}
}

// tend forgets the watches that nobody needs, and wakes those who wait for a dead bridge.
func (s *shared) tend(ctx context.Context) {
	var idle, nodes []string
	s.watchMu.Lock()
	for tag, w := range s.watches.all {
		switch {
		case len(w.waiters) > 0 && !slices.Contains(nodes, w.node):
			nodes = append(nodes, w.node)
		case len(w.waiters) == 0 && time.Since(w.idle) > s.lease:
			delete(s.watches.all, tag)
			idle = append(idle, recordKey(tag))
		}
	}
	sub := s.sub
	s.watchMu.Unlock()
	if sub != nil && len(idle) > 0 {
		sctx, cancel := context.WithTimeout(ctx, exchangeTime)
		_ = sub.drop(sctx, idle...) // if that fails, next does
		cancel()
	}
	dead, err := s.dead(ctx, nodes...)
	if err != nil || len(dead) == 0 {
		return
	}
	var all []*waiter
	s.watchMu.Lock()
	for _, w := range s.watches.all {
		if slices.Contains(dead, w.node) {
			all = append(all, w.takeLocked()...)
		}
	}
	s.watchMu.Unlock()
	wakeThem(all)
}

// changes returns how another bridge's job is, its events, and a channel that is closed when there is more.
func (s *shared) changes(ctx context.Context, o bridge.Owner, id string, after uint64) (Record, []Event, <-chan struct{}, error) {
	tag := hashOf(o, id)
	more := s.watch(ctx, tag)
	rec, events, err := s.read(ctx, o, tag, after)
	if err == nil {
		s.watchedOn(tag, rec.Node)
	}
	return rec, events, more, err
}

// watchedOn notes which bridge is waited for.
func (s *shared) watchedOn(tag, node string) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	if w := s.watches.all[tag]; w != nil {
		w.node = node
	}
}

// read returns how another bridge's job is, and its events. A job whose bridge is dead has failed.
func (s *shared) read(ctx context.Context, o bridge.Owner, tag string, after uint64) (Record, []Event, error) {
	for {
		var text, data []byte
		var events []Event
		err := s.do(ctx, maxInline+maxEventBytes, func(ctx context.Context) (err error) {
			text, data, events, err = s.r.read(ctx, tag, after)
			return err
		})
		if err != nil {
			return Record{}, nil, err
		}
		if text == nil {
			return Record{}, nil, s.unknown()
		}
		rec, err := decodeRecord(o, text)
		if err != nil {
			return Record{}, nil, err
		}
		if rec.State == Done {
			rec.Data = data
		}
		if rec.State.Final() {
			return rec.Record, events, nil
		}
		dead, err := s.dead(ctx, rec.Node)
		if err != nil {
			return Record{}, nil, err
		}
		if len(dead) == 0 {
			return rec.Record, events, nil
		}
		if err := s.bury(ctx, tag, text, rec); err != nil {
			return Record{}, nil, err
		}
	}
}

// unknown is the error of who names a job that is not there. A Redis that has lost its
// data soon gets that of the bridges again.
func (s *shared) unknown() error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	if !s.lost.IsZero() && time.Since(s.lost) < s.lease {
		return unreachable(errors.New("it has lost its data a moment ago"))
	}
	return ErrUnknown
}

func decodeRecord(o bridge.Owner, text []byte) (rec storedRecord, err error) {
	if err := json.Unmarshal(text, &rec); err != nil {
		return rec, unreachable(errors.Join(errors.New("a stored job cannot be read"), err))
	}
	rec.Owner = o
	return rec, nil
}

// errDied is what came of a call whose bridge died.
var errDied = &bridge.Error{
	Kind: bridge.OutcomeUnknown, Op: "jobs.bury",
	Msg: "The bridge that ran the call is gone. The tool may have run or not, and what came of it is lost.",
}

// bury notes the end of a job whose bridge died. If it turns out that it did not, it will say so itself.
func (s *shared) bury(ctx context.Context, tag string, old []byte, rec storedRecord) error {
	now := time.Now()
	rec.Changed, rec.Expires, rec.Asked = now, now.Add(s.m.o.TTL), nil
	rec.Version++
	rec.Last++
	rec.failure(errDied)
	text, err := json.Marshal(rec)
	if err != nil {
		return unreachable(err)
	}
	return s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.r.seal(ctx, tag, old, text, rec.Last, s.m.o.TTL)
		return err
	})
}

// list returns the owner's jobs on all bridges, newest first, without the results that they hold themselves.
func (s *shared) list(ctx context.Context, o bridge.Owner) ([]Record, error) {
	var texts [][]byte
	err := s.do(ctx, 0, func(ctx context.Context) (err error) {
		texts, err = s.r.list(ctx, hashOf(o, ""), func(id string) string { return hashOf(o, id) })
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Record, 0, len(texts))
	var nodes []string
	for _, text := range texts {
		rec, err := decodeRecord(o, text)
		if err != nil {
			return nil, err
		}
		all = append(all, rec.Record)
		if !rec.State.Final() && !slices.Contains(nodes, rec.Node) {
			nodes = append(nodes, rec.Node)
		}
	}
	dead, err := s.dead(ctx, nodes...)
	if err != nil {
		return nil, err
	}
	for i, rec := range all {
		if !rec.State.Final() && slices.Contains(dead, rec.Node) {
			if all[i], _, err = s.read(ctx, o, hashOf(o, rec.ID), 0); err != nil && bridge.KindOf(err) != bridge.NotFound {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(all, func(r Record) bool { return r.ID == "" }), nil
}
