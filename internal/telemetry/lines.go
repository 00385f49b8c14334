package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	linesWait  = 10 * time.Millisecond // that a line waits for others, at most
	linesBytes = 64 << 10              // that are written without waiting
)

// lines writes a line that comes alone at once, and lines that come thick and fast a little
// later, together, or as soon as flush is called. Under load a line for each call, each with a system call of its own, took a
// third of a call's time and stood between the caller and its answer (BenchmarkLog).
type lines struct {
	out io.Writer

	writing sync.Mutex // held while out is written to
	spare   []byte     // guarded by writing

	mu   sync.Mutex // never held while out is written to
	buf  []byte     // guarded by mu
	last time.Time  // when something was last written; guarded by mu
	wait *time.Timer
	err  error // of the last write; guarded by mu
}

func newLines(out io.Writer) *lines {
	l := &lines{out: out}
	l.wait = time.AfterFunc(time.Hour, l.flush)
	l.wait.Stop()
	return l
}

// Write takes a whole line. It waits only when much is to be written and cannot be. The
// error is that of an earlier write.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	now := len(l.buf) == 0 && time.Since(l.last) >= linesWait
	if !now && len(l.buf) == 0 {
		l.wait.Reset(linesWait)
	}
	l.buf = append(l.buf, b...)
	now = now || len(l.buf) >= linesBytes
	err := l.err
	l.mu.Unlock()
	if now {
		l.flush()
	}
	return len(b), err
}

// flush writes what there is: for lines that must not wait, and for the last ones.
func (l *lines) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	b := l.buf
	l.buf = l.spare[:0]
	l.wait.Stop()
	l.mu.Unlock()
	l.spare = b
	if len(b) == 0 {
		return
	}
	_, err := l.out.Write(b)
	l.mu.Lock()
	l.err, l.last = err, time.Now()
	l.mu.Unlock()
}
