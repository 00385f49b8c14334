package jobs

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"

	"mcpbridge/internal/bridge"
)

// A callKey names a call that is to be made once: an Idempotency-Key of its caller's.
type callKey struct {
	owner bridge.Owner
	key   string
}

// A keyed job is what came of the first call under a key.
type keyed struct {
	job   *Job
	print [sha256.Size]byte // of what was called
	size  int               // bytes of its answer; 0 while it runs
	ready chan struct{}     // closed when it is clear which bridge has the first call; nil if there is only this one
}

// Once starts a call that its caller names by a key, or returns the job of the
// first call under that key; again says so. Such a call goes on when whoever made
// it hangs up, since it may come back and ask. What came of it is kept for
// KeyTTL, unless the tool was never run. The error is of kind
// IdempotencyConflict if something else was called under the key, and of kind
// StoreUnavailable if it cannot be found out whether another bridge has the call.
func (m *Manager) Once(ctx context.Context, c *bridge.Call, key string) (j *Job, again bool, err error) {
	k := callKey{c.Caller.Owner(), key}
	j, first, err := m.hold(ctx, k, c)
	switch {
	case err != nil || !first:
		return j, err == nil, err
	case m.shared == nil:
		m.run(j)
		return j, false, nil
	}
	held, err := m.shared.claim(ctx, j, printOf(c))
	return m.decide(j, held, err)
}

// Recall returns the job of the first call under a key, or nil if this one would be the first.
func (m *Manager) Recall(ctx context.Context, c *bridge.Call, key string) (*Job, error) {
	k := callKey{c.Caller.Owner(), key}
	m.mu.Lock()
	e, err := m.recallLocked(k, c)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if e == nil && m.shared == nil {
		return nil, nil
	}
	if e == nil {
		held, err := m.shared.held(ctx, k)
		if held == nil {
			return nil, err
		}
		j, first, err := m.hold(ctx, k, c)
		if err != nil || !first {
			return j, err
		}
		j, _, err = m.decide(j, held, nil)
		return j, err
	}
	if e.decided() {
		return e.job, nil
	}
	// Another call is about to be the first.
	j, _, err := m.Once(ctx, c, key)
	return j, err
}

// hold returns the job of the first call under a key as far as this bridge knows,
// or makes this call the first.
func (m *Manager) hold(ctx context.Context, k callKey, c *bridge.Call) (j *Job, first bool, err error) {
	for {
		m.mu.Lock()
		e, err := m.recallLocked(k, c)
		if err != nil {
			m.mu.Unlock()
			return nil, false, err
		}
		if e == nil {
			j := m.newJob(ctx, c)
			j.key = &k
			e := &keyed{job: j, print: printOf(c)}
			if m.shared != nil {
				e.ready = make(chan struct{})
			}
			m.keys[k] = e
			m.order = append(m.order, k)
			m.mu.Unlock()
			return j, true, nil
		}
		m.mu.Unlock()
		if e.decided() {
			return e.job, false, nil
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// decided reports whether it is clear which bridge has the first call.
func (e *keyed) decided() bool {
	if e.ready == nil {
		return true
	}
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// letGo forgets a call that was never made.
func (m *Manager) letGo(j *Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.keys[*j.key]
	delete(m.keys, *j.key) // order is told apart by the map
	close(e.ready)
	j.cancel(nil)
}

func (m *Manager) recallLocked(k callKey, c *bridge.Call) (*keyed, error) {
	m.sweepKeysLocked(time.Now())
	first := m.keys[k]
	if first == nil {
		return nil, nil
	}
	if first.print != printOf(c) {
		return nil, errOther
	}
	return first, nil
}

var errOther = &bridge.Error{Kind: bridge.IdempotencyConflict, Op: "jobs.Once", Msg: "The Idempotency-Key was used before, with another tool or other arguments; use a new one for each new call."}

// printOf tells what is called from everything else.
func printOf(c *bridge.Call) [sha256.Size]byte {
	h := sha256.New()
	for _, s := range [...]string{c.Handle, c.Tool} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) // so that no two pairs read the same
	}
	h.Write(c.Args)
	return [sha256.Size]byte(h.Sum(nil))
}

// settle keeps what came of a call that has a key, or forgets it so that the call can be made again.
func (m *Manager) settle(j *Job, a *bridge.Answer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := *j.key
	j.mirrored.verdict.Store(int32(verdictOf(j, err)))
	e := m.keys[k]
	if e == nil || e.job != j {
		return
	}
	if verdictOf(j, err) == forget {
		m.forgetLocked(k) // order is told apart by the map
		return
	}
	e.size = 1 << 10
	if a != nil {
		e.size += len(a.Result.Raw)
	}
	m.keyedBytes += e.size
	if m.shared != nil && j.mirrored.claim != nil {
		j.mirrored.waits.Store(int64(e.size))
		m.shared.backlog.Add(int64(e.size))
	}
	for i := 0; m.keyedBytes > m.o.KeyBytes && i < len(m.order); i++ {
		if old := m.keys[m.order[i]]; old != nil && old.size > 0 && old != e {
			m.forgetLocked(m.order[i])
		}
	}
}

func verdictOf(j *Job, err error) verdict {
	if !j.ran || !mayHaveRun(err) {
		return forget
	}
	return keep
}

// mayHaveRun reports whether the tool may have run although, or just because, its call ended so.
func mayHaveRun(err error) bool {
	switch bridge.KindOf(err) {
	case bridge.Unavailable, bridge.Overloaded, bridge.NotReady, bridge.UpstreamAuth, bridge.RateLimited, bridge.NotFound, bridge.InvalidArguments, bridge.Malformed, bridge.Forbidden:
		return err == nil
	default:
		return true
	}
}

func (m *Manager) forgetLocked(k callKey) {
	if e := m.keys[k]; e != nil {
		m.keyedBytes -= e.size
		delete(m.keys, k)
		if !e.job.Published() {
			delete(m.tags, e.job.mirrored.tag)
		}
	}
}

// sweepKeysLocked forgets the keys whose time is over, from the oldest on.
func (m *Manager) sweepKeysLocked(now time.Time) {
	i := 0
	for ; i < len(m.order); i++ {
		k := m.order[i]
		e := m.keys[k]
		if e == nil {
			continue // forgotten already
		}
		if e.size == 0 || now.Sub(e.job.rec.Created) < m.o.KeyTTL {
			break
		}
		m.forgetLocked(k)
	}
	m.order = m.order[i:]
}
