package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// claim says that this bridge makes the call, or returns the claim of another one.
func (s *shared) claim(ctx context.Context, j *Job, call [sha256.Size]byte) (held []byte, err error) {
	c := claim{Print: call[:], Node: s.node, Job: j.ID(), Created: j.rec.Created}
	text, err := c.encode(nil)
	if err != nil {
		return nil, unreachable(err)
	}
	if s.down.Load() {
		return nil, unreachable(nil)
	}
	if s.backlog.Load() > int64(s.m.o.KeyBytes) {
		return nil, unreachable(errors.New("too many answers wait to be stored"))
	}
	// Whoever asked may go away, but not without knowing whether there is a claim now.
	err = s.do(context.WithoutCancel(ctx), 0, func(ctx context.Context) error {
		held, err = s.r.claim(ctx, hashOf(j.key.owner, j.key.key), text, s.m.o.KeyTTL)
		return err
	})
	if bytes.Equal(held, text) {
		held = nil // the first attempt was lost on its way back
	}
	if held == nil {
		j.mirrored.claim = text
		j.mirrored.written.claim = true
	}
	if err != nil { // it may be there all the same
		j.mirrored.verdict.Store(int32(forget))
		j.touch()
	}
	return held, err
}

// held returns the claim for a key, or nil if there is none.
func (s *shared) held(ctx context.Context, k callKey) (held []byte, err error) {
	err = s.do(ctx, maxKept, func(ctx context.Context) error {
		held, err = s.r.held(ctx, hashOf(k.owner, k.key))
		return err
	})
	return held, err
}

// decide goes on with a call once it is clear that this bridge has it, or that
// another one does.
func (m *Manager) decide(j *Job, held []byte, err error) (_ *Job, again bool, _ error) {
	if err != nil {
		m.letGo(j)
		return nil, false, err
	}
	if held == nil {
		m.mu.Lock()
		m.tags[j.mirrored.tag] = j
		close(m.keys[*j.key].ready)
		m.mu.Unlock()
		m.run(j)
		return j, false, nil
	}
	c, body, err := decodeClaim(held)
	if err != nil {
		m.letGo(j)
		return nil, false, unreachable(fmt.Errorf("a stored claim cannot be read: %w", err))
	}
	m.mu.Lock()
	e := m.keys[*j.key]
	same := bytes.Equal(c.Print, e.print[:])
	if same {
		j.mu.Lock()
		j.rec.ID, j.rec.Created, j.runsAt = c.Job, c.Created, c.Node
		j.mirrored.tag = hashOf(j.rec.Owner, c.Job)
		j.mu.Unlock()
	}
	m.mu.Unlock()
	if !same {
		m.letGo(j)
		return nil, false, errOther
	}
	if c.Done {
		m.came(j, c, body)
	} else {
		m.work.Go(func() { m.follow(j) })
	}
	close(e.ready)
	return j, true, nil
}

// came ends a job of another bridge with what came of its call.
func (m *Manager) came(j *Job, c *claim, body []byte) {
	a, err := c.outcome(body)
	m.finish(j, a, err)
}

func (m *Manager) finish(j *Job, a *bridge.Answer, err error) {
	j.ran = bridge.KindOf(err) != bridge.StoreUnavailable // then the next one asks again
	m.settle(j, a, err)
	j.end(a, err)
	j.cancel(nil)
}

// follow waits for what comes of a call that another bridge has.
func (m *Manager) follow(j *Job) {
	s := m.shared
	for {
		ctx, cancel := context.WithCancel(m.ctx)
		more := s.watch(ctx, j.mirrored.tag)
		held, err := s.held(ctx, *j.key)
		if err == nil && held != nil {
			s.watchedOn(j.mirrored.tag, j.runsAt)
			held, err = s.closeClaim(ctx, j, held)
		}
		var c *claim
		var body []byte
		if err == nil && held != nil {
			c, body, err = decodeClaim(held)
		}
		switch {
		case err != nil:
			m.finish(j, nil, err)
		case held == nil:
			m.finish(j, nil, &bridge.Error{Kind: bridge.Unavailable, Op: "jobs.follow", RetryAfter: time.Second, Msg: "The first call under this Idempotency-Key, at another bridge, never reached the tool; make it again."})
		case c.Done:
			m.came(j, c, body)
		default:
			s.imitate(ctx, j)
			select {
			case <-more:
				cancel()
				continue
			case <-ctx.Done():
				m.finish(j, nil, context.Cause(m.ctx))
			}
		}
		cancel()
		return
	}
}

