package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const testDepth = 1000

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
			t.Skip("too deep for encoding/json")
		}
		Flatten(b)
		var got bytes.Buffer
		if err := json.Compact(&got, b); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) || bytes.ContainsAny(b, "\r\n") {
			t.Errorf("flattened: %q, %v, want the value of %q", b, err, want.Bytes())
		}
	})
}

func TestMembers(t *testing.T) {
	var got []string
	for m := range Members([]byte(` { "a" : 1 , "b\n" : { "a" : [ 2 ] } ,"":"}\"," , "a": null } `)) {
		got = append(got, m.Name()+"="+string(m.Val))
	}
	if d := cmp.Diff([]string{"a=1", "b\n={ \"a\" : [ 2 ] }", `="}\","`, "a=null"}, got); d != "" {
		t.Errorf("Members (-want +got):\n%s", d)
	}
	for _, in := range []string{``, `[]`, `"x"`, `1`, `{}`, ` { } `, `null`} {
		for m := range Members([]byte(in)) {
			t.Errorf("Members(%s) yields %s", in, m.Key)
		}
	}
	for m := range Members([]byte(`{"a":1,"b":2}`)) {
		if m.Is("b") {
			t.Error("the loop went on after break")
		}
		break
	}
}

func TestElements(t *testing.T) {
	var got []string
	for i, e := range Elements([]byte(` [ 1 , "a,]" ,[2,3], {"x":[4]} ,null ] `)) {
		got = append(got, fmt.Sprint(i, "=", string(e)))
	}
	if d := cmp.Diff([]string{"0=1", `1="a,]"`, "2=[2,3]", `3={"x":[4]}`, "4=null"}, got); d != "" {
		t.Errorf("Elements (-want +got):\n%s", d)
	}
	for _, in := range []string{``, `{}`, `[]`, ` [ ] `, `"[1]"`} {
		for i := range Elements([]byte(in)) {
			t.Errorf("Elements(%s) yields %d", in, i)
		}
	}
	n := 0
	for range Elements([]byte(`[1,2,3]`)) {
		n++
		break
	}
	if n != 1 {
		t.Error("the loop went on after break")
	}
}

func TestGet(t *testing.T) {
	v := []byte(`{"a":1,"b":"x\u0041","a":2,"\u0063":null,"d":{"a":3}}`)
	for name, want := range map[string]string{"a": "2", "b": `"x\u0041"`, "c": "null", "d": `{"a":3}`, "e": "", "": ""} {
		if got := Get(v, name); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"a": "", "b": "xA", "c": "", "e": ""} {
		if got := GetString(v, name); got != want {
			t.Errorf("GetString(%q) = %q, want %q", name, got, want)
		}
	}
}

// Members and elements are what encoding/json finds.
func FuzzWalk(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// A key that is no UTF-8 cannot be named.
		if CheckAny(b) != nil || !utf8.Valid(b) {
			return
		}
		switch KindOf(b) {
		case Object:
			var want map[string]json.RawMessage
			if json.Unmarshal(b, &want) != nil {
				return // too deep for encoding/json
			}
			seen := 0
			for m := range Members(b) {
				seen++
				w, ok := want[m.Name()]
				if last := Get(b, m.Name()); !ok || !bytes.Equal(last, w) {
					t.Errorf("%q: member %q = %q, want %q", b, m.Key, last, w)
				}
				if !m.Is(m.Name()) || !json.Valid(m.Val) {
					t.Errorf("%q: member %q: %q", b, m.Key, m.Val)
				}
			}
			if seen < len(want) {
				t.Errorf("%q has %d members, seen %d", b, len(want), seen)
			}
		case Array:
			var want, got []json.RawMessage
			if json.Unmarshal(b, &want) != nil {
				return
			}
			for i, e := range Elements(b) {
				if i != len(got) {
					t.Errorf("index %d, want %d", i, len(got))
				}
				got = append(got, e)
			}
			if !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Errorf("%q: elements %q, want %q", b, got, want)
			}
		}
	})
}

