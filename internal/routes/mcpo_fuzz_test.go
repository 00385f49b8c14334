package routes

import (
	"slices"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Whatever a server sends, what /mcpo answers is JSON, with every block in it:
// the block itself, or its text or bytes as they were sent.
func FuzzBodyMCPO(f *testing.F) {
	for _, e := range []string{
		`{"content":[{"type":"text","text":"{\"a\":1.10}"}]}`,
		`{"content":[{"type":"text","text":"\ud800"},{"type":"image","data":"AA\/A","mimeType":"a\"b"},{"type":"audio","data":""},7,{"type":"x"}]}`,
		`{"content":[{"type":"resource","resource":{"text":"[1,"}},{"type":"resource","resource":{"blob":"AA"}},{"type":"resource"}]}`,
		`{"structuredContent":{"n":1e400},"isError":true}`,
		`{"content":[{"type":"text","text":"a","text":5}]}`,
		`{"content":[{"type":"text","text":" "},{"type":"text","text":"` + "\u2028" + `"}],"isError":true}`,
	} {
		f.Add([]byte(e))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		if raw.CheckAny(sent) != nil {
			return
		}
		res, err := bridge.ParseResult(sent)
		if err != nil {
			return
		}
		body := bodyMCPO(res)
		if err := raw.CheckAny(body); err != nil {
			t.Fatalf("%s became %s: %v", sent, body, err)
		}
		if err := raw.CheckAny(toolErrorMCPO(res)); err != nil {
			t.Fatalf("%s became %s: %v", sent, toolErrorMCPO(res), err)
		}
		blocks := slices.Collect(res.Blocks())
		parts := [][]byte{body}
		switch {
		case len(blocks) == 0:
			return
		case len(blocks) > 1:
			parts = parts[:0]
			for _, e := range raw.Elements(body) {
				parts = append(parts, e)
			}
		}
		if len(parts) != len(blocks) {
			t.Fatalf("%d blocks became %d: %s", len(blocks), len(parts), body)
		}
		for i, b := range blocks {
			want := string(b.Raw)
			if text, ok := b.Text(); ok {
				if want = strings.Trim(text, " \t\r\n"); raw.CheckAny([]byte(text)) != nil {
					if got := raw.Unquote(parts[i]); got != text {
						t.Fatalf("the text %q became %q", text, got)
					}
					continue
				}
			} else if _, data, ok := b.Binary(); ok {
				if !strings.HasSuffix(raw.Unquote(parts[i]), ";base64,"+string(data)) {
					t.Fatalf("the bytes %s became %s", b.Raw, parts[i])
				}
				continue
			}
			if got := strings.Trim(string(parts[i]), " \t\r\n"); got != want {
				t.Fatalf("the block %s became %s", want, got)
			}
		}
	})
}
