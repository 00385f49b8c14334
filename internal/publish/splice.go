package publish

import (
	"bytes"
	"crypto/rand"
	"io"
	"sync"

	"mcpbridge/internal/raw"
)

// Splices keep results out of the SDK's hands, which would take them through an
// encoder twice and drop the white space in them: it writes a mark instead, and
// whoever writes its messages puts the result in the mark's place. A mark is
// random, so nothing else that is written can hold it.
type splices struct {
	mu   sync.Mutex
	held map[string][]byte // :: mark, with its quotes -> what it stands for; guarded by mu
}

// hold returns the mark for v, a JSON value.
func (s *splices) hold(v []byte) []byte {
	if bytes.ContainsAny(v, "\r\n") { // a message is one line
		v = bytes.Clone(v)
		raw.Flatten(v)
	}
	mark := `"` + rand.Text() + `"`
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string][]byte{}
	}
	s.held[mark] = v
	return []byte(mark)
}

// write writes b to w with what its marks stand for.
func (s *splices) write(w io.Writer, b []byte) error {
	for {
		mark, v, at := s.take(b)
		if at < 0 {
			_, err := w.Write(b)
			return err
		}
		if _, err := w.Write(b[:at]); err != nil {
			return err
		}
		if _, err := w.Write(v); err != nil {
			return err
		}
		b = b[at+len(mark):]
	}
}

// take returns the first mark in b and what it stands for, which is then no longer held.
func (s *splices) take(b []byte) (mark string, v []byte, at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = -1
	for m := range s.held {
		if i := bytes.Index(b, []byte(m)); i >= 0 && (at < 0 || i < at) {
			mark, at = m, i
		}
	}
	v = s.held[mark]
	delete(s.held, mark)
	return mark, v, at
}
