package artifacts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpbridge/internal/raw"
)

// pieces is a memory store that hands out only what is asked for, as a store over a network does.
type pieces struct{ *Memory }

func (p pieces) get(ctx context.Context, o owner, ref string) (*record, source, error) {
	r, src, err := p.Memory.get(ctx, o, ref)
	return r, pieceSource{src}, err
}

type pieceSource struct{ source }

func (pieceSource) whole(part) []byte { return nil }

// read returns a copy that ends where it ends: reading past it panics.
func (s pieceSource) read(p part, from, to int) ([]byte, error) {
	b, err := s.source.read(p, from, to)
	return bytes.Clone(slices.Clip(b)), err
}

// leaf is a value of a document and where it is.
type leaf struct {
	pointer string
	val     []byte
}

// everything returns all values of a document that pointers can name.
func everything(pointer string, v []byte) []leaf {
	all := []leaf{{pointer, v}}
	switch raw.KindOf(v) {
	case raw.Object:
		last := map[string][]byte{}
		for m := range raw.Members(v) {
			last[m.Name()] = m.Val
		}
		for m := range raw.Members(v) {
			if utf8.Valid(m.Key) && &last[m.Name()][0] == &m.Val[0] {
				all = append(all, everything(raw.AppendToken(pointer, m.Name()), m.Val)...)
			}
		}
	case raw.Array:
		for i, e := range raw.Elements(v) {
			all = append(all, everything(pointer+"/"+strconv.Itoa(i), e)...)
		}
	}
	return all
}

// nestedIn returns the nested artifacts of v, by the rule and nothing else: the outermost
// objects in it, but not itself, whose compact JSON is over 2000 bytes.
func nestedIn(v []byte) (found [][]byte) {
	each := func(child []byte) {
		if raw.KindOf(child) == raw.Object {
			var c bytes.Buffer
			if json.Compact(&c, child) == nil && c.Len() > 2000 {
				found = append(found, child)
				return
			}
		}
		found = append(found, nestedIn(child)...)
	}
	for m := range raw.Members(v) {
		each(m.Val)
	}
	for _, e := range raw.Elements(v) {
		each(e)
	}
	return found
}

// checkArtifact compares all of an artifact with the document that it must hold.
func checkArtifact(t *testing.T, k *Keeper, a *Artifact, doc []byte) {
	t.Helper()
	for _, l := range everything("", doc) {
		v, err := a.Data(l.pointer)
		if err != nil {
			t.Fatalf("%s at %q: %v", a.Meta().Ref, l.pointer, err)
		}
		if got := jsonOf(t, v); got != string(l.val) {
			t.Fatalf("%s at %q = %.200s, want %.200s", a.Meta().Ref, l.pointer, got, l.val)
		}
		checkSlices(t, v, l.val)
	}
	nested := nestedIn(doc)
	for i, n := range nested {
		ref := fmt.Sprintf("%s.%d", a.Meta().Ref, i+1)
		inner := open(t, k, ann, ref)
		if m := inner.Meta(); m.Ref != ref || m.Parent != a.Meta().Ref || m.Size != int64(len(n)) {
			t.Fatalf("the meta of %s is %+v", ref, m)
		}
		checkArtifact(t, k, inner, n)
	}
	ref := fmt.Sprintf("%s.%d", a.Meta().Ref, len(nested)+1)
	if _, err := k.Open(t.Context(), ann, ref); err == nil {
		t.Fatalf("there is one nested artifact too many, %s", ref)
	}
}

