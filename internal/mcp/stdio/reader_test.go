package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/raw"
)

// lines reads all of in by a reader, and tells dropped lines as such.
func lines(t testing.TB, in io.Reader, limit int) []string {
	t.Helper()
	var got []string
	r := reader{
		in: in, limit: limit,
		line:    func(b []byte, _ bool) { got = append(got, string(b)) },
		dropped: func(s *skim) { got = append(got, "dropped "+itoa(s.size)+" "+string(s.answers())) },
	}
	if err := r.run(); !errors.Is(err, io.EOF) {
		t.Errorf("run = %v", err)
	}
	return got
}

func TestReader(t *testing.T) {
	long := func(n int) string {
		return `{"id":5,"result":"` + strings.Repeat("r", n-len(`{"id":5,"result":""}`)) + `"}`
	}
	tests := []struct {
		name  string
		in    string
		limit int
		want  []string
	}{
		{"nothing", "", 100, nil},
		{"lines", "a\n\nb\r\n{}\n", 100, []string{"a", "", "b\r", "{}"}},
		{"half a line", "a\nb", 100, []string{"a"}},
		{"at the limit", long(100) + "\n" + long(101) + "\nx\n", 100, []string{long(100), "dropped 101 5", "x"}},
		{"beyond the first buffer", long(3*readBytes) + "\nx\n" + long(2*readBytes) + "\n", 1 << 20, []string{long(3 * readBytes), "x", long(2 * readBytes)}},
		{"beyond the kept buffer", "x\n" + long(5*keptBytes) + "\ny\n" + long(3*keptBytes) + "\nz", 1 << 30, []string{"x", long(5 * keptBytes), "y", long(3 * keptBytes)}},
		{"over a small limit", long(3*readBytes) + "\nx\n", 1000, []string{"dropped " + itoa(3*readBytes) + " 5", "x"}},
		{"over a large limit", "x\n" + long(9*keptBytes) + "\ny\n\nz\n", 4 * keptBytes, []string{"x", "dropped " + itoa(9*keptBytes) + " 5", "y", "", "z"}},
		{"over the limit at the end", long(9*keptBytes) + "\n" + long(9*keptBytes), 4 * keptBytes, []string{"dropped " + itoa(9*keptBytes) + " 5"}},
		{"noise", strings.Repeat("=", 3*readBytes) + "\n" + strings.Repeat(" ", 3*readBytes) + "\nx\n", 1 << 20, []string{"dropped " + itoa(3*readBytes) + " ", "dropped " + itoa(3*readBytes) + " ", "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{
				"at once": strings.NewReader(tt.in), "halves": iotest.HalfReader(strings.NewReader(tt.in)),
				"with the end": iotest.DataErrReader(strings.NewReader(tt.in)),
				"pipe":         struct{ io.Reader }{&chunked{[]byte(tt.in), 65536}},
			} {
				if d := cmp.Diff(tt.want, lines(t, in, tt.limit)); d != "" {
					t.Errorf("%s (-want +got):\n%.1000s", name, d)
				}
			}
		})
	}
}

// A chunked reader gives n bytes at a time.
type chunked struct {
	b []byte
	n int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.b)
	c.b = c.b[n:]
	return n, nil
}

// A flood without a line feed is read in bounded memory.
func TestReaderFlood(t *testing.T) {
	for _, first := range []string{`{"a":"`, "{", "x"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		lines(t, io.MultiReader(strings.NewReader(first), io.LimitReader(forever{}, 12<<20)), 2<<20)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("after %s: %d bytes allocated for a limit of 2 MiB", first, n)
		}
	}
}

var someAs = strings.Repeat("a", 4096)

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	return copy(p, someAs), nil
}

