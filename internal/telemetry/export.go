package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// An exporter sends batches of spans, and logs when that begins to fail and when it works again.
type exporter struct {
	sdktrace.SpanExporter
	log   *slog.Logger
	where string // the collector's host

	sent, lost atomic.Uint64

	// Of the outage, if there is one. The SDK sends one batch at a time.
	down    bool
	since   time.Time
	already uint64 // lost before it
}

// ExportSpans implements [sdktrace.SpanExporter]. It reports no error, since the SDK would only log it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	began := time.Now()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil && e.down:
		e.down = false
		e.log.LogAttrs(ctx, slog.LevelInfo, "traces are sent again", slog.String("collector", e.where),
			slog.Duration("outage", time.Since(e.since)), slog.Uint64("lost", e.lost.Load()-e.already))
	case err != nil && !e.down:
		e.down, e.since, e.already = true, began, e.lost.Load()
		e.log.LogAttrs(ctx, slog.LevelWarn, "traces cannot be sent; spans are lost until they can", slog.String("collector", e.where), slog.String("error", why(err)))
	}
	if err != nil {
		e.lost.Add(uint64(len(spans)))
	} else {
		e.sent.Add(uint64(len(spans)))
	}
	return nil
}

// why is what a log line says of a batch that could not be sent: not what the collector
// answered, which may be anything, also what it was sent.
func why(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	text, _, _ := strings.Cut(err.Error(), "body: ")
	return clip(strings.Trim(text, " :("), 300)
}
