package artifacts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

func TestSummaries(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store, Summaries: 10})
		png := base64.StdEncoding.EncodeToString(make([]byte, 3001))
		for _, tt := range []struct{ name, doc, want string }{
			{"short", `{"a" : "x"}`, `{"a" : "x"}`},
			{"1000 characters", `{"a":"` + strings.Repeat("é", 1000) + `"}`, `{"a":"` + strings.Repeat("é", 1000) + `"}`},
			{"1001 characters, no word ends", `{"a":"` + strings.Repeat("é", 1001) + `"}`, `{"a":"[SUMMARY: 1001 chars] ` + strings.Repeat("é", 500) + `..."}`},
			{"a word ends at the cut", `["` + strings.Repeat("a", 500) + " " + strings.Repeat("b", 600) + `"]`, `["[SUMMARY: 1101 chars] ` + strings.Repeat("a", 500) + `..."]`},
			{"a word ends 50 before", `["` + strings.Repeat("a", 450) + " " + strings.Repeat("b", 600) + `"]`, `["[SUMMARY: 1051 chars] ` + strings.Repeat("a", 450) + `..."]`},
			{"a word ends 51 before", `["` + strings.Repeat("a", 449) + " " + strings.Repeat("b", 600) + `"]`, `["[SUMMARY: 1050 chars] ` + strings.Repeat("a", 449) + " " + strings.Repeat("b", 50) + `..."]`},
			{"spaces at the cut", `["` + strings.Repeat("a", 480) + `\n\n` + strings.Repeat(" ", 600) + `"]`, `["[SUMMARY: 1082 chars] ` + strings.Repeat("a", 480) + `..."]`},
			{"escapes", `["` + strings.Repeat(`\"\\\ud83d\ude00\ud800`, 300) + `"]`, `["[SUMMARY: 1200 chars] ` + strings.Repeat(`\"\\😀�`, 125) + `..."]`},
			{"a root", `"` + strings.Repeat("a", 1001) + `"`, `"[SUMMARY: 1001 chars] ` + strings.Repeat("a", 500) + `..."`},
			{"white space goes where something is cut", "[ 1 ,\n {\"a\": \"" + strings.Repeat("a", 1001) + `"}, 1.10 ]`, `[1,{"a":"[SUMMARY: 1001 chars] ` + strings.Repeat("a", 500) + `..."},1.10]`},
			{"an image", `{"type":"image","mimeType":"image/png","data":"` + png + `"}`, `{"type":"image","mimeType":"image/png","data":"[SUMMARY: image/png, 3001 bytes]"}`},
			{"audio, type last", `{"data":"` + png + `","type":"audio"}`, `{"data":"[SUMMARY: application/octet-stream, 3001 bytes]","type":"audio"}`},
			{"a blob", `{"type":"resource","resource":{"uri":"x:1","mimeType":"a/b","blob":"` + png + `"}}`, `{"type":"resource","resource":{"@ref":"REF.1","@bytes":4044}}`},
			{"data of another kind", `{"type":"text","data":"` + strings.Repeat("a", 1001) + `"}`, `{"type":"text","data":"[SUMMARY: 1001 chars] ` + strings.Repeat("a", 500) + `..."}`},
			{"a blob without uri", `{"blob":"` + strings.Repeat("a", 1001) + `"}`, `{"blob":"[SUMMARY: 1001 chars] ` + strings.Repeat("a", 500) + `..."}`},
			{"nested", `{"a":{"k":"` + strings.Repeat("a", 1993) + `"},"b":{"k":"` + strings.Repeat("a", 1992) + `"},"c":[{"k":"` + strings.Repeat("a", 1993) + `"}]}`, `{"a":{"@ref":"REF.1","@bytes":2001},"b":{"k":"[SUMMARY: 1992 chars] ` + strings.Repeat("a", 500) + `..."},"c":[{"@ref":"REF.2","@bytes":2001}]}`},
			{"an array is never nested", `{"a":[` + strings.Repeat("1,", 3000) + `1]}`, `{"a":[` + strings.Repeat("1,", 3000) + `1]}`},
			{"compact size counts", `{"a":{"k":` + strings.Repeat(" ", 3000) + `1}}`, `{"a":{"k":1}}`},
		} {
			t.Run(tt.name, func(t *testing.T) {
				ref := keep(t, k, ann, structured(t, tt.doc)).Ref
				want := strings.ReplaceAll(tt.want, "REF", ref)
				for range 2 { // computed, then from the cache
					if diff := cmp.Diff(want, summary(t, open(t, k, ann, ref), "")); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		}
	})
}