func TestCut(t *testing.T) {
	for _, tt := range []struct{ in, drop, want string }{
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{"a":1,"b":2,"c":3}`, "ab", `{"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "bc", `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, "ac", `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, "abc", `{}`},
		{`{"a":1,"b":2,"c":3}`, "", `{"a":1,"b":2,"c":3}`},
		{`{ "a" : 1 , "b" : "," , "c" : [ 3 ] } `, "b", `{ "a" : 1 ,"c" : [ 3 ] } `},
		{`{ "a" : "," , "b" : 2 } `, "b", `{ "a" : ","  } `},
		{` { "a" : 1 } `, "a", ` {  } `},
		{`{}`, "a", `{}`},
		{`{"a":{"a":1}}`, "b", `{"a":{"a":1}}`},
		{`[1]`, "a", `[1]`},
	} {
		in := []byte(tt.in)
		got := Cut(in, func(m Member) bool { return strings.Contains(tt.drop, m.Name()) && m.Name() != "" })
		if string(got) != tt.want || string(in) != tt.in {
			t.Errorf("Cut(%s, %s) = %s, want %s; the input is %s now", tt.in, tt.drop, got, tt.want, in)
		}
	}
}

// To cut and then decode is to decode and then delete; what stays keeps its bytes.
func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[2,","],"c":{"a":3},"d":null}`), uint64(5))
	f.Add([]byte(` { "a" : "x" , "bb" : 1.50 , "c":"\u0041" } `), uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, mask uint64) {
		if Check(b, testDepth) != nil {
			return
		}
		i := -1
		var kept []Member
		dropped := map[string]bool{}
		before := bytes.Clone(b)
		got := Cut(b, func(m Member) bool {
			if i++; mask>>(i%64)&1 == 1 {
				dropped[m.Name()] = true
				return true
			}
			kept = append(kept, m)
			return false
		})
		if !bytes.Equal(b, before) {
			t.Fatalf("Cut changed its input %q to %q", before, b)
		}
		if err := Check(got, testDepth); err != nil {
			t.Fatalf("Cut(%q, %b) = %q: %v", b, mask, got, err)
		}
		var left []Member
		for m := range Members(got) {
			left = append(left, m)
		}
		if !slices.EqualFunc(left, kept, func(a, b Member) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Val, b.Val) }) {
			t.Errorf("Cut(%q, %b) = %q", b, mask, got)
		}
		var want, have map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || json.Unmarshal(got, &have) != nil {
			return // too deep for encoding/json
		}
		for name := range dropped {
			delete(want, name)
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("Cut(%q, %b) (-want +got):\n%s", b, mask, d)
		}
	})
}

// The examples of RFC 6901 section 5.
func TestLookup(t *testing.T) {
	doc := []byte(`{
      "foo": ["bar", "baz"],
      "": 0,
      "a/b": 1,
      "c%d": 2,
      "e^f": 3,
      "g|h": 4,
      "i\\j": 5,
      "k\"l": 6,
      " ": 7,
      "m~n": 8,
      "twice": 1, "twice": {"0": [[9]]}
   }`)
	for pointer, want := range map[string]string{
		"": string(doc), "/foo": `["bar", "baz"]`, "/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4",
		`/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/twice/0/0/0": "9",
	} {
		got, err := Lookup(doc, pointer)
		if err != nil || string(got) != want {
			t.Errorf("Lookup(%q) = %s, %v, want %s", pointer, got, err, want)
		}
	}
	for pointer, want := range map[string]PointerError{
		"foo":                       {Resolved: "", Msg: "does not start with a slash"},
		"/bar":                      {Resolved: "", Msg: "no such key"},
		"/foo/2":                    {Resolved: "/foo", Msg: "no such index"},
		"/foo/-":                    {Resolved: "/foo", Msg: "no such index"},
		"/foo/00":                   {Resolved: "/foo", Msg: "no such index"},
		"/foo/+1":                   {Resolved: "/foo", Msg: "no such index"},
		"/foo/-1":                   {Resolved: "/foo", Msg: "no such index"},
		"/foo/":                     {Resolved: "/foo", Msg: "no such index"},
		"/foo/0/x":                  {Resolved: "/foo/0", Msg: "leads into a value that has no members"},
		"/a~1b/x/y":                 {Resolved: "/a~1b", Msg: "leads into a value that has no members"},
		"/twice/0/x":                {Resolved: "/twice/0", Msg: "no such index"},
		"/foo/99999999999999999999": {Resolved: "/foo", Msg: "no such index"},
	} {
		want.Pointer = pointer
		got, err := Lookup(doc, pointer)
		e, ok := errors.AsType[*PointerError](err)
		if !ok || *e != want || got != nil {
			t.Errorf("Lookup(%q) = %s, %v, want %v", pointer, got, err, &want)
		}
	}
	if got, want := (&PointerError{"/a/b", "/a", "no such key"}).Error(), `pointer "/a/b": no such key (resolved up to "/a")`; got != want {
		t.Errorf("Error() = %s, want %s", got, want)
	}
}

// Every value is found by the pointer that leads to it.
func FuzzLookup(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a/b":{"~":[0,{"~1":1}]},"":{"":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Check(b, 50) != nil {
			return
		}
		var walk func(v []byte, pointer string)
		walk = func(v []byte, pointer string) {
			got, err := Lookup(b, pointer)
			if err != nil || !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(v)) {
				t.Errorf("Lookup(%q, %q) = %q, %v, want %q", b, pointer, got, err, v)
			}
			for m := range Members(v) {
				// Keys that differ in lone surrogates only are one when unquoted.
				if !strings.ContainsRune(m.Name(), utf8.RuneError) {
					walk(m.Val, AppendToken(pointer, m.Name()))
				}
			}
			for i, e := range Elements(v) {
				walk(e, AppendToken(pointer, fmt.Sprint(i)))
			}
		}
		walk(b, "")
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
