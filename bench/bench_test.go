package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The binary of the tests is also the programs that bench starts from itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-be" {
		main()
		return
	}
	os.Exit(m.Run())
}

func buildBridge(t *testing.T) string {
	t.Helper()
	return buildProgram(t, "../cmd/bridge")
}

// buildProgram compiles a program as it is shipped, whatever the tests are compiled with.
func buildProgram(t *testing.T, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

var tiny = plan{
	rounds: 2, few: 1, span: 20 * time.Millisecond, conns: []int{1, 32}, sizes: []int{100 << 10}, large: 1 << 20,
	waiters: 40, tools: 30, servers: 3, reads: 5, stored: 64, profiled: 1,
}

func TestAll(t *testing.T) {
	results := t.TempDir()
	var out bytes.Buffer
	b := bench{plan: tiny, program: buildBridge(t), mcpo: "no-such-mcpo", results: results, out: &out, peers: peers{}}
	// A program of somebody else, that has our tools.
	peer := httptest.NewServer(http.StripPrefix("/x", bare()))
	defer peer.Close()
	if err := b.peers.Set("friend=" + peer.URL + "/x"); err != nil {
		t.Fatal(err)
	}
	if err := b.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	tables := map[string]section{}
	for _, s := range b.sections {
		tables[s.title] = s
	}
	subjects := []string{nameN, nameS, nameB, "bridge, HTTP", "bridge, API key", "bridge, once"}
	if b.redis != "" {
		subjects = append(subjects, "bridge, Redis", "bridge, HTTP, Redis, API key")
	}
	subjects = append(subjects, "friend")
	for _, title := range []string{"Small call (100 B), 1 connection", "Small call (100 B), 32 connections", "100 KB result, 32 connections"} {
		var names []string
		for _, row := range tables[title].rows {
			names = append(names, row[0])
			if n, err := strconv.ParseFloat(strings.ReplaceAll(row[1], ",", ""), 64); err != nil || n <= 0 {
				t.Errorf("%s: %s made %q calls a second", title, row[0], row[1])
			}
			if row[3] == "" || row[4] == "" || row[5] != "" {
				t.Errorf("%s: %s: ratios %q, want two and none to what is not there", title, row[0], row[3:6])
			}
		}
		if d := cmp.Diff(subjects, names); d != "" {
			t.Errorf("%s has other rows (-want +got):\n%s", title, d)
		}
	}
	if made := tables["What a small call is made of, 32 connections"].rows; len(made) < 3 || made[len(made)-1][0] != "all" {
		t.Errorf("a small call is made of %q", made)
	}
	if len(b.sections) < 10 {
		t.Errorf("only %d tables", len(b.sections))
	}
	for _, s := range b.sections {
		for _, row := range s.rows {
			if len(row) != len(s.head) {
				t.Errorf("%s: the row %q has not the columns %q", s.title, row, s.head)
			}
		}
	}
	var verdicts []string
	for _, g := range b.figures.goals(&b.plan) {
		if g.measured == "" {
			t.Errorf("%s was not measured", g.work)
		}
		if g.less {
			verdicts = append(verdicts, g.verdict())
		}
	}
	want := 5 // those that are about more than this run has
	if b.redis != "" {
		want++
	}
	if len(verdicts) != want || slices.Contains(verdicts, "goal met") {
		t.Errorf("verdicts on what was measured with less: %q, want %d that say so", verdicts, want)
	}
	for _, s := range b.figures.aborted {
		if !s.none() {
			t.Errorf("of the calls that were given up, %v is left", s)
		}
	}
	if !strings.Contains(out.String(), "M: mcpo does not start") {
		t.Error("the output does not say that mcpo is not there")
	}
	md, err := os.ReadFile(filepath.Join(results, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| " + nameB + " | ", "| work | measured | floor | goal |", "](results.svg)", "## Growth"} {
		if !bytes.Contains(md, []byte(part)) {
			t.Errorf("results.md lacks %q", part)
		}
	}
	if host, _ := os.Hostname(); len(host) > 3 && bytes.Contains(md, []byte(host)) || bytes.Contains(md, []byte(b.dir)) {
		t.Error("results.md names the machine")
	}
	drawn(t, filepath.Join(results, "results.svg"))
	if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the run is still there: %v", err)
	}
	if left := descendants(os.Getpid()); runtime.GOOS == "linux" && len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// drawn checks that a chart is an XML document with a bar and a line for each median.
func drawn(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the chart is no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if elements["rect"] < 10 || elements["rect"] != elements["line"] || elements["style"] != 1 {
		t.Errorf("the chart has %v", elements)
	}
}

func TestBridgeThatDoesNotStart(t *testing.T) {
	b := bench{plan: tiny, program: "/bin/false", out: io.Discard, only: "start"}
	if err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("run = %v, want an error that says that it ended", err)
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := bench{plan: tiny, program: "/bin/false", out: io.Discard}
	if err := b.run(ctx); err == nil || err.Error() != "calls: interrupted; no results are written" {
		t.Errorf("run = %v, want that it was interrupted", err)
	}
}

func TestNothingToMeasureWith(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := bench{plan: tiny, program: "/bin/false", out: io.Discard, only: "field"}
	if err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), "without mcpo, redis-server") {
		t.Errorf("run = %v, want what is missing", err)
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-be nothing", `cannot be "nothing"`},
		{"-peer friend", "write name=http"},
		{"-peer friend=https://example.com", "write name=http"},
		{"-nonsense", "not defined"},
		{"-be echo -addr 256.0.0.1:1", "256.0.0.1"},
	} {
		err := command(t.Context(), strings.Fields(c.args), func(string) string { return "" }, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("bench %s: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

func TestEcho(t *testing.T) {
	e := newEcho(7)
	for _, c := range []struct{ sent, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\nb"}}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\nb"}]}}`},
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"text","arguments":{"size":5}}}`, `{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"The q"}]}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":""}]}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","id":3,"result":{}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"unknown method"}}`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait"}}`, ""},
	} {
		var out bytes.Buffer
		if err := e.stdio(strings.NewReader(c.sent+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(out.String(), "\n"); got != c.want {
			t.Errorf("the answer to %s is\n%s, want\n%s", c.sent, got, c.want)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(c.sent)))
		if w.Body.String() != c.want {
			t.Errorf("the answer over HTTP to %s is\n%s, want\n%s", c.sent, w.Body, c.want)
		}
	}
	if err := e.stdio(strings.NewReader("{\n"), io.Discard); err == nil {
		t.Error("what is no message is no error")
	}
	if n := strings.Count(string(e.list()), `"inputSchema"`); n != 7 {
		t.Errorf("the list has %d tools, want 7", n)
	}
	for _, r := range []*http.Request{httptest.NewRequest(http.MethodGet, "/mcp", nil), httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{"))} {
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("%s %v is answered with %d", r.Method, r.Body, w.Code)
		}
	}
}