// imitate lets a job look like the one of another bridge, if others can find that.
func (s *shared) imitate(ctx context.Context, j *Job) {
	j.mu.Lock()
	after, version := j.last, j.rec.Version
	j.mu.Unlock()
	rec, events, err := s.read(ctx, j.rec.Owner, j.mirrored.tag, after)
	if err != nil || rec.State.Final() || rec.Version == version {
		return // its end is what follow waits for
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Type == EventEnd })
	j.change(events, func(r *Record) {
		r.State, r.Asked, r.Progress, r.Version = rec.State, rec.Asked, rec.Progress, rec.Version-1
	})
}

// closeClaim returns a claim that was read or, if its bridge is dead, what takes its place.
func (s *shared) closeClaim(ctx context.Context, j *Job, held []byte) ([]byte, error) {
	c, _, err := decodeClaim(held)
	if err != nil || c.Done {
		return held, err
	}
	dead, err := s.dead(ctx, c.Node)
	if err != nil || len(dead) == 0 {
		return held, err
	}
	last, err := c.settled(nil, errDied)
	if err != nil {
		return nil, err
	}
	var done bool
	tag := hashOf(j.key.owner, j.key.key)
	left := max(s.m.o.KeyTTL-time.Since(c.Created), time.Second)
	err = s.do(ctx, len(last), func(ctx context.Context) (err error) {
		done, err = s.r.replaceClaim(ctx, tag, held, last, left)
		return err
	})
	if err != nil || done {
		return last, err
	}
	return s.held(ctx, *j.key)
}

// settledText returns a claim with what came of its job.
func settledText(mine []byte, j *Job) []byte {
	c, _, err := decodeClaim(mine)
	if err != nil {
		return mine // it is ours, so that this cannot be
	}
	text, err := c.settled(j.Outcome())
	if err != nil { // a member that cannot be JSON: a bug, but the tool ran
		text, _ = c.settled(nil, &bridge.Error{Kind: bridge.OutcomeUnknown, Msg: "The tool ran, but what came of it could not be kept."})
	}
	return text
}

// A settlement is what is to be written in place of a claim.
type settlement struct {
	tag  string
	text []byte // what came of the call; nil if nothing did, so that it can be made again
	mine []byte // the claim
	ttl  time.Duration
	lost bool // the claim has to be made once more
}

// writeClaims writes what came of calls with a key, once, and returns whose waiters are to be told.
func (s *shared) writeClaims(ctx context.Context, jobs []*Job) (settled map[*Job]bool, err error) {
	settled = make(map[*Job]bool)
	var all []settlement
	var of []*Job
	n := 0
	for _, j := range jobs {
		w, mine := &j.mirrored.written, j.mirrored.claim
		ttl := s.m.o.KeyTTL - time.Since(j.rec.Created)
		v := verdict(j.mirrored.verdict.Load())
		if mine == nil || w.kept || ttl <= 0 || v == undecided && w.claim {
			continue
		}
		one := settlement{tag: hashOf(j.key.owner, j.key.key), mine: mine, ttl: ttl, lost: v == undecided}
		if v == keep {
			one.text = settledText(mine, j)
		}
		n += len(one.text)
		all, of = append(all, one), append(of, j)
		settled[j] = v != undecided
	}
	if len(all) == 0 {
		return settled, nil
	}
	if err := s.do(ctx, n, func(ctx context.Context) error { return s.r.settle(ctx, all) }); err != nil {
		return nil, err
	}
	for _, j := range of {
		j.mirrored.written.claim = true
		if settled[j] {
			j.mirrored.written.kept = true
			s.backlog.Add(-j.mirrored.waits.Swap(0))
		}
	}
	return settled, nil
}

// publish has the bridge that runs a job let callers find it, and reports whether they do.
func (s *shared) publish(j *Job) (found bool, err error) {
	_, _, err = s.read(s.m.ctx, j.rec.Owner, j.mirrored.tag, 0)
	switch {
	case bridge.KindOf(err) != bridge.NotFound:
		return true, err
	case j.Record().State.Final():
		return false, nil // then this bridge can
	}
	return true, s.tell(s.m.ctx, j.runsAt, message{Op: opPublish, Tag: j.mirrored.tag})
}