// checkSlices puts a value together again from slices of it.
func checkSlices(t *testing.T, v *Value, val []byte) {
	t.Helper()
	total, err := v.Total()
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	switch v.Kind {
	case raw.String:
		if want = utf8.RuneCountInString(raw.Unquote(val)); !utf8.Valid(val) {
			want = total
		}
	case raw.Array:
		for range raw.Elements(val) {
			want++
		}
	case raw.Object:
		for range raw.Members(val) {
			want++
		}
	default:
		if _, err := v.Slice(0, 1); err == nil {
			t.Fatalf("a slice of %s", val)
		}
	}
	if total != want {
		t.Fatalf("at %q: Total = %d, want %d", v.Pointer, total, want)
	}
	if total == 0 {
		return
	}
	for _, step := range []int{total, total/2 + 1, max(total/7, 1)} {
		var joined, text bytes.Buffer
		pieces := 0
		for from := 0; from >= 0; {
			s, err := v.Slice(from, step)
			if err != nil {
				t.Fatal(err)
			}
			j := jsonOf(t, s.Value)
			if err := raw.CheckAny([]byte(j)); err != nil {
				t.Fatalf("at %q: the slice from %d is no JSON: %v: %.300s", v.Pointer, from, err, j)
			}
			if v.Kind == raw.String {
				joined.WriteString(j[1 : len(j)-1])
				if err := s.Text(&text); err != nil {
					t.Fatal(err)
				}
			}
			n := len([]byte(j))
			if n > 2 {
				for range raw.Elements([]byte(j)) {
					pieces++
				}
				for range raw.Members([]byte(j)) {
					pieces++
				}
			}
			from = s.Next
		}
		if v.Kind == raw.String {
			if got := joined.String(); got != string(val[1:len(val)-1]) {
				t.Fatalf("at %q: the slices by %d join to %.200q, want %.200q", v.Pointer, step, got, val)
			}
			if got := text.String(); utf8.Valid(val) && got != raw.Unquote(val) {
				t.Fatalf("at %q: the text of the slices by %d is %.200q, want %.200q", v.Pointer, step, got, raw.Unquote(val))
			}
		} else if pieces != total {
			t.Fatalf("at %q: the slices by %d have %d parts, want %d", v.Pointer, step, pieces, total)
		}
	}
}

// randomValue writes a JSON value of roughly the size.
func randomValue(r *rand.Rand, b *strings.Builder, size, depth int) {
	space := func() {
		if r.IntN(8) == 0 {
			b.WriteString([]string{" ", "\n\t", "\r\n   "}[r.IntN(3)])
		}
	}
	switch kind := r.IntN(6); {
	case size > 20 && depth > 0 && kind < 4:
		open, end := "{", "}"
		if kind < 2 {
			open, end = "[", "]"
		}
		b.WriteString(open)
		n := 1 + r.IntN(10)
		if r.IntN(4) == 0 {
			n = 1 + size/40
		}
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			if kind >= 2 {
				b.WriteString([]string{`""`, `"~"`, `"a/b"`, `"~1"`, `"0"`, `"` + "\\u0041" + `"`, `"é` + strconv.Itoa(i) + `"`, `"k` + strconv.Itoa(i) + `"`}[min(r.IntN(20), 7)])
				space()
				b.WriteByte(':')
				space()
			}
			part := size / n
			if r.IntN(3) == 0 {
				part *= 2
			}
			randomValue(r, b, part, depth-1)
			space()
		}
		b.WriteString(end)
	case size > 8 && kind == 4 || size > 1000:
		b.WriteByte('"')
		for end := b.Len() + size; b.Len() < end; {
			b.WriteString([]string{"word ", "x", `\n`, `\"`, `\\`, `\\\"`, "é", "漢", "😀", "\\ud83d\\ude00", "\\ud800", "\\udc00", "\\u0041", `\/`, "plain text of some length, "}[r.IntN(15)])
		}
		b.WriteByte('"')
	default:
		b.WriteString([]string{"1.10", "9007199254740993", "1e400", "true", "null", `""`, "[]", "{}", `"s"`, "-0"}[r.IntN(10)])
	}
}

func TestEveryPointerOfRandomDocuments(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		seeds, size := uint64(25), 14
		if _, ok := store.(*Redis); ok {
			seeds, size = 10, 9
		}
		k := New(Options{Store: store})
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 1))
			var b strings.Builder
			randomValue(r, &b, 1<<(4+r.IntN(size)), 2+r.IntN(6))
			if err := raw.CheckAny([]byte(b.String())); err != nil {
				t.Fatalf("the test's own JSON: %v", err)
			}
			if raw.IsNull([]byte(b.String())) {
				continue
			}
			a := open(t, k, ann, keep(t, k, ann, structured(t, b.String())).Ref)
			if checkArtifact(t, k, a, []byte(b.String())); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}
