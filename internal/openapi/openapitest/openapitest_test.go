package openapitest

import (
	"fmt"
	"strings"
	"testing"
)

// document returns a valid document of a version, in which old has been replaced by other.
func document(version, old, other string) string {
	const text = `{"openapi":"VERSION","info":{"title":"t","version":"1"},"paths":{"/a/{b}":{"post":{
		"parameters":[{"name":"b","in":"path","required":true,"schema":{"type":"string"}}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"n":{"$ref":"#/components/schemas/n"},"$ref":{"type":"string","pattern":"^a"}},"required":["n"]},"example":{"$ref":"#/none"}}}},
		"responses":{"200":{"$ref":"#/components/responses/ok"},"default":{"description":"d"}}}}},
		"components":{"schemas":{"n":{"type":"integer","minimum":1}},"responses":{"ok":{"description":"d","headers":{"x-rate":{"$ref":"#/components/headers/example"}},"content":{"application/json":{"schema":{"type":"array","items":{"type":"number"}}}}}},
		"headers":{"example":{"schema":{"type":"string","pattern":"^a"}}}}}`
	d := strings.Replace(text, "VERSION", version, 1)
	return strings.Replace(d, old, other, 1)
}

var versions = []string{"3.0.3", "3.1.1"}

func TestRead(t *testing.T) {
	for _, version := range versions {
		Validate(t, []byte(document(version, "", "")))
		for _, fault := range []struct{ old, other, why string }{
			{`"title":"t"`, `"name":"t"`, "title"},
			{`"minimum":1`, `"minimum":"1"`, "minimum"},
			{`"type":"integer"`, `"type":"whole"`, "schemas/n"},
			{`"required":["n"]`, `"required":"n"`, "required"},
			{`{"description":"d"}`, `{}`, "description"},
			{`"in":"path"`, `"in":"nowhere"`, "parameters/0"},
			{`#/components/headers/example`, `#/components/headers/none`, "headers/none"},
			{`{"type":"string","pattern":"^a"}`, `{"$ref":"#/components/schemas/none"}`, "schemas/none"},
			{`{"type":"integer","minimum":1}`, `{"$ref":"#/components/schemas/n"}`, "without end"},
			{`{"type":"integer","minimum":1}`, `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/components/schemas/n"}]}},"required":["a"]}`, "without end"},
			{`#/components/schemas/n`, `#/components/schemas/m`, "schemas/m"},
			{`#/components/schemas/n`, `https://example.com/n`, "example.com"},
			{`#/components/responses/ok`, `#/components/responses/none`, "responses/none"},
			{version, "2.0", "/openapi'"},
			{`"paths":`, `"odd":1,"paths":`, "odd"},
			{`{"openapi"`, `["openapi"`, "did not find"},
		} {
			if _, err := Read([]byte(document(version, fault.old, fault.other))); err == nil || !strings.Contains(err.Error(), fault.why) {
				t.Errorf("%s with %s: %v, want %s", version, fault.other, err, fault.why)
			}
		}
	}
	if _, err := Read([]byte("openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\n")); err != nil {
		t.Error(err)
	}
	for _, odd := range []string{``, `[]`, `{}`, `{`, "- a", "a:\n  1: b\n  1: c"} {
		if _, err := Read([]byte(odd)); err == nil {
			t.Errorf("%q is a document", odd)
		}
	}
}

func TestExchanges(t *testing.T) {
	for _, version := range versions {
		d := Validate(t, []byte(document(version, "", "")))
		needed := Validate(t, []byte(document(version, `"requestBody":{`, `"requestBody":{"required":true,`)))
		for i, c := range []struct {
			err  error
			want string // of the error; empty for none
		}{
			{d.Request("/a/{b}", `{"n":1}`), ""},
			{d.Request("/a/{b}", ``), ""},
			{needed.Request("/a/{b}", ``), "needs a body"},
			{d.Request("/a/{b}", `{"n":0}`), "minimum"},
			{d.Request("/a/{b}", `{"n":1,"$ref":"a"}`), ""},
			{d.Request("/a/{b}", `{"n":1,"$ref":"b"}`), "pattern"},
			{d.Request("/a/{b}", `{}`), "missing"},
			{d.Request("/a/{b}", `{`), "EOF"},
			{d.Request("/b", `{}`), "there is no POST"},
			{d.Request("/b", ``), "there is no POST"},
			{d.Answer("/a/{b}", 200, "application/json", `[1e400]`), ""},
			{d.Answer("/a/{b}", 200, "application/json", `["1"]`), "number"},
			{d.Answer("/a/{b}", 200, "text/plain", `[1]`), "text~1plain"},
			{d.Answer("/a/{b}", 404, "application/json", `[1]`), "no answer 404"},
		} {
			if got := fmt.Sprint(c.err); c.want == "" && c.err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%s, row %d: %v, want %q", version, i, c.err, c.want)
			}
		}
	}
}
