package remote

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// text is an event in a form that can be compared.
type text struct {
	Name, Data string
	Torn       bool
	Over       bool
	ID         string
}

func readEvents(r io.Reader, limit int64) ([]text, cursor, error) {
	cur := cursor{retry: -1}
	e := newEventReader(r, limit, &cur)
	e.skip = true
	var all []text
	for {
		ev, err := e.next()
		if err != nil {
			return all, cur, err
		}
		all = append(all, text{ev.name, string(ev.data), ev.torn, ev.over, ev.id})
	}
}

func TestEvents(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []text
		cur      cursor
	}{
		{"nothing", "", nil, cursor{retry: -1}},
		{"comments", ": a\n:\n\n\n", nil, cursor{retry: -1}},
		{"one", "data: a\n\n", []text{{Data: "a"}}, cursor{retry: -1}},
		{"all fields", "event: e\nid: 1\nretry: 20\ndata: a\n\n", []text{{Name: "e", Data: "a"}}, cursor{"1", 20 * time.Millisecond, true}},
		{"no space, two spaces", "data:a\n\ndata:  b\n\n", []text{{Data: "a"}, {Data: " b"}}, cursor{retry: -1}},
		{"only one space", "data: \n\ndata:\n\ndata\n\n", []text{{}, {}, {}}, cursor{retry: -1}},
		{"line ends", "data: a\r\n\r\ndata: b\r\rdata: c\n\n", []text{{Data: "a"}, {Data: "b"}, {Data: "c"}}, cursor{retry: -1}},
		{"CR in the data", "data: a\rdata: b\r\r", []text{{Data: "a\nb"}}, cursor{retry: -1}},
		{"lines", "data: a\ndata:\ndata: b\n\n", []text{{Data: "a\n\nb"}}, cursor{retry: -1}},
		{"colons", "data: a: b:c\n\n", []text{{Data: "a: b:c"}}, cursor{retry: -1}},
		{"unknown fields", "x: y\ndat: z\ndata2: z\ndata: a\nno colon\n\n", []text{{Data: "a"}}, cursor{retry: -1}},
		{"an id alone moves on", "id: 7\n\n", nil, cursor{"7", -1, true}},
		{"an empty id resets", "id: 7\n\nid:\n\n", nil, cursor{"", -1, true}},
		{"a name alone is forgotten", "event: e\n\ndata: a\n\n", []text{{Data: "a"}}, cursor{retry: -1}},
		{"bad fields", "id: a\x00b\nretry: x\nretry: -1\nretry: 99999999999\n\n", nil, cursor{retry: -1}},
		{"a long id", "id: " + strings.Repeat("x", maxField+1) + "\n\n", nil, cursor{retry: -1}},
		{"a long line", strings.Repeat("x", 3*eventBuffer) + "\ndata: a\n\n", []text{{Data: "a"}}, cursor{retry: -1}},
		{"BOM", "\ufeffdata: a\n\n", []text{{Data: "a"}}, cursor{retry: -1}},
		{"BOM later", "\n\ufeffdata: a\n\n", nil, cursor{retry: -1}},
		{"torn", "data: a\n\ndata: b\ndata: c", []text{{Data: "a"}, {Data: "b\nc", Torn: true}}, cursor{retry: -1}},
		{"torn before its end", "data: a\n", []text{{Data: "a", Torn: true}}, cursor{retry: -1}},
		{"torn in another field", "data: a\nid: 5", []text{{Data: "a", Torn: true}}, cursor{retry: -1}},
		{"torn in a name", "data: a\n\nda", []text{{Data: "a"}}, cursor{retry: -1}},
		{"over", "data: " + strings.Repeat(" ", 30) + "{\"id\":\"x1\",\ndata: \"result\":5}\n\ndata: b\n\n", []text{{Over: true, ID: "x1"}, {Data: "b"}}, cursor{retry: -1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once": strings.NewReader(test.in), "byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
				"with the error": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				got, cur, err := readEvents(r, 30)
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: error is %v", name, err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: events (-want +got):\n%s", name, diff)
				}
				if cur != test.cur {
					t.Errorf("%s: cursor is %+v, want %+v", name, cur, test.cur)
				}
			}
		})
	}
}

func TestEventsBreakOff(t *testing.T) {
	broken := errors.New("broken")
	got, _, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 30)
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("read %v, %v, want one event and the error", got, err)
	}
	e := newEventReader(strings.NewReader("data: "+strings.Repeat("x", 31)), 30, &cursor{})
	if _, err := e.next(); !errors.Is(err, errOver) {
		t.Errorf("error is %v, want errOver", err)
	}
}

// FuzzEvents: how the bytes arrive does not matter, and nothing is larger than the limit.
func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\n\r\nid: 1\rdata: {\"id\":1}\n\n", int64(5))
	f.Add("\ufeffevent: x\ndata\ndata:y\n\n:z", int64(100))
	f.Fuzz(func(t *testing.T, in string, limit int64) {
		limit = max(limit%100, 0)
		want, wantCur, _ := readEvents(strings.NewReader(in), limit)
		got, gotCur, _ := readEvents(iotest.OneByteReader(strings.NewReader(in)), limit)
		if diff := cmp.Diff(want, got); diff != "" || wantCur != gotCur {
			t.Errorf("at once and byte by byte differ:\n%s%+v\n%+v", diff, wantCur, gotCur)
		}
		for _, ev := range got {
			if int64(len(ev.Data)) > limit {
				t.Errorf("an event has %d bytes, over %d", len(ev.Data), limit)
			}
		}
	})
}

func TestIDScanner(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"id":5,"result":{}}`, "5"},
		{`{"result":{"id":7},"id":5}`, "5"},
		{`{"result":[{"id":7},"\"id\":8,"],"id" : 5 , "x":1}`, "5"},
		{`{"result":"\\","id":"a-b"}`, "a-b"},
		{`{"x":"id","id":"5"}`, "5"},
		{`{"id":5,"method":"x"}`, ""},
		{`{"method":"x","id":5}`, ""},
		{`{"result":{"method":"x"},"id":5}`, "5"},
		{`{"id":"` + strings.Repeat("x", 1000) + `"}`, strings.Repeat("x", maxToken-2)},
		{`{"result":5}`, ""},
		{`[{"id":5}]`, ""},
		{`{"id":null}`, "null"},
		{`{}`, ""},
		{``, ""},
		{`}}{{"id"`, ""},
	} {
		var s, one idScanner
		s.feed([]byte(test.in))
		for _, b := range []byte(test.in) {
			one.feed([]byte{b})
		}
		if got := s.response(); got != test.want || got != one.response() {
			t.Errorf("the id in %.60s is %q, byte by byte %q, want %q", test.in, got, one.response(), test.want)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	in := []byte("event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"" + strings.Repeat("x", 100_000) + "\"}\n\n")
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		e := newEventReader(bytes.NewReader(in), 1<<20, &cursor{})
		if _, err := e.next(); err != nil {
			b.Fatal(err)
		}
	}
}
