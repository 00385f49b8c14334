package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
)

// leasesALife is how long what a dead bridge has written outlives it at the least, in leases.
const leasesALife = 6

// batch is how many jobs are written at a time.
const batch = 64

// A mirror writes the jobs of this bridge that have changed. A job is written as it is then, so that
// a slow Redis makes for fewer writes, not for a queue; those of one job are in order, since one
// goroutine at a time writes.
type mirror struct {
	flushing sync.Mutex    // held by who writes
	wake     chan struct{} // gets one when there is something to write

	backlog atomic.Int64 // bytes of answers that are to be written for calls with a key

	dirtyMu sync.Mutex
	dirty   map[*Job]struct{}       // guarded by dirtyMu
	others  map[bridge.Owner]others // :: owner -> what runs elsewhere, guarded by dirtyMu
}

// others is how many of an owner's jobs ran on other bridges at a time.
type others struct {
	running int
	at      time.Time
}

// othersFresh is how long that counts. It is learnt again with each job that begins or ends.
const othersFresh = 2 * time.Second

// elsewhere returns how many of the owner's jobs run on other bridges, as far as this one has heard lately.
func (s *shared) elsewhere(o bridge.Owner) int {
	s.dirtyMu.Lock()
	defer s.dirtyMu.Unlock()
	if n := s.others[o]; time.Since(n.at) < othersFresh {
		return n.running
	}
	return 0
}

// heardOf notes how many of the owner's jobs run on other bridges.
func (s *shared) heardOf(o bridge.Owner, running int) {
	now := time.Now()
	s.dirtyMu.Lock()
	defer s.dirtyMu.Unlock()
	if len(s.others) > maxOthers {
		maps.DeleteFunc(s.others, func(_ bridge.Owner, n others) bool { return now.Sub(n.at) > othersFresh })
	}
	s.others[o] = others{running, now}
}

// maxOthers is how many owners are remembered before those that are of no use are forgotten.
const maxOthers = 1000

// written says what of a job has been written. Who writes has it.
type written struct {
	known  bool      // there is a record
	last   uint64    // the latest event
	listed time.Time // when it was put into its owner's list
	claim  bool      // the call's claim is there
	kept   bool      // what came of the call is in place of its claim
}

// A verdict says what becomes of a call's claim.
type verdict int32

const (
	undecided verdict = iota
	keep              // what came of it is kept
	forget            // it can be made again
)

// mirrored is the part of a job that the mirror has.
type mirrored struct {
	tag     string       // names the job; empty if nothing is shared
	claim   []byte       // for the call's key; nil if it has none, or another bridge has it
	verdict atomic.Int32 // a [verdict] on the claim
	waits   atomic.Int64 // bytes of the answer that are to take the claim's place
	whole   atomic.Bool  // nothing that was written counts
	gone    atomic.Bool  // it was thrown away
	written written
}

// touch has the job written, if others are to know of it.
func (j *Job) touch() {
	s := j.m.shared
	if s == nil {
		return
	}
	s.dirtyMu.Lock()
	s.dirty[j] = struct{}{}
	s.dirtyMu.Unlock()
	s.wakeMirror()
}

func (s *shared) wakeMirror() {
	select {
	case s.mirror.wake <- struct{}{}:
	default:
	}
}

// writes writes what has changed, until ctx ends.
func (s *shared) writes(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.mirror.wake:
		}
		for failed := false; !s.down.Load(); failed = true {
			err := s.flush(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			if !failed && !s.down.Load() { // else that is in the log
				s.log.LogAttrs(ctx, slog.LevelWarn, "jobs cannot be written for other bridges; it is tried again", slog.String("error", err.Error()))
			}
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
			pause = min(2*pause, lastPause)
		}
		pause = firstPause
	}
}

// flush writes all that has changed, and returns once that is done, or the error that stopped it.
func (s *shared) flush(ctx context.Context) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	for {
		jobs := s.take()
		if len(jobs) == 0 {
			return nil
		}
		if err := s.write(ctx, jobs); err != nil {
			s.dirtyMu.Lock()
			for _, j := range jobs {
				j.mirrored.whole.Store(true) // nobody knows what of it was written
				s.dirty[j] = struct{}{}
			}
			s.dirtyMu.Unlock()
			return err
		}
	}
}

