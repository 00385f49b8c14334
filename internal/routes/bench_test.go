package routes

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

// sink is a response writer that keeps nothing.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

// BenchmarkCall is a call through the whole handler, with a client that answers at once.
func BenchmarkCall(b *testing.B) {
	f := newFixture()
	s := newToolServer("demo")
	s.Tools = append(s.Tools, newTool("demo", "add", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`))
	f.snap = bridge.NewSnapshot(1, true, []*bridge.Server{s})
	res := newResult(`{"content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}`)
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return res, nil }
	f.log.discard = true
	h := f.handler()
	const body = `{"a":2,"b":3}`
	b.Run("handler", func(b *testing.B) {
		r := httptest.NewRequest("POST", "http://localhost/tools/demo/add", nil)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(body))
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(strings.NewReader(body))
			h.ServeHTTP(sink{http.Header{}}, r)
		}
	})
	b.Run("loopback", func(b *testing.B) {
		srv := httptest.NewServer(h)
		defer srv.Close()
		c := srv.Client()
		b.ReportAllocs()
		for b.Loop() {
			res, err := c.Post(srv.URL+"/tools/demo/add", "application/json", strings.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				b.Fatal(err)
			}
			res.Body.Close()
		}
	})
}

func BenchmarkList(b *testing.B) {
	s := newToolServer("demo")
	for range 100 {
		s.Tools = append(s.Tools, newTool("demo", "t"+strings.Repeat("x", len(s.Tools)), `{"type":"object","properties":{"a":{"type":"number"}}}`))
	}
	h := newFixture(s).handler()
	r := httptest.NewRequest("GET", "http://localhost/tools", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(sink{http.Header{}}, r)
	}
}
