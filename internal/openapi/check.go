package openapi

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
)

// A document with more values than maxValues is not checked, and neither is one
// that takes more than maxSteps evaluations of schemas: a schema can make the work
// grow exponentially, and the server looks at its arguments itself.
const (
	maxValues     = 250_000
	maxSteps      = 1_000_000
	fewSteps      = 1_000_000 // values times schemas up to which counting is not worth it
	maxDocNesting = 10_000
	maxDocBytes   = 16 << 20
)

var errTooLong = fmt.Errorf("more than %d bytes", maxDocBytes)

// large admits checks of large documents, so that they cannot fill the memory together.
var large = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

const largeValues = 16_000

// A checker checks documents against one schema. It is safe for concurrent use.
type checker struct {
	plain  *jsonschema.Schema
	nodes  int  // schemas in it
	meters bool // a small document can be much work, too
	log    *slog.Logger
	label  string // of the tool, for the log
	fault  string // what is said of a document that does not fit

	// metered counts its evaluations in steps; one check at a time can use it. It is
	// compiled when it is first needed.
	mu      sync.Mutex
	metered *jsonschema.Schema
	meter   *meter
	compile func(*meter) (*jsonschema.Schema, error)
}

var _ bridge.Checker = (*checker)(nil)

// Check implements [bridge.Checker]. The one edit it makes: in a document that
// would be refused, an explicit null for an optional property that does not allow
// null is cut; see [cutNulls].
func (c *checker) Check(doc []byte) (out []byte, err error) {
	var v any
	values := 0
	if err = errTooLong; len(doc) <= maxDocBytes {
		v, values, err = decode(doc, maxValues)
	}
	if err != nil {
		c.unchecked("too large to be checked, taken as valid", err)
		return doc, nil
	}
	if values > largeValues {
		large <- struct{}{}
		defer func() { <-large }()
	}
	defer func() {
		if r := recover(); r != nil {
			c.unchecked("check given up, taken as valid", r)
			out, err = doc, nil
		}
	}()
	s, done := c.schema(values)
	defer done()
	bad := s.Validate(v)
	if bad == nil {
		return doc, nil
	}
	if cut := cutNulls(s, doc); len(cut) != len(doc) {
		if v, _, err := decode(cut, maxValues); err == nil {
			if bad = s.Validate(v); bad == nil {
				return cut, nil
			}
		}
	}
	return nil, invalid(bad, c.fault)
}

func (c *checker) unchecked(msg string, why any) {
	c.log.Warn(msg, slog.String("tool", c.label), slog.String("why", firstChars(fmt.Sprint(why), 500)))
}

// schema returns the form of the schema to use for a document of so many values.
// The caller must be done with it before the next one gets it.
func (c *checker) schema(values int) (s *jsonschema.Schema, done func()) {
	if !c.meters && values*c.nodes <= fewSteps {
		return c.plain, func() {}
	}
	c.mu.Lock()
	if c.metered == nil {
		c.meter = &meter{}
		s, err := c.compile(c.meter)
		if err != nil {
			c.mu.Unlock()
			panic(err) // though it compiled before
		}
		c.metered = s
	}
	c.meter.steps = 0
	return c.metered, c.mu.Unlock
}

// A meter stops a validation that evaluates too many schemas. It is a keyword of a
// vocabulary of its own, that every schema has: the library offers no other way in.
type meter struct{ steps int }

var errMeter = fmt.Errorf("more than %d evaluations", maxSteps)

// Validate implements [jsonschema.SchemaExt].
func (m *meter) Validate(*jsonschema.ValidatorContext, any) {
	if m.steps++; m.steps > maxSteps {
		panic(errMeter)
	}
}

func (m *meter) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL: "schema://tool/meter",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return m, nil
		},
	}
}
