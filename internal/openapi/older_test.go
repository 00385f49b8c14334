package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
	"mcpbridge/internal/raw"
)

// oldKeywords are all that OpenAPI 3.0.3 allows in a schema.
var oldKeywords = map[string]bool{}

func init() {
	for k := range strings.FieldsSeq(`title multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
		maxItems minItems uniqueItems maxProperties minProperties required enum type not allOf oneOf anyOf items properties
		additionalProperties description format default nullable externalDocs example deprecated`) {
		oldKeywords[k] = true
	}
}

// checkOlder fails the test unless the 3.0 form is valid in both encodings.
func checkOlder(t testing.TB, d *Document, f Form) map[string]any {
	t.Helper()
	f.Older = true
	body := d.Form(f).Body
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	doc := v.(map[string]any)
	if doc["openapi"] != "3.0.3" {
		t.Errorf("openapi = %v", doc["openapi"])
	}
	openapitest.Validate(t, body)
	f.YAML = true
	checkYAML(t, d.Form(f).Body, v)
	eachSchema(doc, func(at string, s any) { checkOld(t, doc, at, s) })
	return doc
}

// eachSchema yields the schemas of a document's operations and components.
func eachSchema(doc map[string]any, yield func(at string, s any)) {
	media := func(at string, holder any) {
		content, _ := holder.(map[string]any)["content"].(map[string]any)
		for name, m := range content {
			yield(at+" "+name, m.(map[string]any)["schema"])
		}
	}
	for path, item := range doc["paths"].(map[string]any) {
		op := item.(map[string]any)["post"].(map[string]any)
		if b := op["requestBody"]; b != nil {
			media(path+" requestBody", b)
		}
		media(path+" 200", op["responses"].(map[string]any)["200"])
	}
	components := doc["components"].(map[string]any)
	for name, s := range components["schemas"].(map[string]any) {
		yield(name, s)
	}
	for name, r := range components["responses"].(map[string]any) {
		media(name, r)
	}
}

// checkOld holds a schema to what 3.0 says of its form.
func checkOld(t testing.TB, doc map[string]any, at string, s any) {
	t.Helper()
	m, ok := s.(map[string]any)
	if !ok {
		t.Errorf("%s: %v is no schema of 3.0", at, s)
		return
	}
	if ref, ok := m["$ref"]; ok {
		walker{t: t, doc: doc}.resolves(at, ref.(string))
		if len(m) > 1 {
			t.Errorf("%s: there is something beside a reference: %v", at, m)
		}
		return
	}
	types := []string{"array", "boolean", "integer", "number", "object", "string"}
	for k, v := range m {
		sub := at + "/" + k
		if !oldKeywords[k] && !strings.HasPrefix(k, "x-") {
			t.Errorf("%s is no keyword of 3.0", sub)
		}
		switch k {
		case "type":
			if s, _ := v.(string); !slices.Contains(types, s) {
				t.Errorf("%s is %v", sub, v)
			}
			if v == "array" && m["items"] == nil {
				t.Errorf("%s: an array without items", at)
			}
		case "nullable", "exclusiveMinimum", "exclusiveMaximum":
			if v != true {
				t.Errorf("%s is %v", sub, v)
			}
			if k == "nullable" && m["type"] == nil {
				t.Errorf("%s: nullable without a type means nothing", at)
			}
		case "required", "enum":
			if len(v.([]any)) == 0 {
				t.Errorf("%s is empty", sub)
			}
		case "not", "items":
			checkOld(t, doc, sub, v)
		case "additionalProperties":
			if _, ok := v.(bool); !ok {
				checkOld(t, doc, sub, v)
			}
		case "allOf", "anyOf", "oneOf":
			if len(v.([]any)) == 0 {
				t.Errorf("%s is empty", sub)
			}
			for i, e := range v.([]any) {
				checkOld(t, doc, fmt.Sprintf("%s/%d", sub, i), e)
			}
		case "properties":
			for name, e := range v.(map[string]any) {
				checkOld(t, doc, sub+"/"+name, e)
			}
		}
	}
}

