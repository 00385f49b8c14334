package raw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const testDepth = 1000

func TestKindOf(t *testing.T) {
	for in, want := range map[string]Kind{
		"": Invalid, " \t": Invalid, " {}": Object, "\n[": Array, `"`: String, "0": Number, "-1": Number, "true": Bool, "false": Bool, "null": Null,
	} {
		if got := KindOf([]byte(in)); got != want {
			t.Errorf("KindOf(%q) = %v, want %v", in, got, want)
		}
		if got, want := IsNull([]byte(in)), want == Invalid || want == Null; got != want {
			t.Errorf("IsNull(%q) = %v", in, got)
		}
	}
}

func TestFlatten(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "{}": "{}", "{\r\n  \"a\":\r1\n}\n": "{    \"a\": 1 } ", `{"a":"\n\r"}`: `{"a":"\n\r"}`, "\n": " ", "\r": " ",
	} {
		b := []byte(in)
		Flatten(b)
		if string(b) != want {
			t.Errorf("Flatten(%q) = %q, want %q", in, b, want)
		}
	}
}

// What passed a check means the same when flattened, and is one line.
func FuzzFlatten(f *testing.F) {
	f.Add([]byte("{\n\t\"a\" : [\r\n1 ,2\r]}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if CheckAny(b) != nil {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, b); err != nil {
			return // too deep for encoding/json
		}
		Flatten(b)
		var got bytes.Buffer
		if err := json.Compact(&got, b); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) || bytes.ContainsAny(b, "\r\n") {
			t.Errorf("flattened: %q, %v, want the value of %q", b, err, want.Bytes())
		}
	})
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\u0041\n\/é"`: "A\n/é", `"\ud83d\ude00"`: "😀", `"\ud800x"`: "\ufffdx", "\"a\xffb\"": "a\ufffdb", `"`: "", ``: "", `"\x"`: "",
	} {
		if got := Unquote([]byte(in)); got != want {
			t.Errorf("Unquote(%s) = %q, want %q", in, got, want)
		}
	}
}

// What is quoted is valid, means the same, and stays on one line.
func FuzzAppendQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é😀\u2028", "a\xffb", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendQuote([]byte("x"), s)
		if b[0] != 'x' {
			t.Fatalf("AppendQuote changed what was there: %q", b)
		}
		b = b[1:]
		want := strings.ToValidUTF8(s, "\ufffd")
		if !utf8.ValidString(s) { // one for each byte
			want = string([]rune(s))
		}
		if got := Unquote(b); got != want {
			t.Errorf("Unquote(AppendQuote(%q)) = %q", s, got)
		}
		if err := Check(slices.Concat([]byte(`{"k":`), b, []byte(`}`)), 1); err != nil || bytes.ContainsAny(b, "\r\n") {
			t.Errorf("AppendQuote(%q) = %q: %v", s, b, err)
		}
	})
}

// special finds what a byte-wise search finds, at every alignment.
func TestSpecial(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = "aZ ~\x7f\x80\xff\xa2\xdc!#[]"[rng.IntN(13)]
		}
		if len(b) > 0 && rng.IntN(4) > 0 {
			b[rng.IntN(len(b))] = "\"\\\x00\x1f\n"[rng.IntN(5)]
		}
		from := rng.IntN(len(b) + 1)
		want := len(b)
		for i := from; i < len(b); i++ {
			if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
				want = i
				break
			}
		}
		if got := special(b, from); got != want {
			t.Fatalf("special(%q, %d) = %d, want %d", b, from, got, want)
		}
	}
}

// Texts of several kinds, as results have them.
var texts = map[string][]byte{
	"small": []byte(`{"jsonrpc":"2.0","id":1099511627777,"result":{"content":[{"type":"text","text":"Echo: hello"}]}}`),
	"text":  fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("lorem ipsum dolor sit amet ", 4000)),
	"lines": fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat(`a line with \"quotes\" in it\n`, 3500)),
	"utf-8": fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("größer als früher, 日本語 ", 3000)),
	"rows":  fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"rows":[%s{}]}}`, strings.Repeat(`{"id":12345,"name":"someone","score":0.25,"ok":true},`, 2000)),
}

func BenchmarkCheck(b *testing.B) {
	for _, name := range []string{"small", "text", "lines", "utf-8", "rows"} {
		in := texts[name]
		bench := func(what string, f func() bool) {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					if !f() {
						b.Fatal("refused")
					}
				}
			})
		}
		bench("json.Valid", func() bool { return json.Valid(in) })
		bench("Check", func() bool { return Check(in, testDepth) == nil })
		bench("ParseFrame", func() bool { _, err := ParseFrame(in); return err == nil })
		bench("Get", func() bool { return Get(in, "result") != nil })
	}
}
