package openapi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T, schema string) *jsonschema.Schema {
	t.Helper()
	r, err := NewSchemas(nil).read([]byte(schema), "h/t")
	if err != nil || r.schema == nil {
		t.Fatalf("%s: %v, %v", schema, err, r.why)
	}
	return r.schema
}

func TestSketch(t *testing.T) {
	for _, c := range []struct {
		schema     string
		fits, fail []string
	}{
		{`{"type":"object"}`, []string{`{}`, ` {"a" : [1, {"b":null}] } `}, []string{`[]`, `"x"`, `null`}},
		{
			`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"]}`,
			[]string{`{"a":"x"}`, `{"n":-12,"z":{"deep":[[]]},"a":"\"\\"}`},
			[]string{`{}`, `{"a":1}`, `{"a":"x","n":"1"}`, `{"a":"x","n":1.5}`, `{"n":1}`},
		},
		{
			`{"type":"object","additionalProperties":false,"properties":{"a":{"type":["string","null"]},"b":true},"required":["b"]}`,
			[]string{`{"b":1}`, `{"a":null,"b":{}}`},
			[]string{`{"b":1,"c":1}`, `{"a":true,"b":1}`, `{}`},
		},
		{`{"additionalProperties":false,"required":["a"]}`, []string{`[]`}, []string{`{}`, `{"a":1}`}},
		{
			`{"properties":{"list":{"items":{"type":"object","required":["id"],"additionalProperties":{"type":"boolean"}}}},"required":["x"],"additionalProperties":{"type":"array","items":{"type":"number"}}}`,
			[]string{`{"x":[1,2.5e3]}`, `{"list":[{"id":true},{"id":false,"o":true}],"x":[]}`, `{"list":"no array","x":[]}`, `7`},
			[]string{`{"x":1}`, `{"x":["1"]}`, `{"x":[],"list":[{}]}`, `{"x":[],"list":[{"id":1}]}`, `{"x":[],"y":{}}`},
		},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"integer"},"title":"t","default":{"a":1}}`, []string{`[1,2]`, `{}`}, []string{`[1.5]`, `[[]]`}},
		// These fit, but it takes the library to see that.
		{`{"properties":{"a":{"type":"integer"}}}`, []string{`{"a":1}`}, []string{`{"\u0061":1}`, `{"a":1.0}`, `{"a":1e2}`, "{\"\xff\":1}"}},
	} {
		s := sketchOf(compiled(t, c.schema), 0)
		if s == nil {
			t.Fatalf("%s has no sketch", c.schema)
		}
		for i, docs := range [][]string{c.fail, c.fits} {
			for _, doc := range docs {
				if got := s.fits(&reader{b: []byte(doc), depth: 10}); got != (i == 1) {
					t.Errorf("%s: %s fits: %v", c.schema, doc, got)
				}
			}
		}
	}
	s := sketchOf(compiled(t, `{"type":"object"}`), 0)
	if doc := `{"a":` + strings.Repeat("[", 10) + strings.Repeat("]", 10) + `}`; s.fits(&reader{b: []byte(doc), depth: 10}) {
		t.Error("a document that is nested too deeply fits")
	}
}

// What says more than a sketch can has none, wherever it stands.
func TestNoSketch(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d"`, i)
	}
	deep := `{}`
	for range maxSketch + 1 {
		deep = `{"items":` + deep + `}`
	}
	for _, more := range []string{
		`{"enum":[1]}`, `{"const":1}`, `{"not":{}}`, `{"allOf":[{}]}`, `{"anyOf":[{}]}`, `{"oneOf":[{}]}`, `{"if":{},"then":{}}`, `false`, `{"$ref":"#/x"}`, `{"$dynamicRef":"#/x"}`,
		`{"maxProperties":1}`, `{"minProperties":0}`, `{"propertyNames":{}}`, `{"patternProperties":{"a":{}}}`, `{"dependentRequired":{"a":["b"]}}`, `{"dependentSchemas":{"a":{}}}`, `{"unevaluatedProperties":{}}`,
		`{"items":[{}]}`, `{"dependencies":{"a":["b"]}}`, `{"$recursiveRef":"#"}`,
		`{"minItems":1}`, `{"maxItems":0}`, `{"uniqueItems":true}`, `{"contains":{}}`, `{"prefixItems":[{}]}`, `{"unevaluatedItems":{}}`,
		`{"minLength":0}`, `{"maxLength":1}`, `{"pattern":"a"}`, `{"maximum":1}`, `{"minimum":0}`, `{"exclusiveMaximum":0}`, `{"exclusiveMinimum":0}`, `{"multipleOf":2}`,
		`{"required":[` + strings.Join(many, ",") + `]}`, deep,
	} {
		for _, schema := range []string{
			`{"x":{},"properties":{"a":` + more + `}}`, `{"x":{},"additionalProperties":{"items":` + more + `}}`, `{"x":{},"items":{"properties":{"a":` + more + `}}}`,
		} {
			if sketchOf(compiled(t, schema), 0) != nil {
				t.Errorf("%s has a sketch", schema)
			}
		}
	}
}