func TestSummaryOfBlocks(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	png := base64.StdEncoding.EncodeToString(make([]byte, 3000))
	doc := `{"_meta":{},"content":[{"type":"text","text":"` + words(3000) + `"},{"type":"image","mimeType":"image/png","data":"` + png + `"},{"type":"resource","resource":{"uri":"x:1","mimeType":"a/b","blob":"` + png + `"}},{"type":"other","v":{"k":"` + words(2500) + `"}}]}`
	ref := keep(t, k, ann, result(t, doc)).Ref
	a := open(t, k, ann, ref)
	text := fmt.Sprintf("[SUMMARY: 3000 chars] %s...", words(3000)[:strings.LastIndexByte(words(501), ' ')])
	want := `{"content":[{"type":"text","text":"` + text + `"},{"type":"image","mimeType":"image/png","data":"[SUMMARY: image/png, 3000 bytes]"},{"type":"resource","resource":{"uri":"x:1","mimeType":"a/b","blob":"[SUMMARY: a/b, 3000 bytes]"}},{"type":"other","v":{"@ref":"` + ref + `.1","@bytes":2508}}]}`
	if diff := cmp.Diff(want, summary(t, a, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	v, err := a.Result("")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := v.Summarize(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"_meta":{},`+want[1:], b.String()); diff != "" {
		t.Errorf("the whole result (-want +got):\n%s", diff)
	}
}

// What a summary shows of nested artifacts does not depend on the way to them.
func TestSummaryThroughTheParent(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20), Summaries: 100})
	doc := `{"x":1,"a":{"s":"` + words(1500) + `","b":{"s":"` + words(2500) + `","t":[{"u":"` + words(2500) + `"},{"v":"` + words(2100) + `"}]}}}`
	ref := keep(t, k, ann, structured(t, doc)).Ref
	for pointer, nested := range map[string]string{"": "", "/a": ".1", "/a/b": ".1.1", "/a/b/t/0": ".1.1.1", "/a/b/t/1": ".1.1.2"} {
		want := summary(t, open(t, k, ann, ref+nested), "")
		if got := summary(t, open(t, k, ann, ref), pointer); got != want {
			t.Errorf("%s is %s, but as %s it is %s", pointer, got, nested, want)
		}
	}
	want := `[{"@ref":"` + ref + `.1.1.1","@bytes":2508},{"@ref":"` + ref + `.1.1.2","@bytes":2108}]`
	if got := summary(t, open(t, k, ann, ref), "/a/b/t"); got != want {
		t.Errorf("/a/b/t is %s", got)
	}
	if got := summary(t, open(t, k, ann, ref+".1.1"), "/t"); got != want {
		t.Errorf("/t of .1.1 is %s", got)
	}
	v, err := open(t, k, ann, ref).Data("/a/b/t")
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Slice(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Summarize(&b); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `[{"@ref":"`+ref+`.1.1.2","@bytes":2108}]`; got != want {
		t.Errorf("a slice of it is %s, want %s", got, want)
	}
	// The cache knows every string by the artifact that holds it.
	keys := map[string]bool{}
	for _, key := range k.summaries.Keys() {
		keys[strings.TrimPrefix(key.ref, ref)+" "+key.pointer] = true
	}
	if diff := cmp.Diff(map[string]bool{".1 /s": true, ".1.1 /s": true, ".1.1.1 /u": true, ".1.1.2 /v": true}, keys); diff != "" {
		t.Errorf("the cache (-want +got):\n%s", diff)
	}
}

func TestSummaryOfAStringSliceIsTheSlice(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	v, err := open(t, k, ann, keep(t, k, ann, structured(t, `"`+words(5000)+`"`)).Ref).Data("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Slice(0, 2000)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Summarize(&b); err != nil || b.String() != `"`+words(2000)+`"` {
		t.Errorf("Summarize = %d bytes, %v", b.Len(), err)
	}
}

type broken struct{ left int }

var errGone = errors.New("gone")

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

func TestWritersThatFail(t *testing.T) {
	k := New(Options{Store: pieces{NewMemory(1 << 20)}})
	doc := `{"a":"` + words(100_000) + `","l":[` + strings.Repeat("1,", 50_000) + `1]}`
	for _, r := range []*bridge.Result{structured(t, doc), result(t, `{"content":[`+doc+`],"_meta":{}}`)} {
		a := open(t, k, ann, keep(t, k, ann, r).Ref)
		v, err := a.Data("")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 10, 1000, 90_000} {
			if _, err := v.WriteTo(&broken{n}); !errors.Is(err, errGone) {
				t.Errorf("WriteTo = %v", err)
			}
			if err := v.Summarize(&broken{n}); !errors.Is(err, errGone) {
				t.Errorf("Summarize = %v", err)
			}
		}
	}
	v, err := open(t, k, ann, keep(t, k, ann, structured(t, `"`+words(100_000)+`"`)).Ref).Data("")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Text(&broken{10}); !errors.Is(err, errGone) {
		t.Errorf("Text = %v", err)
	}
}

func TestSearch(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		doc := `{"needle":"no key counts","a":["The Needle here","needleNEEDLE"],"b/c":{"~":"` + words(5000) + `a ne\u0065dle and ` + words(5000) + `"},"n":1,"s":"ſtraße"}`
		a := open(t, k, ann, keep(t, k, ann, structured(t, doc)).Ref)
		search := func(pointer string, s Search) ([]Match, bool) {
			t.Helper()
			v, err := a.Data(pointer)
			if err != nil {
				t.Fatal(err)
			}
			m, more, err := v.Search(s)
			if err != nil {
				t.Fatal(err)
			}
			return m, more
		}
		deep := Match{Pointer: "/b~1c/~0", Offset: 5002, Excerpt: (words(5000) + "a ")[5002-200:] + "needle and " + words(5000)[:195]}
		all := []Match{{"/a/0", 4, "The Needle here"}, {"/a/1", 0, "needleNEEDLE"}, {"/a/1", 6, "needleNEEDLE"}, deep}
		got, more := search("", Search{Text: "NeeDle"})
		if diff := cmp.Diff(all, got); diff != "" || more {
			t.Errorf("more: %v (-want +got):\n%s", more, diff)
		}
		if got, more = search("", Search{Text: "needle", Limit: 3}); !cmp.Equal(got, all[:3]) || !more {
			t.Errorf("three = %+v, more: %v", got, more)
		}
		if got, more = search("", Search{Text: "needle", Limit: 4}); !cmp.Equal(got, all) || more {
			t.Errorf("four = %+v, more: %v", got, more)
		}
		if got, _ = search("/a/0", Search{Text: "needle", Around: 2}); !cmp.Equal(got, []Match{{"/a/0", 4, "e Needle h"}}) {
			t.Errorf("with two around = %+v", got)
		}
		if got, _ = search("", Search{Text: "STRA"}); !cmp.Equal(got, []Match{{"/s", 0, "ſtraße"}}) {
			t.Errorf("by case folding = %+v", got)
		}
		if got, more = search("", Search{Text: "nowhere"}); got == nil || len(got) != 0 || more {
			t.Errorf("nothing = %+v, %v", got, more)
		}
		v, err := a.Data("/a")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := v.Search(Search{}); kindOf(err) != bridge.Malformed {
			t.Errorf("searching for nothing: %v", err)
		}
		s, err := v.Slice(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Search(Search{Text: "needle"}); err != nil || !cmp.Equal(got, all[1:3]) {
			t.Errorf("in a slice = %+v, %v", got, err)
		}
	})
}

func TestEscapesAreSearched(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	doc := `"\"\\\/\b\f\n\r\t\u00e9\u00C9\ud83D\uDe00\ud83dx\udE00\ud83d\ud83d\ude00é漢😀"`
	v, err := open(t, k, ann, keep(t, k, ann, structured(t, doc)).Ref).Data("")
	if err != nil {
		t.Fatal(err)
	}
	text := []rune(raw.Unquote([]byte(doc)))
	for i, r := range text {
		want := -1
		for j, q := range text {
			if fold(q) == fold(r) {
				want = j
				break
			}
		}
		m, _, err := v.Search(Search{Text: string(r), Limit: 1, Around: 1})
		if err != nil || len(m) != 1 || m[0].Offset != want || m[0].Excerpt != string(text[max(0, want-1):min(len(text), want+2)]) {
			t.Errorf("the %d. character %q: %+v, %v", i, r, m, err)
		}
	}
}

func TestSearchForWhatRepeatsItself(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	for _, text := range []string{"abaabaabab", "aaaaaaa", "abcabcabdabcabcabd", strings.Repeat("aab", 30)} {
		v, err := open(t, k, ann, keep(t, k, ann, structured(t, quote(text))).Ref).Data("")
		if err != nil {
			t.Fatal(err)
		}
		for from := range text {
			for to := from + 1; to <= len(text); to++ {
				var want []int
				for at := 0; ; {
					i := strings.Index(text[at:], text[from:to])
					if i < 0 {
						break
					}
					want = append(want, at+i)
					at += i + to - from
				}
				m, _, err := v.Search(Search{Text: text[from:to], Limit: 100})
				var got []int
				for _, m := range m {
					got = append(got, m.Offset)
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Fatalf("%q in %q: %v (-want +got):\n%s", text[from:to], text, err, diff)
				}
			}
		}
	}
}

func TestSearchInASliceOfAString(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	v, err := open(t, k, ann, keep(t, k, ann, structured(t, `"`+words(20_000)+`"`)).Ref).Data("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Slice(0, 100)
	if err != nil {
		t.Fatal(err)
	}
	m, more, err := s.Search(Search{Text: "word10 ", Around: 1000})
	if err != nil || more || len(m) != 1 || m[0].Excerpt != words(100) || m[0].Offset != strings.Index(words(100), "word10") {
		t.Errorf("found %+v, %v", m, err)
	}
	if s, err = v.Slice(strings.Index(words(20_000), "word10 "), 10_000); err != nil {
		t.Fatal(err)
	}
	if m, _, err = s.Search(Search{Text: "word10 ", Around: 4}); err != nil || len(m) != 1 || m[0].Excerpt != "word10 word" || m[0].Offset != strings.Index(words(100), "word10") {
		t.Errorf("found %+v, %v", m, err)
	}
}

func TestSearchInContentAndAcrossPieces(t *testing.T) {
	k := New(Options{Store: pieces{NewMemory(1 << 30)}})
	const piece = 256 << 10
	for _, before := range []int{0, 1, piece - 210, piece - 5, piece - 1, piece, piece + 3, 3*piece - 2} {
		doc := `{"_meta":{},"content":[{"type":"text","text":"` + strings.Repeat("x", before) + "NEEDLE" + strings.Repeat("y", 700) + `"}]}`
		v, err := open(t, k, ann, keep(t, k, ann, result(t, doc)).Ref).Data("")
		if err != nil {
			t.Fatal(err)
		}
		want := []Match{{"/content/0/text", before, strings.Repeat("x", min(before, 200)) + "NEEDLE" + strings.Repeat("y", 200)}}
		got, more, err := v.Search(Search{Text: "needle"})
		if diff := cmp.Diff(want, got); diff != "" || more || err != nil {
			t.Errorf("behind %d: more: %v, %v (-want +got):\n%s", before, more, err, diff)
		}
	}
}