// modern turns a schema of 3.0 into one of 2020-12 that means the same.
func modern(s any) any {
	m, ok := s.(map[string]any)
	if !ok {
		return s
	}
	out := map[string]any{}
	for k, v := range m {
		switch k {
		case "type":
			if out[k] = v; m["nullable"] == true {
				out[k] = []any{v, "null"}
			}
		case "nullable", "example":
		case "exclusiveMinimum":
			out[k] = m["minimum"]
		case "exclusiveMaximum":
			out[k] = m["maximum"]
		case "minimum", "maximum":
			if m["exclusive"+strings.ToUpper(k[:1])+k[1:]] != true {
				out[k] = v
			}
		case "not", "items", "additionalProperties":
			out[k] = modern(v)
		case "allOf", "anyOf", "oneOf":
			var es []any
			for _, e := range v.([]any) {
				es = append(es, modern(e))
			}
			out[k] = es
		case "properties":
			props := map[string]any{}
			for name, e := range v.(map[string]any) {
				props[name] = modern(e)
			}
			out[k] = props
		default:
			out[k] = v
		}
	}
	return out
}

// bodySchema compiles the schema of the only operation's body in a document of a form.
func bodySchema(t testing.TB, tl *bridge.Tool, f Form) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(New(Options{}).Whole(view(server(tl.Handle, tl))).Form(f).Body))
	if err != nil {
		t.Fatal(err)
	}
	doc := v.(map[string]any)
	body := any(map[string]any{})
	for _, item := range doc["paths"].(map[string]any) {
		if b := item.(map[string]any)["post"].(map[string]any)["requestBody"]; b != nil {
			body = b.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
		}
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	if f.Older {
		body = modern(body)
		for name, s := range schemas {
			schemas[name] = modern(s)
		}
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return newPattern(expr, NewSchemas(nil).log) })
	if err := c.AddResource("doc://x/", map[string]any{"body": body, "components": map[string]any{"schemas": schemas}}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc://x/#/body")
	if err != nil {
		t.Fatalf("%v\n%v", err, body)
	}
	return s, doc
}

// A change is a schema of a property x, and what it is in a document.
type change struct {
	what          string
	schema        string // x's
	defs          string // beside the properties
	newer, older  string // x's, in 3.1 (if empty, it stays as it is) and in 3.0
	fits, fitsNot string // values of x with both 3.0 and 3.1; a list
}

