package openapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
)

// TestEmbed shows what becomes of a property's schema in a document. The property
// is called p; defs are the $defs of the root.
func TestEmbed(t *testing.T) {
	const draft7 = "http://json-schema.org/draft-07/schema#"
	const draft4 = "http://json-schema.org/draft-04/schema#"
	tests := []struct {
		name   string
		draft  string
		defs   string
		schema string
		want   string
	}{
		{name: "enum", schema: `{"type":"string","enum":["fast","slow"]}`},
		{name: "true", schema: `true`, want: `{}`},
		{name: "false", schema: `false`, want: `{"not":{}}`},
		{name: "true and false about what is left over", schema: `{"type":"object","patternProperties":{"^a":true},"additionalProperties":false}`, want: `{"type":"object","patternProperties":{"^a":{}},"additionalProperties":false}`},
		{name: "empty", schema: `{}`},
		{name: "items true", schema: `{"type":"array","items":true}`, want: `{"type":"array","items":{}}`},
		{name: "items empty", schema: `{"type":"array","items":{}}`},
		{name: "array without items", schema: `{"type":"array"}`, want: `{"type":"array","items":{}}`},
		{name: "perhaps an array, without items", schema: `{"type":["string","array"]}`, want: `{"type":["string","array"],"items":{}}`},
		{name: "a closed tuple, shorter than it could be", schema: `{"maxItems":1,"prefixItems":[{},{}],"items":{"not":true}}`, want: `{"prefixItems":[{},{}],"maxItems":1}`},
		{name: "a tuple without items", schema: `{"type":"array","prefixItems":[{}]}`},
		{
			name: "array without items, where it counts who looked at them", schema: `{"oneOf":[{"allOf":[{"type":"array"}],"unevaluatedItems":false}]}`,
		},
		{name: "null", schema: `{"type":"null","description":"d"}`, want: `{"const":null,"description":"d"}`},
		{name: "null among others", schema: `{"type":"array","items":{"type":"null"},"prefixItems":[{"type":"null"},{"anyOf":[{"type":"integer"},{"type":"null"}]}]}`, want: `{"type":"array","items":{"const":null},"prefixItems":[{"const":null},{"anyOf":[{"type":"integer"},{"type":"null"}]}]}`},
		{name: "null by a list", schema: `{"properties":{"a":{"type":"null","enum":[null]},"b":{"anyOf":[{"const":null,"title":"N"},{"enum":[null,null]},{"type":"string","enum":[null]}]}}}`, want: `{"properties":{"a":{"const":null},"b":{"anyOf":[{"type":"null","title":"N"},{"type":"null"},{"type":"string","enum":[null]}]}}}`},
		{name: "constants", schema: `{"properties":{"a":{"const":"x"},"b":{"enum":[1,2]},"c":{"enum":[1,2.5]},"d":{"const":null},"e":{"enum":["x",null],"title":"E"}}}`, want: `{"properties":{"a":{"type":"string","const":"x"},"b":{"type":"integer","enum":[1,2]},"c":{"type":"number","enum":[1,2.5]},"d":{"const":null},"e":{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}],"title":"E"}}}`},
		{name: "a constant and a list", schema: `{"const":"x","enum":["x"]}`},
		{name: "constants of many types", schema: `{"title":"T","enum":["x",1,null,true,2.5,{"a":[]},[{"b":null,"c":true}]],"default":1}`, want: `{"title":"T","anyOf":[{"type":"string","enum":["x"]},{"type":"null"},{"type":"boolean","allOf":[{"const":true}]},{"type":"number","enum":[1,2.5]},` +
			`{"type":"object","properties":{"a":{"type":"array","items":{},"maxItems":0}},"required":["a"],"additionalProperties":false},` +
			`{"type":"array","prefixItems":[{"type":"object","properties":{"b":{"const":null},"c":{"type":"boolean","allOf":[{"const":true}]}},"required":["b","c"],"additionalProperties":false}],"minItems":1,"maxItems":1}],"default":1}`},
		{name: "constants of many types beside alternatives", schema: `{"enum":["x",1],"anyOf":[{},{}]}`},
		{name: "constants of several types", schema: `{"type":["string","number"],"enum":["x",1]}`, want: `{"anyOf":[{"type":"string","enum":["x"]},{"type":"integer","enum":[1]}]}`},
		{name: "constants of other types", schema: `{"type":["string","boolean"],"enum":["x",1]}`},
		{name: "an empty object", schema: `{"type":"object","const":{}}`, want: `{"type":"object","additionalProperties":false}`},
		{name: "an object beside rules", schema: `{"type":"object","const":{},"minProperties":0}`, want: `{"anyOf":[{"type":"object","additionalProperties":false}],"minProperties":0}`},
		{name: "a great object", schema: `{"const":[` + strings.Repeat("0,", 500) + `0]}`},
		{name: "booleans", schema: `{"properties":{"a":{"type":"boolean","const":false},"b":{"enum":[true,false],"title":"B"},"c":{"allOf":[{}],"const":true},"d":{"type":"string","const":true}}}`, want: `{"properties":{"a":{"type":"boolean","allOf":[{"const":false}]},"b":{"type":"boolean","title":"B"},"c":{"type":"boolean","allOf":[{},{"const":true}]},"d":{"type":"string","const":true}}}`},
		{name: "all that 2020-12 has", schema: `{"type":["object","null"],"properties":{"a":{"type":"integer","const":1}},"patternProperties":{"^x":{"type":"integer"}},` +
			`"additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^[a-z]"},"required":["zz"],"minProperties":1,"maxProperties":9,` +
			`"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["c"]}},"allOf":[{"minProperties":2}],"anyOf":[{},{"type":"object"}],` +
			`"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]},"not":{"required":["q"]},"title":"T","description":"D",` +
			`"default":{"a":1},"examples":[{"a":1}],"deprecated":true,"readOnly":true,"$comment":"c","x-mine":{"type":7}}`},
		{name: "numbers keep their digits", schema: `{"type":"number","minimum":1.10,"maximum":9007199254740993,"multipleOf":1e-2,"default":1.0,"enum":[1.50,1E+2]}`},
		{name: "order is kept", schema: `{"description":"d","type":"object","properties":{"z":{},"a":{},"m":{}}}`},
		{
			name: "tuple", draft: draft7, schema: `{"items":[{"type":"number"},{"type":"string"}],"additionalItems":false}`,
			want: `{"prefixItems":[{"type":"number"},{"type":"string"}],"maxItems":2}`,
		},
		{
			name: "tuple of no draft", schema: `{"type":"array","items":[{"type":"number"},{"type":"string"}]}`,
			want: `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]}`,
		},
		{name: "additionalItems without a tuple", draft: draft7, schema: `{"items":{},"additionalItems":false}`, want: `{"items":{}}`},
		{name: "nullable", schema: `{"type":"string","nullable":true}`, want: `{"type":["string","null"]}`},
		{name: "not nullable", schema: `{"type":"string","nullable":false}`, want: `{"type":"string"}`},
		{name: "nullable without type", schema: `{"nullable":true,"minLength":1}`, want: `{"minLength":1}`},
		{name: "boolean bound", draft: draft4, schema: `{"minimum":3,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, want: `{"exclusiveMinimum":3,"maximum":9}`},
		{name: "boolean bound of no draft", schema: `{"maximum":3,"exclusiveMaximum":true}`, want: `{"exclusiveMaximum":3}`},
		{name: "boolean bound of nothing", draft: draft4, schema: `{"exclusiveMaximum":true}`, want: `{}`},
		{
			name: "dependencies", draft: draft7, schema: `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
			want: `{"dependentSchemas":{"c":{"required":["d"]}},"dependentRequired":{"a":["b"]}}`,
		},
		{
			name: "dependencies beside what draft-07 does not know", draft: draft7, schema: `{"dependencies":{"a":["b"]},"dependentRequired":{"c":["d"]}}`,
			want: `{"dependentRequired":{"a":["b"]}}`,
		},
		{
			name:   "dependencies of both kinds",
			schema: `{"dependentRequired":{"a":["b"]},"dependencies":{"a":["c","b"],"d":["e"],"f":{"required":["g"]}},"dependentSchemas":{"f":{"required":["h"]}}}`,
			want:   `{"dependentRequired":{"a":["b","c"],"d":["e"]},"dependentSchemas":{"f":{"allOf":[{"required":["g"]},{"required":["h"]}]}}}`,
		},
		{name: "identifiers", schema: `{"$id":"https://example.com/p","$anchor":"p","type":"string"}`, want: `{"type":"string"}`},
		{name: "an old id", draft: draft4, schema: `{"id":"#p","type":"string"}`, want: `{"type":"string"}`},
		{name: "id is no keyword any more", schema: `{"id":"x","type":"string"}`},
		{
			name:   "names that look like keywords",
			schema: `{"properties":{"$ref":{"type":"string"},"$id":{},"$defs":{"type":"object"},"nullable":{},"items":{"items":{}},"unevaluatedProperties":{"type":"boolean"},"definitions":{"default":{"$ref":7,"nullable":true}}}}`,
		},
		{name: "odd names", schema: `{"properties":{"__top":{},"_id":{},"$filter":{},"a-b":{},"x.y":{},"@type":{},"from":{},"naïve 名":{},"a/b~c":{}}}`},
		{name: "data is not looked into", schema: `{"default":{"$defs":1,"type":7},"const":{"$schema":"x","items":[]},"enum":[{"nullable":true}]}`},
		{name: "data that readers would follow", schema: `{"type":"object","default":{"$ref":"#/x"},"x-mine":[{"$ref":"y"}],"examples":[{"$ref":"z"}]}`, want: `{"type":"object"}`},
		{name: "what hosts refuse", schema: `{"type":"string","contentEncoding":"base64","contentMediaType":"image/png","contentSchema":{}}`, want: `{"type":"string"}`},
		{name: "unevaluated", schema: `{"type":"object","unevaluatedProperties":false,"properties":{"unevaluatedProperties":{"unevaluatedItems":false}}}`, want: `{"type":"object","properties":{"unevaluatedProperties":{}}}`},
		{
			name:   "unevaluated where it decides between alternatives",
			schema: `{"oneOf":[{"unevaluatedProperties":false},{"properties":{"a":{"unevaluatedItems":false}}}],"not":{"unevaluatedItems":false},"anyOf":[{"unevaluatedItems":false}]}`,
			want:   `{"oneOf":[{"unevaluatedProperties":false},{"properties":{"a":{"unevaluatedItems":false}}}],"not":{"unevaluatedItems":false},"anyOf":[{}]}`,
		},
		{name: "empty texts", schema: `{"title":"","description":"","type":"string"}`, want: `{"type":"string"}`},
		{name: "discriminator", schema: `{"anyOf":[{"type":"object"}],"discriminator":{"propertyName":"kind","mapping":{"a":"#/$defs/A"}}}`, want: `{"anyOf":[{"type":"object"}]}`},
		{
			name:   "what no reader could use",
			schema: `{"type":"any","required":"all","properties":[],"enum":[],"minLength":"3","maxLength":-1,"items":null,"title":7,"allOf":[],"additionalProperties":null,"examples":1,"multipleOf":0,"uniqueItems":"yes"}`,
			want:   `{}`,
		},
		{name: "types that are none", schema: `{"type":["string","file","string",null]}`, want: `{"type":["string"]}`},
		{name: "a schema that is none", schema: `{"properties":{"a":"string","b":null,"c":[]}}`, want: `{"properties":{"a":{},"b":{},"c":{}}}`},
		{name: "numbers that readers cannot hold", schema: `{"maximum":1e400,"default":[1e999],"minimum":1}`, want: `{"minimum":1}`},
		{name: "half a surrogate pair", schema: `{"type":"string","description":"a\ud800b","const":"\ud83d\ude00"}`, want: `{"type":"string","description":"a` + "\ufffd" + `b","const":"😀"}`},
		{name: "keywords of later drafts", draft: draft4, schema: `{"const":1,"if":{},"contains":{},"prefixItems":[{}],"dependentRequired":{"a":["b"]},"type":"string"}`, want: `{"type":"string"}`},

		{name: "a reference", defs: `{"Z":{"type":"integer","minimum":0}}`, schema: `{"$ref":"#/$defs/Z"}`, want: `{"type":"integer","minimum":0}`},
		{name: "a reference in a list", defs: `{"Z":{"type":"integer"}}`, schema: `{"anyOf":[{"$ref":"#/$defs/Z"},{"type":"null"}]}`, want: `{"anyOf":[{"type":"integer"},{"type":"null"}]}`},
		{name: "a chain", defs: `{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/C"},"C":{"type":"string"}}`, schema: `{"$ref":"#/$defs/A"}`, want: `{"type":"string"}`},
		{name: "escapes", defs: `{"a/b~c %d":{"type":"string"}}`, schema: `{"$ref":"#/$defs/a~1b~0c%20%25d"}`, want: `{"type":"string"}`},
		{name: "an unescaped percent sign", defs: `{"100%":{"type":"string"}}`, schema: `{"$ref":"#/$defs/100%"}`, want: `{"type":"string"}`},
		{name: "into a list", defs: `{"A":{"anyOf":[{"type":"null"},{"type":"string"}]}}`, schema: `{"$ref":"#/$defs/A/anyOf/1"}`, want: `{"type":"string"}`},
		{name: "past a list", defs: `{"A":{"anyOf":[{"type":"null"}]}}`, schema: `{"$ref":"#/$defs/A/anyOf/7"}`, want: `{"type":"object"}`},
		{name: "to a boolean", defs: `{"Any":true}`, schema: `{"$ref":"#/$defs/Any"}`, want: `{}`},
		{name: "to nothing, described", defs: `{"No":false}`, schema: `{"$ref":"#/$defs/No","title":"never"}`, want: `{"not":{},"title":"never"}`},
		{name: "an anchor", defs: `{"A":{"$anchor":"here","type":"string"}}`, schema: `{"$ref":"#here"}`, want: `{"type":"string"}`},
		{name: "an anchor of old", draft: draft7, defs: `{"A":{"$id":"#here","type":"string"}}`, schema: `{"$ref":"#here"}`, want: `{"type":"string"}`},
		{name: "a dynamic one", defs: `{"A":{"$dynamicAnchor":"here","type":"string"}}`, schema: `{"$dynamicRef":"#here"}`, want: `{"type":"string"}`},
		{
			name: "an embedded resource", defs: `{"A":{"$id":"https://example.com/a.json","$defs":{"I":{"type":"integer"}},"items":{"$ref":"#/$defs/I"}}}`,
			schema: `{"$ref":"https://example.com/a.json"}`, want: `{"items":{"type":"integer"}}`,
		},
		{name: "a resource by its pointer", defs: `{"A":{"$id":"https://example.com/a.json","$defs":{"I":{"type":"integer"}}}}`, schema: `{"$ref":"https://example.com/a.json#/$defs/I"}`, want: `{"type":"integer"}`},
		{name: "to a file", schema: `{"$ref":"file:///etc/passwd"}`, want: `{"type":"object"}`},
		{name: "to another host", schema: `{"$ref":"https://example.com/schema.json","description":"far"}`, want: `{"type":"object","description":"far"}`},
		{name: "to nowhere", schema: `{"$ref":"#/$defs/None"}`, want: `{"type":"object"}`},
		{name: "to what is no schema", defs: `{"A":{"title":"x"}}`, schema: `{"$ref":"#/$defs/A/title"}`, want: `{"type":"object"}`},
		{name: "to a tuple", defs: `{"A":{"items":[{"type":"string"}]}}`, schema: `{"$ref":"#/$defs/A/items"}`, want: `{}`},
		{name: "no URI", schema: `{"$ref":"::"}`, want: `{"type":"object"}`},
		{name: "round and round", defs: `{"A":{"$ref":"#/$defs/B"},"B":{"allOf":[{"$ref":"#/$defs/A"}]}}`, schema: `{"$ref":"#/$defs/A"}`, want: `{"type":"object"}`},

		{
			name: "annotations at the use win", defs: `{"Z":{"type":"string","description":"its own","default":"a"}}`,
			schema: `{"$ref":"#/$defs/Z","description":"here","title":"T"}`,
			want:   `{"type":"string","description":"here","default":"a","title":"T"}`,
		},
		{
			name: "assertions join", defs: `{"Z":{"type":"string","minLength":1}}`, schema: `{"$ref":"#/$defs/Z","minLength":5,"description":"d"}`,
			want: `{"minLength":5,"description":"d","allOf":[{"type":"string","minLength":1}]}`,
		},
		{
			name: "assertions join an allOf", defs: `{"Z":{"type":"string"}}`, schema: `{"allOf":[{"minLength":5}],"$ref":"#/$defs/Z"}`,
			want: `{"allOf":[{"type":"string"},{"minLength":5}]}`,
		},
		{
			name: "assertions beside a reference, up to draft-07", draft: draft7, defs: `{"Z":{"type":"string"}}`,
			schema: `{"$ref":"#/$defs/Z","minLength":5,"description":"d"}`, want: `{"type":"string","description":"d"}`,
		},
	}
	all := server("h")
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var head string
			if test.draft != "" {
				head = `"$schema":"` + test.draft + `",`
			}
			if test.defs != "" {
				head += `"$defs":` + test.defs + `,`
			}
			tl := tool(t, "h", fmt.Sprint("t", i), `{`+head+`"type":"object","properties":{"p":`+test.schema+`}}`)
			want := test.want
			if want == "" {
				want = test.schema
			}
			want = `{"type":"object","properties":{"p":` + want + `}}`
			if diff := cmp.Diff(want, string(published(tl).input)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			all.Tools = append(all.Tools, tl)
		})
	}
	checkDocument(t, New(Options{}).Whole(view(all)))
}

