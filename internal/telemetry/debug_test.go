package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/trace"
	"strings"
	"testing"
)

func startDebug(t *testing.T) (*Debug, string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err := StartDebug(ln, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, "http://" + ln.Addr().String()
}

func fetch(t *testing.T, method, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}

func TestDebug(t *testing.T) {
	d, base := startDebug(t)
	res, b := fetch(t, "GET", base+"/debug/flight")
	if res.StatusCode != 200 || !bytes.HasPrefix(b, []byte("go 1.")) || res.Header.Get("Content-Disposition") == "" {
		t.Errorf("the flight recorder answers %d, %.20q", res.StatusCode, b)
	}
	for path, want := range map[string]string{
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/heap":              "\x1f\x8b",
		"/debug/pprof/symbol":            "num_symbols",
		"/debug/pprof/trace?seconds=0.1": "go 1.", // beside the recorder
		"/debug/pprof/profile?seconds=1": "",
	} {
		if res, b := fetch(t, "GET", base+path); res.StatusCode != 200 || !strings.Contains(string(b), want) || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %.100q", path, res.StatusCode, b)
		}
	}
	for path, want := range map[string]int{"/": 404, "/debug/pprof": 404, "/debug/pprof/none": 404, "/debug/pprof/cmdline": 404} {
		if res, b := fetch(t, "GET", base+path); res.StatusCode != want {
			t.Errorf("%s: %d %.100q", path, res.StatusCode, b)
		}
	}
	if res, _ := fetch(t, "HEAD", base+"/debug/flight"); res.StatusCode != 200 {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	if res, _ := fetch(t, "POST", base+"/debug/flight"); res.StatusCode != 405 {
		t.Errorf("POST: %d", res.StatusCode)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base + "/debug/flight"); err == nil {
		t.Error("it serves after its end")
	}
	if err := d.Close(); err != nil { // once more is harmless
		t.Error(err)
	}
	if err := (*Debug)(nil).Close(); err != nil {
		t.Error(err)
	}
}

// A page cannot look, whatever its name leads to.
func TestDebugIsForPeopleHere(t *testing.T) {
	_, base := startDebug(t)
	port := base[strings.LastIndex(base, ":"):]
	for _, tt := range []struct {
		header []string
		want   int
	}{
		{nil, 200},
		{[]string{"Host", "localhost" + port}, 200},
		{[]string{"Host", "LOCALHOST."}, 200},
		{[]string{"Host", "[::1]" + port}, 200},
		{[]string{"Host", "[::ffff:127.0.0.1]"}, 200},
		{[]string{"Host", "evil.example" + port}, 403},
		{[]string{"Host", "localhost.evil.example"}, 403},
		{[]string{"Host", "127.0.0.1.evil.example"}, 403},
		{[]string{"Host", "10.0.0.1"}, 403},
		{[]string{"Host", "0.0.0.0"}, 403},
		{[]string{"Sec-Fetch-Site", "none"}, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Origin", base}, 200},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
	} {
		if res, _ := fetch(t, "GET", base+"/debug/pprof/", tt.header...); res.StatusCode != tt.want {
			t.Errorf("%q: %d, want %d", tt.header, res.StatusCode, tt.want)
		}
	}
}

// Snapshots are taken one at a time, and none when there is nothing to take.
func TestDebugOneAtATime(t *testing.T) {
	d, base := startDebug(t)
	d.taking.Lock()
	res, b := fetch(t, "GET", base+"/debug/flight")
	d.taking.Unlock()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !strings.Contains(string(b), "another one") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := StartDebug(ln, slog.New(slog.DiscardHandler)); err == nil {
		_ = other.Close()
		t.Error("two record at a time")
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its listener is left open: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/debug/flight", nil))
	if w.Code != 503 || trace.IsEnabled() {
		t.Errorf("after its end: %d %s", w.Code, w.Body)
	}
}

// The end of a profile does not keep the end of the process waiting.
func TestDebugEndsWhatIsFetched(t *testing.T) {
	d, base := startDebug(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/debug/pprof/trace?seconds=600", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req) // it flushes when it has begun
	if err == nil {
		defer res.Body.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the trace came to its end: %v", err)
	}
}

// A listener that breaks is said to have.
func TestDebugListenerBreaks(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := new(logBuffer)
	d, err := StartDebug(ln, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	<-d.served
	if !strings.Contains(log.String(), "no longer served") {
		t.Errorf("logged %q", log)
	}
	_ = d.Close()
}