// becomes are the changes that docs/schemas.md shows.
var becomes = []change{
	{what: "a list of types", schema: `{"type":["string","integer"],"minLength":2}`, older: `{"anyOf":[{"type":"string","minLength":2},{"type":"integer"}]}`, fits: `["ab",1]`, fitsNot: `["a",null,true]`},
	{what: "a type or null", schema: `{"type":["string","null"],"default":null}`, older: `{"type":"string","nullable":true,"default":null}`, fits: `["a",null]`, fitsNot: `[1]`},
	{what: "several types or null", schema: `{"type":["array","object","null"],"minItems":1}`, newer: `{"type":["array","object","null"],"minItems":1,"items":{}}`, older: `{"anyOf":[{"type":"array","minItems":1,"items":{},"nullable":true},{"type":"object"}]}`, fits: `[null,[1],{}]`, fitsNot: `[[],1]`},
	{what: "an optional value, as Pydantic writes it", schema: `{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"default":null,"title":"Limit"}`, older: `{"type":"integer","minimum":1,"nullable":true,"default":null,"title":"Limit"}`, fits: `[1,null]`, fitsNot: `[0,"a"]`},
	{what: "null alone", schema: `{"type":"null"}`, newer: `{"const":null}`, older: `{"type":"string","nullable":true,"maxLength":0}`, fits: `[null]`, fitsNot: `["a",0]`},
	{what: "a constant", schema: `{"const":"v2"}`, newer: `{"type":"string","const":"v2"}`, older: `{"type":"string","enum":["v2"]}`, fits: `["v2"]`, fitsNot: `["v1",null]`},
	{what: "constants with titles", schema: `{"oneOf":[{"const":"a","title":"First"},{"const":"b","title":"Second"}]}`, newer: `{"oneOf":[{"type":"string","const":"a","title":"First"},{"type":"string","const":"b","title":"Second"}]}`, older: `{"oneOf":[{"type":"string","enum":["a"],"title":"First"},{"type":"string","enum":["b"],"title":"Second"}]}`, fits: `["a","b"]`, fitsNot: `["c"]`},
	{what: "values of one type, or null", schema: `{"enum":["a","b",null]}`, newer: `{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}`, older: `{"type":"string","enum":["a","b",null],"nullable":true}`, fits: `["a",null]`, fitsNot: `["c"]`},
	{what: "values of several types", schema: `{"enum":[1,"x",null]}`, newer: `{"anyOf":[{"type":"integer","enum":[1]},{"type":"string","enum":["x"]},{"type":"null"}]}`, older: `{"anyOf":[{"type":"integer","enum":[1,null],"nullable":true},{"type":"string","enum":["x"]}]}`, fits: `[1,"x",null]`, fitsNot: `[2]`},
	{what: "true as a constant", schema: `{"type":"boolean","const":true}`, newer: `{"type":"boolean","allOf":[{"const":true}]}`, older: `{"type":"boolean","allOf":[{"type":"boolean","enum":[true]}]}`, fits: `[true]`, fitsNot: `[false,null]`},
	{what: "an object as a constant", schema: `{"const":{"x":[0]}}`, newer: `{"type":"object","properties":{"x":{"type":"array","prefixItems":[{"type":"integer","const":0}],"minItems":1,"maxItems":1}},"required":["x"],"additionalProperties":false}`, older: `{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer","enum":[0]},"maxItems":1,"minItems":1}},"required":["x"],"additionalProperties":false}`, fits: `[{"x":[0]}]`, fitsNot: `[{"x":[1]},{"x":[]},{},{"x":[0],"y":1},null]`},
	{what: "exclusive bounds", schema: `{"type":"number","exclusiveMinimum":0,"maximum":5,"exclusiveMaximum":9}`, older: `{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":5}`, fits: `[0.1,5]`, fitsNot: `[0,6]`},
	{what: "a tuple", schema: `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`, newer: `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"maxItems":2}`, older: `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]},"maxItems":2}`, fits: `[["a",1],["a"]]`, fitsNot: `[["a",1,1],[true]]`},
	{what: "an open tuple", schema: `{"type":"array","prefixItems":[{"type":"string"}]}`, older: `{"type":"array","items":{}}`, fits: `[["a",1]]`, fitsNot: `[1]`},
	{what: "an array of anything", schema: `{"type":"array"}`, newer: `{"type":"array","items":{}}`, older: `{"type":"array","items":{}}`, fits: `[[1,"a"]]`, fitsNot: `[{}]`},
	{what: "an array that must be empty", schema: `{"type":"array","items":false}`, newer: `{"type":"array","items":{},"maxItems":0}`, older: `{"type":"array","items":{},"maxItems":0}`, fits: `[[]]`, fitsNot: `[[1]]`},
	{what: "examples", schema: `{"type":"string","examples":["a","b"]}`, older: `{"type":"string","example":"a","x-examples":["a","b"]}`, fits: `["c"]`, fitsNot: `[1]`},
	{what: "names with a pattern", schema: `{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, older: `{"type":"object","additionalProperties":{"type":"string"}}`, fits: `[{"x-a":"a"},{}]`, fitsNot: `[{"x-a":1}]`},
	{what: "rules for names", schema: `{"type":"object","propertyNames":{"maxLength":3},"dependentRequired":{"a":["b"]}}`, older: `{"type":"object"}`, fits: `[{"a":1,"b":2}]`, fitsNot: `[1]`},
	{what: "a condition", schema: `{"type":"object","properties":{"k":{"type":"string"}},"if":{"required":["k"]},"then":{"required":["v"]}}`, older: `{"type":"object","properties":{"k":{"type":"string"}}}`, fits: `[{"k":"a","v":1}]`, fitsNot: `[{"k":1}]`},
	{what: "an exclusion", schema: `{"type":"string","not":{"enum":["a"]}}`, newer: `{"type":"string","not":{"type":"string","enum":["a"]}}`, older: `{"type":"string","not":{"type":"string","enum":["a"]}}`, fits: `["b"]`, fitsNot: `["a"]`},
	{what: "an exclusion that 3.0 cannot say", schema: `{"type":"array","items":{},"not":{"contains":{"type":"integer","const":1}}}`, older: `{"type":"array","items":{}}`, fits: `[[2]]`, fitsNot: `[1]`},
	{what: "alternatives that 3.0 cannot tell apart", schema: `{"oneOf":[{"type":"array","contains":{"const":1}},{"type":"array","items":{"type":"string"}}]}`, newer: `{"oneOf":[{"type":"array","contains":{"type":"integer","const":1},"items":{}},{"type":"array","items":{"type":"string"}}]}`, older: `{"anyOf":[{"type":"array","items":{}},{"type":"array","items":{"type":"string"}}]}`, fits: `[[1],["a"]]`, fitsNot: `[1]`},
	{what: "true and false", schema: `{"properties":{"a":true,"b":false}}`, newer: `{"properties":{"a":{},"b":{"not":{}}}}`, older: `{"properties":{"a":{},"b":{"not":{}}}}`, fits: `[{"a":1}]`, fitsNot: `[{"b":1}]`},
	{what: "a definition", schema: `{"$ref":"#/$defs/N","description":"How many"}`, defs: `"$defs":{"N":{"type":"integer","exclusiveMinimum":0}}`, newer: `{"type":"integer","exclusiveMinimum":0,"description":"How many"}`, older: `{"type":"integer","minimum":0,"exclusiveMinimum":true,"description":"How many"}`, fits: `[1]`, fitsNot: `[0]`},
	{
		what: "recursion", schema: `{"$ref":"#/$defs/T","description":"The root"}`, defs: `"$defs":{"T":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/T"}}}}}`,
		newer: `{"$ref":"#/components/schemas/h.t.T","description":"The root"}`, older: `{"description":"The root","allOf":[{"$ref":"#/components/schemas/h.t.T"}]}`,
		fits: `[{"kids":[{"kids":[]}]}]`, fitsNot: `[{"kids":[{"kids":1}]}]`,
	},
	{
		what: "recursion or null", schema: `{"anyOf":[{"$ref":"#/$defs/T"},{"type":"null"}]}`, defs: `"$defs":{"T":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/T"},{"type":"null"}]}}}}`,
		newer: `{"anyOf":[{"$ref":"#/components/schemas/h.t.T"},{"type":"null"}]}`, older: `{"anyOf":[{"$ref":"#/components/schemas/h.t.T"},{"type":"string","nullable":true,"maxLength":0}]}`,
		fits: `[null,{"next":null},{"next":{}}]`, fitsNot: `[{"next":1}]`,
	},
	{what: "draft-07: a tuple", schema: `{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"boolean"}}`, defs: `"$schema":"http://json-schema.org/draft-07/schema#"`, newer: `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"}}`, older: `{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"string"}]}}`, fits: `[["a",true]]`, fitsNot: `[[1]]`},
	{what: "draft-04: exclusive bounds", schema: `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, defs: `"$schema":"http://json-schema.org/draft-04/schema#"`, newer: `{"type":"integer","exclusiveMinimum":1}`, older: `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, fits: `[2]`, fitsNot: `[1]`},
	{what: "a reference to elsewhere", schema: `{"$ref":"https://example.com/x.json"}`, newer: `{"type":"object"}`, older: `{"type":"object"}`, fits: `[{}]`, fitsNot: `[1]`},
	{what: "what hosts of tools refuse, and comments", schema: `{"type":"object","unevaluatedProperties":false,"$comment":"see the manual"}`, newer: `{"type":"object","$comment":"see the manual"}`, older: `{"type":"object"}`, fits: `[{}]`, fitsNot: `[1]`},
}

// corners are other changes.
var corners = []change{
	{what: "only read, only written", schema: `{"type":"string","readOnly":true}`, older: `{"type":"string","x-readOnly":true}`, fits: `["a"]`, fitsNot: `[1]`},
	{what: "bounds both ways", schema: `{"minimum":3,"exclusiveMinimum":1,"exclusiveMaximum":9}`, older: `{"minimum":3,"maximum":9,"exclusiveMaximum":true}`, fits: `[3]`, fitsNot: `[2,9]`},
	{what: "a constant among values", schema: `{"type":"integer","enum":[1,2.5],"const":1}`, older: `{"type":"integer","enum":[1,2.5],"allOf":[{"enum":[1]}]}`, fits: `[1]`, fitsNot: `[2.5]`},
	{what: "alternatives beside alternatives", schema: `{"type":["string","boolean"],"anyOf":[{"minLength":1},{"maxLength":0}]}`, older: `{"anyOf":[{"minLength":1},{"maxLength":0}],"allOf":[{"anyOf":[{"type":"string"},{"type":"boolean"}]}]}`, fits: `["a",true]`, fitsNot: `[1]`},
	{what: "one of several or null", schema: `{"oneOf":[{"type":"string","enum":["a"]},{"type":"integer"},{"const":null}]}`, newer: `{"oneOf":[{"type":"string","enum":["a"]},{"type":"integer"},{"type":"null"}]}`, older: `{"oneOf":[{"type":"string","enum":["a",null],"nullable":true},{"type":"integer"}]}`, fits: `["a",1,null]`, fitsNot: `["b"]`},
	{what: "one of what may be null, or null", schema: `{"oneOf":[{"minLength":1},{"enum":[null]}]}`, newer: `{"oneOf":[{"minLength":1},{"type":"null"}]}`, older: `{"anyOf":[{"minLength":1},{"type":"string","nullable":true,"maxLength":0}]}`, fits: `["a",1]`},
	{what: "null or null", schema: `{"type":"integer","oneOf":[{"type":"null"},{"type":"null"}]}`, older: `{"type":"integer","allOf":[{"type":"string","nullable":true,"maxLength":0}]}`, fitsNot: `[1,null]`},
	{what: "null of several values", schema: `{"type":"null","enum":[null,1]}`, older: `{"enum":[null,1],"allOf":[{"type":"string","nullable":true,"maxLength":0}]}`, fits: `[null]`, fitsNot: `[1]`},
	{what: "all other names like those with a pattern", schema: `{"patternProperties":{"^a":{"type":"string"},"^b":{"type":"string"},"^c":false},"additionalProperties":{"type":"integer"}}`, newer: `{"patternProperties":{"^a":{"type":"string"},"^b":{"type":"string"},"^c":{"not":{}}},"additionalProperties":{"type":"integer"}}`, older: `{"additionalProperties":{"anyOf":[{"type":"integer"},{"type":"string"}]}}`, fits: `[{"ab":"x","z":1}]`, fitsNot: `[{"z":true}]`},
	{what: "no name but with a pattern that nothing fits", schema: `{"patternProperties":{"^c":false},"additionalProperties":false}`, newer: `{"patternProperties":{"^c":{"not":{}}},"additionalProperties":false}`, older: `{"additionalProperties":{"not":{}}}`, fits: `[{}]`, fitsNot: `[{"z":true}]`},
	{what: "anything by a pattern", schema: `{"patternProperties":{"^c":{}},"additionalProperties":false}`, older: `{"additionalProperties":{}}`, fits: `[{"c":1}]`},
	{what: "a manual", schema: `{"externalDocs":{"url":"https://example.com"},"required":[],"x-order":1,"vendor":1}`, older: `{"externalDocs":{"url":"https://example.com"},"x-order":1}`, fits: `[1]`},
	{what: "an integer that is a number, too", schema: `{"type":["integer","number"]}`, older: `{"type":"number"}`, fits: `[1.5]`, fitsNot: `["a"]`},
}

func TestBecomes(t *testing.T) {
	for _, c := range slices.Concat(becomes, corners) {
		t.Run(c.what, func(t *testing.T) {
			input := `{"type":"object","properties":{"x":` + c.schema + `}}`
			if c.defs != "" {
				input = input[:len(input)-1] + "," + c.defs + "}"
			}
			tl := tool(t, "h", "t", input)
			d := New(Options{}).Whole(view(server("h", tl)))
			checkDocument(t, d)
			if c.newer == "" {
				c.newer = c.schema
			}
			for _, f := range []struct {
				form Form
				want string
			}{{Form{}, c.newer}, {Form{Older: true}, c.older}} {
				s, _ := bodySchema(t, tl, f.form)
				doc, err := parse(d.Form(f.form).Body)
				if err != nil {
					t.Fatal(err)
				}
				got := doc.get("paths").get("/tools/h/t").get("post").get("requestBody").get("content").get("application/json").get("schema").get("properties").get("x")
				if diff := cmp.Diff(f.want, string(bytesOf(got))); diff != "" {
					t.Errorf("%+v (-want +got):\n%s", f.form, diff)
				}
				fits(t, s, c.fits, true)
				fits(t, s, c.fitsNot, false)
			}
		})
	}
}

func fits(t *testing.T, s *jsonschema.Schema, values string, want bool) {
	t.Helper()
	if values == "" {
		return
	}
	list, err := jsonschema.UnmarshalJSON(strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list.([]any) {
		if err := s.Validate(map[string]any{"x": v}); (err == nil) != want {
			b, _ := json.Marshal(v)
			t.Errorf("%s: fits is %v, want %v: %v", b, err == nil, want, err)
		}
	}
}

// A component that accepts more in 3.0 must not be below not or oneOf there.
func TestWiderComponents(t *testing.T) {
	tl := tool(t, "h", "t", `{"type":"object","properties":{"x":{"not":{"$ref":"#/$defs/A"}},"y":{"oneOf":[{"$ref":"#/$defs/A"},{"type":"string"}]},"z":{"not":{"$ref":"#/$defs/C"}}},
		"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/B"}},"B":{"type":"object","propertyNames":{"maxLength":2},"properties":{"a":{"$ref":"#/$defs/A"}}},
		"C":{"type":"object","properties":{"c":{"$ref":"#/$defs/C"}},"maxProperties":1}}}`)
	_, doc := bodySchema(t, tl, Form{Older: true})
	checkDocument(t, New(Options{}).Whole(view(server("h", tl))))
	b, err := json.Marshal(doc["paths"])
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{`"not":`: 1, `"oneOf":`: 0, `"anyOf":`: 1, `"not":{"$ref":"#/components/schemas/h.t.C"}`: 1} {
		if got := strings.Count(string(b), want); got != n {
			t.Errorf("%s is there %d times, want %d: %s", want, got, n, b)
		}
	}
}

func TestOlderCatalogue(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	whole := d.Whole(cat)
	tags := map[string]bool{}
	for i := range forms {
		e := whole.Form(formAt(i))
		if tags[e.ETag] {
			t.Errorf("%+v has the tag of another form", formAt(i))
		}
		tags[e.ETag] = true
		if want := map[bool]string{true: "application/yaml", false: "application/json"}[formAt(i).YAML]; e.ContentType != want {
			t.Errorf("%+v is %s", formAt(i), e.ContentType)
		}
		if again := whole.Form(formAt(i)); &again.Body[0] != &e.Body[0] {
			t.Errorf("%+v was made twice", formAt(i))
		}
	}
	checkOlder(t, d.Handle(cat, "graph"), Form{})
}

// TestRandomOlder holds schemas made by chance in the 3.0 form to what
// TestRandomSchemas demands of the other.
func TestRandomOlder(t *testing.T) {
	asked := 0
	for seed := range uint64(300) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		schema := g.root()
		tl := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(schema)}
		if NewSchemas(nil).Compile(tl) != nil {
			continue
		}
		asked += acceptsOlder(t, tl, func() []byte { return []byte(g.object(3)) }, 20)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, schema)
		}
	}
	if asked < 600 {
		t.Errorf("only %d documents were accepted", asked)
	}
}

// acceptsOlder checks documents by the tool's schema as sent, and those that it
// takes by the one of 3.0. It returns how many both were asked for.
func acceptsOlder(t *testing.T, tl *bridge.Tool, next func() []byte, n int) (asked int) {
	t.Helper()
	if tl.Unchecked != "" || tl.Arguments == nil || endless(t, tl.Input) {
		return 0
	}
	s, _ := bodySchema(t, tl, Form{Older: true})
	for range n {
		b := next()
		if raw.Check(b, 100) != nil {
			continue
		}
		out, err := tl.Arguments.Check(b)
		if err != nil || !bytes.Equal(out, b) {
			continue
		}
		v, _, err := decode(b, maxValues)
		if err != nil {
			continue
		}
		asked++
		if err := s.Validate(v); err != nil {
			t.Errorf("the server's schema\n%s\naccepts\n%s\nand the one of 3.0 does not: %v", tl.Input, b, err)
		}
	}
	return asked
}
