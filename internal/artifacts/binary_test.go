package artifacts

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// noise returns n bytes that are the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < n; i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}

// A range is what the same bytes of the whole are, whatever the base64 looks like.
func TestRangesOfBytes(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		for n := 20_000; n < 20_003; n++ {
			want := noise(n)
			padded := base64.StdEncoding.EncodeToString(want)
			for name, text := range map[string]string{
				"padded": padded, "bare": strings.TrimRight(padded, "="), "escaped": strings.ReplaceAll(padded, "/", `\/`),
				"lines": padded[:10_000] + `\r\n` + padded[10_000:15_000] + `\n` + padded[15_000:],
			} {
				a := open(t, k, ann, keep(t, k, ann, result(t, `{"content":[{"type":"image","mimeType":"image/png","data":"`+text+`"}]}`)).Ref)
				v, err := a.Data("/content/0")
				if err != nil {
					t.Fatal(err)
				}
				b, err := v.Binary()
				if err != nil || b.Size != n || b.MediaType != "image/png" || (b.data == nil) != (name == "padded" || name == "bare") {
					t.Fatalf("%d bytes, %s: %+v, %v", n, name, b, err)
				}
				for _, r := range [][2]int{{0, n}, {0, 0}, {n, n}, {0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 6}, {1, 3}, {2, 7}, {5000, 5000}, {9999, 10_001}, {n - 1, n}, {n - 2, n}, {n - 3, n}, {n - 4, n - 1}, {1, n - 1}} {
					if got, err := b.Bytes(r[0], r[1]); err != nil || string(got) != string(want[r[0]:r[1]]) {
						t.Errorf("%d bytes, %s, from %d to %d: %d bytes, %v", n, name, r[0], r[1], len(got), err)
					}
				}
			}
		}
	})
}

func TestBrokenBase64(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 30)})
	good := base64.StdEncoding.EncodeToString(noise(9000))
	for name, text := range map[string]string{
		"a character less": good[:len(good)-3], "bad padding": good + "=", "too much padding": good[:len(good)-3] + "===", "padding alone": good + "====",
		"a space": good[:6000] + "    " + good[6000:], "the end in the middle": good[:6000] + "AA==" + good[6000:], "another alphabet": good[:6000] + "-_-_" + good[6000:], "no ASCII": good[:6000] + "éé" + good[6000:],
	} {
		v, err := open(t, k, ann, keep(t, k, ann, result(t, `{"content":[{"type":"audio","data":"`+text+`"}]}`)).Ref).Data("/content/0")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := bytesOf(v); kindOf(err) != bridge.Malformed {
			t.Errorf("%s: %v", name, err)
		}
		b, err := v.Binary()
		if err != nil {
			continue // it shows at once
		}
		if _, err := b.Bytes(4501, 4502); kindOf(err) != bridge.Malformed {
			t.Errorf("%s, the bytes that are broken: %v", name, err)
		}
	}
}

// A range of a large block moves little more than itself.
func TestRangeOfALargeBlockMovesLittle(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	k := New(Options{Store: openRedis(t, p.url())})
	want := noise(12 << 20)
	ref := keep(t, k, ann, result(t, `{"content":[{"type":"resource","resource":{"uri":"x:1","blob":"`+base64.StdEncoding.EncodeToString(want)+`"}}]}`)).Ref
	for _, from := range []int{0, 7 << 20, len(want) - 100} {
		before := p.got.Load() + p.sent.Load()
		v, err := open(t, k, ann, ref).Data("/content/0")
		if err != nil {
			t.Fatal(err)
		}
		b, err := v.Binary()
		if err != nil || b.Size != len(want) {
			t.Fatalf("%+v, %v", b, err)
		}
		if got, err := b.Bytes(from, from+100); err != nil || string(got) != string(want[from:from+100]) {
			t.Errorf("from %d: %d bytes, %v", from, len(got), err)
		}
		moved := p.got.Load() + p.sent.Load() - before
		if moved > 64<<10 {
			t.Errorf("100 bytes from %d moved %d", from, moved)
		}
		t.Logf("100 bytes from %d of %d: %d moved", from, len(want), moved)
	}
}