func TestEmbedReferences(t *testing.T) {
	const ref = "#/components/schemas/h.t."
	tests := []struct {
		name, schema, body, components string
	}{
		{
			"a property that another one is",
			`{"type":"object","properties":{"from":{"type":"string"},"to":{"$ref":"#/properties/from"}}}`,
			`{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"}}}`, ``,
		},
		{
			"definitions",
			`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"Z":{"type":"integer"}},"type":"object","properties":{"z":{"$ref":"#/definitions/Z"}}}`,
			`{"type":"object","properties":{"z":{"type":"integer"}}}`, ``,
		},
		{
			"a node that holds nodes",
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}}}}}}`,
			`{"type":"object","properties":{"n":{"$ref":"` + ref + `Node"}}}`,
			`"h.t.Node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"` + ref + `Node"}}}}`,
		},
		{
			"the whole in a part",
			`{"type":"object","properties":{"not":{"$ref":"#"}}}`,
			`{"type":"object","properties":{"not":{"$ref":"` + ref + `input"}}}`,
			`"h.t.input":{"type":"object","properties":{"not":{"$ref":"` + ref + `input"}}}`,
		},
		{
			"a root that is a reference",
			`{"$ref":"#/definitions/Args","definitions":{"Args":{"type":"object","properties":{"next":{"$ref":"#/definitions/Args"}}}}}`,
			`{"type":"object","properties":{"next":{"$ref":"` + ref + `Args"}}}`,
			`"h.t.Args":{"type":"object","properties":{"next":{"$ref":"` + ref + `Args"}}}`,
		},
		{
			"two that need each other, described where they are used",
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"first","minProperties":1}},"$defs":{"A":{"properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"properties":{"a":{"$ref":"#/$defs/A"}}}}}`,
			`{"type":"object","properties":{"a":{"$ref":"` + ref + `A","description":"first","minProperties":1}}}`,
			`"h.t.A":{"properties":{"b":{"$ref":"` + ref + `B"}}},"h.t.B":{"properties":{"a":{"$ref":"` + ref + `A"}}}`,
		},
		{
			"one that leads to a circle is no part of it",
			`{"type":"object","properties":{"w":{"$ref":"#/$defs/W"}},"$defs":{"W":{"properties":{"n":{"$ref":"#/$defs/N"}}},"N":{"items":{"$ref":"#/$defs/N"}}}}`,
			`{"type":"object","properties":{"w":{"properties":{"n":{"$ref":"` + ref + `N"}}}}}`,
			`"h.t.N":{"items":{"$ref":"` + ref + `N"}}`,
		},
		{
			"names that no component can have",
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/A%20%3CB%3E"},"m":{"$ref":"#/$defs/A_B"}},"$defs":{"A <B>":{"items":{"$ref":"#/$defs/A%20%3CB%3E"}},"A_B":{"items":{"$ref":"#/$defs/A_B"}}}}`,
			`{"type":"object","properties":{"n":{"$ref":"` + ref + `A_B_"},"m":{"$ref":"` + ref + `A_B"}}}`,
			`"h.t.A_B_":{"items":{"$ref":"` + ref + `A_B_"}},"h.t.A_B":{"items":{"$ref":"` + ref + `A_B"}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tl := tool(t, "h", "t", test.schema)
			if tl.Unchecked != "" {
				t.Errorf("Unchecked = %q", tl.Unchecked)
			}
			p := published(tl)
			if diff := cmp.Diff([]string{test.body, test.components}, []string{string(p.input), string(p.components)}); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			checkDocument(t, New(Options{}).Whole(view(server("h", tl))))
		})
	}
}

func TestInputAndOutputKeepTheirOwnComponents(t *testing.T) {
	node := func(of string) string {
		return `{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"title":"` + of + `","items":{"$ref":"#/$defs/N"}}}}`
	}
	tl := tool(t, "a b", "t/u", node("in"), output(node("out")))
	prefix := componentPrefix("a b", "t/u")
	want := `"` + prefix + `N":{"title":"in","items":{"$ref":"#/components/schemas/` + prefix + `N"}},` +
		`"` + prefix + `N_2":{"title":"out","items":{"$ref":"#/components/schemas/` + prefix + `N_2"}}`
	if diff := cmp.Diff(want, string(published(tl).components)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	checkDocument(t, New(Options{}).Whole(view(server("a b", tl))))
}

// exploding is a schema that has 2^n parts when its references are replaced.
func exploding(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"p":{"$ref":"#/$defs/D0"}},"$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"D%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/D%d"},"r":{"$ref":"#/$defs/D%d"}}},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"D%d":{"type":"string"}}}`, n)
	return b.String()
}

