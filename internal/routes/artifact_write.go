package routes

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

// firstPiece is how much of an answer is held back: a reading that fails within
// it is a problem, and one that ends within it has a length.
const firstPiece = 64 << 10

// stream answers with what write writes, of so many bytes, or an unknown number
// if size is negative. An error before anything was sent is returned; later the answer is cut off.
func (x *exchange) stream(r *http.Request, mediaType string, size int64, write func(io.Writer) error) error {
	x.Header().Set("Content-Type", mediaType)
	w := &streamWriter{x: x, size: size, head: r.Method == http.MethodHead}
	defer w.done()
	if !w.head || size < 0 {
		if err := write(w); err != nil {
			return w.failed(err)
		}
	}
	return w.failed(w.end())
}

// A streamWriter sends what is written to it, from a first piece on.
type streamWriter struct {
	x     *exchange
	size  int64
	head  bool // count only
	count int64
	buf   []byte
	began bool
	gone  error // why the caller can be told no more
}

func (w *streamWriter) Write(b []byte) (int, error) {
	w.count += int64(len(b))
	switch {
	case w.head:
		return len(b), nil
	case w.began:
		return w.send(b)
	case len(w.buf)+len(b) <= firstPiece:
		w.buf = append(w.buf, b...)
		return len(b), nil
	}
	w.begin()
	if _, err := w.send(w.buf); err != nil {
		return 0, err
	}
	return w.send(b)
}

func (w *streamWriter) begin() {
	w.began = true
	if w.size >= 0 {
		w.x.Header().Set("Content-Length", strconv.FormatInt(w.size, 10))
	}
	w.x.WriteHeader(http.StatusOK)
}

// send writes within a deadline, as the exchange does for the pieces of one large write.
func (w *streamWriter) send(b []byte) (n int, err error) {
	_ = http.NewResponseController(w.x.ResponseWriter).SetWriteDeadline(time.Now().Add(w.x.s.WriteTimeout)) // a recorder in a test has none
	n, w.gone = w.x.Write(b)
	return n, w.gone
}

// end sends what is held back.
func (w *streamWriter) end() error {
	if w.began {
		return nil
	}
	if w.size < 0 {
		w.size = w.count
	}
	w.begin()
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.send(w.buf)
	return err
}

func (w *streamWriter) done() {
	if w.began {
		_ = http.NewResponseController(w.x.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// failed says what to make of an error.
func (w *streamWriter) failed(err error) error {
	switch {
	case err == nil, w.gone != nil: // nobody is there to be told
		return nil
	case !w.began:
		return err
	}
	w.x.note(err)
	panic(http.ErrAbortHandler) // what was sent is not whole, and must not look so
}

// foreign keeps a browser from taking bytes of a stranger's for a page of ours.
func (x *exchange) foreign(mediaType string) {
	h := x.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	if t, _, _ := strings.Cut(mediaType, ";"); !inline[t] {
		h.Set("Content-Disposition", "attachment")
	}
}

// writeBytes answers with a stranger's bytes, or the range of them that is asked for.
func (x *exchange) writeBytes(r *http.Request, b *artifacts.Blob) error {
	from, to, ok, err := byteRange(r, x.Header().Get("ETag"), b.Size)
	if err != nil {
		x.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", b.Size))
		return err
	}
	status := http.StatusPartialContent
	if !ok {
		from, to, status = 0, b.Size, http.StatusOK
	}
	data, err := b.Bytes(from, to)
	if err != nil {
		return err
	}
	if ok {
		x.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, b.Size))
	}
	mediaType := plainType(b.MediaType)
	x.foreign(mediaType)
	x.send(r, status, mediaType, data)
	return nil
}

// byteRange returns the one range that a request asks for of so many bytes, and
// whether it does. Several ranges, other units and what cannot be read are no
// request for one (RFC 9110 section 14.2), nor is a range of what is no longer there (section 13.1.5).
func byteRange(r *http.Request, etag string, size int) (from, to int, ok bool, err error) {
	spec, found := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !found || r.Method != http.MethodGet {
		return 0, 0, false, nil
	}
	if cond := r.Header.Get("If-Range"); cond != "" && cond != etag {
		return 0, 0, false, nil
	}
	first, last, found := strings.Cut(strings.TrimSpace(spec), "-")
	if !found {
		return 0, 0, false, nil
	}
	if first == "" { // the last so many bytes
		n, err := parseCount("", last)
		if err != nil {
			return 0, 0, false, nil // it cannot be read
		}
		from, to = size-min(n, size), size
	} else {
		var err1, err2 error
		from, err1 = parseCount("", first)
		to = size
		if last != "" {
			if to, err2 = parseCount("", last); to < size {
				to++
			}
		}
		if errors.Join(err1, err2) != nil || last != "" && to <= from && to < size {
			return 0, 0, false, nil
		}
		to = min(to, size)
	}
	if from >= to {
		return 0, 0, false, &bridge.Error{Kind: RangeNotSatisfiable, Op: "routes.range", Msg: fmt.Sprintf("The range has none of the %d bytes there are.", size)}
	}
	return from, to, true, nil
}
