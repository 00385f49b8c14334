package jobs

import (
	"context"
	"slices"
	"sync"
	"time"
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
	if w := s.all[tag]; w != nil {
		all = w.takeLocked()
	}
	s.watchMu.Unlock()
	wakeThem(all)
}

// wakeAll wakes everybody.
func (s *shared) wakeAll() {
	s.watchMu.Lock()
	var all []*waiter
	for _, w := range s.all {
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
	for tag := range s.all {
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
	for tag, w := range s.all {
		switch {
		case len(w.waiters) > 0 && !slices.Contains(nodes, w.node):
			nodes = append(nodes, w.node)
		case len(w.waiters) == 0 && time.Since(w.idle) > s.lease:
			delete(s.all, tag)
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
	for _, w := range s.all {
		if slices.Contains(dead, w.node) {
			all = append(all, w.takeLocked()...)
		}
	}
	s.watchMu.Unlock()
	wakeThem(all)
}
