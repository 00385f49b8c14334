// Package telemetry is how the bridge tells operators what it does.
package telemetry

import (
	"io"
	"log/slog"
	"math"
	"os"
	"time"
)

// NewLog returns a logger: JSON by lines, or plain text when w is a terminal.
// Durations are numbers of milliseconds, and their keys say so.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: milliseconds}
	if f, ok := w.(*os.File); ok && terminal(f) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// NewServerLog returns the same for a program that writes a line for every call. Where w
// is a file or a pipe, the lines of calls, whose message is "call", may come ten milliseconds late, so flush must be
// called at the end; only what kills the program at once can lose them.
func NewServerLog(w io.Writer, level slog.Level) (log *slog.Logger, flush func()) {
	f, ok := w.(*os.File)
	if !ok || terminal(f) {
		return NewLog(w, level), func() {}
	}
	out := newLines(f)
	return slog.New(&handler{NewLog(out, level).Handler(), out}), out.flush
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const millisecondsSuffix = "_ms"

func milliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+millisecondsSuffix, inMilliseconds(a.Value.Duration()))
}

func inMilliseconds(d time.Duration) float64 { return math.Round(float64(d.Microseconds())) / 1000 }