func (s *shared) take() (jobs []*Job) {
	s.dirtyMu.Lock()
	defer s.dirtyMu.Unlock()
	for j := range s.dirty {
		delete(s.dirty, j)
		if jobs = append(jobs, j); len(jobs) == batch {
			break
		}
	}
	return jobs
}

// write writes jobs; first what has come of claims, since the rest wakes those who wait for that.
func (s *shared) write(ctx context.Context, jobs []*Job) error {
	var us []update
	var of []*Job
	n := 0
	for _, j := range jobs {
		if j.mirrored.whole.Swap(false) {
			j.mirrored.written = written{}
		}
	}
	settled, err := s.writeClaims(ctx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		u := s.updateOf(j)
		if u.rec != nil || settled[j] {
			us, of = append(us, u), append(of, j)
			n += u.size()
		}
	}
	if len(us) == 0 {
		return nil
	}
	var found []bool
	err = s.do(ctx, n, func(ctx context.Context) (err error) {
		found, err = s.r.write(ctx, us)
		return err
	})
	if err != nil {
		return err
	}
	for i, j := range of {
		if us[i].rec == nil {
			continue
		}
		if !found[i] { // it was lost: once more, and all of it
			j.mirrored.whole.Store(true)
			j.touch()
			continue
		}
		w := &j.mirrored.written
		w.known = true
		if us[i].list != "" {
			w.listed = time.Now()
			s.heardOf(j.rec.Owner, us[i].elsewhere())
		}
		if e := us[i].events; len(e) > 0 {
			w.last = e[len(e)-1].ID
		}
		j.show(us[i].version)
	}
	return nil
}

// show notes which version of the job others see.
func (j *Job) show(version uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = version
	close(j.shown)
	j.shown = make(chan struct{})
}

// showTime is how long a caller waits for what other bridges see.
const showTime = time.Second

// Show waits until other bridges see a published job as it is now, so that whoever
// is told of it can go to any of them. It gives up after a second, and at once when
// the Redis cannot be reached.
func (m *Manager) Show(ctx context.Context, j *Job) {
	if m.shared == nil || !j.Published() {
		return
	}
	version := j.Record().Version
	ctx, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	for !m.shared.down.Load() {
		j.mu.Lock()
		seen, shown := j.seen, j.shown
		j.mu.Unlock()
		if seen >= version {
			return
		}
		select {
		case <-shown:
		case <-ctx.Done():
			return
		}
	}
}

// A storedRecord is how a record is kept.
type storedRecord struct {
	Record
	Last uint64 `json:"last"` // the latest event
}

// updateOf returns what is to be written of a job that others can find.
func (s *shared) updateOf(j *Job) update {
	w := &j.mirrored.written
	u := update{tag: j.mirrored.tag}
	if !j.Published() || j.mirrored.gone.Load() {
		return u
	}
	rec, events, first := j.since(w.last)
	stored := storedRecord{Record: rec, Last: w.last}
	stored.Node, stored.Data = s.node, nil
	u.data, u.events, u.first, u.whole, u.version = rec.Data, events, first, !w.known, rec.Version
	if len(events) > 0 {
		stored.Last = events[len(events)-1].ID
	}
	long := s.m.o.TTL + leasesALife*s.lease
	u.ttl = long
	if rec.State.Final() {
		if u.ttl = time.Until(rec.Expires); u.ttl <= 0 {
			return u
		}
	}
	if time.Since(w.listed) > leasesALife/3*s.lease || rec.State.Final() {
		u.node, u.running, u.runsTTL = s.node, s.m.running(rec.Owner), leasesALife*s.lease
		u.list, u.listTTL, u.id, u.created, u.keep = hashOf(rec.Owner, ""), long, rec.ID, rec.Created, keptPerRunning*s.m.o.PerCaller
	}
	var err error
	if u.rec, err = json.Marshal(stored); err != nil { // a member that cannot be JSON: a bug, but the rest is true
		problem := *stored.Problem
		problem.Members = nil
		stored.Problem = &problem
		u.rec, _ = json.Marshal(stored)
	}
	return u
}

// since returns the record, the events behind one, and the oldest event that is kept.
func (j *Job) since(after uint64) (rec Record, events []Event, first uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) > 0 {
		first = j.events[0].ID
	}
	return j.rec, j.behindLocked(after), first
}
