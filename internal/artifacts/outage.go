package artifacts

import (
	"sync"
	"time"
)

// logEvery is how often the log says that a store does not take results, at most.
const logEvery = 10 * time.Second

// An outage counts what a store does not take, so that a log has one line for many results.
type outage struct {
	mu    sync.Mutex
	lost  int64     // since the last line; guarded by mu
	shown bool      // a line says that the store does not take results; guarded by mu
	next  time.Time // when there may be another; guarded by mu
}

// failed counts one more result, and returns how many a line is to tell of; 0 if there is to be none now.
func (o *outage) failed() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost++
	now := time.Now()
	if now.Before(o.next) {
		return 0
	}
	n := o.lost
	o.lost, o.shown, o.next = 0, true, now.Add(logEvery)
	return n
}

// over reports whether a line is to say that the store takes results again, and how many no line has told of.
func (o *outage) over() (lost int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.shown {
		return 0, false // what was lost meanwhile is in the next line
	}
	lost = o.lost
	o.lost, o.shown = 0, false
	return lost, true
}
