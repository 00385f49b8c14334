package routes

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A caller that stops reading a large answer is cut off; it does not hold the
// handler, and with it the answer, for ever. Nor does a scraper.
func TestCallerThatStopsReading(t *testing.T) {
	f := newFixture()
	done := make(chan error, 1)
	write := func(w http.ResponseWriter) {
		_, err := w.Write(make([]byte, 32<<20))
		done <- err
	}
	s := newServer(Options{
		Bridge: f.bridge(), WriteTimeout: 200 * time.Millisecond, Loopback: true,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) }),
	})
	for path, h := range map[string]http.Handler{
		"/":        http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { write(newExchange(s, w, r)) }),
		"/metrics": s,
	} {
		srv := httptest.NewServer(h)
		defer srv.Close()
		conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: 32 MiB were written to a caller that does not read", path)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the handler still waits for a caller that does not read", path)
		}
	}
}

func TestUnknownQueryKeys(t *testing.T) {
	f := newFixture()
	for _, q := range []string{"dryrun=1", "dry_run=1&x=", "Tool=x"} {
		w := httptest.NewRecorder()
		f.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/tools/s/t?"+q, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is unknown") {
			t.Errorf("?%s: status %d, %s", q, w.Code, w.Body)
		}
	}
}