func TestReferencesThatWouldExplodeStay(t *testing.T) {
	tl := tool(t, "h", "t", exploding(60))
	p := published(tl)
	if n := len(p.input) + len(p.components); n > 20_000 {
		t.Errorf("it has %d bytes", n)
	}
	if got, want := string(p.input), `{"type":"object","properties":{"p":{"$ref":"#/components/schemas/h.t.D0"}}}`; got != want {
		t.Errorf("the body is %s, want %s", got, want)
	}
	// Readers that replace references all the same never end, so only ours looks at it.
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(New(Options{}).Whole(view(server("h", tl))).JSON().Body))
	if err != nil {
		t.Fatal(err)
	}
	checkStructure(t, doc.(map[string]any))

	small := tool(t, "h", "t", exploding(5))
	if strings.Contains(string(published(small).input), "$ref") {
		t.Error("a small schema keeps its references")
	}
}

func TestLongChainStaysShallow(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"p":{"$ref":"#/$defs/D0"}},"$defs":{`)
	for i := range 450 {
		fmt.Fprintf(&b, `"D%d":{"items":{"$ref":"#/$defs/D%d"}},`, i, i+1)
	}
	b.WriteString(`"D450":{}}}`)
	tl := tool(t, "h", "t", b.String())
	checkDocument(t, New(Options{}).Whole(view(server("h", tl))))
}

func TestNestedTargetsDoNotMultiply(t *testing.T) {
	// Every level is referred to, so that each could become a component with all below it.
	var refs, open, closing strings.Builder
	for i := range 50 {
		fmt.Fprintf(&refs, `,"r%d":{"$ref":"#%s"}`, i, strings.Repeat("/properties/d", i+1))
		open.WriteString(`{"type":"object","properties":{"d":`)
		closing.WriteString(`}}`)
	}
	schema := `{"type":"object","properties":{"d":` + open.String() + `{"$ref":"#"}` + closing.String() + refs.String() + `}}`
	tl := tool(t, "h", "t", schema)
	if n := len(published(tl).components); n > 10*len(schema) {
		t.Errorf("%d bytes of components for a schema of %d", n, len(schema))
	}
	checkDocument(t, New(Options{}).Whole(view(server("h", tl))))
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ name, input, output, want string }{
		{"a string", `"x"`, "", "describes no object"},
		{"a list", `[]`, "", "describes no object"},
		{"true", `true`, "", "describes no object"},
		{"a number", `7`, "", "describes no object"},
		{"another type", `{"type":"string"}`, "", "describes no object"},
		{"alternatives alone", `{"anyOf":[{"type":"object"}]}`, "", "describes no object"},
		{"properties that are none", `{"properties":[]}`, "", "describes no object"},
		{"half", `{"type":`, "", "not JSON"},
		{"depth", `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 500) + `{}` + strings.Repeat(`}`, 500) + `}}`, "", "levels deep"},
		{"size", `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`, "", "larger than"},
		{"an output of half", `{"type":"object"}`, `{`, "output schema is not JSON"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(test.input)}
			if test.output != "" {
				b.Output = []byte(test.output)
			}
			err := NewSchemas(nil).Compile(b)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Compile = %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestCompileTakes(t *testing.T) {
	for _, input := range []string{
		``, `null`, `{"type":"object"}`, `{"properties":{}}`, `{"type":["object","null"]}`, `{"type":"object","properties":null}`,
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300) + `}}`,
	} {
		b := &bridge.Tool{Handle: "h", Name: "t", Input: []byte(input)}
		if err := NewSchemas(nil).Compile(b); err != nil {
			t.Errorf("Compile(%.60s) = %v", input, err)
			continue
		}
		checkDocument(t, New(Options{}).Whole(view(server("h", b))))
	}
}

