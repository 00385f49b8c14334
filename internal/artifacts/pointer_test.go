package artifacts

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// The document of RFC 6901 section 5, with more of the same kind.
const pointers = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,
"~1":9,"~01":10,"/":11,"0":12,"-1":13,"01":14,"-":15,"deep":{"":{"":"x"}},"1e0":16,"é":17,"\u00fc":18,"dup":1,"dup":2,"arr":[[],{"0":"k"},null]}`

func TestPointers(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		a := open(t, k, ann, keep(t, k, ann, structured(t, pointers)).Ref)
		for p, want := range map[string]string{
			"": pointers, "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4",
			`/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/~01": "9", "/~001": "10", "/~1": "11", "/0": "12", "/-1": "13", "/01": "14", "/-": "15",
			"/deep//": `"x"`, "/deep/": `{"":"x"}`, "/1e0": "16", "/é": "17", "/ü": "18", "/dup": "2", "/arr/1/0": `"k"`, "/arr/0": "[]", "/arr/2": "null",
		} {
			if got := at(t, a, p); got != want {
				t.Errorf("%q = %s, want %s", p, got, want)
			}
		}
		for _, tt := range []struct {
			pointer  string
			kind     bridge.Kind
			resolved string
			members  map[string]any
		}{
			{"foo", bridge.Malformed, "", nil},
			{"/~", bridge.Malformed, "", nil},
			{"/a~2", bridge.Malformed, "", nil},
			{"/foo/2", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/-", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/-1", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/00", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/01", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/+1", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/1e0", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/99999999999999999999999", bridge.NotFound, "/foo", map[string]any{"length": 2}},
			{"/foo/0/x", bridge.NotFound, "/foo/0", map[string]any{}},
			{"/deep//x", bridge.NotFound, "/deep/", map[string]any{"keys": []string{""}, "keys_count": 1}},
			{"/arr/1/x/y", bridge.NotFound, "/arr/1", map[string]any{"keys": []string{"0"}, "keys_count": 1}},
			{"/arr/2/0", bridge.NotFound, "/arr/2", map[string]any{}},
			{"/a~1b/", bridge.NotFound, "/a~1b", map[string]any{}},
		} {
			_, err := a.Data(tt.pointer)
			e, ok := errors.AsType[*bridge.Error](err)
			if !ok || e.Kind != tt.kind {
				t.Errorf("%q: %v", tt.pointer, err)
				continue
			}
			if tt.members != nil {
				tt.members["pointer"], tt.members["resolved"] = tt.pointer, tt.resolved
			}
			if diff := cmp.Diff(tt.members, e.Members); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.pointer, diff)
			}
		}
		_, err := a.Data("/x")
		e, _ := errors.AsType[*bridge.Error](err)
		if keys, ok := e.Members["keys"].([]string); !ok || len(keys) != shownKeys || keys[0] != "foo" || e.Members["keys_count"] != 24 {
			t.Errorf("the keys at the root are %q of %v", keys, e.Members["keys_count"])
		}
	})
}

func TestPointersIntoContent(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	a := open(t, k, ann, keep(t, k, ann, result(t, `{"_meta":{"q":1},"content":[{"text":"t"}]}`)).Ref)
	if got := at(t, a, "/content/0/text"); got != `"t"` {
		t.Errorf("/content/0/text = %s", got)
	}
	for p, resolved := range map[string]string{"/x": "", "/_meta": "", "/content/1": "/content", "/content/0/x": "/content/0"} {
		_, err := a.Data(p)
		e, ok := errors.AsType[*bridge.Error](err)
		if !ok || e.Kind != bridge.NotFound || e.Members["resolved"] != resolved {
			t.Errorf("%q: %v", p, err)
		}
	}
	v, err := a.Result("/_meta/q")
	if err != nil || jsonOf(t, v) != "1" {
		t.Errorf("/_meta/q of the result: %v", err)
	}
}

