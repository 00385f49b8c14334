package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// A Job is one call that runs in this process, or has ended here.
type Job struct {
	m      *Manager
	call   *bridge.Call
	ctx    context.Context // of the call
	cancel context.CancelCauseFunc
	done   chan struct{} // closed at the end
	key    *callKey      // of a call that is made once; nil for all others
	ran    bool          // the server got the call; of the goroutine that runs it
	runsAt string        // the bridge that has the call, if it is another one, from before anybody gets the job

	err error // set before done is closed

	mu        sync.Mutex
	rec       Record         // guarded by mu
	events    []Event        // the latest, guarded by mu
	last      uint64         // the latest event's ID, guarded by mu
	changed   chan struct{}  // closed and replaced with each change, guarded by mu
	answer    *bridge.Answer // guarded by mu; nil once whoever started it has left
	left      bool           // guarded by mu
	published bool           // callers can find it, guarded by mu
	asking    *asking        // what the server waits for; nil if for nothing, guarded by mu
	bytes     int            // of the events that are kept, guarded by mu
	seen      uint64         // the version of the record that other bridges can see, guarded by mu
	shown     chan struct{}  // closed and replaced when they see another one, guarded by mu

	mirrored mirrored
}

// ID names the job.
func (j *Job) ID() string { return j.rec.ID } // never changes

// Done is closed when the call has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// Outcome returns what came of the call, as [bridge.Bridge.Invoke] returned it,
// for who started the job and has not left. It waits for the end.
func (j *Job) Outcome() (*bridge.Answer, error) {
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer, j.err
}

// Call returns the call, with where its time went. It waits for the end.
func (j *Job) Call() *bridge.Call {
	<-j.done
	return j.call
}

// Record returns how the job is now.
func (j *Job) Record() Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec
}

func (j *Job) expired(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.rec.Expires.IsZero() && now.After(j.rec.Expires)
}

// Published reports whether the job can be found by its ID: it was started as
// one, or it has asked something. Nobody else can cancel one that is not.
func (j *Job) Published() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.published
}

// Leave says that whoever started the job no longer waits for it. The call is
// cancelled for that cause unless the job can be found again; its result is in
// the record only, from here on. A call with a key stays as it is.
func (j *Job) Leave(cause error) {
	if j.key != nil {
		return
	}
	j.mu.Lock()
	j.left, j.answer = true, nil
	found := j.published
	j.mu.Unlock()
	if !found {
		j.cancel(cause)
	}
}

// Changes returns the record, the events behind the given one that are still
// kept, and a channel that is closed when there is more.
func (j *Job) Changes(after uint64) (Record, []Event, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec, j.behindLocked(after), j.changed
}

func (j *Job) behindLocked(after uint64) []Event {
	i, _ := slices.BinarySearchFunc(j.events, after, func(e Event, id uint64) int {
		if e.ID <= id {
			return -1
		}
		return 1
	})
	return slices.Clone(j.events[i:])
}

// change changes the record, notes the events that belong to that, and tells everybody.
func (j *Job) change(events []Event, change func(*Record)) {
	if j.changes(events, change) {
		j.touch()
	}
}

// changes does, and reports whether others are to know of it.
func (j *Job) changes(events []Event, change func(*Record)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rec.State.Final() {
		return false
	}
	change(&j.rec)
	j.rec.Version++
	j.rec.Changed = time.Now()
	for _, e := range events {
		e.ID = max(e.ID, j.last+1) // those of another bridge's job have theirs
		j.last = e.ID
		j.keepLocked(e)
	}
	close(j.changed)
	j.changed = make(chan struct{})
	return j.published
}

// keepLocked keeps an event, and forgets the oldest over the bounds.
func (j *Job) keepLocked(e Event) {
	j.events = append(j.events, e)
	j.bytes += len(e.Data)
	n := 0
	for ; n < len(j.events)-1 && (len(j.events)-n > j.m.o.Events || j.bytes > maxEventBytes); n++ {
		j.bytes -= len(j.events[n].Data)
	}
	j.events = slices.Delete(j.events, 0, n)
}

// maxEventBytes bounds the events that are kept of one job.
const maxEventBytes = 1 << 20

// progress and log are the call's listeners.
func (j *Job) progress(params json.RawMessage) {
	j.change([]Event{{Type: EventProgress, Data: params}}, func(r *Record) { r.Progress = params })
}

func (j *Job) log(params json.RawMessage) {
	j.change([]Event{{Type: EventLog, Data: params}}, func(*Record) {})
}

// running is called when the server gets the call.
func (j *Job) running() {
	j.ran = true
	j.change(nil, func(r *Record) { r.State = Running })
}

// end notes what came of the call.
func (j *Job) end(a *bridge.Answer, err error) {
	j.err = err
	j.mu.Lock()
	if !j.left {
		j.answer = a
	}
	j.mu.Unlock()
	j.change([]Event{{Type: EventEnd}}, func(r *Record) {
		r.Asked = nil
		r.Expires = time.Now().Add(j.m.o.TTL)
		if err != nil {
			r.failure(err)
		} else {
			r.result(a)
		}
	})
	close(j.done)
}
