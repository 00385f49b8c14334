package mcptest

import (
	"context"
	"fmt"
	"strings"
)

// A SchemaTool is a tool of mode [Schemas].
type SchemaTool struct {
	Name   string
	Schema string // its inputSchema; "" when there is none
	About  string
}

// SchemaTools are the tools of mode [Schemas], in their order. Each answers the
// exact bytes of its arguments as text.
var SchemaTools = []SchemaTool{
	{"s1_ref_property", `{"type":"object","properties":{"from":{"type":"string"},"to":{"$ref":"#/properties/from"}}}`, "A reference to another property."},
	{"s2_definitions", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"zone":{"$ref":"#/definitions/Z"}},"required":["zone"],"definitions":{"Z":{"type":"string","enum":["utc","local"]}}}`, "Definitions of draft-07."},
	{"s3_recursive", `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"required":["root"],"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}}}`, "A node that holds a list of itself."},
	{"s3_recursive_root", `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`, "A schema that holds a list of itself."},
	{"s4_enum", `{"type":"object","properties":{"mode":{"type":"string","enum":["fast","slow"]}}}`, "An enumeration."},
	{"s5_tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"pair":{"type":"array","items":[{"type":"number"},{"type":"string"}]}}}`, "A tuple as older drafts spell it."},
	{"s6_anything", `{"type":"object","properties":{"x":true,"a":{"type":"array","items":true},"b":{"type":"array","items":{}},"c":{"type":"array"}}}`, "Schemas that accept anything."},
	{"s7_property_names", `{"type":"object","properties":{"__top":{"type":"string"},"_id":{"type":"string"},"$filter":{"type":"string"},"a-b":{"type":"string"},"x.y":{"type":"string"},"@type":{"type":"string"},"from":{"type":"string"},"größe":{"type":"string"},"名前":{"type":"string"}}}`, "Property names of all sorts."},
	{"s8_optional_integer", `{"type":"object","properties":{"limit":{"type":"integer"},"query":{"type":"string"}},"required":["query"]}`, "An optional integer, for which callers send null."},
	{"s9_additional", `{"type":"object","properties":{"known":{"type":"string"}},"additionalProperties":true}`, "Additional properties beside declared ones."},
	{"s10_open", `{"type":"object","additionalProperties":true}`, "An open object and nothing else."},
	{"s11_empty", `{"type":"object"}`, "No arguments."},
	{"s11_none", ``, "No schema at all."},
	{"s11_null", `null`, "A schema that is null."},
	{"s13_undeclared_required", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`, "A required property that is not declared."},
	{"s14_default", `{"type":"object","properties":{"size":{"type":"integer","default":10},"unit":{"type":"string","default":"px"}}}`, "Defaults, which nobody may inject."},
	{"s15_nullable", `{"type":"object","properties":{"note":{"type":"string","nullable":true}}}`, "A nullable property as OpenAPI 3.0 spells it."},
	{"s15_exclusive", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":10,"exclusiveMaximum":false}}}`, "Bounds as draft-04 spells them."},
	{"s16_ref_siblings", `{"type":"object","properties":{"id":{"$ref":"#/$defs/id","description":"Of the order.","default":"o-1","minLength":3}},"$defs":{"id":{"type":"string","description":"An id.","maxLength":8}}}`, "A reference with siblings, which join it."},
	{"s16_ref_siblings_draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"id":{"$ref":"#/definitions/id","description":"Of the order.","minLength":3}},"definitions":{"id":{"type":"string","maxLength":8}}}`, "A reference with siblings, which draft-07 ignores."},
}

// BadSchemaTools are the tools of mode [Schemas] with the argument "bad": a good one
// first, then one for each kind of schema that is hard on those who read it. One refers
// to the address. They answer as the others do.
func BadSchemaTools(address string) []SchemaTool {
	const note = `"note":{"type":"string"}`
	one := func(property string) string {
		return `{"type":"object","properties":{` + note + `,"x":` + property + `}}`
	}
	// Each definition names the next twice: written out, the first is 2^40 schemas.
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	return []SchemaTool{
		{"good", one(`{"type":"integer"}`), "A good one."},
		{"true", `true`, "A schema that is true."},
		{"list", `[]`, "A list."},
		{"text", `"x"`, "A text."},
		{"large", `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `","properties":{` + note + `}}`, "Over 1 MiB."},
		{"deep", one(strings.Repeat(`{"items":`, 500) + `{}` + strings.Repeat(`}`, 500)), "500 levels deep."},
		{"doubling", `{"type":"object","properties":{` + note + `,"x":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling.String() + `"d40":{"type":"string"}}}`, "Without references it has 2^40 parts."},
		{"remote", one(`{"$ref":` + quote(address) + `}`), "A reference to elsewhere."},
		{"pattern", one(`{"type":"string","pattern":"("}`), "A pattern that is none."},
		{"same name", one(`{}`), "Cleaned for an operation, its name is another's."},
		{"same\tname", one(`{}`), "Cleaned for an operation, its name is another's."},
		{"same_name", one(`{}`), "Its name is what others' become."},
	}
}

func schemas(args []string) (*server, error) {
	all := SchemaTools
	if len(args) == 2 && args[0] == "bad" {
		all = BadSchemaTools(args[1])
	} else if len(args) > 0 {
		return nil, fmt.Errorf("%q are no arguments of mode %s", args, Schemas)
	}
	var tools []*tool
	for _, st := range all {
		d := `{"name":` + quote(st.Name) + `,"description":` + quote(st.About)
		if st.Schema != "" {
			d += `,"inputSchema":` + st.Schema
		}
		tools = append(tools, &tool{st.Name, d + `}`, func(_ context.Context, c *call) (string, error) { return text(string(c.Args)), nil }})
	}
	return newServer(tools...), nil
}
