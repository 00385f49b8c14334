package artifacts

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// benchDocs are results of the kinds that servers send.
func benchDocs() map[string]string {
	var rows, flat strings.Builder
	for i := range 100_000 {
		if i > 0 {
			rows.WriteByte(',')
			flat.WriteByte(',')
		}
		fmt.Fprintf(&rows, `{"id":%d,"name":"name of %d","score":%d.5,"tags":["a","b"],"note":%q}`, i, i, i%100, words(i%300))
		fmt.Fprintf(&flat, "%d", i)
	}
	return map[string]string{
		"small":  `{"content":[{"type":"text","text":"{\"sum\":42}"}],"structuredContent":{"sum":42}}`,
		"page":   `{"content":[{"type":"text","text":"` + strings.Repeat(`a line of text\n`, 7000) + `"}]}`,
		"text":   `{"content":[{"type":"text","text":"` + strings.Repeat(`a line of text\n`, 3_500_000) + `"}]}`,
		"plain":  `{"content":[{"type":"text","text":"` + strings.Repeat(`a line of text  `, 3_200_000) + `"}]}`,
		"rows":   `{"structuredContent":{"rows":[` + rows.String() + `]}}`,
		"digits": `{"structuredContent":{"list":[` + flat.String() + `]}}`,
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, name := range []string{"small", "page", "text", "plain", "rows", "digits"} {
		doc := benchDocs()[name]
		b.Run(name, func(b *testing.B) {
			bytes, l := pack(result(b, doc))
			b.SetBytes(int64(len(bytes)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = len(walk(bytes, l, 2000))
			}
			b.ReportMetric(float64(n)/float64(len(bytes)), "index/byte")
		})
	}
}

func BenchmarkRedis(b *testing.B) {
	s := redistest.New(b)
	b.Cleanup(s.Stop)
	k := New(Options{Store: openRedis(b, s.URL())})
	b.Run("keep small", func(b *testing.B) {
		r := result(b, benchDocs()["small"])
		b.ReportAllocs()
		for b.Loop() {
			keep(b, k, ann, r)
		}
	})
	for name, d := range large() {
		r := structured(b, d.doc)
		b.Run("keep/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(r.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := k.Delete(b.Context(), ann, keep(b, k, ann, r).Ref); err != nil {
					b.Fatal(err)
				}
			}
		})
		ref := keep(b, k, ann, r).Ref
		for pointer := range d.pointers {
			b.Run(fmt.Sprintf("field/%s%.30s", name, pointer), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					at(b, open(b, k, ann, ref), pointer)
				}
			})
		}
		b.Run("whole/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(r.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				v, err := open(b, k, ann, ref).Data("")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := v.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := k.Delete(b.Context(), ann, ref); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkViews(b *testing.B) {
	k := New(Options{Store: NewMemory(1 << 30), Summaries: 1000})
	for _, name := range []string{"page", "text", "rows"} {
		ref := keep(b, k, ann, result(b, benchDocs()[name])).Ref
		for view, f := range map[string]func(*Value) error{
			"summary": func(v *Value) error { return v.Summarize(io.Discard) },
			"search":  func(v *Value) error { _, _, err := v.Search(Search{Text: "nowhere at all"}); return err },
		} {
			b.Run(view+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					v, err := open(b, k, ann, ref).Data("")
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(v.Size())
					if err := f(v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkKeep(b *testing.B) {
	for _, name := range []string{"small", "page"} {
		doc := benchDocs()[name]
		b.Run(name, func(b *testing.B) {
			k := New(Options{Store: NewMemory(64 << 20)})
			r := result(b, doc)
			b.ReportAllocs()
			for b.Loop() {
				if k.Keep(b.Context(), ann, tool, r, &bridge.Timing{}) == nil {
					b.Fatal("not kept")
				}
			}
		})
	}
}
