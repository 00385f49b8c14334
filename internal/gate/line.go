package gate

import (
	"iter"

	"mcpbridge/internal/bridge"
)

// A waiter is a call in line.
type waiter struct {
	caller   bridge.Owner
	grant    *grant
	granted  chan struct{} // closed when the call is out of line by no will of its own
	admitted bool          // the grant was taken; set before granted is closed
	gone     bool          // out of line; guarded by the admission's mu

	prev, next *waiter
}

// A line is a list of waiters, the first come first. Each can leave at any time.
type line struct {
	first, last *waiter
	n           int
}

func (l *line) head() *waiter { return l.first }
func (l *line) len() int      { return l.n }

// ahead returns the head if w is behind it, and nil if w is the head itself.
func (l *line) ahead(w *waiter) *waiter {
	if l.first == w {
		return nil
	}
	return l.first
}

func (l *line) push(w *waiter) {
	w.prev = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.n++
}

// remove takes w out. It keeps w.next, so that a walk that stands on w can go on.
func (l *line) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.gone = true
	l.n--
}

// all yields the waiters from the head on. The one it stands on may be removed meanwhile.
func (l *line) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for w := l.first; w != nil; w = w.next {
			if !yield(w) {
				return
			}
		}
	}
}
