package artifacts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

func TestReadText(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		c := bridge.Caller{User: mint()}
		ref := keep(t, k, c, structured(t, `{"text":"Über \u00fc\ud83d\ude00 \"x\"","n":9007199254740993,"list":[1.10, "äö"],"empty":"","big":{"k":"`+words(3000)+`"}}`)).Ref
		tests := []struct {
			ref, pointer  string
			offset, limit int
			want          string
			next          int
		}{
			{ref, "/text", 0, 100, `Über ü😀 "x"`, -1},
			{ref, "/text", 0, 6, `Über ü`, 6},
			{ref, "/text", 6, 1, `😀`, 7},
			{ref, "/text", 99, 5, ``, -1},
			{ref, "/empty", 0, 5, ``, -1},
			{ref, "/n", 0, 100, `9007199254740993`, -1},
			{ref, "/n", 0, 4, `9007`, 4},
			{ref, "/n", 12, 4, `0993`, -1},
			{ref, "/list", 0, 100, `[1.10, "äö"]`, -1},
			{ref, "/list", 8, 1, `ä`, 9},
			{ref, "/list", 9, 10, `ö"]`, -1},
			{ref, "/list", 12, 5, ``, -1},
			{ref, "/list", 5, 0, ``, 5},
			{ref, "", 0, 9, `{"text":"`, 9},
			{ref + ".1", "/k", 5, 5, words(10)[5:], 10},
			{"«artifact:" + ref + "»", "/list/0", 0, 10, `1.10`, -1},
		}
		for _, tt := range tests {
			got, next, err := k.ReadText(t.Context(), c, tt.ref, tt.pointer, tt.offset, tt.limit)
			if err != nil || got != tt.want || next != tt.next {
				t.Errorf("ReadText(%q, %d, %d) = %q, %d, %v, want %q, %d", tt.pointer, tt.offset, tt.limit, got, next, err, tt.want, tt.next)
			}
		}
		for _, bad := range []struct {
			c             bridge.Caller
			ref, pointer  string
			offset, limit int
			want          bridge.Kind
		}{
			{c, "mcp~none", "", 0, 1, bridge.NotFound},
			{bob, ref, "", 0, 1, bridge.NotFound},
			{c, ref, "/nowhere", 0, 1, bridge.NotFound},
			{c, ref, "text", 0, 1, bridge.Malformed},
			{c, ref, "/text", -1, 1, bridge.Malformed},
			{c, ref, "/text", 0, -1, bridge.Malformed},
			{c, ref, "/n", -1, 1, bridge.Malformed},
			{c, ref, "/n", 0, -1, bridge.Malformed},
		} {
			if _, _, err := k.ReadText(t.Context(), bad.c, bad.ref, bad.pointer, bad.offset, bad.limit); kindOf(err) != bad.want {
				t.Errorf("ReadText(%s, %q, %d, %d) = %v, want %s", bad.ref, bad.pointer, bad.offset, bad.limit, err, bad.want)
			}
		}
	})
}

// The text of a long array is not read farther than it is asked for.
func TestReadTextReadsNoMore(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	k := New(Options{Store: openRedis(t, p.url())})
	ref := keep(t, k, ann, structured(t, `[`+strings.Repeat(`{"k":"`+words(1000)+`"},`, 10_000)+`0]`)).Ref
	before := p.got.Load() + p.sent.Load()
	if text, next, err := k.ReadText(t.Context(), ann, ref, "", 0, 10_000); err != nil || next != 10_000 || len(text) != 10_000 {
		t.Errorf("ReadText = %d bytes, %d, %v", len(text), next, err)
	}
	if moved := p.got.Load() + p.sent.Load() - before; moved > 128<<10 {
		t.Errorf("10000 characters moved %d bytes", moved)
	}
}

func TestSearchText(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		c := bridge.Caller{User: mint()}
		ref := keep(t, k, c, result(t, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 300)+` Needle `+strings.Repeat("y", 300)+`"}]}`)).Ref
		many := keep(t, k, c, structured(t, `{"l":["`+strings.Repeat(`needle","`, 11)+`"]}`)).Ref
		search := func(c bridge.Caller, ref, text string) (got []string, more bool, err error) {
			more, err = k.SearchText(t.Context(), c, ref, text, func(pointer string, offset int, excerpt string) {
				got = append(got, fmt.Sprintf("%s %d %s", pointer, offset, excerpt))
			})
			return got, more, err
		}
		got, more, err := search(c, ref, "needle")
		want := []string{"/content/0/text 301 " + strings.Repeat("x", 199) + " Needle " + strings.Repeat("y", 199)}
		if diff := cmp.Diff(want, got); diff != "" || more || err != nil {
			t.Errorf("more %v, %v, matches (-want +got):\n%s", more, err, diff)
		}
		if got, more, err := search(c, many, "NEEDLE"); len(got) != 10 || !more || err != nil {
			t.Errorf("of eleven: %d, %v, %v", len(got), more, err)
		}
		if _, _, err := search(bob, ref, "needle"); kindOf(err) != bridge.NotFound {
			t.Errorf("in another's: %v", err)
		}
		if _, _, err := search(c, ref, ""); kindOf(err) != bridge.Malformed {
			t.Errorf("for nothing: %v", err)
		}
	})
}

// What keeps nothing has nothing to read.
func TestDiscardHasNoText(t *testing.T) {
	if _, _, err := (Discard{}).ReadText(t.Context(), ann, mint(), "", 0, 1); kindOf(err) != bridge.NotFound {
		t.Errorf("ReadText = %v", err)
	}
	if _, err := (Discard{}).SearchText(t.Context(), ann, mint(), "x", nil); kindOf(err) != bridge.NotFound {
		t.Errorf("SearchText = %v", err)
	}
}
