package routes

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
)

// streamer serves one answer by stream at /stream.
func streamer(t *testing.T, o Options, size int64, write func(io.Writer) error) (*fixture, *client) {
	t.Helper()
	f := newFixture()
	f.opts = o
	f.opts.Loopback = true
	s := f.handler().(*server)
	handler := func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		if err := x.stream(r, "text/plain", size, write); err != nil {
			x.fail(r, err)
		}
	}
	s.mux.Get("/stream", handler)
	s.mux.Head("/stream", handler)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return f, &client{t: t, url: srv.URL, http: srv.Client(), addr: srv.Listener.Addr().String()}
}

// pieces writes so many bytes, some at a time, and then fails with err.
func pieces(n, each int, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		for ; n > 0; n -= each {
			if _, err := io.WriteString(w, strings.Repeat("x", min(n, each))); err != nil {
				return err
			}
		}
		return err
	}
}

func TestStreamLengths(t *testing.T) {
	for _, tt := range []struct {
		n, each int
		size    int64
		length  string
	}{
		{0, 1, -1, "0"}, {10, 3, -1, "10"}, {firstPiece, 1000, -1, "65536"}, {firstPiece + 1, 1000, -1, ""}, {1 << 20, 300_000, -1, ""}, {1 << 20, 7000, 1 << 20, "1048576"}, {10, 10, 10, "10"},
	} {
		_, c := streamer(t, Options{}, tt.size, func(w io.Writer) error { return pieces(tt.n, tt.each, nil)(w) })
		r := c.do("GET", "/stream", "")
		r.wantOK(t, strings.Repeat("x", tt.n))
		if got := r.header.Get("Content-Length"); got != tt.length {
			t.Errorf("%d bytes of %d: Content-Length = %q, want %q", tt.n, tt.size, got, tt.length)
		}
		if head := c.do("HEAD", "/stream", ""); head.status != 200 || tt.length != "" && head.header.Get("Content-Length") != tt.length {
			t.Errorf("HEAD of %d bytes = %d, Content-Length %q", tt.n, head.status, head.header.Get("Content-Length"))
		}
	}
}

// A store that fails early is a problem, and one that fails late leaves an answer that does not look whole.
func TestStreamThatFails(t *testing.T) {
	down := &bridge.Error{Kind: bridge.StoreUnavailable, Op: "test", Msg: "The store is down."}
	for _, n := range []int{0, 100, firstPiece} {
		_, c := streamer(t, Options{}, int64(n)+10, pieces(n, 1000, down))
		c.do("GET", "/stream", "").wantProblem(t, 503, bridge.StoreUnavailable)
	}
	_, c := streamer(t, Options{}, -1, pieces(1<<20, 1000, down))
	if r := c.do("HEAD", "/stream", ""); r.status != 503 {
		t.Errorf("HEAD = %d", r.status)
	}
	for _, size := range []int64{-1, 2 << 20} {
		f, c := streamer(t, Options{}, size, pieces(1<<20, 1000, down))
		res, err := c.http.Get(c.url + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("half an answer looks whole: %d bytes", len(b))
		}
		res.Body.Close()
		deadline := time.Now().Add(10 * time.Second)
		for !strings.Contains(f.log.String(), "store-unavailable") {
			if time.Now().After(deadline) {
				t.Fatalf("log = %s", f.log.String())
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// Whoever stops reading is cut off, also when the answer comes in small pieces.
func TestStreamToCallerThatStopsReading(t *testing.T) {
	failed := make(chan error, 1)
	_, c := streamer(t, Options{WriteTimeout: 200 * time.Millisecond}, -1, func(w io.Writer) error {
		err := pieces(64<<20, 10_000, nil)(w)
		failed <- err
		return err
	})
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	select {
	case err := <-failed:
		if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
			t.Errorf("the writing ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the handler still waits for a caller that does not read")
	}
}
