// Package jobs runs calls that may outlast the request that made them. Start with
// [Manager.Start]: it runs a call in the background, with what happens to it as
// events; whoever waits for it, streams it, or asks for it later looks at the same [Job].
// A job that callers can find by its ID is published; one that only its request
// knows costs little more than the call itself.
//
// Bridges that have a Redis in common share what is published, and the calls that
// are to be made once: shared.go is where that begins. Each bridge keeps and runs its
// jobs as if it were alone, and writes them behind the callers' backs (mirror.go); of
// the others' it reads the records and events (watch.go), and tells their bridges
// what is to be done with them (exchange.go).
package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// Options configure a [Manager]. Invoke and Compile must be set; zero fields mean what they say in their comment.
type Options struct {
	Invoke func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error)
	// Compile makes the check of a question's schema.
	Compile func(schema []byte) (bridge.Checker, error)

	// Allows says whether the caller may call a tool of a server now: a job of one that it may
	// not call does not exist for it, though another key of the same user began it. Nil allows all.
	Allows func(c bridge.Caller, handle, tool string) bool
	// Ended, if set, is told of each published job that has ended.
	Ended func(j *Job)

	TTL       time.Duration // how long a job is kept after its end; zero is an hour
	PerCaller int           // jobs of one caller that run at a time, about so many on all bridges; zero is 100. Ten times as many are kept.
	InputWait time.Duration // how long a question waits for its reply; zero is 10 minutes
	Events    int           // kept of each job; zero is 1000
	KeyBytes  int           // of answers that are kept for calls with a key, the oldest out first; zero is 64 MiB
	KeyTTL    time.Duration // how long the answer to a call with a key is kept; zero is 24 hours

	Redis *Redis        // what the jobs of several bridges share; nil if there is only this one
	Lease time.Duration // how long a bridge that shows no sign of life counts as alive; zero is 10 seconds
	Log   *slog.Logger  // of the Redis; nil for none
}

// A Manager runs jobs and keeps them for their callers.
type Manager struct {
	o    Options
	ctx  context.Context // of all jobs; ends with Close
	stop context.CancelCauseFunc
	work sync.WaitGroup

	shared *shared // nil if there are no other bridges

	mu         sync.Mutex
	tags       map[string]*Job         // :: tag -> job that others may name, if there are others, guarded by mu
	jobs       map[bridge.Owner][]*Job // published, in the order of their publication, guarded by mu
	keys       map[callKey]*keyed      // guarded by mu
	order      []callKey               // of keys, and of some that are gone, from the oldest on, guarded by mu
	keyedBytes int                     // of the answers in keys, guarded by mu
	swept      time.Time               // when expired jobs were last thrown away, guarded by mu
}

// keptPerRunning is how many jobs are kept of a caller for each that may run at a time.
const keptPerRunning = 10

// New returns a manager without jobs.
func New(o Options) *Manager {
	o.TTL = cmp.Or(o.TTL, time.Hour)
	o.PerCaller = cmp.Or(o.PerCaller, 100)
	o.InputWait = cmp.Or(o.InputWait, 10*time.Minute)
	o.Events = cmp.Or(o.Events, 1000)
	if o.Allows == nil {
		o.Allows = func(bridge.Caller, string, string) bool { return true }
	}
	o.KeyBytes = cmp.Or(o.KeyBytes, 64<<20)
	o.KeyTTL = cmp.Or(o.KeyTTL, 24*time.Hour)
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	m := &Manager{o: o, jobs: make(map[bridge.Owner][]*Job), keys: make(map[callKey]*keyed)}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	if o.Redis != nil {
		m.tags = make(map[string]*Job)
		m.shared = newShared(m)
	}
	return m
}

// Run shares the jobs with other bridges, if there are any, until ctx ends. Jobs run without it.
func (m *Manager) Run(ctx context.Context) {
	if m.shared != nil {
		m.shared.run(ctx)
	}
}

// Start runs a call in the background. Its values, not its end, are ctx's. The
// call must not be touched before the job is done. The job is known to nobody but
// the caller of Start, who has to call Leave when it no longer waits.
func (m *Manager) Start(ctx context.Context, c *bridge.Call) *Job {
	j := m.newJob(ctx, c)
	m.run(j)
	return j
}

// Submit starts a call as a job that its caller can find by its ID. A caller with
// too many jobs running gets an error of kind RateLimited.
func (m *Manager) Submit(ctx context.Context, c *bridge.Call) (*Job, error) {
	j := m.newJob(ctx, c)
	j.left = true
	if err := m.Publish(j); err != nil {
		return nil, err
	}
	m.run(j)
	return j, nil
}

