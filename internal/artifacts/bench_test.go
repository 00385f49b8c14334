package artifacts

import (
	"fmt"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
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
