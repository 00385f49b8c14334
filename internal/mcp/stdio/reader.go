package stdio

import (
	"bytes"
	"io"
)

const (
	readBytes = 32 << 10 // read at once, at first
	keptBytes = 2 << 20  // what the buffer for ordinary frames may grow to
)

// A reader splits a server's output into lines.
type reader struct {
	in    io.Reader
	limit int // bytes of one line that are kept

	// line gets each line, without its line feed. It may keep the bytes if
	// own is set, else they are valid during the call only.
	line func(b []byte, own bool)
	// dropped gets what was found out about a line that was not kept, at its end: it is over
	// the limit, or no frame.
	dropped func(s *skim)
}

// run reads until the input ends. Half a line at its end is no line.
func (r *reader) run() error {
	base := make([]byte, 0, readBytes) // kept for ordinary lines
	buf := base                        // holds the line that is being read; base, or a large one of its own
	for {
		if len(buf) == cap(buf) {
			if len(buf) > r.limit || !mayBeObject(buf) {
				rest, err := r.drop(buf, base)
				if err != nil {
					return err
				}
				buf = r.split(rest, 0, &base)
				continue
			}
			buf = r.grow(buf)
			if cap(buf) <= keptBytes {
				base = buf
			}
		}
		n, err := r.in.Read(buf[len(buf):cap(buf)])
		if n > 0 {
			searched := len(buf)
			buf = r.split(buf[:searched+n], searched, &base)
		}
		if err != nil {
			return err
		}
	}
}

// split hands on the whole lines in buf, whose first searched bytes hold no line feed,
// and returns what is left in a buffer to read on into.
func (r *reader) split(buf []byte, searched int, base *[]byte) []byte {
	own := cap(buf) > keptBytes
	from := 0
	for {
		i := bytes.IndexByte(buf[searched:], '\n')
		if i < 0 {
			break
		}
		end := searched + i
		if line := buf[from:end]; len(line) > r.limit {
			s := &skim{}
			s.feed(line)
			r.dropped(s)
		} else {
			r.line(line, own && from == 0)
		}
		from, searched = end+1, end+1
	}
	if from == 0 {
		return buf
	}
	// A large buffer may be the receiver's now.
	if own {
		return append((*base)[:0], buf[from:]...)
	}
	return buf[:copy(buf, buf[from:])]
}

// grow returns a larger buffer with the same bytes. Ordinary ones double and stay; a large
// one is used once, so it grows in few steps, none far beyond the limit, and pages that
// nothing is read into cost nothing.
func (r *reader) grow(buf []byte) []byte {
	size := 2 * cap(buf)
	if size > 2*keptBytes {
		if size *= 2; size > r.limit/2 {
			size = max(size/2, r.limit+1)
		}
	}
	return append(make([]byte, 0, size), buf...)
}

// drop reads on to the end of a line of which held is the beginning, keeping nothing of it. It returns
// what came behind it, in scratch.
func (r *reader) drop(held, scratch []byte) ([]byte, error) {
	s := &skim{}
	s.feed(held)
	scratch = scratch[:cap(scratch)]
	for {
		n, err := r.in.Read(scratch)
		if i := bytes.IndexByte(scratch[:n], '\n'); i >= 0 {
			s.feed(scratch[:i])
			r.dropped(s)
			return scratch[:copy(scratch, scratch[i+1:n])], nil
		}
		s.feed(scratch[:n])
		if err != nil {
			return nil, err
		}
	}
}

// mayBeObject reports whether a line that begins with b can be a frame: a flood
// of something else is not worth keeping.
func mayBeObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r")
	return len(b) > 0 && b[0] == '{'
}
