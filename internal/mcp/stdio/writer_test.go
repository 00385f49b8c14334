package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testWriterPipe(t testing.TB, timeout time.Duration) (*writer, *os.File, chan error) {
	t.Helper()
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	broken := make(chan error, 2)
	w, err := newWriter(f, timeout, func(err error) { broken <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close(); _ = r.Close() })
	return w, r, broken
}

func newFrame(text string) *frame { return &frame{buf: new([]byte(text + "\n"))} }

// full fills the pipe with frames until one does not fit; the others queue up behind it.
func full(t *testing.T, w *writer) (sent []*frame) {
	t.Helper()
	for {
		f := newFrame(strings.Repeat("x", 9999))
		if err := w.submit(f, false); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, f)
		w.mu.Lock()
		busy := w.busy
		w.mu.Unlock()
		if busy {
			return sent
		}
	}
}

// A cancellation goes ahead of all that is queued, behind what is half written.
func TestWriterUrgent(t *testing.T) {
	w, r, _ := testWriterPipe(t, time.Minute)
	sent := full(t, w)
	a, b, c, urgent := newFrame("a"), newFrame("b"), newFrame("c"), newFrame("urgent")
	for _, f := range []*frame{a, b, c} {
		if err := w.submit(f, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.submit(urgent, true); err != nil {
		t.Fatal(err)
	}
	if !w.withdraw(b) || w.withdraw(sent[0]) || w.withdraw(sent[len(sent)-1]) {
		t.Error("a queued frame can be withdrawn, one that is written cannot")
	}
	if a.touched.Load() || a.written.Load() != 0 || sent[0].written.Load() == 0 {
		t.Error("touched and written do not say what was written")
	}
	in := bufio.NewReader(r)
	for range sent {
		if l, err := in.ReadString('\n'); err != nil || len(l) != 10_000 {
			t.Fatalf("read %d bytes, %v", len(l), err)
		}
	}
	var got []string
	for range 3 {
		l, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if d := cmp.Diff([]string{"urgent\n", "a\n", "c\n"}, got); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	w.wg.Wait()
	if a.written.Load() == 0 || !c.touched.Load() || b.touched.Load() {
		t.Error("touched and written do not say what was written")
	}
}

// What is queued before it is written goes in one piece, without what was withdrawn meanwhile.
func TestWriterTogether(t *testing.T) {
	w, r, _ := testWriterPipe(t, time.Minute)
	a, b, c, urgent := newFrame("a"), newFrame("b"), newFrame("c"), newFrame("urgent")
	for _, f := range []*frame{a, b, c, urgent} {
		if mine, err := w.enqueue(f, f == urgent); mine != (f == a) || err != nil {
			t.Errorf("enqueue = %v, %v", mine, err)
		}
	}
	if !w.withdraw(b) {
		t.Error("a frame that nobody writes yet cannot be withdrawn")
	}
	w.write()
	buf := make([]byte, 100)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "urgent\na\nc\n" {
		t.Errorf("%q was written in one piece, %v", buf[:n], err)
	}
	if a.written.Load() == 0 || b.touched.Load() || c.written.Load() == 0 {
		t.Error("touched and written do not say what was written")
	}
	// Whoever is to write finds nothing left.
	if mine, err := w.enqueue(b, false); !mine || err != nil || !w.withdraw(b) {
		t.Errorf("enqueue = %v, %v", mine, err)
	}
	w.write()
	if mine, err := w.enqueue(newFrame("d"), false); !mine || err != nil {
		t.Errorf("enqueue = %v, %v, though nobody writes", mine, err)
	}
	closed := make(chan struct{})
	go func() { w.close(); close(closed) }()
	for w.queued() {
		runtime.Gosched()
	}
	select {
	case <-closed:
		t.Error("closed before the last one has written")
	default:
	}
	w.write()
	<-closed
	if n, err := r.Read(buf); err != io.EOF {
		t.Errorf("%q was written after the end, %v", buf[:n], err)
	}
}

// queued reports whether something is queued.
func (w *writer) queued() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

func TestWriterStuck(t *testing.T) {
	w, _, broken := testWriterPipe(t, 50*time.Millisecond)
	sent := full(t, w)
	queued := newFrame("queued")
	_ = w.submit(queued, false)
	if err := <-broken; !errors.Is(err, errStuck) {
		t.Errorf("broken by %v", err)
	}
	last := sent[len(sent)-1]
	if queued.touched.Load() || last.written.Load() != 0 || !last.touched.Load() {
		t.Error("touched and written do not say what was written")
	}
	if err := w.submit(newFrame("later"), false); !errors.Is(err, errStuck) {
		t.Errorf("submit = %v", err)
	}
	if !w.withdraw(queued) {
		t.Error("a frame that was dropped cannot be withdrawn")
	}
}

// A reader that is slow and steady is not stuck.
func TestWriterSlow(t *testing.T) {
	w, r, broken := testWriterPipe(t, time.Second)
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second)) // of a writer that has given up, nothing comes
	big := newFrame(strings.Repeat("x", 400_000))
	if err := w.submit(big, false); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	buf, n := make([]byte, 64<<10), 0
	for n < 400_001 {
		time.Sleep(200 * time.Millisecond)
		m, err := r.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	w.wg.Wait()
	if time.Since(start) < time.Second || len(broken) != 0 || big.written.Load() == 0 {
		t.Errorf("after %v: broken %d times, written at %d", time.Since(start), len(broken), big.written.Load())
	}
}

func TestWriterBroken(t *testing.T) {
	w, r, broken := testWriterPipe(t, time.Minute)
	_ = r.Close()
	f := newFrame("x")
	if err := w.submit(f, false); err != nil {
		t.Errorf("submit = %v", err)
	}
	if err := <-broken; !errors.Is(err, syscall.EPIPE) {
		t.Errorf("broken by %v", err)
	}
	if f.touched.Load() {
		t.Error("nothing was written")
	}
	if err := w.submit(newFrame("y"), false); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("submit = %v", err)
	}
	w.close()
	if len(broken) != 0 {
		t.Error("broken twice")
	}
}

// Closing wakes who waits for the pipe.
func TestWriterClose(t *testing.T) {
	w, _, broken := testWriterPipe(t, time.Hour)
	full(t, w)
	w.close()
	if err := w.submit(newFrame("x"), true); !errors.Is(err, errRefused) {
		t.Errorf("submit = %v", err)
	}
	if len(broken) != 0 {
		t.Errorf("broken by %v", <-broken)
	}
}

// Frames of many writers stay whole, and each writer's in order.
func TestWriterConcurrent(t *testing.T) {
	w, r, _ := testWriterPipe(t, time.Minute)
	const writers, each = 16, 200
	got := make(chan []string)
	go func() {
		var lines []string
		for in := bufio.NewReader(r); len(lines) < writers*each; {
			l, err := in.ReadString('\n')
			if err != nil {
				break
			}
			lines = append(lines, l)
		}
		got <- lines
	}()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				f := &frame{buf: newBuf()}
				*f.buf = append(*f.buf, strings.Repeat(string(rune('a'+i)), 1+(i*j)%3000)+itoa(j)+"\n"...)
				if err := w.submit(f, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := <-got
	next := make([]int, writers)
	for _, l := range lines {
		i := int(l[0] - 'a')
		j := next[i]
		next[i]++
		if want := strings.Repeat(string(rune('a'+i)), 1+(i*j)%3000) + itoa(j) + "\n"; l != want {
			t.Fatalf("got %.60q (%d), want %.60q (%d)", l, len(l), want, len(want))
		}
	}
	if i := slices.IndexFunc(next, func(n int) bool { return n != each }); i >= 0 {
		t.Errorf("writer %d: %d frames came", i, next[i])
	}
}

func TestTail(t *testing.T) {
	tl := newTail(discard, []string{"hunter2-secret", "abc", "-----BEGIN-----\nline-of-a-key\n"})
	in := "plain\n\x1b[31mred\x1b[0m\ttab\r\n\nsecret hunter2-secret abc\nline-of-a-key\nbad \xff\x00\u202e \x1b]0;title\x07 \x1b[\n" +
		strings.Repeat("w", 5000) + "\nlast, without an end"
	tl.read(strings.NewReader(in))
	<-tl.ended
	want := []string{
		"plain", "red tab", "secret [redacted] abc", "[redacted]", `bad \xff\x00\u202e \x1b]0;title\a \x1b[`,
		strings.Repeat("w", lineBytes), "last, without an end",
	}
	if d := cmp.Diff(want, tl.Lines()); d != "" {
		t.Errorf("Lines (-want +got):\n%s", d)
	}
	if got := tl.words(); !strings.HasPrefix(got, "; its last words: plain | red tab | secret") {
		t.Errorf("words = %q", got)
	}

	tl = newTail(discard, nil)
	tl.read(strings.NewReader(strings.Repeat("0123456789é\n", 100) + strings.Repeat("é", 400) + "\n" + strings.Repeat("ü", 400) + "\n" + strings.Repeat("é", 400) + "\n"))
	if n := len(tl.Lines()); n != tailLines {
		t.Errorf("%d lines kept, want %d", n, tailLines)
	}
	if got := tl.words(); len(got) > wordBytes+40 || !strings.HasPrefix(got, "; its last words: …") || bytes.ContainsRune([]byte(got), '\ufffd') {
		t.Errorf("words = %q", got)
	}
	if got := newTail(discard, nil).words(); got != "" {
		t.Errorf("words of the silent = %q", got)
	}
}

func TestLimiter(t *testing.T) {
	l := limiter{perSecond: 2}
	now := time.Unix(100, 0)
	var got []bool
	for range 5 {
		ok, _ := l.allow(now)
		got = append(got, ok)
	}
	if d := cmp.Diff([]bool{true, true, false, false, false}, got); d != "" {
		t.Errorf("allowed (-want +got):\n%s", d)
	}
	if ok, lost := l.allow(now.Add(time.Second)); !ok || lost != 3 {
		t.Errorf("a second later: %v, %d lost", ok, lost)
	}
	if ok, lost := l.allow(now.Add(time.Second)); !ok || lost != 0 {
		t.Errorf("then: %v, %d lost", ok, lost)
	}
}

func TestStderrToLog(t *testing.T) {
	o := fakeOptions(t, "plain")
	var mu sync.Mutex
	var log bytes.Buffer
	o.Log = newTextLog(&lockedWriter{&mu, &log})
	o.Redact = []string{"s3cr3t-token"}
	c := dialFake(t, o)
	do(t, c, request("stderr", map[string]any{"n": 500, "text": "token s3cr3t-token"}))
	eventually(t, "the last line", func() bool { l := c.Stderr(); return len(l) > 0 && strings.HasSuffix(l[len(l)-1], " 499") })
	mu.Lock()
	defer mu.Unlock()
	n := strings.Count(log.String(), "wrote to standard error")
	if n < stderrRate || n > 4*stderrRate {
		t.Errorf("%d lines in the log, want about %d", n, stderrRate)
	}
	if strings.Contains(log.String(), "s3cr3t") || !strings.Contains(log.String(), `server=plain line="token [redacted] 0"`) {
		t.Errorf("log: %.500s", log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
