package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
	"mcpbridge/internal/raw"
)

// tool makes a tool and compiles it.
func tool(t testing.TB, handle, name, input string, more ...func(*bridge.Tool)) *bridge.Tool {
	t.Helper()
	b := &bridge.Tool{Handle: handle, Name: name, Input: []byte(input), SchemaHash: strings.Repeat("0f", 32)}
	for _, f := range more {
		f(b)
	}
	if err := NewSchemas(nil).Compile(b); err != nil {
		t.Fatalf("Compile(%s/%s) failed: %v", handle, name, err)
	}
	return b
}

func output(schema string) func(*bridge.Tool) {
	return func(t *bridge.Tool) { t.Output = []byte(schema) }
}

func view(servers ...*bridge.Server) *bridge.Snapshot { return bridge.NewSnapshot(1, true, servers) }

func server(handle string, tools ...*bridge.Tool) *bridge.Server {
	return &bridge.Server{Handle: handle, State: bridge.Ready, Tools: tools}
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkDocument fails the test unless both encodings are valid OpenAPI, say the
// same, and every reference in them leads somewhere.
func checkDocument(t testing.TB, d *Document) map[string]any {
	t.Helper()
	body := d.JSON().Body
	if err := raw.Check(body, 1000); err != nil {
		t.Fatalf("the document is not strict JSON: %v\n%s", err, body)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	checkStructure(t, doc.(map[string]any))
	openapitest.Validate(t, body)
	checkYAML(t, d.YAML().Body, doc)
	checkOlder(t, d, Form{})
	return doc.(map[string]any)
}

// checkStructure walks over operations and schemas.
func checkStructure(t testing.TB, doc map[string]any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	const uri = "doc://x/"
	if err := c.AddResource(uri, doc); err != nil {
		t.Fatal(err)
	}
	w := walker{t: t, doc: doc, schema: func(at string, s any) {
		if _, err := c.Compile(uri + "#" + fragment(at)); err != nil {
			b, _ := json.Marshal(s)
			t.Errorf("schema at %s is not of 2020-12: %v\n%s", at, err, b)
		}
	}}
	ids := map[string]string{}
	for path, item := range doc["paths"].(map[string]any) {
		if strings.ContainsAny(path, "{}") {
			t.Errorf("path %q is a template", path)
		}
		for method, o := range item.(map[string]any) {
			if method != "post" {
				t.Errorf("%s has the method %s", path, method)
			}
			op := o.(map[string]any)
			id := op["operationId"].(string)
			if !idForm.MatchString(id) {
				t.Errorf("operationId %q", id)
			}
			if other, taken := ids[id]; taken {
				t.Errorf("%s and %s have the operationId %q", path, other, id)
			}
			ids[id] = path
			at := "/paths" + token(path) + "/post"
			if b, ok := op["requestBody"].(map[string]any); ok {
				w.media(at+"/requestBody", b)
			}
			for status, r := range op["responses"].(map[string]any) {
				w.response(at+"/responses"+token(status), r.(map[string]any))
			}
		}
	}
	components := doc["components"].(map[string]any)
	for name, s := range components["schemas"].(map[string]any) {
		if !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
			t.Errorf("component %q", name)
		}
		w.top("/components/schemas"+token(name), s)
	}
	for name, r := range components["responses"].(map[string]any) {
		w.response("/components/responses"+token(name), r.(map[string]any))
	}
	noEmptyTexts(t, doc, "")
}

type walker struct {
	t      testing.TB
	doc    any
	schema func(at string, s any)
}

func (w walker) media(at string, holder map[string]any) {
	content := holder["content"].(map[string]any)
	for name, m := range content {
		w.top(at+"/content"+token(name)+"/schema", m.(map[string]any)["schema"])
	}
}

func (w walker) response(at string, r map[string]any) {
	if ref, ok := r["$ref"].(string); ok {
		w.resolves(at, ref)
		return
	}
	if r["description"] == "" || r["description"] == nil {
		w.t.Errorf("%s has no description", at)
	}
	w.media(at, r)
	for _, h := range r["headers"].(map[string]any) {
		if ref, ok := h.(map[string]any)["$ref"].(string); ok {
			w.resolves(at+"/headers", ref)
		}
	}
}

func (w walker) top(at string, s any) {
	w.schema(at, s)
	w.inside(at, s)
}

// inside walks over a schema as a schema: what only looks like a reference, as the
// name of a property or in an example, is none.
func (w walker) inside(at string, s any) {
	m, ok := s.(map[string]any)
	if !ok {
		return
	}
	for key, v := range m {
		switch key {
		case "$ref":
			w.resolves(at, v.(string))
		case "$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$defs", "definitions":
			w.t.Errorf("%s has %s", at, key)
		case "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
			w.inside(at+token(key), v)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			for i, e := range v.([]any) {
				w.inside(fmt.Sprintf("%s/%s/%d", at, key, i), e)
			}
		case "properties", "patternProperties", "dependentSchemas":
			for name, e := range v.(map[string]any) {
				w.inside(at+token(key)+token(name), e)
			}
		}
	}
}

func (w walker) resolves(at, ref string) {
	p, ok := strings.CutPrefix(ref, "#/components/")
	if !ok {
		w.t.Errorf("%s refers to %s", at, ref)
		return
	}
	kind, name, _ := strings.Cut(p, "/")
	m, _ := w.doc.(map[string]any)["components"].(map[string]any)[kind].(map[string]any)
	if m[name] == nil {
		w.t.Errorf("%s refers to %s, which is not there", at, ref)
	}
}

func noEmptyTexts(t testing.TB, v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == "" && (k == "description" || k == "summary") && !strings.HasSuffix(at, "/properties") {
				t.Errorf("%s/%s is empty", at, k)
			}
			noEmptyTexts(t, e, at+"/"+k)
		}
	case []any:
		for i, e := range v {
			noEmptyTexts(t, e, fmt.Sprintf("%s/%d", at, i))
		}
	}
}

