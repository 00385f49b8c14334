package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/raw"
)

// maxCompileWork bounds what grows with the square of a schema when the validator
// compiles it.
const maxCompileWork = 50_000_000

var (
	errManySchemas = errors.New("it has too many parts or references")
	errNoLoading   = errors.New("references to other documents are not followed")
)

// nothing loads no schema: neither files nor addresses, whatever a reference says.
type nothing struct{}

func (nothing) Load(string) (any, error) { return nil, errNoLoading }

// compile makes the schema ready for checking; with a meter its evaluations are
// counted. What goes wrong in the library, also a panic, is the error.
func compile(s *source, m *meter, log *slog.Logger) (schema *jsonschema.Schema, err error) {
	n := len(s.base)
	if n*n/2+n*s.loose+len(s.resources)*len(s.resources) > maxCompileWork {
		return nil, errManySchemas
	}
	if !s.root.moderate() {
		return nil, errNumber
	}
	defer func() {
		if r := recover(); r != nil {
			schema, err = nil, fmt.Errorf("the validator panicked: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(drafts[s.draft])
	if s.formats {
		c.AssertFormat()
	}
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return newPattern(expr, log) })
	if m != nil {
		c.RegisterVocabulary(m.vocabulary())
		c.AssertVocabs()
	}
	if err := c.AddResource(rootURI, s.value(s.root)); err != nil {
		return nil, err
	}
	return c.Compile(rootURI)
}

// moderate reports whether the validator can calculate with every number in n.
func (n *node) moderate() bool {
	for _, m := range n.members {
		if !m.val.moderate() {
			return false
		}
	}
	for _, e := range n.elems {
		if !e.moderate() {
			return false
		}
	}
	return n.kind != raw.Number || moderate(n.raw)
}

var drafts = map[int]*jsonschema.Draft{
	4: jsonschema.Draft4, 6: jsonschema.Draft6, 7: jsonschema.Draft7,
	2019: jsonschema.Draft2019, 2020: jsonschema.Draft2020,
}

// asked are the formats of strings that a server may ask a person for.
var asked = map[string]bool{"email": true, "uri": true, "date": true, "date-time": true}

// value returns the schema as the library takes it: as it was sent, but for what
// it would take too seriously or cannot know. Formats only tell something, in
// drafts up to 7 too; a $schema was looked at before; and nullable is OpenAPI's,
// older than null among types, and means that.
func (s *source) value(n *node) any {
	switch n.kind {
	case raw.Object:
		_, isSchema := s.base[n]
		obj := make(map[string]any, len(n.members))
		for _, m := range n.members {
			switch {
			case !isSchema:
			case m.key == "$schema", m.key == "nullable":
				continue
			case m.key == "format" && !(s.formats && asked[m.val.text()]):
				continue
			case m.key == "const" && s.draft < 2019 && n.get("$ref").is(raw.String):
				continue // the library ignores all others there, as it should
			case m.key == "type" && n.get("nullable").isTrue():
				if t := typesOf(m.val, true); t != nil {
					obj[m.key] = s.value(t)
					continue
				}
			}
			obj[m.key] = s.value(m.val)
		}
		return obj
	case raw.Array:
		arr := make([]any, len(n.elems))
		for i, e := range n.elems {
			arr[i] = s.value(e)
		}
		return arr
	case raw.String:
		return n.text()
	case raw.Bool:
		return n.isTrue()
	case raw.Null:
		return nil
	default:
		return json.Number(n.raw)
	}
}