func TestLongKeysAreShownShort(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	a := open(t, k, ann, keep(t, k, ann, structured(t, `{"`+words(5000)+`":1}`)).Ref)
	_, err := a.Data("/x")
	e, _ := errors.AsType[*bridge.Error](err)
	if keys, ok := e.Members["keys"].([]string); !ok || len(keys) != 1 || keys[0] != words(1<<10)+"…" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestSlices(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		a := open(t, k, ann, keep(t, k, ann, structured(t, `{"s":"aé😀\ud83d\ude00\ud800\n\u0041z","a":[ 1 , 2,[3] ],"o":{"x":1 , "x":2,"y":{}},"n":1,"e":"","ea":[ ],"eo":{}}`)).Ref)
		for _, tt := range []struct {
			pointer       string
			offset, limit int
			want          string
			total, next   int
		}{
			{"/s", 0, 3, `"aé😀"`, 8, 3},
			{"/s", 3, 2, `"\ud83d\ude00\ud800"`, 8, 5},
			{"/s", 5, 100, `"\n\u0041z"`, 8, -1},
			{"/s", 8, 1, `""`, 8, -1},
			{"/s", 1000, math.MaxInt, `""`, 8, -1},
			{"/s", math.MaxInt, math.MaxInt, `""`, 8, -1},
			{"/s", 0, 0, `""`, 8, 0},
			{"/s", 0, math.MaxInt, `"aé😀\ud83d\ude00\ud800\n\u0041z"`, 8, -1},
			{"/a", 0, 1, `[1]`, 3, 1},
			{"/a", 1, 2, `[2,[3]]`, 3, -1},
			{"/a", 0, 2, `[1 , 2]`, 3, 2},
			{"/a", 3, 2, `[]`, 3, -1},
			{"/o", 1, 1, `{"x":2}`, 3, 2},
			{"/o", 1, 9, `{"x":2,"y":{}}`, 3, -1},
			{"/o", 0, 2, `{"x":1 , "x":2}`, 3, 2},
			{"/e", 0, 1, `""`, 0, -1},
			{"/ea", 0, 1, `[ ]`, 0, -1},
			{"/eo", 5, 1, `{}`, 0, -1},
		} {
			v, err := a.Data(tt.pointer)
			if err != nil {
				t.Fatal(err)
			}
			s, err := v.Slice(tt.offset, tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			if got := jsonOf(t, s.Value); got != tt.want || s.Total != tt.total || s.Next != tt.next {
				t.Errorf("%s from %d, %d = %s of %d, next %d", tt.pointer, tt.offset, tt.limit, got, s.Total, s.Next)
			}
		}
		for _, tt := range []struct {
			pointer       string
			offset, limit int
		}{{"/s", -1, 1}, {"/s", 0, -1}, {"/a", math.MinInt, 1}, {"/n", 0, 1}} {
			v, err := a.Data(tt.pointer)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Slice(tt.offset, tt.limit); kindOf(err) != bridge.Malformed {
				t.Errorf("%s from %d, %d: %v", tt.pointer, tt.offset, tt.limit, err)
			}
		}
	})
}

func TestSliceOfContent(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	a := open(t, k, ann, keep(t, k, ann, result(t, `{"_meta":{},"content":[1,2]}`)).Ref)
	v, err := a.Data("")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		offset, limit int
		want          string
		next          int
	}{{0, 1, `{"content":[1,2]}`, -1}, {0, 9, `{"content":[1,2]}`, -1}, {1, 1, `{}`, -1}, {0, 0, `{}`, 0}} {
		s, err := v.Slice(tt.offset, tt.limit)
		if err != nil || jsonOf(t, s.Value) != tt.want || s.Total != 1 || s.Next != tt.next {
			t.Errorf("from %d, %d = %s of %d, next %d, %v", tt.offset, tt.limit, jsonOf(t, s.Value), s.Total, s.Next, err)
		}
	}
}

