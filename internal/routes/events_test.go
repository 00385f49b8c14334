package routes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
)

// A stream on which nothing happens says every 15 seconds that it is alive: a call's own, and that of a job.
func TestHeartbeat(t *testing.T) {
	const want = ": open\n\n" +
		": still here\n\n" +
		"id: 1\nevent: progress\ndata: {\"progress\":1}\n\n" +
		": still here\n\n: still here\n\n" +
		"id: 2\nevent: result\ndata: {\"n\":1.10}\n\n"
	synctest.Test(t, func(t *testing.T) {
		f := newFixture().withJobs(t, jobs.Options{})
		f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
			time.Sleep(20 * time.Second)
			r.Progress(json.RawMessage(`{"progress":1}`))
			time.Sleep(30 * time.Second)
			return newResult(`{"structuredContent":{"n":1.10}}`), nil
		}
		h := f.handler()
		serve := func(method, path string, header http.Header) *httptest.ResponseRecorder {
			t.Helper()
			rec := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
			req.Header = header
			h.ServeHTTP(rec, req)
			return rec
		}
		if got := serve("POST", "/tools/demo/echo", http.Header{"Accept": {"text/event-stream"}}); got.Body.String() != want || !got.Flushed {
			t.Errorf("the call's stream is %q, flushed %v, want %q", got.Body, got.Flushed, want)
		}
		var j JobInfo
		rec := serve("POST", "/tools/demo/echo", http.Header{"Prefer": {"respond-async"}})
		if err := json.Unmarshal(rec.Body.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		if got := serve("GET", "/jobs/"+j.ID+"/events", nil).Body.String(); got != want {
			t.Errorf("the job's stream is %q, want %q", got, want)
		}
	})
}

// Each event is flushed by itself, so that what stands between can pass it on at once.
func TestEventsAreFlushed(t *testing.T) {
	f := newFixture().withJobs(t, jobs.Options{})
	f.client = reports(closed(), `{"structuredContent":{"n":1.10}}`)
	rec := &flushes{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/tools/demo/echo", nil)
	req.Header.Set("Accept", "text/event-stream")
	f.handler().ServeHTTP(rec, req)
	for block := range strings.SplitAfterSeq(rec.Body.String(), "\n\n") {
		if block != "" && !rec.at[strings.Index(rec.Body.String(), block)+len(block)] {
			t.Errorf("nothing was flushed behind %q", block)
		}
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// flushes notes behind how many bytes a recorder was flushed.
type flushes struct {
	*httptest.ResponseRecorder
	at map[int]bool
}

func (f *flushes) Flush() {
	if f.at == nil {
		f.at = make(map[int]bool)
	}
	f.at[f.Body.Len()] = true
	f.ResponseRecorder.Flush()
}
