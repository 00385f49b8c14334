package remote

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

const (
	eventBuffer = 16 << 10
	maxField    = 4 << 10 // of an id; longer ones are ignored, and so the stream is not resumable there
)

// mark may stand at the very beginning of a stream.
const mark = "\ufeff"

// errOver says that an event has more bytes than one may have.
var errOver = errors.New("an event is over the limit")

// An event is one server-sent event.
type event struct {
	name string // empty is "message"
	data []byte // owned by whoever gets the event
	torn bool   // the stream ended in it, or at least before the line that ends it

	// over: the data was over the limit and dropped; id is the JSON-RPC id of the
	// response that was in it, if it was one.
	over bool
	id   string
}

// A cursor is where a stream can be resumed.
type cursor struct {
	last  string        // the id of the last event that had one; empty if it cannot be resumed
	retry time.Duration // how long the server wants us to wait; negative if it did not say
	moved bool          // an event's id has come since this was set to false
}

// An eventReader splits a stream into events as the HTML standard has it
// (section 9.2.6): lines end in LF, CR or CRLF, one space behind the colon goes, data lines
// are joined by LF. Their bytes are kept exactly as they are; an event may be as large as limit.
type eventReader struct {
	r     io.Reader
	limit int64
	skip  bool // drop an event over the limit and go on, rather than end with errOver
	cur   *cursor

	buf      []byte
	from, to int  // what of buf is unread
	afterCR  bool // a line feed that comes now belongs to the line before
	begun    bool
	err      error // what reading ended with
}

// buffers are for streams that end soon: those of calls.
var buffers = sync.Pool{New: func() any { return new([eventBuffer]byte) }}

func newEventReader(r io.Reader, limit int64, cur *cursor) *eventReader {
	return &eventReader{r: r, limit: limit, cur: cur, buf: buffers.Get().(*[eventBuffer]byte)[:]}
}

// release gives the buffer back. Events that were read keep their data.
func (e *eventReader) release() {
	buffers.Put((*[eventBuffer]byte)(e.buf))
	e.buf = nil
}

// next returns the next event that has data. At the stream's end the error is
// io.EOF, after a last event that lacks its end, if there is one. A stream that
// breaks off inside an event loses it; other errors are errOver and those of the reader.
func (e *eventReader) next() (event, error) {
	d := draft{limit: e.limit, skip: e.skip}
	for {
		empty, err := e.line(&d)
		switch {
		case errors.Is(err, io.EOF) && d.lines > 0:
			d.torn = true
			return d.finish(), nil
		case err != nil:
			return event{}, err
		case empty && d.lines > 0:
			return d.finish(), nil
		case empty:
			d.name = ""
		}
	}
}

// line reads one line and reports whether it was empty.
func (e *eventReader) line(d *draft) (empty bool, err error) {
	name, rest, eol, err := e.field()
	if err != nil {
		return false, err
	}
	if eol && len(name) == 0 && rest == nil {
		return true, nil
	}
	data := string(name) == "data"
	if data {
		if d.lines++; d.lines > 1 {
			if err := d.add([]byte{'\n'}); err != nil {
				return false, err
			}
		}
	}
	var value []byte // of a field that is not data
	for {
		if data {
			if err := d.add(rest); err != nil {
				return false, err
			}
		} else if len(value) <= maxField {
			value = append(value, rest...)
		}
		if eol {
			break
		}
		if rest, eol, err = e.piece(); err != nil {
			return false, err
		}
	}
	switch string(name) {
	case "event":
		d.name = string(value)
	case "id":
		if len(value) <= maxField && bytes.IndexByte(value, 0) < 0 {
			e.cur.last, e.cur.moved = string(value), true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.cur.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return false, nil
}

// A draft is an event that is being read.
type draft struct {
	event

	limit int64
	skip  bool
	size  int64
	lines int        // of data
	scan  *idScanner // of data over the limit
}

func (d *draft) add(b []byte) error {
	d.size += int64(len(b))
	if d.scan == nil && d.size > d.limit {
		if !d.skip {
			return errOver
		}
		d.scan = &idScanner{}
		d.scan.feed(d.data)
		d.data, d.over = nil, true
	}
	if d.scan != nil {
		d.scan.feed(b)
		return nil
	}
	d.data = append(d.data, b...)
	return nil
}

func (d *draft) finish() event {
	if d.scan != nil {
		d.id = d.scan.response()
	}
	return d.event
}

// field reads the beginning of a line: the name, and what of the value is at hand,
// without the one space before it. rest is nil if there is no colon.
func (e *eventReader) field() (name, rest []byte, eol bool, err error) {
	for {
		piece, eol, err := e.piece()
		if err != nil {
			return name, nil, false, err
		}
		if before, after, ok := bytes.Cut(piece, []byte{':'}); ok {
			name, rest = append(name, before...), after
			for len(rest) == 0 && !eol {
				if rest, eol, err = e.piece(); err != nil {
					return name, nil, false, err
				}
			}
			if len(rest) > 0 && rest[0] == ' ' {
				rest = rest[1:]
			}
			if rest == nil {
				rest = []byte{}
			}
			return name, rest, eol, nil
		}
		if len(name) <= maxField { // a line this long without a colon is no field of ours
			name = append(name, piece...)
		}
		if eol {
			return name, nil, true, nil
		}
	}
}

// piece returns what is at hand of the current line, and whether its end is behind it.
// It is valid until the next call.
func (e *eventReader) piece() ([]byte, bool, error) {
	for e.from == e.to {
		if e.err != nil {
			return nil, false, e.err
		}
		var n int
		n, e.err = e.r.Read(e.buf)
		for !e.begun && e.err == nil && n < len(mark) { // no event is as short as that
			var more int
			more, e.err = e.r.Read(e.buf[n:])
			n += more
		}
		e.from, e.to = 0, n
		if !e.begun && bytes.HasPrefix(e.buf[:n], []byte(mark)) {
			e.from = len(mark)
		}
		e.begun = true
		if e.afterCR && e.from < e.to {
			e.afterCR = false
			if e.buf[e.from] == '\n' {
				e.from++
			}
		}
	}
	b := e.buf[e.from:e.to]
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		i = len(b)
	}
	if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
		i = j
	}
	if i == len(b) {
		e.from = e.to
		return b, false, nil
	}
	e.from += i + 1
	if b[i] == '\r' {
		if e.from == e.to {
			e.afterCR = true
		} else if e.buf[e.from] == '\n' {
			e.from++
		}
	}
	return b[:i], true, nil
}
