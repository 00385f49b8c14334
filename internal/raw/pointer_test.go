package raw

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

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
