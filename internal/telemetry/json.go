package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// A handler writes the lines that slog's JSON handler writes, to the byte. Those of calls it
// writes itself, in a fifth of the time (BenchmarkLog); anything that they do not have it leaves to
// the other one.
type handler struct {
	slog.Handler
	out *lines
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// call is the message of the lines that may wait for others: there is one for each call.
const call = "call"

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != call {
		defer h.out.flush()
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := append((*buf)[:0], `{"time":"`...)
	b = r.Time.Round(0).AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, r.Level.String()...)
	b = append(b, '"')
	b, ok := appendText(b, "msg", r.Message)
	ok = ok && !r.Time.IsZero()
	r.Attrs(func(a slog.Attr) bool {
		if ok {
			b, ok = appendAttr(b, a)
		}
		return ok
	})
	*buf = b
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	*buf = append(b, "}\n"...)
	_, err := h.out.Write(*buf)
	return err
}

func appendAttr(b []byte, a slog.Attr) ([]byte, bool) {
	switch v := a.Value; v.Kind() {
	case slog.KindString:
		return appendText(b, a.Key, v.String())
	case slog.KindInt64:
		b, ok := appendKey(b, a.Key, "")
		return strconv.AppendInt(b, v.Int64(), 10), ok
	case slog.KindDuration:
		b, ok := appendKey(b, a.Key, millisecondsSuffix)
		return appendMilliseconds(b, v.Duration()), ok
	case slog.KindGroup:
		ok := a.Key == "" // whose members stand for themselves
		for _, m := range v.Group() {
			if ok {
				b, ok = appendAttr(b, m)
			}
		}
		return b, ok
	default:
		return b, false
	}
}

func appendMilliseconds(b []byte, d time.Duration) []byte {
	us := d.Microseconds()
	if us < 0 || us > 1e15 { // which a float64 may not have exactly
		return strconv.AppendFloat(b, inMilliseconds(d), 'f', -1, 64)
	}
	b = strconv.AppendInt(b, us/1000, 10)
	if rest := us % 1000; rest > 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
		b = bytes.TrimRight(b, "0")
	}
	return b
}

func appendKey(b []byte, key, suffix string) ([]byte, bool) {
	b = append(append(append(append(b, `,"`...), key...), suffix...), `":`...)
	return b, plain(key) && key != ""
}

func appendText(b []byte, key, s string) ([]byte, bool) {
	b, ok := appendKey(b, key, "")
	b = append(append(append(b, '"'), s...), '"')
	return b, ok && plain(s)
}

// plain reports whether s stands in JSON as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return prompt{h.Handler, h.out}.WithAttrs(attrs)
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return prompt{h.Handler, h.out}.WithGroup(name)
}

// A prompt handler's lines wait for no others.
type prompt struct {
	slog.Handler
	out *lines
}

// Handle implements [slog.Handler].
func (p prompt) Handle(ctx context.Context, r slog.Record) error {
	defer p.out.flush()
	return p.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (p prompt) WithAttrs(attrs []slog.Attr) slog.Handler {
	return prompt{p.Handler.WithAttrs(attrs), p.out}
}

// WithGroup implements [slog.Handler].
func (p prompt) WithGroup(name string) slog.Handler { return prompt{p.Handler.WithGroup(name), p.out} }
