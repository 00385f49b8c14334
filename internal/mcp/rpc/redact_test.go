package rpc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestRedactorText(t *testing.T) {
	r := NewRedactor("[x]", []string{"abcdef", "abcdefgh", "", "true", `q"u/o`, "a&b<c"})
	for in, want := range map[string]string{
		"":                        "",
		"nothing is true":         "nothing is true",
		"=abcdefghi abcdefabcde":  "=[x]i [x]abcde",
		`{"k":"q\"u\/o q\"u/o"}`:  `{"k":"[x] [x]"}`,
		`q"u/o`:                   `[x]`,
		`a&b<c a\u0026b\u003cc &`: `[x] [x] &`,
	} {
		if got := r.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	for _, r := range []Redactor{{}, NewRedactor("[x]", nil), NewRedactor("[x]", []string{""})} {
		if got := r.Text("abcdef"); got != "abcdef" {
			t.Errorf("Text without secrets = %q", got)
		}
	}
}

func TestRedactorError(t *testing.T) {
	r := NewRedactor("[x]", []string{"s3cr/t\n", "123456", `"a":1`})
	for _, tt := range []struct{ name, data, want string }{
		{"none", "", ""},
		{"exact", ` { "b" : 1.10, "a":[1e400 , -0,"\u00e9\/",true,null,{}] } `, ` { "b" : 1.10, "a":[1e400 , -0,"\u00e9\/",true,null,{}] } `},
		{"a string", `"the s3cr/t\n"`, `"the [x]"`},
		{"escaped otherwise", `["\u0073\u0033cr\/t\u000a", "\"s3cr/t\\n"]`, `["[x]", "\"[x]"]`},
		{"a key", `{"s3cr/t\n":1.0}`, `{"[x]":1.0}`},
		{"a number", `{"n": 123456,"m":[0.1234567, 12345]}`, `{"n": "[x]","m":["0.[x]7", 12345]}`},
		{"over several tokens", `{"b":2,"a":1}`, `"[x]"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &Error{Code: -1, Message: "no s3cr/t\n here", Data: json.RawMessage(tt.data)}
			r.Error(e)
			if d := cmp.Diff(&Error{Code: -1, Message: "no [x] here", Data: json.RawMessage(tt.want)}, e); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}

func TestRedactorClips(t *testing.T) {
	for _, r := range []Redactor{{}, NewRedactor("[x]", []string{"secret"})} {
		for _, pad := range []string{"", "a", "aa"} {
			e := &Error{Message: pad + strings.Repeat("é€", 1<<20/5)}
			r.Error(e)
			if n := len(e.Message); n > MessageBytes || n < MessageBytes-3 || !utf8.ValidString(e.Message) || !strings.HasSuffix(e.Message, "…") {
				t.Errorf("a message of 1 MiB became %d bytes, ending in %q", n, e.Message[n-8:])
			}
		}
		e := &Error{Message: strings.Repeat("x", MessageBytes)}
		if r.Error(e); len(e.Message) != MessageBytes || strings.Contains(e.Message, "…") {
			t.Errorf("a message of %d bytes became one of %d", MessageBytes, len(e.Message))
		}
	}
	// What is cut is no half of a secret.
	e := &Error{Message: strings.Repeat("x", MessageBytes-6) + "secret"}
	if NewRedactor("[hidden]", []string{"secret"}).Error(e); strings.Contains(e.Message, "sec") {
		t.Errorf("the message ends in %q", e.Message[MessageBytes-8:])
	}
}

// Data without secrets keeps every byte; with some, it stays JSON and shows none.
func FuzzRedactorData(f *testing.F) {
	for _, s := range []string{`{"a":[1,"sec\u0072et12",{"secret12":null}]}`, `"secret12"`, `9123456789`, `{"x":"\\","y":"\""}`, `[ ]`, `"é"`} {
		f.Add(s)
	}
	const first, second = "secret12", "23456789"
	r := NewRedactor("[x]", []string{first, second})
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		e := &Error{Data: json.RawMessage(s)}
		r.Error(e)
		if !json.Valid(e.Data) {
			t.Fatalf("%q became %q", s, e.Data)
		}
		if got := string(e.Data); strings.Contains(got, first) || strings.Contains(got, second) {
			t.Fatalf("%q became %q", s, got)
		}
		if !strings.Contains(s, first) && !strings.Contains(s, second) && !strings.Contains(s, `\`) && s != string(e.Data) {
			t.Fatalf("%q became %q", s, e.Data)
		}
	})
}
