package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDurationsAreMilliseconds(t *testing.T) {
	var b bytes.Buffer
	log := NewLog(&b, slog.LevelInfo)
	log.Debug("not shown")
	log.Info("shown", "took", 1500*time.Microsecond+499*time.Nanosecond, "n", 3)
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes())
	}
	if line["took_ms"] != 1.5 || line["n"] != 3.0 || line["took"] != nil || line["msg"] != "shown" {
		t.Errorf("line = %v", line)
	}
}

// TestHandlerWritesWhatSlogWrites gives both handlers records of all kinds.
func TestHandlerWritesWhatSlogWrites(t *testing.T) {
	now := time.Date(2026, 11, 30, 19, 0, 0, 123456000, time.UTC)
	texts := []string{"", "call", `with "quotes"`, "a\\b", "line\nfeed", "tab\t", "<b>&", "caf\u00e9", "\x00", "\xff", "\u2028", "~ !#$%'()*+,-./:;=?@[]^_`{|}"}
	var attrs []slog.Attr
	for i, s := range texts {
		attrs = append(attrs, slog.String(fmt.Sprintf("s%d", i), s), slog.String(s, "value"))
	}
	for _, d := range []time.Duration{0, 1, 499, 500, 999, 1000, 1500, 1234567, 10 * time.Millisecond, 10010 * time.Microsecond, 100001 * time.Microsecond, 1e18 - 1, 1e18, 1e18 + 123456, time.Second, time.Hour * 1e6, -time.Millisecond, math.MaxInt64, math.MinInt64} {
		attrs = append(attrs, slog.Duration("took", d))
	}
	attrs = append(attrs, slog.Int("n", -5), slog.Int64("n", math.MaxInt64), slog.Uint64("u", math.MaxUint64), slog.Bool("b", true), slog.Float64("f", 1e-9),
		slog.Time("at", now), slog.Any("any", map[string]int{"a": 1}), slog.Any("none", nil), slog.Any("err", io.EOF), slog.Group("g", slog.Int("n", 1)), slog.Attr{},
		slog.Group("", slog.Int("n", 1), slog.String("s", "x")), slog.Group("", slog.Int("n", 1), slog.Any("odd", io.EOF), slog.Int("m", 1)), slog.Group("", slog.Group("", slog.Bool("b", true))), slog.Group(""))
	var records []slog.Record
	record := func(at time.Time, l slog.Level, msg string, attrs ...slog.Attr) {
		r := slog.NewRecord(at, l, msg, 0)
		r.AddAttrs(attrs...)
		records = append(records, r)
	}
	for _, a := range attrs {
		record(now, slog.LevelInfo, "call", slog.String("first", "1"), a, slog.String("last", "2"))
	}
	for _, msg := range texts {
		record(now.In(time.FixedZone("", 5400)), slog.LevelError+1, msg)
	}
	record(time.Time{}, slog.LevelWarn, "without a time")
	for _, r := range records {
		var got, want bytes.Buffer
		out := newLines(&got)
		h := &handler{NewLog(out, slog.LevelInfo).Handler(), out}
		plain := NewLog(&want, slog.LevelInfo).Handler()
		for _, both := range [][2]slog.Handler{
			{h, plain},
			{h.WithAttrs([]slog.Attr{slog.Int("x", 1)}), plain.WithAttrs([]slog.Attr{slog.Int("x", 1)})},
			{h.WithGroup("g"), plain.WithGroup("g")},
		} {
			if err := errors.Join(both[0].Handle(t.Context(), r), both[1].Handle(t.Context(), r)); err != nil {
				t.Fatal(err)
			}
		}
		out.flush()
		if got.String() != want.String() {
			t.Errorf("the lines are\n%s, want\n%s", got.String(), want.String())
		}
	}
}

// A group without a key is no reason to leave the line to slog.
func TestGroupIsWrittenHere(t *testing.T) {
	b, ok := appendAttr(nil, slog.Group("", slog.Int("n", 1), slog.Duration("took", 1500*time.Microsecond)))
	if want := `,"n":1,"took_ms":1.5`; !ok || string(b) != want {
		t.Errorf("%s, %v; want %s", b, ok, want)
	}
	if _, ok := appendAttr(nil, slog.Group("", slog.Int("n", 1), slog.Any("odd", 1i), slog.Int("m", 1))); ok {
		t.Error("a group with something odd in it is written here")
	}
}

