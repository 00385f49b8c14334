// Package otlptest is a collector of OpenTelemetry traces, for tests.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is one that the collector got.
type Span struct {
	Name, Kind        string // the kind as "SERVER"
	Trace, ID, Parent string // in hex; no parent is ""
	State             string
	Links             []string // the spans that it points to
	Failed            bool
	Text              string // of its status
	Attrs             map[string]string
	Resource          map[string]string
	Duration          time.Duration
}

// A Collector takes OTLP over HTTP at its URL.
type Collector struct {
	URL string

	mu     sync.Mutex
	spans  []Span
	header http.Header
	path   string
	more   chan struct{} // closed and replaced with each batch
	status int           // of the answers; zero is 200
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	c := &Collector{more: make(chan struct{})}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

// Answer makes the collector answer this status from here on, and keep nothing unless it is 200.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// ServeHTTP takes one batch.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	var batch collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprintf("this is no batch: %v", err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 && c.status != http.StatusOK {
		http.Error(w, "not now", c.status)
		return
	}
	for _, rs := range batch.GetResourceSpans() {
		of := attributes(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				c.spans = append(c.spans, span(s, of))
			}
		}
	}
	c.header, c.path = r.Header.Clone(), r.URL.Path
	close(c.more)
	c.more = make(chan struct{})
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func span(s *trace.Span, resource map[string]string) Span {
	out := Span{
		Name: s.GetName(), Kind: s.GetKind().String()[len("SPAN_KIND_"):],
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		State: s.GetTraceState(), Failed: s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR, Text: s.GetStatus().GetMessage(),
		Attrs: attributes(s.GetAttributes()), Resource: resource,
		Duration: time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()),
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
	}
	return out
}

func attributes(all []*common.KeyValue) map[string]string {
	m := make(map[string]string, len(all))
	for _, kv := range all {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.GetKey()] = fmt.Sprint(v.IntValue)
		default:
			m[kv.GetKey()] = fmt.Sprint(v)
		}
	}
	return m
}

// Spans returns what has come so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Got returns the headers and the path of the last batch.
func (c *Collector) Got() (http.Header, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header, c.path
}

// Await returns the spans as soon as they include all of those names, and fails the test if they never do.
func (c *Collector) Await(t testing.TB, names ...string) []Span {
	t.Helper()
	enough := time.After(time.Minute)
	for {
		c.mu.Lock()
		spans, more := slices.Clone(c.spans), c.more
		c.mu.Unlock()
		if !slices.ContainsFunc(names, func(name string) bool { return Find(spans, name) == nil }) {
			return spans
		}
		select {
		case <-more:
		case <-enough:
			t.Fatalf("of the spans %q there are only %+v", names, spans)
		}
	}
}

// Find returns the last span of that name, or nil.
func Find(spans []Span, name string) *Span {
	for i := range slices.Backward(spans) {
		if spans[i].Name == name {
			return &spans[i]
		}
	}
	return nil
}
