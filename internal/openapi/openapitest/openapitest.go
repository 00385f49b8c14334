// Package openapitest holds OpenAPI documents, and requests and answers against them, to
// the schemas that the OpenAPI Initiative publishes, for tests only.
package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// A Document is a valid one.
type Document struct {
	root    map[string]any
	schemas *jsonschema.Compiler
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
	d := &Document{root: root, schemas: compiler()}
	d.schemas.DefaultDraft(draft)
	if err := d.schemas.AddResource(address, v); err != nil {
		return nil, err
	}
	return d, d.each("", v)
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

// compiler returns one that fetches nothing, and takes any pattern, since they are not Go's.
func compiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	return c
}

type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string        { return string(p) }

// each looks at everything at a pointer but what is data or a schema of its own: schemas must
// compile, with all that they refer to, and other references lead somewhere.
func (d *Document) each(at string, v any) error {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if err := d.each(at+"/"+strconv.Itoa(i), e); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if d.find(strings.TrimPrefix(ref, "#")) == nil {
				return fmt.Errorf("%s refers to %s, which is not there", at, ref)
			}
			return nil
		}
		for name, e := range v {
			below := at + "/" + escape(name)
			var err error
			switch {
			case name == "schema" || at == "/components/schemas":
				_, err = d.schemas.Compile(address + "#" + (&url.URL{Fragment: below}).EscapedFragment())
			case name == "example", name == "examples", strings.HasPrefix(name, "x-"):
			default:
				err = d.each(below, e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escape(name string) string { return escaper.Replace(name) }

// find returns what is at a pointer, or nil.
func (d *Document) find(pointer string) any {
	var v any = d.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		m, _ := v.(map[string]any)
		v = m[unescaper.Replace(token)]
	}
	return v
}

// Request holds the JSON body of a POST to a path of the document to its schema. No body is
// an empty one.
func (d *Document) Request(path, body string) error {
	at := "/paths/" + escape(path) + "/post/requestBody"
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
	answers := "/paths/" + escape(path) + "/post/responses"
	at := answers + "/" + strconv.Itoa(status)
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
	at += "/content/" + escape(mediaType) + "/schema"
	if d.find(at) == nil {
		return fmt.Errorf("there is no %s", at)
	}
	schema, err := d.schemas.Compile(address + "#" + (&url.URL{Fragment: at}).EscapedFragment())
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}