func (m *Manager) newJob(ctx context.Context, c *bridge.Call) *Job {
	now := time.Now()
	j := &Job{
		m: m, call: c, done: make(chan struct{}), changed: make(chan struct{}), shown: make(chan struct{}),
		rec: Record{ID: newID(), Owner: c.Caller.Owner(), Handle: c.Handle, Method: c.Method, Tool: c.Tool, State: Queued, Version: 1, Created: now, Changed: now},
	}
	j.ctx, j.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.Progress, c.Log, c.Running, c.Ask = j.progress, j.log, j.running, j.ask
	if m.shared != nil {
		j.mirrored.tag = hashOf(j.rec.Owner, j.rec.ID)
	}
	return j
}

func (m *Manager) run(j *Job) {
	stopped := context.AfterFunc(m.ctx, func() { j.cancel(context.Cause(m.ctx)) })
	m.work.Go(func() {
		defer j.cancel(nil)
		defer stopped()
		a, err := m.o.Invoke(j.ctx, j.call)
		if j.key != nil {
			m.settle(j, a, err)
		}
		j.end(a, err)
		if j.key != nil {
			j.touch() // what came of it can be written
		}
		if m.o.Ended != nil && j.Published() {
			m.o.Ended(j)
		}
	})
}

// newID returns 128 random bits in lower-case base32.
func newID() string { return strings.ToLower(rand.Text()) }

// Publish lets the job's caller find it by its ID, also after its request is gone.
// A caller with too many jobs running gets an error of kind RateLimited.
func (m *Manager) Publish(j *Job) error {
	if j.runsAt != "" {
		if found, err := m.shared.publish(j); found || err != nil {
			return err
		}
	}
	if err := m.publish(j); err != nil {
		return err
	}
	j.touch()
	return nil
}

func (m *Manager) publish(j *Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.Published() {
		return nil
	}
	m.sweepLocked(time.Now())
	owner := j.rec.Owner // never changes
	all := m.jobs[owner]
	running := m.runningLocked(owner)
	if m.shared != nil {
		running += m.shared.elsewhere(owner)
	}
	if running >= m.o.PerCaller {
		return &bridge.Error{Kind: bridge.RateLimited, Op: "jobs.Publish", RetryAfter: time.Second, Msg: fmt.Sprintf("You have %d jobs running, which is as many as you may have; wait for one of them to end, or cancel one.", running)}
	}
	j.mu.Lock()
	j.published = true
	j.mu.Unlock()
	for i := 0; len(all) >= keptPerRunning*m.o.PerCaller && i < len(all); {
		if all[i].Record().State.Final() {
			m.goneLocked(all[i])
			all = slices.Delete(all, i, i+1)
		} else {
			i++
		}
	}
	m.jobs[owner] = append(all, j)
	if m.tags != nil {
		m.tags[j.mirrored.tag] = j
	}
	return nil
}

// running returns how many jobs of the owner run here.
func (m *Manager) running(o bridge.Owner) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runningLocked(o)
}

func (m *Manager) runningLocked(o bridge.Owner) (n int) {
	for _, j := range m.jobs[o] {
		if !j.Record().State.Final() {
			n++
		}
	}
	return n
}

// goneLocked notes that nobody finds a job here any more.
func (m *Manager) goneLocked(j *Job) {
	j.mirrored.gone.Store(true)
	delete(m.tags, j.mirrored.tag)
}

// tagged returns the job that others call so, or nil.
func (m *Manager) tagged(tag string) *Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tags[tag]
}

// touchAll has all that others are to know written: what runs, or everything anew because it was lost.
func (m *Manager) touchAll(lost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.tags {
		if lost {
			j.mirrored.whole.Store(true)
		}
		if lost || !j.Record().State.Final() {
			j.touch()
		}
	}
}

// sweepEvery is how often jobs that have expired are thrown away.
const sweepEvery = time.Minute

func (m *Manager) sweepLocked(now time.Time) {
	if now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	for owner, all := range m.jobs {
		all = slices.DeleteFunc(all, func(j *Job) bool {
			if !j.expired(now) {
				return false
			}
			m.goneLocked(j)
			return true
		})
		if len(all) == 0 {
			delete(m.jobs, owner)
			continue
		}
		m.jobs[owner] = all
	}
}

// Drain waits until nothing runs any more, or ctx ends.
func (m *Manager) Drain(ctx context.Context) {
	idle := make(chan struct{})
	go func() { // ended by Close at the latest
		m.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Close cancels what runs, waits for it, and forgets everything.
func (m *Manager) Close() error {
	m.stop(bridge.ErrStopping)
	m.work.Wait()
	if m.shared != nil {
		m.shared.close()
	}
	return nil
}

// errByCaller is why a job was cancelled on purpose.
var errByCaller = errors.New("cancelled by its caller")
