package openapi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
	"mcpbridge/internal/raw"
)

// checkFlat fails the test unless the flat forms are valid, and the tools' schemas
// in them hold no reference.
func checkFlat(t testing.TB, d *Document) map[string]any {
	t.Helper()
	body := d.Form(Form{Flat: true}).Body
	if err := raw.Check(body, 1000); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	doc := v.(map[string]any)
	checkStructure(t, doc)
	openapitest.Validate(t, body)
	checkYAML(t, d.Form(Form{Flat: true, YAML: true}).Body, v)
	checkOlder(t, d, Form{Flat: true})
	b, err := json.Marshal(doc["paths"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), schemaPath) {
		t.Errorf("an operation refers to a schema: %s", b)
	}
	for name := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		if name != "Problem" && name != "ContentBlock" {
			t.Errorf("the component %s is left", name)
		}
	}
	return doc
}

// flatBody is the body's schema in the flat document of a tool.
func flatBody(t *testing.T, input string) string {
	t.Helper()
	d := New(Options{}).Whole(view(server("h", tool(t, "h", "t", input))))
	checkFlat(t, d)
	doc, err := parse(d.Form(Form{Flat: true}).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytesOf(doc.get("paths").get("/tools/h/t").get("post").get("requestBody").get("content").get("application/json").get("schema")))
}

