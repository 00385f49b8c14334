// Package telemetry is how the bridge tells operators what it does.
package telemetry

import (
	"io"
	"log/slog"
	"math"
	"os"
)

// NewLog returns a logger: JSON by lines, or plain text when w is a terminal.
// Durations are numbers of milliseconds, and their keys say so.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: milliseconds}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(w, o))
		}
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func milliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	ms := math.Round(float64(a.Value.Duration().Microseconds())) / 1000
	return slog.Float64(a.Key+"_ms", ms)
}
