package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// fault is the message of a SyntaxError, and its place; "" for none.
func fault(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*SyntaxError](err)
	if !ok {
		t.Fatalf("error %v (%T) is no SyntaxError", err, err)
	}
	return fmt.Sprintf("%d: %s", e.Offset, e.Msg)
}

func TestCheck(t *testing.T) {
	keys := func(n int, last string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return b.String() + `"` + last + `":0}`
	}
	tests := []struct{ in, want string }{
		{`{}`, ``},
		{" \t\r\n{ } \n", ``},
		{`{"a":[1,-0,0.5,1e5,1E+5,1.5e-5,true,false,null,"s",{"a":{}}]}`, ``},
		{`{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, ``},
		{`{"":1,"é":2,"\"":3,"\\":4}`, ``},
		{`{"s":"\"\\\/\b\f\n\r\t\u0000\ud83d\ude00é😀` + "\x7f" + `"}`, ``},
		{`{"s":"\ud800"}`, ``}, // a lone surrogate is grammatical
		{`{"n":123456789012345678901234567890}`, ``},
		{`{"n":1e1000,"m":1E-1000,"z":1e0001000}`, ``},

		{``, `0: not a JSON object`},
		{`  `, `2: not a JSON object`},
		{`[]`, `0: not a JSON object`},
		{`null`, `0: not a JSON object`},
		{"\xef\xbb\xbf{}", `0: not a JSON object`},
		{`{`, `1: the text ends too early`},
		{`{"a"`, `4: the text ends too early`},
		{`{"a":`, `5: the text ends too early`},
		{`{"a":1`, `6: the text ends too early`},
		{`{"a":1,`, `7: the text ends too early`},
		{`{"a":[`, `6: the text ends too early`},
		{`{"a":[1`, `7: the text ends too early`},
		{`{"a":"b`, `7: the text ends too early`},
		{`{"a":"b\`, `8: the text ends too early`},
		{`{"a":"\u12`, `10: the text ends too early`},
		{`{"a":-`, `6: the text ends too early`},
		{`{"a":1.`, `7: the text ends too early`},
		{`{"a":1e`, `7: the text ends too early`},
		{`{} {}`, `3: data behind the value`},
		{"{}\x00", `2: data behind the value`},
		{`{}}`, `2: data behind the value`},
		{`{a:1}`, `1: not a key in double quotes`},
		{`{"a":1,}`, `7: not a key in double quotes`},
		{`{,}`, `1: not a key in double quotes`},
		{`{'a':1}`, `1: not a key in double quotes`},
		{`{1:1}`, `1: not a key in double quotes`},
		{`{"a" 1}`, `5: no colon behind the key`},
		{`{"a":1 "b":2}`, `7: no comma or brace behind the member`},
		{`{"a":1]`, `6: no comma or brace behind the member`},
		{`{"a":[1 2]}`, `8: no comma or bracket behind the element`},
		{`{"a":[1}}`, `7: no comma or bracket behind the element`},
		{`{"a":[1,]}`, `8: not a JSON value`},
		{`{"a":}`, `5: not a JSON value`},
		{`{"a":tru}`, `5: not a JSON value`},
		{`{"a":nullx}`, `9: no comma or brace behind the member`},
		{`{"a":True}`, `5: not a JSON value`},
		{`{"a":NaN}`, `5: not a JSON value`},
		{`{"a":+1}`, `5: not a JSON value`},
		{`{"a":.5}`, `5: not a JSON value`},
		{`{"a":Infinity}`, `5: not a JSON value`},
		{`{"a":01}`, `6: no comma or brace behind the member`},
		{`{"a":-01}`, `7: no comma or brace behind the member`},
		{`{"a":-x}`, `6: a number without digits`},
		{`{"a":1.x}`, `7: a number without digits behind the point`},
		{`{"a":1ex}`, `7: a number without digits in its exponent`},
		{`{"a":1e+}`, `8: a number without digits in its exponent`},
		{`{"a":0x10}`, `6: no comma or brace behind the member`},
		{`{"a":/**/1}`, `5: not a JSON value`},
		{"{\"a\":\"x\ny\"}", `7: a control character in a string`},
		{"{\"a\":\"0123456789abcdef\x1f\"}", `22: a control character in a string`},
		{"{\"a\x00\":1}", `3: a control character in a string`},
		{`{"a":"\x41"}`, `6: an unknown escape`},
		{`{"a":"\'"}`, `6: an unknown escape`},
		{`{"a":"\u12g4"}`, `10: a \u escape without four hex digits`},
		{`{"a":"\u12"}`, `10: a \u escape without four hex digits`},

		{`{"a":1,"a":2}`, `7: the same key twice`},
		{`{"a":1,"\u0061":2}`, `7: the same key twice`},
		{`{"a\/b":1,"a/b":2}`, `10: the same key twice`},
		{`{"a":{"b":1,"b":1}}`, `12: the same key twice`},
		{`[{"b":1,"b":1}]`, `0: not a JSON object`},
		{`{"a":[{"b":1,"b":1}]}`, `13: the same key twice`},
		{`{"a":[{"b":1},{"b":1,"c":{},"b":2}]}`, `28: the same key twice`},
		{keys(7, "k0"), fmt.Sprintf("%d: the same key twice", len(keys(7, "k0"))-7)},
		{keys(100, "k42"), fmt.Sprintf("%d: the same key twice", len(keys(100, "k42"))-8)},
		{keys(100, "x"), ``},
		{"{\"a\":\"\xff\"}", `5: a string is not valid UTF-8`},
		{"{\"a\":\"0123456789abcdef\xc3\"}", `5: a string is not valid UTF-8`},
		{"{\"\xc0\xaf\":1}", `1: a string is not valid UTF-8`},
		{"{\"a\":\"\xed\xa0\x80\"}", `5: a string is not valid UTF-8`},
		{`{"n":1e1001}`, `5: an exponent beyond ±1000`},
		{`{"n":1E-1001}`, `5: an exponent beyond ±1000`},
		{`{"n":-1.5e99999999999999999999}`, `5: an exponent beyond ±1000`},
		{`{"n":` + strings.Repeat("1", 4096) + `}`, ``},
		{`{"n":` + strings.Repeat("1", 4097) + `}`, `5: a number of more than 4096 bytes`},
		{strings.Repeat(`{"a":`, testDepth) + "1" + strings.Repeat("}", testDepth), ``},
		{strings.Repeat(`{"a":`, testDepth+1) + "1" + strings.Repeat("}", testDepth+1), `5000: nested too deeply`},
		{`{"a":` + strings.Repeat("[", testDepth), `1004: nested too deeply`},
		{`{"a":` + strings.Repeat("[", 5_000_000), `1004: nested too deeply`},
		{`{"a":[` + strings.Repeat("[],{},", 2000) + `1]}`, ``},
	}
	for _, tt := range tests {
		if got := fault(t, Check([]byte(tt.in), testDepth)); got != tt.want {
			t.Errorf("Check(%.60q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCheckAny(t *testing.T) {
	for in, want := range map[string]string{
		`1`: ``, `"x"`: ``, ` [1] `: ``, `null`: ``, `{"a":1,"a":2}`: ``, `1e99999`: ``, "\"\xff\"": ``,
		strings.Repeat("[", anyDepth) + strings.Repeat("]", anyDepth): ``,
		strings.Repeat("[", anyDepth+1):                               `10000: nested too deeply`,
		``:                                                            `0: the text ends too early`, `1 2`: `2: data behind the value`, `nul`: `0: not a JSON value`, "\"\n\"": `1: a control character in a string`,
	} {
		if got := fault(t, CheckAny([]byte(in))); got != want {
			t.Errorf("CheckAny(%.60q) = %q, want %q", in, got, want)
		}
	}
}

var seeds = []string{
	`{}`, `[]`, `1`, `-0.5e+10`, `"a\u00e9\n"`, `{"a":[1,{"b":null}],"c":"é","d":true}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, `  {"x" : [ ] }  `, "{\"a\":\"\xff\"}", `[1e1001]`, `"\ud800"`, `{"a":"0123456789abcdef\\"}`,
	`{"id":7,"method":"x","params":{}}`, `01`, `"unended`, `{"a":1}x`, "\"\x1f\"", `{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k0":9}`,
}

// The plain grammar is that of encoding/json, but for the depth.
func FuzzCheckAny(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		err := CheckAny(b)
		if want := json.Valid(b); (err == nil) != want {
			t.Errorf("CheckAny(%q) = %v, json.Valid is %v", b, err, want)
		}
		if e, ok := errors.AsType[*SyntaxError](err); ok && (e.Offset < 0 || e.Offset > len(b) || e.Msg == "") {
			t.Errorf("CheckAny(%q) = %+v", b, e)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("CheckAny changed %q to %q", before, b)
		}
	})
}

// A strict check passes objects that are valid, and all whose reading is
// unambiguous but for numbers.
func FuzzCheck(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte(`{"in":` + s + `}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Check(b, 50)
		twice, depth := model(b)
		switch {
		case err == nil:
			if !json.Valid(b) || KindOf(b) != Object || twice || depth > 50 || !utf8.Valid(b) {
				t.Errorf("Check passed %q (a key twice: %v, depth %d)", b, twice, depth)
			}
		case json.Valid(b) && KindOf(b) == Object && !twice && depth <= 50 && utf8.Valid(b):
			if msg := err.(*SyntaxError).Msg; !strings.Contains(msg, "exponent") && !strings.Contains(msg, "4096") { //nolint:errorlint // it is never wrapped
				t.Errorf("Check refused %q: %v", b, err)
			}
		}
	})
}

// model finds by encoding/json's tokens whether a key stands twice in one object, and how
// deep b is nested.
func model(b []byte) (twice bool, depth int) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	type level struct {
		keys map[string]bool // nil in an array
		key  bool            // a key comes next
	}
	var levels []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return twice, depth
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil {
			if l := &levels[n-1]; l.key {
				s := tok.(string)
				twice = twice || l.keys[s]
				l.keys[s], l.key = true, false
				continue
			}
			levels[n-1].key = true
		}
		switch tok {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
		depth = max(depth, len(levels))
	}
}

func TestParseFrame(t *testing.T) {
	type frame struct{ ID, Method, Params, Result, Error string }
	tests := []struct {
		in       string
		want     frame
		response bool
		fault    string
	}{
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, frame{ID: "1", Result: "{}"}, true, ``},
		{` { "result" : { "id" : 5 } , "id" : "x" } `, frame{ID: `"x"`, Result: `{ "id" : 5 }`}, true, ``},
		{`{"id":null,"error":{"code":1}}`, frame{ID: "null", Error: `{"code":1}`}, true, ``},
		{`{"method":"m","params":[1],"id":2}`, frame{ID: "2", Method: `"m"`, Params: "[1]"}, false, ``},
		{`{"method":"m"}`, frame{Method: `"m"`}, false, ``},
		{`{"method":"m","result":1}`, frame{Method: `"m"`, Result: "1"}, false, ``},
		{`{"\u0069d":1,"resul\u0074":2}`, frame{ID: "1", Result: "2"}, true, ``},
		{`{"ID":1,"Result":2,"idx":3}`, frame{}, false, ``},
		{`{}`, frame{}, false, ``},
		{`{"x":1,"x":2,"result":{"a":1,"a":2}}`, frame{Result: `{"a":1,"a":2}`}, true, ``},
		{`{"id":1,"id":1}`, frame{}, false, `8: the same key twice`},
		{`{"id":1,"\u0069\u0064":1}`, frame{}, false, `8: the same key twice`},
		{`{"result":null,"result":null}`, frame{}, false, `15: the same key twice`},
		{`[{"id":1}]`, frame{}, false, `0: not a JSON object`},
		{``, frame{}, false, `0: not a JSON object`},
		{`{"id":1} {}`, frame{}, false, `9: data behind the value`},
		{`{"id":1,"result":{"x":NaN}}`, frame{}, false, `22: not a JSON value`},
		{`{"id":1`, frame{}, false, `7: the text ends too early`},
	}
	for _, tt := range tests {
		f, err := ParseFrame([]byte(tt.in))
		got := frame{string(f.ID), string(f.Method), string(f.Params), string(f.Result), string(f.Error)}
		if got != tt.want || f.Response() != tt.response || fault(t, err) != tt.fault {
			t.Errorf("ParseFrame(%s) = %+v, response %v, %v", tt.in, got, f.Response(), err)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := ParseFrame(b)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("ParseFrame passed %q", b)
		}
		// It finds what Get finds; what stands twice it refuses.
		for name, got := range map[string][]byte{"id": fr.ID, "method": fr.Method, "params": fr.Params, "result": fr.Result, "error": fr.Error} {
			if want := Get(b, name); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("%s of %q = %q, want %q", name, b, got, want)
			}
		}
	})
}