// What a sketch lets pass, the library does; and a sketch lets pass nearly all that it does.
func TestSketchesAreRight(t *testing.T) {
	g := sketchGen{rand.New(rand.NewPCG(1, 2))}
	seen, missed := 0, 0
	drafts := []string{"", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"}
	for i := range 3000 {
		schema := g.schema(3)
		if d := drafts[i%len(drafts)]; d != "" {
			schema = `{"$schema":"` + d + `",` + schema[1:]
		}
		lib := compiled(t, schema)
		s := sketchOf(lib, 0)
		if s == nil {
			t.Fatalf("%s has no sketch", schema)
		}
		for range 10 {
			doc := g.value(3)
			v, _, err := decode([]byte(doc), maxValues)
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{b: []byte(doc), depth: maxDocNesting}
			fits, valid := s.fits(r), lib.Validate(v) == nil
			switch {
			case fits && !valid:
				t.Fatalf("%s fits %s", doc, schema)
			case fits && r.i != len(doc):
				t.Fatalf("%s was read to byte %d", doc, r.i)
			case fits:
				seen++
			case valid:
				missed++
			}
		}
	}
	if seen < 3000 || missed > seen/10 {
		t.Errorf("%d were seen to fit, %d were not", seen, missed)
	}
}

type sketchGen struct{ *rand.Rand }

func (g sketchGen) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g sketchGen) name() string { return g.pick("a", "b", "c", "d") }

func (g sketchGen) schema(depth int) string {
	if depth == 0 {
		return g.pick(`{}`, `true`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":["number","null"]}`, `{"type":"boolean","description":"d"}`)
	}
	parts := []string{`"title":"t"`}
	maybe := func(key string, val func() string) {
		if g.IntN(2) == 0 {
			parts = append(parts, `"`+key+`":`+val())
		}
	}
	maybe("type", func() string {
		return g.pick(`"object"`, `"object"`, `["object","array","integer"]`, `"array"`, `["integer","number"]`)
	})
	maybe("properties", func() string {
		return `{"a":` + g.schema(depth-1) + `,"b":` + g.schema(depth-1) + `,"c":` + g.schema(0) + `}`
	})
	maybe("required", func() string { return g.pick(`[]`, `["a"]`, `["c","a"]`, `["d"]`) })
	maybe("items", func() string { return g.schema(depth - 1) })
	maybe("additionalProperties", func() string { return g.pick("true", "false", g.schema(depth-1)) })
	return "{" + strings.Join(parts, ",") + "}"
}

func (g sketchGen) value(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return g.pick("1", "-7", "0.5", "2.0", `"x"`, `"a\"b"`, "true", "null", "{}", "[]")
	}
	n := g.IntN(4)
	if g.IntN(3) == 0 {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(parts, " ,") + "]"
	}
	var parts []string
	used := map[string]bool{}
	for range n {
		if name := g.name(); !used[name] {
			used[name] = true
			parts = append(parts, `"`+name+`" : `+g.value(depth-1))
		}
	}
	return "{ " + strings.Join(parts, ",") + "}"
}
