// Package openapitest holds OpenAPI documents, and requests and answers against them, to
// the schemas that the OpenAPI Initiative publishes, for tests only.
package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"mcpbridge/internal/raw"
)

// A Document is a valid one.
type Document struct {
	root    map[string]any
	schemas *jsonschema.Compiler
	end     map[string]bool // :: pointer to a schema -> true if its values can end
}

// address is the document's own, for what its pointers are relative to.
const address = "doc://document/"

// Validate fails the test at once unless the document, in JSON or YAML, is what the schema of its
// version demands, its schemas are schemas, and its references lead somewhere.
func Validate(t testing.TB, document []byte) *Document {
	t.Helper()
	d, err := Read(document)
	if err != nil {
		t.Fatalf("the document is not valid OpenAPI: %v\n%.100000s", err, document)
	}
	return d
}

// Read is Validate for documents that may be invalid.
func Read(document []byte) (*Document, error) {
	if !bytes.HasPrefix(document, []byte("{")) {
		var v any
		err := yaml.Unmarshal(document, &v)
		if err != nil {
			return nil, err
		}
		if document, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no object")
	}
	version, _ := root["openapi"].(string)
	published, draft := published31, jsonschema.Draft2020
	if strings.HasPrefix(version, "3.0.") {
		published, draft = published30, jsonschema.Draft4
	}
	if err := published().Validate(v); err != nil {
		return nil, err
	}
	d := &Document{root: root, schemas: compiler(), end: map[string]bool{}}
	d.schemas.DefaultDraft(draft)
	if err := d.schemas.AddResource(address, v); err != nil {
		return nil, err
	}
	return d, d.each("", v, false)
}

var (
	published31 = sync.OnceValue(func() *jsonschema.Schema { return publishedSchema(datamodel.OpenAPI31SchemaData) })
	published30 = sync.OnceValue(func() *jsonschema.Schema { return publishedSchema(datamodel.OpenAPI3SchemaData) })
)

func publishedSchema(text string) *jsonschema.Schema {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler() // with its patterns, and formats
	c.AssertFormat()
	if err := c.AddResource(address, v); err != nil {
		panic(err)
	}
	return c.MustCompile(address)
}

// compiler returns one that fetches nothing, and takes patterns that are not Go's for such that fit all.
func compiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		if r, err := regexp.Compile(s); err == nil {
			return r, nil
		}
		return anyPattern(s), nil
	})
	return c
}

type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string        { return string(p) }

// maps are the members whose own members have names from elsewhere, like those of components.
var maps = []string{"paths", "responses", "headers", "content", "schemas", "parameters", "requestBodies", "securitySchemes", "links", "callbacks"}

// each looks at everything at a pointer but what is data: schemas must compile, with all that they
// refer to, and other references lead somewhere. It is a map's pointer if names is set.
func (d *Document) each(at string, v any, names bool) error {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if err := d.each(at+"/"+strconv.Itoa(i), e, false); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !names {
			if d.find(strings.TrimPrefix(ref, "#")) == nil {
				return fmt.Errorf("%s refers to %s, which is not there", at, ref)
			}
			return nil
		}
		for name, e := range v {
			below := raw.AppendToken(at, name)
			var err error
			switch {
			case at == "/components/schemas", !names && name == "schema":
				if _, err = d.compile(below); err == nil {
					err = d.ends(below, nil)
				}
			case !names && (name == "example" || name == "examples" || strings.HasPrefix(name, "x-")):
			default:
				err = d.each(below, e, !names && slices.Contains(maps, name))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Document) compile(at string) (*jsonschema.Schema, error) {
	return d.schemas.Compile(address + "#" + (&url.URL{Fragment: at}).EscapedFragment())
}

// ends refuses a schema of which no value can have an end, since it refers to itself alone or demands
// itself in its properties. Generators of clients hang on these. The pointers are those on the way to it.
func (d *Document) ends(at string, above []string) error {
	if slices.Contains(above, at) {
		return fmt.Errorf("%s demands itself without end", at)
	}
	schema, ok := d.find(at).(map[string]any)
	if !ok || d.end[at] {
		return nil
	}
	above = append(above, at)
	if ref, ok := schema["$ref"].(string); ok {
		if err := d.ends(strings.TrimPrefix(ref, "#"), above); err != nil {
			return err
		}
	}
	all, _ := schema["allOf"].([]any)
	for i := range all {
		if err := d.ends(at+"/allOf/"+strconv.Itoa(i), above); err != nil {
			return err
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if err := d.ends(raw.AppendToken(at+"/properties", name.(string)), above); err != nil {
			return err
		}
	}
	d.end[at] = true
	return nil
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// find returns what is at a pointer, or nil.
func (d *Document) find(pointer string) any {
	var v any = d.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[unescaper.Replace(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// Request holds the JSON body of a POST to a path of the document to its schema. No body is
// an empty one.
func (d *Document) Request(path, body string) error {
	post := raw.AppendToken("/paths", path) + "/post"
	if d.find(post) == nil {
		return fmt.Errorf("there is no POST %s", path)
	}
	at := post + "/requestBody"
	holder, _ := d.find(at).(map[string]any)
	switch {
	case body != "":
		return d.body(at, "application/json", body)
	case holder["required"] == true:
		return fmt.Errorf("%s needs a body", path)
	}
	return nil
}

// Answer holds the answer to a POST to a path of the document to what it says of answers with this status.
func (d *Document) Answer(path string, status int, mediaType, body string) error {
	at := raw.AppendToken("/paths", path) + "/post/responses/" + strconv.Itoa(status)
	answer, ok := d.find(at).(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no answer %d", path, status)
	}
	if ref, ok := answer["$ref"].(string); ok {
		at = strings.TrimPrefix(ref, "#")
	}
	return d.body(at, mediaType, body)
}

// body holds a body to the schema in the content of what is at a pointer.
func (d *Document) body(at, mediaType, body string) error {
	at = raw.AppendToken(at+"/content", mediaType) + "/schema"
	if d.find(at) == nil {
		return fmt.Errorf("there is no %s", at)
	}
	schema, err := d.compile(at)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}