// Bytes given away are not written to again; others are the receiver's during the call only.
func TestReaderOwnership(t *testing.T) {
	want := strings.Repeat("a", 3*keptBytes)
	in := "{" + want + "\n{" + strings.Repeat("b", 3*keptBytes) + "\n" + strings.Repeat("c\n", keptBytes)
	var kept [][]byte
	r := reader{in: &chunked{[]byte(in), 4 << 20}, limit: 1 << 30, dropped: func(*skim) {}, line: func(b []byte, own bool) {
		if own {
			kept = append(kept, b)
		}
	}}
	_ = r.run()
	if len(kept) == 0 || string(kept[0][1:]) != want {
		t.Errorf("%d lines were given away, the first one overwritten or missing", len(kept))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("a\nb\n{\"id\":1}\n"), 3, 5)
	f.Add(bytes.Repeat([]byte("{1234567"), 9000), 4096, 50_000)
	f.Fuzz(func(t *testing.T, in []byte, chunk, limit int) {
		chunk, limit = 1+(chunk&0xffff), limit&0xfffff
		// The buffer is larger than most inputs: repeat them.
		in = bytes.Repeat(in, 1+len(in)%7)
		whole := bytes.Split(in, []byte("\n"))
		var want []string
		for _, l := range whole[:len(whole)-1] {
			want = append(want, string(l))
		}
		got := 0
		see := func(b []byte, size int) {
			if got >= len(want) {
				t.Fatalf("more lines than %d", len(want))
			}
			if len(want[got]) != size || b != nil && want[got] != string(b) {
				t.Fatalf("line %d = %.100q (%d bytes), want %.100q (%d bytes)", got, b, size, want[got], len(want[got]))
			}
			got++
		}
		r := reader{in: &chunked{in, chunk}, limit: limit, line: func(b []byte, _ bool) {
			if len(b) > limit {
				t.Fatalf("a line of %d bytes is over the limit of %d", len(b), limit)
			}
			see(b, len(b))
		}, dropped: func(s *skim) {
			if s.size <= limit && s.size < readBytes {
				t.Fatalf("a line of %d bytes was dropped", s.size)
			}
			see(nil, s.size)
		}}
		_ = r.run()
		if got != len(want) {
			t.Fatalf("%d lines, want %d", got, len(want))
		}
	})
}

func TestSkim(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"id":12,"result":1}`, `12`},
		{` { "result" : {"id":1,"x":[{"id":2}]} , "id" : 12 } `, `12`},
		{`{"result":"\"id\":3,\\","id":12}`, `12`},
		{`{"result":"}}}]","id":12}`, `12`},
		{`{"result":[[[]]],"id":"a,b"}`, `"a,b"`},
		{`{"id":{"id":4},"result":1}`, `{`},
		{`{"id":[5],"result":1}`, `[`},
		{`{"id":12,"method":"x"}`, ``},
		{`{"id":12,"id":12,"result":1}`, ``},
		{`{"x":"id","result":1}`, ``},
		{`["id",12]`, ``},
		{`"id":12`, ``},
		{`}{"id":12}`, ``},
		{``, ``},
	} {
		for n := 1; n <= max(1, len(tt.in)); n++ {
			var s skim
			for in := tt.in; in != ""; in = in[min(n, len(in)):] {
				s.feed([]byte(in[:min(n, len(in))]))
			}
			if got := string(s.answers()); got != tt.want {
				t.Errorf("in pieces of %d: %s answers %q, want %q", n, tt.in, got, tt.want)
			}
		}
	}
}

// On a frame that is one, the skim finds what the parser finds.
func FuzzSkim(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1099511627777,"result":{"id":[1,"\"}"]}}`))
	f.Add([]byte(`{"error":{},"a":[{}],"id":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := raw.ParseFrame(b)
		if err != nil || !frame.Response() {
			return
		}
		var s skim
		s.feed(b)
		want, wantOurs := parseID(frame.ID)
		got, ours := parseID(s.answers())
		// It does not decode keys: an escaped one is not seen, which is as good as no answer.
		if ours && !wantOurs && !bytes.Contains(b, []byte(`\u`)) || ours && wantOurs && got != want {
			t.Errorf("%s: the skim found %d, the parser %d", b, got, want)
		}
		if wantOurs && !ours && !bytes.Contains(b, []byte(`\u`)) {
			t.Errorf("%s: the skim did not find %d", b, want)
		}
	})
}

func TestParseID(t *testing.T) {
	for in, want := range map[string]int64{
		"1099511627777": 1099511627777, "1099511627777.0": 1099511627777, "1.099511627777e12": 1099511627777,
		"1.099511627777E+12": 1099511627777, "9007199254740991": 9007199254740991,
		"": 0, "null": 0, "1": 0, "-1099511627777": 0, "1099511627776": 0, "1099511627777.5": 0, `"1099511627777"`: 0,
		"9007199254740992": 0, "99999999999999999999": 0, "1e400": 0, "0x1p50": 0, "1_099_511_627_777": 0,
		"1099511627777 ": 0, strings.Repeat("0", 30) + "1099511627777": 0, "{": 0,
	} {
		got, ok := parseID([]byte(in))
		if ok != (want != 0) || ok && got != want {
			t.Errorf("parseID(%q) = %d, %v", in, got, ok)
		}
	}
}

// The ids survive the doubles of JavaScript.
func TestFirstID(t *testing.T) {
	b, err := json.Marshal(float64(firstID + 1))
	if n, ok := parseID(b); err != nil || !ok || n != firstID+1 {
		t.Errorf("as a double: %s, %v", b, err)
	}
}
