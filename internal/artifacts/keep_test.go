package artifacts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

func TestKeepAndRead(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		all := `{"content":[{"type":"text","text":"hello"},{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte("\x89PNG")) + `"}],"structuredContent": {"n":9007199254740993, "x":1.10,"e":1e400} ,"_meta":{"a":1}}`
		before := time.Now()
		timing := bridge.Timing{}
		kept := k.Keep(t.Context(), ann, tool, result(t, all), &timing)
		if kept == nil || kept.Type != "mcp" || timing.Walk <= 0 || timing.Store <= 0 {
			t.Fatalf("Keep = %+v, timing %+v", kept, timing)
		}
		a := open(t, k, ann, kept.Ref)
		m := a.Meta()
		if m.Handle != "demo" || m.Tool != "echo" || m.Type != "mcp" || m.Parent != "" || !m.More || m.Size != 42 {
			t.Errorf("Meta = %+v", m)
		}
		if m.Created.Before(before.Add(-time.Second)) || !m.Expires.Equal(m.Created.Add(time.Hour)) || !m.Expires.Equal(kept.Expires) {
			t.Errorf("created %v, expires %v, kept until %v", m.Created, m.Expires, kept.Expires)
		}
		for p, want := range map[string]string{"": `{"n":9007199254740993, "x":1.10,"e":1e400}`, "/n": "9007199254740993", "/x": "1.10", "/e": "1e400"} {
			if got := at(t, a, p); got != want {
				t.Errorf("%q = %s, want %s", p, got, want)
			}
		}
		v, err := a.Result("")
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonOf(t, v); got != all {
			t.Errorf("the whole result is %s", got)
		}
		if v, err = a.Result("/content/1"); err != nil {
			t.Fatal(err)
		}
		if data, media, err := bytesOf(v); err != nil || data != "\x89PNG" || media != "image/png" {
			t.Errorf("Binary = %q, %s, %v", data, media, err)
		}
	})
}

func TestContentIsData(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		for _, tt := range []struct{ result, data string }{
			{`{"content":[{"type":"text","text":"hello"}]}`, ""},
			{`{ "content" : [ 1 ] }`, ""},
			{`{"_meta":{"q":1},"content":[{"type":"text","text":"hello"}]}`, `{"content":[{"type":"text","text":"hello"}]}`},
			{`{}`, `{"content":[]}`},
			{`{"content":null,"x":1}`, `{"content":[]}`},
			{`{"content":[],"structuredContent":null}`, `{"content":[]}`},
		} {
			want := tt.data
			if want == "" {
				want = tt.result
			}
			a := open(t, k, ann, keep(t, k, ann, result(t, tt.result)).Ref)
			checkArtifact(t, k, a, []byte(want))
			v, err := a.Result("")
			if err != nil {
				t.Fatal(err)
			}
			if got := jsonOf(t, v); got != tt.result {
				t.Errorf("the result is %s, want %s", got, tt.result)
			}
		}
	})
}

func TestOwnersAreStrangers(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
		for _, c := range []bridge.Caller{bob, {}, {ID: "k1", User: "annacme"}, {ID: "k1", User: "ann", Tenant: "acme2"}, {User: "ann"}} {
			if _, err := k.Open(t.Context(), c, ref); kindOf(err) != bridge.NotFound {
				t.Errorf("%+v: Open = %v", c, err)
			}
			if err := k.Delete(t.Context(), c, ref); kindOf(err) != bridge.NotFound {
				t.Errorf("%+v: Delete = %v", c, err)
			}
			if p, err := k.List(t.Context(), c, "", 10); err != nil || len(slicesOf(p, ref)) > 0 {
				t.Errorf("%+v: List = %+v, %v", c, p, err)
			}
		}
		if err := k.Delete(t.Context(), ann, ref); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Open(t.Context(), ann, ref); kindOf(err) != bridge.NotFound {
			t.Errorf("after Delete: %v", err)
		}
		if err := k.Delete(t.Context(), ann, ref); kindOf(err) != bridge.NotFound {
			t.Errorf("a second Delete: %v", err)
		}
	})
}

// slicesOf returns the entries of a page that have the reference.
func slicesOf(p *Page, ref string) (found []Meta) {
	for _, m := range p.Artifacts {
		if m.Ref == ref {
			found = append(found, m)
		}
	}
	return found
}