// respond serves one connection with fixed bytes.
func respond(t *testing.T, response string) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ended by its one connection, or Cleanup
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1<<10))
		_, _ = io.WriteString(conn, response)
		_ = conn.Close()
	}()
	return ln.Addr().String()
}

func TestExchange(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, c := range []struct {
		response string
		want     answer
		body     string
	}{
		{"HTTP/1.1 200 OK\r\nETag: \"e\"\r\ncontent-length: 2\r\nArtifact-Ref: mcp~a\r\n\r\nab", answer{200, 2, `"e"`, "mcp~a"}, "ab"},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", answer{status: 404}, ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", answer{status: 200, size: 5}, "abcde"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 307200\r\n\r\n" + long, answer{status: 200, size: 300 << 10}, long},
	} {
		a, body, err := once(t.Context(), get(respond(t, c.response), "/", ""))
		if err != nil || a != c.want || string(body) != c.body {
			t.Errorf("%.80q is %+v with %d bytes, %v; want %+v with %d", c.response, a, len(body), err, c.want, len(c.body))
		}
		r := times(t.Context(), get(respond(t, c.response), "/", ""), 1, 1)
		if (r.failed != nil) != (c.want.status > 399) || r.bytes != c.want.size || r.calls != 1 {
			t.Errorf("%.80q as a load is %+v", c.response, r)
		}
	}
	for _, bad := range []string{"", "HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"} {
		if r := times(t.Context(), get(respond(t, bad), "/", ""), 1, 1); r.failed == nil {
			t.Errorf("%q is no failure", bad)
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Idempotency-Key") }))
	defer srv.Close()
	if r := times(t.Context(), post(srv.Listener.Addr().String(), "/", "Idempotency-Key: "+keyDigits+"\r\n", "{}"), 4, 10); r.failed != nil || r.calls != 40 {
		t.Fatalf("the load failed: %+v", r)
	}
	close(seen)
	all := map[string]bool{}
	for key := range seen {
		all[key] = true
		if len(key) != len(keyDigits) {
			t.Errorf("the key %q has not the length of %q", key, keyDigits)
		}
	}
	if len(all) != 40 {
		t.Errorf("40 calls had %d keys", len(all))
	}
}

func TestSpreads(t *testing.T) {
	id := func(f float64) float64 { return f }
	if got, want := spreadOf([]float64{5, 1, 3}, id), (spread{1, 3, 5}); got != want {
		t.Errorf("the spread of three is %v, want %v", got, want)
	}
	if got, want := spreadOf([]float64{4, 1, 3, 2}, id), (spread{1, 2.5, 4}); got != want {
		t.Errorf("the spread of four is %v, want %v", got, want)
	}
	rate := func(m sample) float64 { return m.rate }
	// The second round was disturbed, and both in it alike.
	if got := ratioOf([]sample{{rate: 10}, {rate: 2}, {rate: 20}}, []sample{{rate: 20}, {rate: 4}, {rate: 40}}, rate); got != .5 {
		t.Errorf("the ratio is %v, want 0.5", got)
	}
	if got := ratioOf([]sample{{rate: 10}}, nil, rate).String(); got != "" {
		t.Errorf("the ratio to nothing is %q", got)
	}
	r := run{latencies: []time.Duration{1, 2, 3, 4}}
	if r.at(.5) != 3 || r.at(.99) != 4 || (&run{}).at(.5) != 0 {
		t.Error("the latencies at 50 and 99 percent are wrong")
	}
}

func TestVerdicts(t *testing.T) {
	measured := func(f figures) []string {
		var vs []string
		for _, g := range f.goals(&whole) {
			vs = append(vs, g.verdict())
		}
		return vs
	}
	best := figures{
		small32: true, n32: .5, s32: 3, m32: 20, small1: true, s1: spread{median: .8}, result100K: true, s100K: 1.5, large: 1, largePeak: 3,
		fieldBytes: 64 << 10, fieldP50: .002, render: .3, served: .9, listens: .1, idle: 40 << 20, aborted: []state{{goroutines: 2}},
	}
	floor := figures{
		small32: true, n32: .35, s32: 2, m32: 12, small1: true, s1: spread{median: 1}, result100K: true, s100K: 1.2, large: 2, largePeak: 5,
		fieldBytes: 256 << 10, fieldP50: .005, render: 1, served: .1, listens: .2, idle: 60 << 20, aborted: []state{{}},
	}
	missed := figures{
		small32: true, n32: .5, s32: 3, m32: 11, small1: true, s1: spread{median: 1.1}, result100K: true, s100K: 1.1, large: 2.1, largePeak: 5.1,
		fieldBytes: 64 << 10, fieldP50: .006, render: 1.1, served: 1, listens: .3, idle: 40 << 20, aborted: []state{{}, {inUse: 1}},
	}
	if d := cmp.Diff(slices.Repeat([]string{"goal met"}, 9), measured(best)); d != "" {
		t.Errorf("the best (-want +got):\n%s", d)
	}
	if d := cmp.Diff(append(slices.Repeat([]string{"floor met"}, 8), "goal met"), measured(floor)); d != "" {
		t.Errorf("the least (-want +got):\n%s", d)
	}
	if d := cmp.Diff(slices.Repeat([]string{"missed"}, 9), measured(missed)); d != "" {
		t.Errorf("too little (-want +got):\n%s", d)
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		number(0): "0.0", number(12.34): "12.3", number(999): "999", number(1234): "1,230", number(1234567): "1,230,000",
		durationText(0): "", durationText(1500): "1.5 µs", durationText(150 * time.Microsecond): "150 µs", durationText(1500 * time.Microsecond): "1.5 ms",
		durationText(150 * time.Millisecond): "150 ms", durationText(1500 * time.Millisecond): "1.50 s",
		bytesText(100): "100 B", bytesText(64 << 10): "64 KB", bytesText(64 << 20): "64 MB",
		ratio(.456).String(): "0.46", ratio(45.6).String(): "46",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
