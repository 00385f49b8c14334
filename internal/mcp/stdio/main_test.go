package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// The test binary is also the hidden modes, and the servers that the tests start.
func TestMain(m *testing.M) {
	Main()
	if mode := os.Getenv("STDIO_FAKE"); mode != "" {
		fake(mode)
		exit(0)
	}
	code := m.Run()
	if err := supervisor().Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

// leaks reports what the tests left: goroutines and child processes.
func leaks() int {
	for range 100 {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		// This one, and the one that the standard library starts for signals and keeps.
		if bytes.Count(buf, []byte("\n\n"))-bytes.Count(buf, []byte("os/signal.loop")) == 0 && len(children()) == 0 {
			return 0
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "left behind: processes %v, goroutines:\n", children())
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	return 1
}

// children returns the numbers of our own child processes, zombies among them.
func children() []int {
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for f := range strings.FieldsSeq(string(b)) {
			n, _ := strconv.Atoi(f)
			pids = append(pids, n)
		}
	}
	return pids
}

// tagged returns the numbers of all processes with tag in their arguments.
func tagged(t testing.TB, tag string) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err == nil && bytes.Contains(b, []byte(tag)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits for something that other processes do, which no event tells of.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// tag is text that no other process has in its arguments.
func tag() string {
	tagMu.Lock()
	defer tagMu.Unlock()
	tags++
	return fmt.Sprintf("1000.%d%03d", os.Getpid(), tags)
}

var (
	tagMu sync.Mutex
	tags  int

	supervisor = sync.OnceValue(func() *Supervisor { return NewSupervisor(nil) })
)

// fakeOptions start this test binary as a server that misbehaves in this mode.
func fakeOptions(t testing.TB, mode string) Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Command: exe, Label: mode, Env: []string{"STDIO_FAKE=" + mode}, Supervisor: supervisor(),
		Options: rpc.Options{Handshake: 15 * time.Second, Log: slog.New(slog.NewTextHandler(testWriter(t), nil))},
	}
}

// testWriter is t.Output, but silent once the test is over.
func testWriter(t testing.TB) io.Writer {
	w := &lastWriter{w: t.Output()}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.w = io.Discard
	})
	return w
}

type lastWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lastWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// dialFake dials, and closes at the test's end.
func dialFake(t testing.TB, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// request is a call of one of the fake's tools.
func request(tool string, args any) *rpc.Request {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	if args == nil {
		b = []byte("{}")
	}
	return &rpc.Request{Method: "tools/call", Name: tool, Params: fmt.Appendf(nil, `"name":%q,"arguments":`, tool), Args: b}
}

func do(t testing.TB, c *Conn, r *rpc.Request) string {
	t.Helper()
	b, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return string(b)
}

// failure is the reason of an error that must be a Failure.
func failure(t testing.TB, err error) *rpc.Failure {
	t.Helper()
	f, ok := errors.AsType[*rpc.Failure](err)
	if !ok {
		t.Fatalf("got error %v (%T), want a Failure", err, err)
	}
	return f
}

// received are the frames that the fake has read, without the handshake.
func received(t testing.TB, c *Conn) []string {
	t.Helper()
	var lines []string
	if err := json.Unmarshal([]byte(do(t, c, request("received", nil))), &lines); err != nil {
		t.Fatal(err)
	}
	return lines
}

// waitFrames waits until the fake has read n frames, and returns them.
func waitFrames(t testing.TB, c *Conn, n int) (lines []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d frames at the server", n), func() bool {
		lines = slices.DeleteFunc(received(t, c), func(s string) bool { return strings.Contains(s, `"name":"received"`) })
		return len(lines) >= n
	})
	return lines
}

// background calls in a goroutine of its own.
func background(t testing.TB, ctx context.Context, c *Conn, r *rpc.Request) <-chan answer { //nolint:revive // t comes first in tests
	t.Helper()
	ch := make(chan answer, 1)
	go func() {
		b, err := c.Do(ctx, r)
		ch <- answer{b, err}
	}()
	return ch
}

func sh(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func itoa(n int) string { return strconv.Itoa(n) }

// A countHandler counts the records with a message.
type countHandler struct {
	slog.Handler
	msg string
	n   *int
}

func (h countHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.msg {
		*h.n++
	}
	return h.Handler.Handle(ctx, r)
}

func (h countHandler) WithAttrs(a []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(a)
	return h
}

// countStarts counts the processes that a Dial with o starts.
func countStarts(o *Options) *int {
	n := new(1)
	o.Log = slog.New(countHandler{o.Log.Handler(), "the server refused initialize; it is started again and asked by server/discover", n})
	return n
}

var discard = slog.New(slog.DiscardHandler)

func newTextLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
