package stdio

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	batchBytes = 64 << 10 // frames written in one go
	ownBatches = 4        // that a caller writes for others before a goroutine takes over
	poolBytes  = 64 << 10 // larger frame buffers are not kept
)

var (
	errStuck   = errors.New("it stopped reading its input")
	errRefused = errors.New("the connection is ending")
)

// A frame is one message on its way to the server, with its line feed.
type frame struct {
	buf     *[]byte
	taken   bool         // it is being written or was; guarded by the writer's lock
	touched atomic.Bool  // some of it was written
	written atomic.Int64 // when all of it was (see sinceStart), or 0
}

var frames = sync.Pool{New: func() any { return new([]byte) }}

func newBuf() *[]byte {
	b := frames.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

func (f *frame) free() {
	if f.buf != nil && cap(*f.buf) <= poolBytes {
		frames.Put(f.buf)
	}
	f.buf = nil
}

// A writer puts frames on a server's input. Nobody waits in it: a caller writes
// its own frame, and those that queue up meanwhile, as long as the pipe takes
// them at once; when it does not, a goroutine waits for the pipe, as long as its deadline allows.
type writer struct {
	file    *os.File
	conn    syscall.RawConn
	timeout time.Duration
	broken  func(error) // called once when writing fails, without the lock

	mu     sync.Mutex
	err    error // why nothing is taken any more
	busy   bool  // somebody writes, and will look at the queues when done
	urgent []*frame
	queue  []*frame
	wg     sync.WaitGroup // who writes, and the goroutine that waits for the pipe

	// The fields below belong to whoever writes.
	batch   []*frame
	scratch []byte
	try     func(fd uintptr) bool // writes tryBuf once, without waiting
	tryBuf  []byte
	tryN    int
	tryErr  error
}

func newWriter(f *os.File, timeout time.Duration, broken func(error)) (*writer, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &writer{file: f, conn: conn, timeout: timeout, broken: broken}
	w.try = func(fd uintptr) bool {
		for {
			if w.tryN, w.tryErr = unix.Write(int(fd), w.tryBuf); !errors.Is(w.tryErr, unix.EINTR) {
				return true
			}
		}
	}
	return w, nil
}

// submit takes a frame to be written, ahead of all queued ones if it is urgent. An
// error means that none of it was or will be written.
func (w *writer) submit(f *frame, urgent bool) error {
	mine, err := w.enqueue(f, urgent)
	if mine {
		w.write()
	}
	return err
}

// enqueue is the first half of submit. Whoever is told that it is mine must call write, without
// which nobody else writes, be it urgent or not.
func (w *writer) enqueue(f *frame, urgent bool) (mine bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false, w.err
	}
	if urgent {
		w.urgent = append(w.urgent, f)
	} else {
		w.queue = append(w.queue, f)
	}
	if mine = !w.busy; mine {
		w.busy = true
		w.wg.Add(1)
	}
	return mine, nil
}

// write is the second half of submit.
func (w *writer) write() {
	defer w.wg.Done()
	for range ownBatches {
		if !w.next() {
			return
		}
		data := w.join()
		n, err := w.tryWrite(data)
		w.mark(n)
		if err != nil {
			w.fail(err)
			return // whoever waits for the answer learns it from the connection's end
		}
		if n < len(data) {
			w.wg.Go(func() { w.drain(data, n) })
			return
		}
	}
	if w.next() {
		w.wg.Go(func() { w.drain(w.join(), 0) })
	}
}

// withdraw takes back a frame of which nothing was written, and reports whether
// it could.
func (w *writer) withdraw(f *frame) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.taken {
		return false
	}
	// It is in the queue, or was dropped with it.
	for i, g := range w.queue {
		if g == f {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			break
		}
	}
	return true
}

// refuse drops what is queued and takes nothing any more.
func (w *writer) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.queue, w.urgent = nil, nil
}

// close closes the pipe and waits until nobody writes to it.
func (w *writer) close() {
	w.refuse(errRefused)
	_ = w.file.Close()
	w.wg.Wait()
}

// tryWrite writes what the pipe takes without waiting.
func (w *writer) tryWrite(b []byte) (int, error) {
	w.tryBuf, w.tryN, w.tryErr = b, 0, nil
	err := w.conn.Write(w.try)
	w.tryBuf = nil
	if err == nil && !errors.Is(w.tryErr, unix.EAGAIN) {
		err = w.tryErr
	}
	return max(w.tryN, 0), err
}

// drain writes the batch, of which n bytes are written, and all that is queued, waiting for
// the pipe. It ends when all is written, the pipe fails or is closed, or the deadline is over.
func (w *writer) drain(data []byte, n int) {
	for {
		for n < len(data) {
			// Each piece has its own deadline: a slow reader is not a dead one.
			_ = w.file.SetWriteDeadline(time.Now().Add(w.timeout))
			m, err := w.file.Write(data[n:min(len(data), n+batchBytes)])
			n += m
			w.mark(n)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = errStuck
			}
			if err != nil {
				w.fail(err)
				return
			}
		}
		_ = w.file.SetWriteDeadline(time.Time{})
		if !w.next() {
			return
		}
		data, n = w.join(), 0
	}
}

// next makes the next batch of what is queued. Without any, it reports false, and the
// caller is no longer the one who writes.
func (w *writer) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.batch {
		f.free()
	}
	w.batch = w.batch[:0]
	size := 0
	for _, q := range []*[]*frame{&w.urgent, &w.queue} {
		k := 0
		for _, f := range *q {
			if size += len(*f.buf); size > batchBytes && len(w.batch) > 0 {
				break
			}
			f.taken = true
			w.batch = append(w.batch, f)
			k++
		}
		rest := copy(*q, (*q)[k:])
		clear((*q)[rest:])
		*q = (*q)[:rest]
		if size > batchBytes {
			break
		}
	}
	w.busy = len(w.batch) > 0
	return w.busy
}

// join returns the bytes of the batch.
func (w *writer) join() []byte {
	if len(w.batch) == 1 {
		return *w.batch[0].buf
	}
	w.scratch = w.scratch[:0]
	for _, f := range w.batch {
		w.scratch = append(w.scratch, *f.buf...)
	}
	return w.scratch
}

// mark notes what became of the batch's frames when n bytes of it are written.
func (w *writer) mark(n int) {
	now := sinceStart()
	for _, f := range w.batch {
		if n <= 0 {
			return
		}
		f.touched.Store(true)
		if n -= len(*f.buf); n >= 0 && f.written.Load() == 0 {
			f.written.Store(now)
		}
	}
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	first := w.err == nil
	if first {
		w.err = err
	}
	w.busy, w.queue, w.urgent = false, nil, nil
	w.mu.Unlock()
	if first {
		w.broken(err)
	}
}

var epoch = time.Now()

// sinceStart is the time since the program's start, in nanoseconds; never 0.
func sinceStart() int64 { return max(1, int64(time.Since(epoch))) }
