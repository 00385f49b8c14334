package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"mcpbridge/internal/mcp/rpc"
)

// BenchmarkDo measures small calls on 32 connections against a server that does as little as it can.
func BenchmarkDo(b *testing.B) {
	for name, contentType := range map[string]string{"json": "application/json", "events": "text/event-stream"} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				buf := make([]byte, 4096)
				n, _ := r.Body.Read(buf) // a small frame comes at once
				var id []byte
				for _, c := range buf[len(`{"jsonrpc":"2.0","id":`):n] {
					if c == ',' {
						break
					}
					id = append(id, c)
				}
				w.Header().Set("Content-Type", contentType)
				pre, post := "", ""
				if contentType != "application/json" {
					pre, post = "data: ", "\n\n"
				}
				result := discovered
				if r.Header.Get("Mcp-Method") == "tools/call" {
					result = `{"content":[]}`
				}
				_, _ = w.Write([]byte(pre + `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}` + post))
			}))
			defer s.Close()
			c, err := Dial(b.Context(), Options{URL: s.URL})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(`{"a":1}`), Name: "echo"}
					if _, err := c.Do(b.Context(), r); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	b.Run("bare", func(b *testing.B) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"content":[]}`)) }))
		defer s.Close()
		tr := &http.Transport{MaxIdleConnsPerHost: 64}
		defer tr.CloseIdleConnections()
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				req, _ := http.NewRequest(http.MethodPost, s.URL, http.NoBody) // the URL is good
				resp, err := tr.RoundTrip(req)
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = resp.Body.Read(make([]byte, 100))
				_ = resp.Body.Close()
			}
		})
	})
}
