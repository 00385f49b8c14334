package bridge

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestData(t *testing.T) {
	tests := []struct {
		name, result, want string
		more               bool
	}{
		{"content alone is the result's own bytes", `{ "content" : [ {"type":"text","text":"\u00e4"} ] }`, `{ "content" : [ {"type":"text","text":"\u00e4"} ] }`, false},
		{"content and more", `{"content":[{"type":"weird","v":1e400}],"_meta":{"q":1}}`, `{"content":[{"type":"weird","v":1e400}]}`, true},
		{"structured content wins", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"b":9007199254740993,"a":1.10}}`, `{"b":9007199254740993,"a":1.10}`, true},
		{"structured content with empty content", `{"content":[],"structuredContent":{"a":1}}`, `{"a":1}`, false},
		{"a list", `{"structuredContent":[1,2]}`, `[1,2]`, false},
		{"null is none", `{"content":[],"structuredContent":null}`, `{"content":[]}`, false},
		{"nothing", `{}`, `{"content":[]}`, false},
		{"null content", `{"content":null}`, `{"content":[]}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseResult([]byte(tt.result))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(bytes.Join(r.Data(), nil)); got != tt.want || r.Size() != len(tt.want) {
				t.Errorf("data = %s (size %d), want %s", got, r.Size(), tt.want)
			}
			if r.More() != tt.more {
				t.Errorf("More = %v, want %v", r.More(), tt.more)
			}
		})
	}
	for _, bad := range []string{`[]`, `"x"`, `{"content":{}}`} {
		if _, err := ParseResult([]byte(bad)); err == nil {
			t.Errorf("ParseResult(%s) gave no error", bad)
		}
	}
}

func TestSetData(t *testing.T) {
	r, err := ParseResult([]byte(`{"content":[{"type":"text","text":"{\"a\":1}"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.SetData([]byte(`{"a":1}`))
	if got := string(bytes.Join(r.Data(), nil)); got != `{"a":1}` || r.Size() != 7 {
		t.Errorf("data = %s (size %d)", got, r.Size())
	}
}

func TestBlocks(t *testing.T) {
	r, err := ParseResult([]byte(`{"content":[
		{"type":"text","text":"a\nb"},
		{"type":"image","mimeType":"image/png","data":"AAA="},
		{"type":"audio","mimeType":"audio/wav","data":"BBB\u003d"},
		{"type":"resource","resource":{"uri":"x:1","mimeType":"text/plain","text":"t"}},
		{"type":"resource","resource":{"uri":"x:2","mimeType":"application/pdf","blob":"CCC="}},
		{"type":"resource_link","uri":"x:3"},
		{"type":"image","data":5},
		7]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for b := range r.Blocks() {
		line := b.Type
		if s, ok := b.Text(); ok {
			line += " text " + s
		}
		if m, data, ok := b.Binary(); ok {
			line += " " + m + " " + string(data)
		}
		got = append(got, line)
	}
	want := []string{
		"text text a\nb", "image image/png AAA=", "audio audio/wav BBB=", "resource text t",
		"resource application/pdf CCC=", "resource_link", "image", "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestParseText(t *testing.T) {
	tests := []struct{ name, result, want string }{
		{"an object", `{"content":[{"type":"text","text":" {\"n\":1.10}"}]}`, ` {"n":1.10}`},
		{"an array", `{"content":[{"type":"text","text":"[1]"}]}`, `[1]`},
		{"a number", `{"content":[{"type":"text","text":"1"}]}`, `{"content":[{"type":"text","text":"1"}]}`},
		{"no JSON", `{"content":[{"type":"text","text":"{"}]}`, `{"content":[{"type":"text","text":"{"}]}`},
		{"two blocks", `{"content":[{"type":"text","text":"{}"},{"type":"text","text":"{}"}]}`, `{"content":[{"type":"text","text":"{}"},{"type":"text","text":"{}"}]}`},
		{"structured", `{"content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1}}`, `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseResult([]byte(tt.result))
			if err != nil {
				t.Fatal(err)
			}
			r.parseText()
			if got := string(bytes.Join(r.Data(), nil)); got != tt.want {
				t.Errorf("data = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestShortenKeepsWhatIsShort(t *testing.T) {
	b := []byte(`{"a":[1.10,{"b":"` + strings.Repeat("x", 2000) + `"}],"c":null}`)
	want := `{"a":[1.10,{"b":"` + strings.Repeat("x", 1024) + `…"}],"c":null}`
	if got := string(shorten(Block{Raw: b})); got != want {
		t.Errorf("shorten = %s", got)
	}
	numbers := []byte(`{"type":"x","n":[` + strings.Repeat("1,", 5000) + `1]}`)
	if got := string(shorten(Block{Raw: numbers, Type: "x"})); got != `{"type":"x","omitted":"10020 bytes"}` {
		t.Errorf("shorten = %s", got)
	}
}
