package openapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Whatever a server sends as a schema, its tool is left out, or is in a document
// that is valid and whose references lead somewhere; and what the server's own
// schema accepts, the one in the document accepts.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"from":{"type":"string"},"to":{"$ref":"#/properties/from"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"x":{"minimum":1,"exclusiveMinimum":true}},"definitions":{"a":{"items":[{"$ref":"#"}]}}}`,
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/N","minLength":3}},"$defs":{"N":{"$anchor":"n","anyOf":[{"$ref":"#n"},{"$ref":"#/$defs/N"}],"items":{"$ref":"#n"}}}}`,
		`{"properties":{"a":{"$id":"https://a/b","$defs":{"c":{"type":"null"}},"oneOf":[{"$ref":"#/$defs/c"},{"$ref":"https://a/b#/$defs/c"}]},"$ref":{"$ref":"../x"}}}`,
		`{"type":"object","dependencies":{"a":["b"],"c":{"not":{}}},"if":{},"then":false,"nullable":true,"$recursiveRef":"#","contains":{"unevaluatedItems":false}}`,
		`{"type":["object"],"allOf":[{"$ref":"#/allOf/1"},{"$ref":"#/allOf/0"}],"properties":{"a":{"const":{"$ref":"#/b"}},"b":{"default":1e999,"pattern":"^a+$","enum":[]}}}`,
		exploding(12), `[]`, `true`, `{"type":"object","required":["a","a",1],"properties":null}`,
	} {
		f.Add([]byte(s), []byte(`{"a":null,"b":[1,{"c":"x"}],"n":{"items":[]},"from":"x"}`))
	}
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		if len(schema) > 20_000 {
			return
		}
		tl := &bridge.Tool{Handle: "h", Name: "t", Input: schema, Output: bytes.Clone(schema)}
		if NewSchemas(nil).Compile(tl) != nil {
			return
		}
		d := New(Options{}).Whole(view(server("h", tl)))
		body := d.JSON().Body
		if err := raw.Check(body, 1000); err != nil && !strings.Contains(err.Error(), "exponent") && !strings.Contains(err.Error(), "4096") {
			t.Fatalf("%v\n%s", err, body)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		checkStructure(t, v.(map[string]any))
		checkYAML(t, d.YAML().Body, v)
		accepts(t, tl, doc)
	})
}

// accepts checks a document by the tool's schema as sent, and if that takes it, by
// the one that is published.
func accepts(t *testing.T, tl *bridge.Tool, doc []byte) {
	if raw.Check(doc, 100) != nil || tl.Unchecked != "" || tl.Arguments == nil || published(tl).input == nil {
		return
	}
	out, err := tl.Arguments.Check(doc)
	if err != nil || !bytes.Equal(out, doc) || strings.Contains(string(tl.Input), `"not"`) {
		return
	}
	p := published(tl)
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return newPattern(expr, NewSchemas(nil).log) })
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"input":` + string(p.input) + `,"components":{"schemas":{` + string(p.components) + `}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("doc://x/", whole); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc://x/#/input")
	if err != nil {
		if strings.Contains(err.Error(), "regex") {
			return // the original has no draft that asks for it
		}
		t.Fatalf("the published schema does not compile: %v\n%s", err, p.input)
	}
	v, _, err := decode(doc, maxValues)
	if err != nil {
		return
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("the server's schema\n%s\naccepts\n%s\nand the published one\n%s %s\ndoes not: %v", tl.Input, doc, p.input, p.components, err)
	}
}