func TestRequestBody(t *testing.T) {
	tests := []struct {
		name, input    string
		body, required bool
	}{
		{"none", ``, false, false},
		{"nothing declared", `{"type":"object"}`, false, false},
		{"no properties", `{"type":"object","properties":{},"additionalProperties":false,"required":[]}`, false, false},
		{"openly open", `{"type":"object","additionalProperties":true}`, true, false},
		{"open to strings", `{"type":"object","additionalProperties":{"type":"string"}}`, true, false},
		{"optional", `{"type":"object","properties":{"a":{}}}`, true, false},
		{"required", `{"type":"object","properties":{"a":{}},"required":["a"]}`, true, true},
		{"required and not declared", `{"type":"object","required":["a"]}`, true, true},
		{"required by alternatives", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, true, true},
		{"required, unchecked", `{"type":"object","properties":{"a":{"pattern":"("}},"required":["a"]}`, true, true},
		{"optional, unchecked", `{"type":"object","properties":{"a":{"pattern":"("}}}`, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := published(tool(t, "h", "t", test.input))
			if got := p.input != nil; got != test.body || p.required != test.required {
				t.Errorf("body %v, required %v; want %v, %v", got, p.required, test.body, test.required)
			}
		})
	}
}

// Of bad schemas each takes its own tool with it at most, and says why.
func TestBadSchemas(t *testing.T) {
	deep := func(levels int) string {
		return `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, levels) + `{}` + strings.Repeat(`}`, levels) + `}}`
	}
	bad := []struct {
		name, schema string
		refused      string // the reason for leaving the tool out
		unchecked    string // the reason for not checking its arguments
	}{
		{"true", `true`, "describes no object", ""},
		{"list", `[]`, "describes no object", ""},
		{"text", `"x"`, "describes no object", ""},
		{"large", `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`, "larger than", ""},
		{"deep", deep(500), "levels deep", ""},
		{"exploding", exploding(60), "", ""},
		{"remote", props(`"a":{"$ref":"http://192.0.2.1/x.json"},"b":{"$ref":"file:///etc/passwd"}`), "", "not followed"},
		{"pattern", props(`"a":{"pattern":"("}`), "", "regex"},
		{"same", props(`"a":{}`), "", ""},
		{"same ", props(`"a":{}`), "", ""},
		{"same\t", props(`"a":{}`), "", ""},
	}
	s := server("h", tool(t, "h", "good", props(`"a":{"type":"string"}`)))
	for _, b := range bad {
		tl := &bridge.Tool{Handle: "h", Name: b.name, Input: []byte(b.schema)}
		err := NewSchemas(nil).Compile(tl)
		switch {
		case b.refused != "":
			if err == nil || !strings.Contains(err.Error(), b.refused) {
				t.Errorf("%s: Compile = %v, want an error with %q", b.name, err, b.refused)
			}
			continue
		case err != nil:
			t.Errorf("%s: Compile = %v", b.name, err)
			continue
		case b.unchecked != "" && !strings.Contains(tl.Unchecked, b.unchecked), b.unchecked == "" && tl.Unchecked != "":
			t.Errorf("%s: Unchecked = %q, want one with %q", b.name, tl.Unchecked, b.unchecked)
		}
		s.Tools = append(s.Tools, tl)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(New(Options{}).Whole(view(s)).JSON().Body))
	if err != nil {
		t.Fatal(err)
	}
	checkStructure(t, doc.(map[string]any)) // operation ids are unique, references lead somewhere
	if p := published(s.Tools[3]); bytes.Contains(p.input, []byte(`"pattern"`)) {
		t.Errorf("%s has a pattern that is none", p.input)
	}
	if got, want := len(doc.(map[string]any)["paths"].(map[string]any)), 7; got != want {
		t.Errorf("%d tools are offered, want %d", got, want)
	}
}