func TestListNewestFirst(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		c := bridge.Caller{User: mint()} // with a list of its own
		var want []string
		for i := range 25 {
			ref := keep(t, k, c, structured(t, fmt.Sprintf(`{"i":%d}`, i))).Ref
			want = append([]string{ref}, want...)
		}
		keep(t, k, ann, structured(t, `{}`))
		var got []string
		cursor := ""
		for range 10 {
			p, err := k.List(t.Context(), c, cursor, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range p.Artifacts {
				got = append(got, m.Ref)
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the list (-want +got):\n%s", diff)
		}
		if err := k.Delete(t.Context(), c, want[3]); err != nil {
			t.Fatal(err)
		}
		p, err := k.List(t.Context(), c, "", 100)
		if err != nil || len(p.Artifacts) != 24 || p.Next != "" || len(slicesOf(p, want[3])) != 0 {
			t.Errorf("after Delete: %d entries, next %q, %v", len(p.Artifacts), p.Next, err)
		}
		for _, bad := range []string{"!", "zz zz", "-1.x", "5", "zz", ".", "5.", ".mcp~x", "+5.mcp~x", "05.mcp~x", "5.mcp~x.1.", "5.«artifact:mcp~x»"} {
			if _, err := k.List(t.Context(), c, bad, 10); kindOf(err) != bridge.Malformed {
				t.Errorf("List with cursor %q: %v", bad, err)
			}
		}
		if _, err := k.List(t.Context(), c, "", 0); kindOf(err) != bridge.Malformed {
			t.Errorf("List of none: %v", err)
		}
	})
}

// The cursors of a store in memory are good for one owner, in one process.
func TestForgedCursors(t *testing.T) {
	k, other := New(Options{Store: NewMemory(1 << 20)}), New(Options{Store: NewMemory(1 << 20)})
	for range 3 {
		for _, at := range []*Keeper{k, other} {
			keep(t, at, ann, structured(t, `{}`))
			keep(t, at, bob, structured(t, `{}`))
		}
	}
	p, err := k.List(t.Context(), ann, "", 1)
	if err != nil || p.Next == "" {
		t.Fatalf("List = %+v, %v", p, err)
	}
	if q, err := k.List(t.Context(), ann, p.Next, 10); err != nil || len(q.Artifacts) != 2 {
		t.Errorf("the next page is %+v, %v", q, err)
	}
	for name, list := range map[string]func() (*Page, error){
		"another owner":   func() (*Page, error) { return k.List(t.Context(), bob, p.Next, 10) },
		"another process": func() (*Page, error) { return other.List(t.Context(), ann, p.Next, 10) },
		"another place":   func() (*Page, error) { return k.List(t.Context(), ann, "1"+p.Next, 10) },
		"more behind":     func() (*Page, error) { return k.List(t.Context(), ann, p.Next+".", 10) },
	} {
		if q, err := list(); kindOf(err) != bridge.Malformed {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store, TTL: 300 * time.Millisecond})
		c := bridge.Caller{User: mint()}
		ref := keep(t, k, c, structured(t, `{"a":1}`)).Ref
		a := open(t, k, c, ref)
		if got := at(t, a, "/a"); got != "1" {
			t.Errorf("/a = %s", got)
		}
		if !waitFor(5*time.Second, func() bool {
			_, err := k.Open(t.Context(), c, ref)
			return kindOf(err) == bridge.NotFound
		}) {
			t.Error("it does not expire")
		}
		if p, err := k.List(t.Context(), c, "", 10); err != nil || len(p.Artifacts) != 0 {
			t.Errorf("List = %+v, %v", p, err)
		}
	})
}