func TestServerLog(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, flush := NewServerLog(f, slog.LevelInfo)
	log.Debug("not shown")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 1000 {
				log.LogAttrs(t.Context(), slog.LevelInfo, "call", slog.Int("of", i), slog.Int("n", j), slog.Duration("took", time.Second))
				if j%100 == 0 {
					log.Info("odd", "any", []int{1})
				}
			}
		})
	}
	wg.Wait()
	flush()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	next := map[float64]float64{}
	lines, odd := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), 0
	for _, l := range lines {
		var line map[string]any
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatalf("%v: %q", err, l)
		}
		if line["msg"] == "odd" {
			odd++
			continue
		}
		of, n := line["of"].(float64), line["n"].(float64)
		if n != next[of] || line["took_ms"] != 1000.0 {
			t.Fatalf("%q, want number %v", l, next[of])
		}
		next[of]++
	}
	if len(lines) != 8*1010 || odd != 80 {
		t.Errorf("%d lines, %d of them odd; want 8080 and 80", len(lines), odd)
	}
	var plain bytes.Buffer
	log, flush = NewServerLog(&plain, slog.LevelInfo)
	if log.Info("at once"); plain.Len() == 0 {
		t.Error("what is no file waits for its lines")
	}
	flush()
}

// A guarded buffer may be read while it is written to.
type guarded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.String()
}

func (g *guarded) Len() int { return len(g.String()) }

func TestLinesComeByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out guarded
		l := newLines(&out)
		for _, s := range []string{"a\n", "b\n"} {
			if _, err := l.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != "a\n" {
			t.Errorf("%q was written at once, want the line that came alone", out.String())
		}
		time.Sleep(linesWait)
		synctest.Wait()
		if out.String() != "a\nb\n" {
			t.Errorf("%q was written, want both lines", out.String())
		}
		time.Sleep(linesWait)
		if _, err := l.Write([]byte("c\n")); err != nil || out.String() != "a\nb\nc\n" {
			t.Errorf("%q was written, %v; want the third line too, which came alone", out.String(), err)
		}
		long := bytes.Repeat([]byte("x"), linesBytes)
		if _, err := l.Write(long); err != nil || out.Len() != 6+linesBytes {
			t.Errorf("of a long line %d bytes were written at once, %v", out.Len()-6, err)
		}
		time.Sleep(time.Hour) // and nothing is written twice
		if out.Len() != 6+linesBytes {
			t.Errorf("%d bytes were written in all", out.Len())
		}
	})
}

type broken struct{ err error }

func (b *broken) Write(p []byte) (int, error) { return len(p), b.err }

// Only the lines of calls wait for others; whatever else is logged takes them along.
func TestOtherLinesComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out guarded
		l := newLines(&out)
		log := slog.New(&handler{NewLog(l, slog.LevelInfo).Handler(), l})
		with := log.With("server", "s")
		for i, other := range []func(){
			func() { log.Info("other") },
			func() { log.Info("odd", "any", []int{1}) },
			func() { with.Info("call") },
			func() { with.With("n", 1).Info("other") },
			func() { log.WithGroup("g").WithGroup("h").Info("other", "n", 1) },
		} {
			log.Info("call") // the first at once, the others not
			log.Info("call")
			before := out.Len()
			other()
			if n := strings.Count(out.String(), "\n"); n != 3*(i+1) || out.Len() == before {
				t.Errorf("%d lines are written after %d", n, 3*(i+1))
			}
		}
	})
}

func TestLinesTellOfAFailure(t *testing.T) {
	w := &broken{os.ErrClosed}
	l := newLines(w)
	if _, err := l.Write([]byte("a\n")); err != nil {
		t.Errorf("Write = %v before anything was written", err)
	}
	if _, err := l.Write([]byte("b\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write = %v, want the error of the line before", err)
	}
	w.err = nil
	l.flush()
	if _, err := l.Write([]byte("c\n")); err != nil {
		t.Errorf("Write = %v when all is well again", err)
	}
	l.flush()
}

func BenchmarkLog(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	server, flush := NewServerLog(f, slog.LevelInfo)
	defer flush()
	for name, log := range map[string]*slog.Logger{"server": server, "slog": NewLog(f, slog.LevelInfo)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var attrs [12]slog.Attr
			for b.Loop() {
				all := append(attrs[:0], slog.String("request_id", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), slog.Int("status", 200),
					slog.Duration("duration", 123456), slog.String("handle", "echo"), slog.String("tool", "echo"), slog.Int("bytes_in", 100), slog.Int64("bytes_out", 150),
					slog.Duration("find", 1000), slog.Duration("check", 5000), slog.Duration("upstream", 100000), slog.Duration("walk", 2000), slog.Duration("store", 1000))
				log.LogAttrs(context.Background(), slog.LevelInfo, "call", slog.Attr{Value: slog.GroupValue(all...)})
			}
			_ = f.Truncate(0)
		})
	}
}