func TestDeepDocuments(t *testing.T) {
	const depth = 900
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		doc := strings.Repeat(`{"a":`, depth) + `"` + words(2500) + `"` + strings.Repeat("}", depth)
		ref := keep(t, k, ann, structured(t, doc)).Ref
		a := open(t, k, ann, ref)
		if got := at(t, a, strings.Repeat("/a", depth)); got != `"`+words(2500)+`"` {
			t.Errorf("the innermost is %.100s", got)
		}
		inner := open(t, k, ann, ref+strings.Repeat(".1", depth-1))
		if got := at(t, inner, "/a"); got != `"`+words(2500)+`"` {
			t.Errorf("the innermost is %.100s", got)
		}
		if got, want := inner.Meta().Parent, ref+strings.Repeat(".1", depth-2); got != want {
			t.Errorf("its parent is %s", got)
		}
		if got, want := summary(t, a, ""), fmt.Sprintf(`{"a":{"@ref":"%s.1","@bytes":%d}}`, ref, len(doc)-6); got != want {
			t.Errorf("the summary is %s, want %s", got, want)
		}
		v, err := a.Data("")
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := v.Search(Search{Text: "word7 "})
		if err != nil || len(m) != 1 || m[0].Pointer != strings.Repeat("/a", depth) {
			t.Errorf("found %+v, %v", m, err)
		}
		lists := strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
		a = open(t, k, ann, keep(t, k, ann, structured(t, lists)).Ref)
		if got := at(t, a, strings.Repeat("/0", depth)); got != "1" {
			t.Errorf("the innermost is %s", got)
		}
	})
}

func TestLongArrays(t *testing.T) {
	const n = 100_000
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", i)
		}
		a := open(t, k, ann, keep(t, k, ann, structured(t, `{"l":[`+b.String()[1:]+`]}`)).Ref)
		for _, i := range []int{0, 1, 4095, 50_000, n - 1} {
			if got := at(t, a, fmt.Sprint("/l/", i)); got != fmt.Sprint(i) {
				t.Errorf("/l/%d = %s", i, got)
			}
		}
		v, err := a.Data("/l")
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.Slice(77_777, 3)
		if err != nil || jsonOf(t, s.Value) != "[77777,77778,77779]" || s.Total != n || s.Next != 77_780 {
			t.Errorf("the slice is %s of %d, next %d, %v", jsonOf(t, s.Value), s.Total, s.Next, err)
		}
		s, err = v.Slice(1, n-2)
		if err != nil || s.Next != n-1 || s.Size() != v.Size()-int64(len("0,")+len(",99999")) {
			t.Errorf("all but the ends: %d bytes, next %d, %v", s.Size(), s.Next, err)
		}
		if _, err := a.Data(fmt.Sprint("/l/", n)); kindOf(err) != bridge.NotFound {
			t.Errorf("the one behind the last: %v", err)
		}
	})
}

// A number of levels that no request may have, but a server's result can.
func TestDeepestDocument(t *testing.T) {
	const depth = 9900
	doc := strings.Repeat(`[`, depth) + `"` + words(5000) + `"` + strings.Repeat("]", depth)
	if err := raw.CheckAny([]byte(`{"r":` + doc + `}`)); err != nil {
		t.Fatal(err)
	}
	k := New(Options{Store: NewMemory(1 << 30)})
	a := open(t, k, ann, keep(t, k, ann, structured(t, doc)).Ref)
	if got := at(t, a, strings.Repeat("/0", depth)); len(got) != 5002 {
		t.Errorf("the innermost has %d bytes", len(got))
	}
	if got := summary(t, a, ""); len(got) > 2*depth+1000 {
		t.Errorf("the summary has %d bytes", len(got))
	}
}

// Of equal keys the last one counts, however they are written, with an index and without.
func TestEqualKeys(t *testing.T) {
	for name, filler := range map[string]string{"small": "1", "large": `"` + words(9000) + `"`} {
		doc := `{"k":1,"\u006b":2,"filler":` + filler + `,"k":{"x":3},"half \ud800":[4]}`
		eachStore(t, func(t *testing.T, store Store) {
			// The test's own result is not checked as a server's is: that may send what is no strict JSON.
			r, err := bridge.ParseResult([]byte(`{"structuredContent":` + doc + `}`))
			if err != nil {
				t.Fatal(err)
			}
			k := New(Options{Store: store})
			a := open(t, k, ann, keep(t, k, ann, r).Ref)
			for pointer, want := range map[string]string{"/k": `{"x":3}`, "/k/x": "3", "/half \ufffd/0": "4", "": doc} {
				if got := at(t, a, pointer); got != want {
					t.Errorf("%s, %q = %.200s, want %.200s", name, pointer, got, want)
				}
			}
		})
	}
}