func TestReferences(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	ref := keep(t, k, ann, structured(t, `{"a":{"b":"`+words(2500)+`"}}`)).Ref
	if len(ref) != len("mcp~")+26 || strings.Trim(ref, "abcdefghijklmnopqrstuvwxyz234567~") != "" {
		t.Errorf("the reference is %s", ref)
	}
	for _, s := range []string{ref, "artifact:" + ref, "«artifact:" + ref + "»", "«" + ref + "»"} {
		if a := open(t, k, ann, s); a.Meta().Ref != ref {
			t.Errorf("%s opens %s", s, a.Meta().Ref)
		}
		nested := strings.Replace(s, ref, ref+".1", 1)
		if a := open(t, k, ann, nested); a.Meta().Ref != ref+".1" || a.Meta().Parent != ref {
			t.Errorf("%s opens %+v", nested, a.Meta())
		}
	}
	for _, s := range []string{
		"", "mcp", "~", "mcp~", ref + ".0", ref + ".2", ref + ".01", ref + ".-1", ref + ".1.1", ref + ".", ref + ".999999999", ref + ".9999999999999999999999",
		"«" + ref, ref + "»", " " + ref, ref + "/x", "../" + ref, "MCP~" + ref[4:], strings.ToUpper(ref), "artifact:artifact:" + ref, ref + "\n", "mcp~" + strings.Repeat("a", 129),
		strings.Repeat("a", 200) + "~x", "mcp~x" + strings.Repeat(".1", 1<<16),
	} {
		if _, err := k.Open(t.Context(), ann, s); kindOf(err) != bridge.NotFound {
			t.Errorf("Open(%.50q) = %v", s, err)
		}
		if err := k.Delete(t.Context(), ann, s); kindOf(err) != bridge.NotFound {
			t.Errorf("Delete(%.50q) = %v", s, err)
		}
	}
	if err := k.Delete(t.Context(), ann, ref+".1"); kindOf(err) != bridge.Malformed {
		t.Errorf("Delete of a nested artifact: %v", err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const limit = 100 << 10
	m := NewMemory(limit)
	k := New(Options{Store: m})
	if a := k.Keep(t.Context(), ann, tool, structured(t, `"`+words(limit)+`"`), &bridge.Timing{}); a != nil {
		t.Error("what is too big was kept")
	}
	var refs []string
	for i := range 100 {
		refs = append(refs, keep(t, k, ann, structured(t, fmt.Sprintf(`{"i":%d,"s":"%s"}`, i, words(5000)))).Ref)
		if s := m.stats(); s.Bytes > limit {
			t.Fatalf("it holds %d bytes", s.Bytes)
		}
	}
	s := k.Stats()
	if s.Store.Kind != "memory" || s.Kept != 100 || s.TooBig != 1 || s.Failed != 0 || s.Store.Evicted != int64(100-s.Store.Artifacts) || s.Store.Artifacts < 10 {
		t.Errorf("Stats = %+v", s)
	}
	for i, ref := range refs {
		_, err := k.Open(t.Context(), ann, ref)
		if gone := kindOf(err) == bridge.NotFound; gone != (i < 100-s.Store.Artifacts) {
			t.Errorf("the %d. is gone: %v", i, gone)
		}
	}
	for _, ref := range refs {
		if err := k.Delete(t.Context(), ann, ref); err != nil && kindOf(err) != bridge.NotFound {
			t.Fatal(err)
		}
	}
	if s := m.stats(); s.Bytes != 0 || s.Artifacts != 0 || len(m.held) != 0 || len(m.lists) != 0 {
		t.Errorf("after deleting all: %+v, %d held, %d lists", s, len(m.held), len(m.lists))
	}
	none := New(Options{Store: NewMemory(0)})
	if a := none.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); a != nil {
		t.Error("a store of no bytes kept something")
	}
}

func TestSmallResultDoesNotKeepALargeBufferAlive(t *testing.T) {
	buf := append(make([]byte, 0, 1<<20), `{"structuredContent":{"a":1}}`...)
	r, err := bridge.ParseResult(buf)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMemory(1 << 30)
	k := New(Options{Store: m})
	ref := keep(t, k, ann, r).Ref
	if s := m.stats(); s.Bytes > 4<<10 {
		t.Errorf("it takes %d bytes", s.Bytes)
	}
	clear(buf)
	if got := at(t, open(t, k, ann, ref), "/a"); got != "1" {
		t.Errorf("/a = %s", got)
	}
}

func TestBinary(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	doc := `{"content":[
		{"type":"image","mimeType":"image/png","data":"aGVsbG8="},
		{"type":"audio","data":"aGVsbG8\u003d"},
		{"type":"resource","resource":{"uri":"x:1","mimeType":"text/html","blob":"PHNjcmlwdD4"}},
		{"type":"text","text":"aGVsbG8="},
		{"type":"image","mimeType":"image/png","data":"%%%"},
		{"type":"image","mimeType":"image/png","data":7},
		{"type":"resource","resource":7},
		{"type":"resource","resource":{"uri":"x:1","text":"t"}},
		"aGVsbG8="]}`
	a := open(t, k, ann, keep(t, k, ann, result(t, doc)).Ref)
	for _, tt := range []struct {
		pointer, data, media string
		kind                 bridge.Kind
	}{
		{"/content/0", "hello", "image/png", ""},
		{"/content/0/data", "hello", "image/png", ""},
		{"/content/0/mimeType", "", "", bridge.Malformed},
		{"/content/1", "hello", "", ""},
		{"/content/2", "<script>", "text/html", ""},
		{"/content/2/resource", "<script>", "text/html", ""},
		{"/content/2/resource/blob", "<script>", "text/html", ""},
		{"/content/3", "", "", bridge.Malformed},
		{"/content/4", "", "", bridge.Malformed},
		{"/content/5", "", "", bridge.Malformed},
		{"/content/6", "", "", bridge.Malformed},
		{"/content/7", "", "", bridge.Malformed},
		{"/content/8", "", "", bridge.Malformed},
		{"/content", "", "", bridge.Malformed},
		{"", "", "", bridge.Malformed},
	} {
		v, err := a.Data(tt.pointer)
		if err != nil {
			t.Fatal(err)
		}
		data, media, err := bytesOf(v)
		if kindOf(err) != tt.kind || data != tt.data || media != tt.media {
			t.Errorf("Binary at %q = %q, %q, %v", tt.pointer, data, media, err)
		}
	}
}

// bytesOf returns all bytes of a block.
func bytesOf(v *Value) (data, mediaType string, err error) {
	b, err := v.Binary()
	if err != nil {
		return "", "", err
	}
	all, err := b.Bytes(0, b.Size)
	return string(all), b.MediaType, err
}

func TestTooLargeToIndex(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	if _, err := k.put(t.Context(), &record{}, nil); !errors.Is(err, errTooBig) {
		t.Errorf("put = %v", err)
	}
}

func TestETags(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		ref := keep(t, k, ann, structured(t, `{"a":{"b":"`+words(2500)+`"}}`)).Ref
		other := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
		tags := map[string]string{}
		for _, ref := range []string{ref, ref + ".1", other} {
			for _, view := range [][]string{{"data"}, {"result"}, {"data", "/a"}, {"data", "/a", "0", "1"}, {"data", "/a0", "1"}} {
				tag := open(t, k, ann, ref).ETag(view[0], view[1:]...)
				if again := open(t, k, ann, ref).ETag(view[0], view[1:]...); again != tag {
					t.Errorf("%s %q: %s, then %s", ref, view, tag, again)
				}
				if was, ok := tags[tag]; ok || len(tag) != 24 || !strings.HasPrefix(tag, `"`) {
					t.Errorf("%s %q has the tag %s, like %s", ref, view, tag, was)
				}
				tags[tag] = fmt.Sprint(ref, view)
			}
		}
	})
}

