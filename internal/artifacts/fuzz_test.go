package artifacts

import (
	"bytes"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// FuzzKeep states what holds for any result: not a byte of it is lost, every pointer leads where it should, slices join to the
// whole, and nested artifacts are what the rule says, from memory as from pieces.
func FuzzKeep(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"a":[1,{"b":"\ud800x"}]},"_meta":{}}`))
	f.Add([]byte(`{"structuredContent":{"a":{"k":"` + words(2500) + `","l":[` + string(bytes.Repeat([]byte(`"x\n\"\\",`), 800)) + `1]}}}`))
	f.Add([]byte(`{"structuredContent":"` + words(9000) + `é😀\ud83d\ude00"}`))
	f.Add([]byte("{\"structuredContent\":{\"\":\"\xff\x80\x80\", \"dup\":1,\"dup\":2}}"))
	f.Add([]byte(pointers))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 || raw.CheckAny(b) != nil {
			return
		}
		r, err := bridge.ParseResult(b)
		if err != nil {
			return
		}
		for _, store := range []Store{NewMemory(1 << 30), pieces{NewMemory(1 << 30)}} {
			k := New(Options{Store: store})
			a := open(t, k, ann, keep(t, k, ann, r).Ref)
			v, err := a.Result("")
			if err != nil {
				t.Fatal(err)
			}
			if got := jsonOf(t, v); got != string(bytes.TrimLeft(b, " \t\r\n")) {
				t.Fatalf("the whole result is %q, want %q", got, b)
			}
			doc := bytes.Join(r.Data(), nil)
			v, err = a.Data("")
			if err != nil {
				t.Fatal(err)
			}
			if got := jsonOf(t, v); got != string(bytes.TrimLeft(doc, " \t\r\n")) && got != string(doc) {
				t.Fatalf("the data is %q, want %q", got, doc)
			}
			var out bytes.Buffer
			if err := v.Summarize(&out); err != nil || raw.CheckAny(out.Bytes()) != nil {
				t.Fatalf("the summary is %q, %v", out.Bytes(), err)
			}
			if _, _, err := v.Search(Search{Text: "l"}); err != nil {
				t.Fatal(err)
			}
			for i, l := range everything("", doc) {
				if i == 300 {
					break
				}
				v, err := a.Data(l.pointer)
				if err != nil {
					t.Fatalf("at %q: %v", l.pointer, err)
				}
				if got := jsonOf(t, v); got != string(l.val) && l.pointer != "" {
					t.Fatalf("at %q = %q, want %q", l.pointer, got, l.val)
				}
				if i < 20 {
					checkSlices(t, v, l.val)
				}
			}
		}
	})
}
