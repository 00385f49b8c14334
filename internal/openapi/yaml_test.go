package openapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestYAML(t *testing.T) {
	tests := []struct{ json, want string }{
		{`{}`, "{}\n"},
		{`[]`, "[]\n"},
		{`"a"`, "a\n"},
		{`{"a":{"b":[1,"x",{"c":true,"d":null}]},"e":{},"f":[],"g":[[1,2],[],{}]}`, "a:\n  b:\n    - 1\n    - x\n    - c: true\n      d: null\ne: {}\nf: []\ng:\n  - - 1\n    - 2\n  - []\n  - {}\n"},
		{`{"$ref":"#/x","200":"y","yes":"No","a b":"c d","k:":"v: w","":""}`, "$ref: \"#/x\"\n\"200\": \"y\"\n\"yes\": \"No\"\na b: c d\n\"k:\": \"v: w\"\n\"\": \"\"\n"},
		{`[1,1.10,-0,1e5,1.5E-7,-2e+3,9007199254740993]`, "- 1\n- 1.10\n- -0\n- 1.0e+5\n- 1.5e-7\n- -2.0e+3\n- 9007199254740993\n"},
		{`{"d":"line one\n\n  indented\nlast"}`, "d: |-\n  line one\n\n    indented\n  last\n"},
		{`["a\nb"]`, "- |-\n  a\n  b\n"},
		{`["ends\n"," starts\nx","tab\tx\ny","trailing  \nspace","only\n  \nspace","cr\r\nlf","nel\u0085","\u2028","😀","\ufeff","\u0000","\\","\"", "\u007f"]`, ""},
		{`["2001-01-01","1:30","0x1F","~","null",".inf","+1","- a","# a","a # b","a: b","[x]","{x}","*a","&a","!a","%a","@a","` + "`a" + `","|","> x","a ","? a","=","<<","1_000"]`, ""},
	}
	for _, test := range tests {
		got := string(toYAML([]byte(test.json)))
		if test.want != "" && got != test.want {
			t.Errorf("%s is\n%s\nwant\n%s", test.json, got, test.want)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(test.json))
		if err != nil {
			t.Fatal(err)
		}
		checkYAML(t, []byte(got), v)
	}
	long := `{"` + strings.Repeat("k", 2000) + `":{"a":1},"` + strings.Repeat("? ", 1000) + `":[1]}`
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	checkYAML(t, toYAML([]byte(long)), v)
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x\ny",{"b":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parse(b)
		if err != nil || !portable(n) {
			return
		}
		b = bytesOf(n)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%q is no JSON any more: %v", b, err)
		}
		checkYAML(t, toYAML(b), v)
	})
}
