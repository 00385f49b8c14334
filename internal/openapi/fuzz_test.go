package openapi

import (
	"bytes"
	"math/rand/v2"
	"slices"
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
		accepts(t, tl, doc, false)
		for _, flat := range []bool{false, true} {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.Form(Form{Older: true, Flat: flat}).Body))
			if err != nil {
				t.Fatal(err)
			}
			eachSchema(v.(map[string]any), func(at string, s any) { checkOld(t, v.(map[string]any), at, s) })
		}
		if !strings.Contains(string(schema), "attern") { // of which the original may say none that compiles
			acceptsOlder(t, tl, func() []byte { return doc }, 1)
		}
	})
}

// accepts checks a document by the tool's schema as sent, and if that takes it, by
// the one that is published; if they are to mean the same, also if it does not. It
// reports whether both were asked. A schema that applies to itself without end means
// nothing, so that nothing can be said of it.
func accepts(t *testing.T, tl *bridge.Tool, doc []byte, same bool) bool {
	if raw.Check(doc, 100) != nil || tl.Unchecked != "" || tl.Arguments == nil || published(tl).input == nil {
		return false
	}
	out, err := tl.Arguments.Check(doc)
	fits := err == nil && bytes.Equal(out, doc)
	if !fits && !same || strings.Contains(string(tl.Input), `"not"`) || endless(t, tl.Input) {
		return false
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
			return false // the original has no draft that asks for it
		}
		t.Fatalf("the published schema does not compile: %v\n%s", err, p.input)
	}
	v, _, err := decode(doc, maxValues)
	if err != nil {
		return false
	}
	if err := s.Validate(v); (err == nil) != fits {
		t.Errorf("that the server's schema\n%s\naccepts\n%s\nis %v, not so the published one\n%s %s: %v", tl.Input, doc, fits, p.input, p.components, err)
	}
	return true
}

func endless(t *testing.T, schema []byte) bool {
	root, err := parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	for draft := range drafts {
		if slices.ContainsFunc(newSource(root, draft).order, func(t *target) bool { return t.hollow }) {
			return true
		}
	}
	return false
}

// TestRandomSchemas holds schemas made by chance, of every keyword and with
// references in all directions, to what FuzzSchema demands.
func TestRandomSchemas(t *testing.T) {
	asked := 0
	for seed := range uint64(300) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		schema := g.root()
		tl := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(schema)}
		if NewSchemas(nil).Compile(tl) != nil {
			continue
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(New(Options{}).Whole(view(server("h", tl))).JSON().Body))
		if err != nil {
			t.Fatal(err)
		}
		checkStructure(t, v.(map[string]any))
		// What is left out because hosts of tools refuse it is all that may make a difference.
		same := !strings.Contains(schema, "unevaluated")
		for range 20 {
			if accepts(t, tl, []byte(g.object(3)), same) {
				asked++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, schema)
		}
	}
	if asked < 1000 {
		t.Errorf("only %d documents were asked about", asked)
	}
}

type generator struct{ *rand.Rand }

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) root() string {
	var defs []string
	for _, name := range []string{"A", "B", "C"} {
		defs = append(defs, `"`+name+`":`+g.schema(3))
	}
	dialect := g.pick("", "", `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"http://json-schema.org/draft-04/schema#",`, `"$schema":"https://json-schema.org/draft/2019-09/schema",`)
	return `{` + dialect + `"type":"object","properties":{"a":` + g.schema(3) + `,"b":` + g.schema(3) + `},` +
		g.pick(`"$defs"`, `"definitions"`) + `:{` + strings.Join(defs, ",") + `}}`
}

func (g generator) schema(depth int) string {
	if depth == 0 || g.IntN(8) == 0 {
		return g.pick(`{}`, `true`, `false`, `{"type":"null"}`, `{"type":"array"}`, `{"type":"boolean","const":true}`, `{"type":"string"}`, `{"type":"integer","minimum":1}`, `{"$ref":"#/$defs/A"}`, `{"$ref":"#/definitions/B"}`, `{"type":["string","null"]}`)
	}
	sub := func() string { return g.schema(depth - 1) }
	var ms []string
	seen := map[string]bool{}
	for range 1 + g.IntN(4) {
		m := []func() string{
			func() string {
				return `"type":` + g.pick(`"object"`, `"array"`, `["object","array"]`, `"string"`, `"any"`, `"null"`, `["array","null"]`, `"boolean"`)
			},
			func() string { return `"properties":{"a":` + sub() + `,"c":` + sub() + `}` },
			func() string { return `"items":` + g.pick(sub(), `[`+sub()+`,`+sub()+`]`) },
			func() string { return `"prefixItems":[` + sub() + `]` },
			func() string { return `"additionalItems":` + sub() },
			func() string { return `"additionalProperties":` + g.pick(sub(), `false`) },
			func() string { return `"unevaluatedProperties":` + g.pick(sub(), `false`) },
			func() string { return `"unevaluatedItems":false` },
			func() string { return `"anyOf":[` + sub() + `,` + sub() + `]` },
			func() string { return `"oneOf":[` + sub() + `,` + sub() + `]` },
			func() string { return `"allOf":[` + sub() + `]` },
			func() string { return `"if":` + sub() },
			func() string { return `"then":` + sub() },
			func() string { return `"else":` + sub() },
			func() string { return `"dependencies":{"a":` + g.pick(sub(), `["b"]`) + `}` },
			func() string { return `"dependentRequired":{"a":["c"]}` },
			func() string { return `"contains":` + sub() },
			func() string { return `"propertyNames":{"maxLength":1}` },
			func() string { return `"required":["a"]` },
			func() string { return `"minimum":2` },
			func() string { return `"exclusiveMinimum":` + g.pick(`true`, `false`, `1.5`) },
			func() string {
				return `"enum":` + g.pick(`[1,"x",null,{"a":1},[1]]`, `["x",null]`, `[true,false]`, `[2.5,1]`, `[{},[]]`, `[null]`, `[true]`)
			},
			func() string {
				return `"const":` + g.pick(`1`, `"x"`, `{"a":1}`, `true`, `null`, `[]`, `[1,{}]`, `{"a":true}`)
			},
			func() string { return `"nullable":true` },
			func() string { return `"maxItems":1` },
			func() string { return `"description":"d"` },
			func() string { return `"default":1` },
			func() string {
				return `"$ref":"#/` + g.pick("$defs/A", "$defs/B", "definitions/C", "$defs/C", "properties/a", "properties/b/items", "$defs/A/properties/a", "") + `"`
			},
		}[g.IntN(28)]()
		key, _, _ := strings.Cut(m, ":")
		if !seen[key] {
			ms = append(ms, m)
		}
		seen[key] = true
	}
	return `{` + strings.Join(ms, ",") + `}`
}

func (g generator) value(depth int) string {
	switch n := g.IntN(6); {
	case depth > 0 && n < 2:
		return g.object(depth)
	case depth > 0 && n == 2:
		return `[` + g.value(depth-1) + `,` + g.value(depth-1) + `]`
	default:
		return g.pick(`1`, `2.5`, `"x"`, `null`, `true`, `[]`, `{}`)
	}
}

func (g generator) object(depth int) string {
	var ms []string
	for _, name := range []string{"a", "b", "c", "dd"} {
		if g.IntN(2) == 0 {
			ms = append(ms, `"`+name+`":`+g.value(depth-1))
		}
	}
	return `{` + strings.Join(ms, ",") + `}`
}
