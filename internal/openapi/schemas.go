package openapi

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// What a schema may be, for a document to hold it and for the validator to
// compile it in bounded time. Every library that reads documents has limits too,
// often lower ones: one tool's schema must not cost the others theirs.
const (
	maxSchemaBytes   = 1 << 20
	maxSchemaNesting = 400
)

// Schemas compiles tools. It is safe for concurrent use.
type Schemas struct {
	log     *slog.Logger
	formats bool // are checked: those of questions
}

var _ bridge.Compiler = (*Schemas)(nil)

// NewSchemas returns a compiler. What it and its checkers have to leave unchecked
// goes to the log, which may be nil.
func NewSchemas(log *slog.Logger) *Schemas {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Schemas{log: log}
}

// Compile implements [bridge.Compiler]. The error says why the tool cannot be
// offered: its schema is none, or is too big for a document, or its arguments are
// not described as an object, so that it could not be called with one.
//
// A schema that cannot be compiled is published all the same; t.Unchecked then
// says why nothing is checked.
func (s *Schemas) Compile(t *bridge.Tool) error {
	if raw.IsNull(t.Input) {
		t.Input = []byte(`{"type":"object"}`)
	}
	if raw.IsNull(t.Output) {
		t.Output = nil
	}
	in, err := s.read(t.Input, t.Handle+"/"+t.Name)
	if err != nil {
		return fmt.Errorf("its input schema %w", err)
	}
	p := &publication{output: contentSchema}
	e := newEmbedder(componentPrefix(t.Handle, t.Name))
	root := e.embed(in.source, "input")
	if !describesObject(root) {
		return errors.New("its input schema describes no object: at its top is neither type object nor properties")
	}
	if takesArguments(root) {
		p.input = bytesOf(root)
		p.required = in.requires(root)
	}
	t.Arguments, t.Result, t.Unchecked = nil, nil, ""
	switch {
	case in.schema == nil:
		t.Unchecked = "the arguments are not checked: " + in.why.Error()
	case !open(in.source.root):
		t.Arguments = in.checker(s.log, "The arguments do not fit the tool's schema")
	}
	if t.Output != nil {
		out, err := s.read(t.Output, t.Handle+"/"+t.Name)
		if err != nil {
			return fmt.Errorf("its output schema %w", err)
		}
		if root := e.embed(out.source, "output"); !root.refusesAll() {
			p.output = bytesOf(root)
		}
		switch {
		case out.schema == nil:
			t.Unchecked = strings.TrimPrefix(t.Unchecked+"; results are not checked: "+out.why.Error(), "; ")
		case !open(out.source.root):
			t.Result = out.checker(s.log, "the structured content does not fit")
		}
	}
	p.components = e.out.b
	t.Published = p
	return nil
}

// Question compiles the schema of what a server asks a person for. The formats that such a schema
// may name are checked (specification of 2025-11-25, Elicitation): whoever answers has no other
// description of them. Without a checker anything goes.
func (s *Schemas) Question(schema []byte) (bridge.Checker, error) {
	q := Schemas{log: s.log, formats: true}
	in, err := q.read(schema, "a question")
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	if !describesObject(newEmbedder("").embed(in.source, "input")) {
		return nil, errors.New("it describes no object")
	}
	if in.schema == nil || open(in.source.root) {
		return nil, nil
	}
	return in.checker(s.log, "The answer does not fit what was asked"), nil
}

// A reading is a schema as it was understood.
type reading struct {
	source *source
	schema *jsonschema.Schema // nil if it does not compile
	sketch *sketch            // nil if there is none
	why    error              // it does not
	bytes  []byte
	label  string
}

// read parses a schema and compiles it, within bounds. The label names it in the log.
func (s *Schemas) read(b []byte, label string) (*reading, error) {
	if len(b) > maxSchemaBytes {
		return nil, fmt.Errorf("is larger than %d bytes", maxSchemaBytes)
	}
	root, err := parse(b)
	switch {
	case errors.Is(err, errTooDeep):
		return nil, fmt.Errorf("is nested more than %d levels deep", maxSchemaNesting)
	case err != nil:
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	r := &reading{bytes: b, label: label}
	// Most say no draft; what is no schema of the latest one is often one of an older.
	drafts := []int{2020, 7, 4}
	if d := draftOf(root.get("$schema").text()); d != 0 {
		drafts = []int{d}
	}
	for _, d := range drafts {
		src := newSource(root, d)
		src.formats = s.formats
		schema, err := compile(src, nil, s.log)
		if err == nil {
			r.source, r.schema, r.sketch, r.why = src, schema, sketchOf(schema, 0), nil
			break
		}
		if r.source == nil {
			r.source, r.why = src, err
		}
	}
	return r, nil
}

// requires reports whether a call without arguments is refused.
func (r *reading) requires(root *node) bool {
	if r.schema == nil {
		required := root.get("required")
		return required != nil && len(required.elems) > 0
	}
	_, err := r.checker(slog.New(slog.DiscardHandler), "").Check([]byte("{}"))
	return err != nil
}

func (r *reading) checker(log *slog.Logger, fault string) *checker {
	cells, height := r.source.expanded()
	draft, formats, b := r.source.draft, r.source.formats, r.bytes // not the source: it is several times as big
	return &checker{
		sketch: r.sketch,
		plain:  r.schema,
		nodes:  len(r.source.base),
		meters: r.source.recursive() || tooBig(r.source.root, cells, height),
		fault:  fault, log: log, label: r.label,
		compile: func(m *meter) (*jsonschema.Schema, error) {
			root, err := parse(b)
			if err != nil {
				return nil, err
			}
			src := newSource(root, draft)
			src.formats = formats
			return compile(src, m, log)
		},
	}
}
