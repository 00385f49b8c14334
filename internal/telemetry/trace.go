package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TracingOptions say where spans go.
type TracingOptions struct {
	// URL of the collector, which takes OTLP over HTTP. As with OTEL_EXPORTER_OTLP_ENDPOINT,
	// /v1/traces is added to its path unless it ends with that.
	URL     string
	Version string       // of the bridge
	Log     *slog.Logger // of outages
}

// Tracing records spans and sends them to a collector, in batches and behind the back of
// those who record them: a collector that is slow or down costs spans, never time. What
// the environment says of headers, certificates, sampling, batches and the resource
// (OTEL_EXPORTER_OTLP_…, OTEL_TRACES_SAMPLER, OTEL_BSP_…, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES) counts, as OpenTelemetry's SDK reads it.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *exporter
}

// NewTracing returns what records spans; it must be closed. Nothing is connected yet.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	// These two are global to the process. What they are told may quote the environment,
	// headers with secrets among it, so that only the messages themselves are logged.
	otel.SetLogger(logr.FromSlogHandler(quiet{o.Log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {
		o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "OpenTelemetry refuses a setting, or fails; the environment variables OTEL_… may be wrong")
	}))
	to, err := tracesURL(o.URL)
	if err != nil {
		return nil, err
	}
	otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.String()))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "mcp-bridge"), attribute.String("service.version", o.Version),
			attribute.String("service.instance.id", rand.Text())),
		resource.WithFromEnv()) // which goes before ours
	if err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), otlp.Shutdown(ctx))
	}
	e := &exporter{SpanExporter: otlp, log: o.Log, where: to.Host}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(res))
	return &Tracing{provider: p, exporter: e, tracer: p.Tracer("mcpbridge", trace.WithInstrumentationVersion(o.Version))}, nil
}

// CheckCollector says what is wrong with the URL of a collector.
func CheckCollector(url string) error {
	_, err := tracesURL(url)
	return err
}

// tracesURL returns where batches are posted.
func tracesURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("the address of the collector of traces is not a URL") // which the parser's error would repeat
	case u.RawQuery != "":
		return nil, errors.New("the URL of the collector of traces has a query, which is not sent; OTEL_EXPORTER_OTLP_HEADERS has room for a key")
	}
	const path = "/v1/traces"
	if !strings.HasSuffix(u.Path, path) {
		u = u.JoinPath(path)
	}
	return u, nil
}

// Close sends what there still is to send, until ctx ends, and gives up the rest.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err == nil {
		return nil
	}
	// What hangs is cut; the SDK itself would go on with it.
	_ = t.exporter.Shutdown(context.WithoutCancel(ctx)) // what was lost is counted and logged
	return nil
}

// Spans returns how many spans the collector has got, and how many could not be sent.
func (t *Tracing) Spans() (sent, lost uint64) {
	return t.exporter.sent.Load(), t.exporter.lost.Load()
}

// quiet logs the messages of OpenTelemetry without what belongs to them.
type quiet struct{ log *slog.Logger }

func (q quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (q quiet) WithAttrs([]slog.Attr) slog.Handler           { return q }
func (q quiet) WithGroup(string) slog.Handler                { return q }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	q.log.LogAttrs(ctx, slog.LevelWarn, "OpenTelemetry", slog.String("message", r.Message))
	return nil
}