func token(s string) string { return raw.AppendToken("", s) }

// fragment escapes a JSON pointer for a URI.
func fragment(pointer string) string {
	var b strings.Builder
	for _, c := range []byte(pointer) {
		if c == '%' || c == '#' || c == ' ' || c < 0x20 || c >= 0x7f || strings.IndexByte("\"<>^`{|}\\", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string        { return string(p) }

// checkYAML compares what the YAML holds with what the JSON does.
func checkYAML(t testing.TB, y []byte, want any) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(y, &n); err != nil {
		t.Fatalf("the YAML cannot be read: %v\n%s", err, y)
	}
	got, err := fromYAML(n.Content[0])
	if err != nil {
		t.Fatalf("%v\n%s", err, y)
	}
	if !reflect.DeepEqual(got, normalNumbers(want)) {
		t.Fatalf("the YAML says something else than the JSON:\n%s", y)
	}
}

// fromYAML reads a node as the JSON that it stands for, by its tags.
func fromYAML(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Tag != "!!str" {
				return nil, fmt.Errorf("line %d: the key %q is a %s", k.Line, k.Value, k.Tag)
			}
			v, err := fromYAML(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[k.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		s := []any{}
		for _, c := range n.Content {
			v, err := fromYAML(c)
			if err != nil {
				return nil, err
			}
			s = append(s, v)
		}
		return s, nil
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!str":
			return n.Value, nil
		case "!!int", "!!float":
			return normalNumbers(json.Number(n.Value)), nil
		case "!!bool":
			return n.Value == "true", nil
		case "!!null":
			return nil, nil
		}
	}
	return nil, fmt.Errorf("line %d: a %s, %q", n.Line, n.Tag, n.Value)
}

// normalNumbers writes 1e5 as YAML has it, 1.0e+5.
func normalNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = normalNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = normalNumbers(e)
		}
	case json.Number:
		return json.Number(yamlNumber([]byte(v)))
	}
	return v
}