// Each setting that a summary depends on changes its tag.
func TestSummaryTags(t *testing.T) {
	tags := map[string]bool{}
	for _, o := range []Options{{}, {SummaryAfter: 2000}, {SummaryChars: 1000}, {PromoteBytes: 500}} {
		o.Store = NewMemory(1)
		tags[New(o).SummaryTag()] = true
	}
	if len(tags) != 4 {
		t.Errorf("the tags are %v", tags)
	}
}

func TestText(t *testing.T) {
	k := New(Options{Store: pieces{NewMemory(1 << 30)}})
	var inner strings.Builder
	for inner.Len() < 400<<10 {
		inner.WriteString("漢" + `\ud83d\ude00` + "a" + `\n`)
	}
	a := open(t, k, ann, keep(t, k, ann, structured(t, `{"s":"`+inner.String()+`","n":1}`)).Ref)
	v, err := a.Data("/s")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := v.Text(&b); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("漢😀a\n", inner.Len()/18); b.String() != want {
		t.Errorf("the text has %d bytes, want %d", b.Len(), len(want))
	}
	if v, err = a.Data("/n"); err != nil {
		t.Fatal(err)
	}
	if err := v.Text(&b); kindOf(err) != bridge.Malformed {
		t.Errorf("the text of a number: %v", err)
	}
}
