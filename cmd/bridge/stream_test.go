package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcptest"
)

// A pageStep is a request of a page: to begin with, or when an event has come.
type pageStep struct {
	Event   string            `json:"event,omitempty"`
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// A pageStream is what a page saw of a stream.
type pageStream struct {
	Status int
	Type   string
	Events []struct{ Type, Data string }
	Again  int
}

// stream has a page read a stream.
func stream(t *testing.T, page string, call pageStep, then ...pageStep) (s pageStream) {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "../../testdata/npm/browser/stream.mjs")
	cmd.Stdin = bytes.NewReader(mustJSON(map[string]any{"chromium": browser, "page": page, "call": call, "then": then}))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the browser: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("the browser's report %q: %v", out, err)
	}
	return s
}

// A page of another origin follows a call while it runs: it lets the tool go on when it has seen
// its progress, and answers its question, neither of which it could do at the end.
func TestStreamInBrowser(t *testing.T) {
	page := site(t)
	p := start(t, asking(t), map[string]any{"cors": map[string]any{"origins": []string{page}}})
	p.ready()
	call := func(event, path, body string) pageStep {
		h := map[string]string{"Content-Type": "application/json"}
		if event == "" {
			h["Accept"] = "text/event-stream"
		}
		return pageStep{event, p.base + path, "POST", h, body}
	}
	types := func(s pageStream) (all []string) {
		for _, e := range s.Events {
			all = append(all, e.Type)
		}
		return all
	}
	for _, handle := range []string{"http", "modern", "pipe"} {
		work := stream(t, page+"/", call("", "/tools/"+handle+"/work", `{"steps":2,"seconds":0.1,"wait":true}`), call("progress", "/tools/"+handle+"/release", `{}`))
		if work.Status != 200 || work.Type != "text/event-stream" || work.Again != 200 {
			t.Errorf("%s: %+v", handle, work)
		}
		all := types(work)
		if len(all) < 2 || all[0] != "progress" || all[1] != "then progress" || all[len(all)-1] != "result" {
			t.Errorf("%s: the page saw %q", handle, all)
		}
		last := work.Events[len(work.Events)-1]
		if last.Data != `{"content":[{"type":"text","text":"2 steps done"}]}` {
			t.Errorf("%s: result = %s", handle, last.Data)
		}
		logs := 0
		for _, e := range work.Events {
			if e.Type == "log" {
				logs++
			}
		}
		if want := map[string]int{"http": 2, "modern": 2}[handle]; logs != want { // on a pipe nothing ties them to the call
			t.Errorf("%s: %d log messages, want %d", handle, logs, want)
		}
		ask := stream(t, page+"/", call("", "/tools/"+handle+"/ask", `{}`), call("input", "/jobs/{job}/input", `{"action":"accept","content":{"name":"Ada"}}`))
		if d := cmp.Diff([]string{"input", "then input", "artifact", "result"}, types(ask)); d != "" {
			t.Errorf("%s: the page saw (-want +got):\n%s", handle, d)
		}
	}
}

// curl -N shows each event as it happens, and the connection is good for another request.
func TestStreamWithCurl(t *testing.T) {
	p := start(t, map[string]server{"modern": {"url": mcptest.Start(t, mcptest.HTTPAsks, "stateless").URL}}, nil)
	p.ready()
	cmd := exec.CommandContext(t.Context(), "curl", "-N", "-s", "-v", "-X", "POST", p.base+"/tools/modern/work", "-H", "Accept: text/event-stream", "-H", "Content-Type: application/json",
		"-d", `{"steps":3,"seconds":0.1,"wait":true}`, "--next", "-s", p.base+"/healthz")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		typ, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		if seen = append(seen, typ); len(seen) == 1 {
			p.text("modern", "release", `{}`) // without which it never ends
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("curl: %v\n%s", err, stderr.Bytes())
	}
	want := []string{"progress", "log", "progress", "log", "progress", "log", "artifact", "result"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	for _, want := range []string{"X-Accel-Buffering: no", "Cache-Control: no-store", "Content-Type: text/event-stream"} {
		if !strings.Contains(strings.ToLower(stderr.String()), strings.ToLower(want)) {
			t.Errorf("no header %s:\n%s", want, stderr.Bytes())
		}
	}
	if !strings.Contains(stderr.String(), "Re-using existing") && !strings.Contains(stderr.String(), "Reusing existing") {
		t.Errorf("the connection was not used again:\n%s", stderr.Bytes())
	}
}

// A reader that leaves in the middle of a stream ends the call, and its server is told.
func TestStreamIsLeft(t *testing.T) {
	p := start(t, asking(t), nil)
	p.ready()
	for _, handle := range []string{"http", "modern", "pipe"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", p.base+"/tools/"+handle+"/hang", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != ": open\n" { // before there is any event
			t.Errorf("the stream begins with %q, %v", line, err)
		}
		p.text(handle, "hung", `{"running":1}`)
		cancel()
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("the stream ended")
		}
		res.Body.Close()
		if got := p.text(handle, "hung", `{"ended":1}`); got != "1 ended, 0 running" {
			t.Errorf("%s: %s", handle, got)
		}
	}
}

// The stream of a job can be followed from its beginning, or from any event on, as often as one likes.
func TestJobIsFollowedAgain(t *testing.T) {
	p := start(t, map[string]server{"modern": {"url": mcptest.Start(t, mcptest.HTTPAsks, "stateless").URL}}, nil)
	p.ready()
	j := p.async("modern", "work", `{"steps":3,"seconds":0.05}`)
	p.job(j.ID, "done")
	whole := p.get("/jobs/" + j.ID + "/events").body
	if n := bytes.Count(whole, []byte("event: progress")); n != 3 {
		t.Errorf("%d progress events in %s", n, whole)
	}
	for after := 1; after <= 3; after++ {
		rest := p.do("GET", "/jobs/"+j.ID+"/events", "", "Last-Event-ID", fmt.Sprint(after)).body
		if i := bytes.Index(whole, fmt.Appendf(nil, "id: %d\n", after+1)); i < 0 || !bytes.HasSuffix(rest, whole[i:]) || bytes.Contains(rest, fmt.Appendf(nil, "id: %d\n", after)) {
			t.Errorf("after %d: %s", after, rest)
		}
	}
}

// A stream on which nothing happens says that it is alive, before what stands between loses patience.
func TestStreamIsAlive(t *testing.T) {
	p := start(t, map[string]server{"modern": {"url": mcptest.Start(t, mcptest.HTTPAsks, "stateless").URL}}, nil)
	p.ready()
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.base+"/tools/modern/work", strings.NewReader(`{"steps":1,"seconds":0,"wait":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var seen []string
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, ":") || strings.HasPrefix(line, "event: ") {
			seen = append(seen, line)
		}
		if line == ": still here" {
			p.text("modern", "release", `{}`) // without which it never ends
		}
	}
	if d := cmp.Diff([]string{": open", "event: progress", "event: log", ": still here", "event: artifact", "event: result"}, seen); d != "" {
		t.Errorf("the stream (-want +got):\n%s", d)
	}
}