func TestFlat(t *testing.T) {
	for _, c := range []struct{ what, input, want string }{
		{
			"what is flat already", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
		},
		{
			"recursion", `{"type":"object","properties":{"t":{"$ref":"#/$defs/T","title":"Tree"}},"$defs":{"T":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/T"}}}}}}`,
			`{"type":"object","properties":{"t":{"type":"object","properties":{"kids":{"type":"array","items":` +
				`{"type":"object","properties":{"kids":{"type":"array","items":{"type":"object","properties":{"kids":{"type":"array","items":{"type":"object"}}}}}}}}},"title":"Tree"}}}`,
		},
		{
			"recursion of the root, of no type", `{"properties":{"next":{"$ref":"#"}}}`,
			`{"properties":{"next":{"properties":{"next":{"properties":{"next":{"properties":{"next":{}}}}}}}}}`,
		},
		{
			"recursion below oneOf and not", `{"type":"object","properties":{"x":{"oneOf":[{"$ref":"#/$defs/T"},{"type":"string"}]},"y":{"not":{"$ref":"#/$defs/T"}}},"$defs":{"T":{"type":"array","items":{"$ref":"#/$defs/T"}}}}`,
			`{"type":"object","properties":{"x":{"anyOf":[{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array"}}}},{"type":"string"}]},"y":{}}}`,
		},
		{
			"a reference with rules beside it", `{"type":"object","properties":{"x":{"$ref":"#/$defs/T","minItems":1}},"$defs":{"T":{"type":"array","items":{"$ref":"#/$defs/T"}}}}`,
			`{"type":"object","properties":{"x":{"minItems":1,"allOf":[{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array"}}}}]}}}`,
		},
		{
			"allOf", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"allOf":[{"properties":{"b":{"type":"integer"}},"required":["b","a"]}]}],"additionalProperties":true}`,
			`{"type":"object","additionalProperties":true,"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`,
		},
		{
			"alternatives", `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"oneOf":[` +
				`{"properties":{"op":{"const":"add"},"text":{"type":"string"},"n":{"type":"integer"}},"required":["op","text"]},{"properties":{"op":{"const":"del"},"n":{"type":"string"},"id":{"description":"Which"}},"required":["op"]}]}`,
			`{"type":"object","properties":{"id":{"type":"integer"},"op":{"type":"string","enum":["add","del"]},"text":{"anyOf":[{"type":"string"},{}]},"n":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"required":["id","op"]}`,
		},
		{
			"one of the required", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}],"title":"Args","not":{"required":["c"]}}`,
			`{"type":"object","title":"Args","properties":{"a":{},"b":{}}}`,
		},
		{
			"conditions", `{"type":"object","properties":{"k":{"type":"string","enum":["x","y"]}},"if":{"properties":{"k":{"type":"string","enum":["x"]}}},"then":{"properties":{"v":{"type":"string"}},"required":["v"]},"else":{"properties":{"w":{"type":"string","const":"q"}}},"dependentSchemas":{"k":{"properties":{"w":{"type":"string","enum":["r"]}}}}}`,
			`{"type":"object","properties":{"k":{"type":"string","enum":["x","y"]},"v":{"anyOf":[{"type":"string"},{}]},"w":{"anyOf":[{"type":"string","enum":["q","r"]},{}]}}}`,
		},
		{
			"alternatives that allow no other properties", `{"type":"object","properties":{"b":{"type":"boolean","description":"B"}},"anyOf":[{"properties":{"b":{"const":true},"x":{"type":"integer","title":"X"}},"additionalProperties":false},{"properties":{"b":{"const":false},"y":{"description":"Y"}},"additionalProperties":false}]}`,
			`{"type":"object","properties":{"b":{"anyOf":[{"type":"boolean","allOf":[{"const":true}]},{"type":"boolean","allOf":[{"const":false}]}]},"x":{"type":"integer","title":"X"},"y":{"description":"Y"}}}`,
		},
		{
			"one property in several places", `{"type":"object","properties":{"a":{"type":"string","description":"A"},"o":{"title":"O"}},"allOf":[{"properties":{"a":{"minLength":1}}},{"properties":{"a":{"title":"T"}}}],"then":{"properties":{"o":{"minLength":1,"title":"P"},"a":{"const":"x"}}},"if":{"properties":{"o":{"type":"string"}}}}`,
			`{"type":"object","properties":{"a":{"minLength":1,"description":"A"},"o":{"anyOf":[{"type":"string"},{"minLength":1,"title":"P"},{}]}}}`,
		},
		{
			"constants of several types", `{"type":"object","anyOf":[{"properties":{"k":{"type":"string","const":"a"}}},{"properties":{"k":{"type":"integer","const":1}}},{"properties":{"k":{"const":true}}}]}`,
			`{"type":"object","properties":{"k":{"anyOf":[{"type":"string","const":"a"},{"type":"integer","const":1},{"type":"boolean","allOf":[{"const":true}]}]}}}`,
		},
		{
			"values with rules", `{"type":"object","anyOf":[{"properties":{"k":{"const":"a","minLength":1}}},{"properties":{"k":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"k":{"anyOf":[{"type":"string","const":"a","minLength":1},{"type":"string"}]}}}`,
		},
		{
			"only descriptions", `{"type":"object","anyOf":[{"properties":{"k":{"description":"A"}}},{"properties":{"k":{"description":"B"}}}]}`,
			`{"type":"object","properties":{"k":{"description":"A"}}}`,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			if diff := cmp.Diff(c.want, flatBody(t, c.input)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What would be large without its references is unrolled less.
func TestFlatIsBounded(t *testing.T) {
	var props, defs []string
	for i := range 12 {
		name := string(rune('A' + i))
		props = append(props, `"`+name+`":{"$ref":"#/$defs/`+name+`"}`)
	}
	for i := range 12 {
		defs = append(defs, `"`+string(rune('A'+i))+`":{"type":"object","properties":{`+strings.Join(props, ",")+`}}`)
	}
	for _, input := range []string{
		`{"type":"object","properties":{` + props[0] + `},"$defs":{` + strings.Join(defs, ",") + `}}`,
		exploding(14),
	} {
		d := New(Options{}).Whole(view(server("h", tool(t, "h", "t", input))))
		checkFlat(t, d)
		if n := len(d.Form(Form{Flat: true}).Body); n > 1<<20 {
			t.Errorf("a schema of %d bytes became a document of %d", len(input), n)
		}
	}
}

func TestFlatCatalogue(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	checkFlat(t, d.Whole(cat))
	checkFlat(t, d.Handle(cat, "graph"))
}

// TestRandomFlat holds schemas made by chance to the promise that a schema without
// references, with plain properties at its top, accepts what it accepted before.
func TestRandomFlat(t *testing.T) {
	asked := 0
	for seed := range uint64(300) {
		g := generator{rand.New(rand.NewPCG(seed, 3))}
		schema := g.root()
		if seed%2 == 0 { // compose at the top
			schema = schema[:len(schema)-1] + `,"required":["a"],"` + g.pick("allOf", "anyOf", "oneOf") + `":[` + g.schema(3) + `,` + g.schema(3) + `],"if":` + g.schema(2) + `,"then":` + g.schema(2) + `,"dependentSchemas":{"a":` + g.schema(2) + `}}`
		}
		tl := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(schema)}
		if NewSchemas(nil).Compile(tl) != nil || tl.Arguments == nil || tl.Unchecked != "" || endless(t, tl.Input) {
			continue
		}
		for _, f := range []Form{{Flat: true}, {Flat: true, Older: true}} {
			s, _ := bodySchema(t, tl, f)
			for range 20 {
				b := []byte(g.object(6))
				if out, err := tl.Arguments.Check(b); err != nil || !bytes.Equal(out, b) {
					continue
				}
				v, _, err := decode(b, maxValues)
				if err != nil {
					t.Fatal(err)
				}
				asked++
				if err := s.Validate(v); err != nil {
					t.Fatalf("seed %d: the server's schema\n%s\naccepts\n%s\nand the flat one (%+v) does not: %v", seed, schema, b, f, err)
				}
			}
		}
	}
	if asked < 1000 {
		t.Errorf("only %d documents were accepted", asked)
	}
}
