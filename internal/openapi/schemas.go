package openapi

import (
	"errors"
	"log/slog"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Schemas compiles tools. It is safe for concurrent use.
type Schemas struct {
	log *slog.Logger
}

var _ bridge.Compiler = (*Schemas)(nil)

// NewSchemas returns a compiler that logs to log what it cannot check; nil is no log.
func NewSchemas(log *slog.Logger) *Schemas {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Schemas{log: log}
}

// publication is what documents show of a tool's schemas, rendered.
type publication struct {
	input      []byte // the request body's schema; nil if the tool takes no arguments
	required   bool   // a call without a body is refused
	output     []byte // the answer's schema
	components []byte // members of #/components/schemas that the two refer to
}

// Compile implements [bridge.Compiler]. A tool whose arguments are not described
// as an object cannot be called with one, and is an error.
func (s *Schemas) Compile(t *bridge.Tool) error {
	if raw.IsNull(t.Input) {
		t.Input = []byte(`{"type":"object"}`)
	}
	if raw.IsNull(t.Output) {
		t.Output = nil
	}
	if raw.KindOf(t.Input) != raw.Object || raw.GetString(t.Input, "type") != "object" && raw.KindOf(raw.Get(t.Input, "properties")) != raw.Object {
		return errors.New("its input schema describes no object: at its top is neither type object nor properties")
	}
	t.Published = publish(t)
	return nil
}

func published(t *bridge.Tool) *publication {
	if p, ok := t.Published.(*publication); ok {
		return p
	}
	return publish(t)
}

func publish(t *bridge.Tool) *publication {
	p := &publication{input: t.Input, output: contentSchema}
	if t.Output != nil {
		p.output = t.Output
	}
	return p
}
