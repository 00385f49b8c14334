package raw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

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
