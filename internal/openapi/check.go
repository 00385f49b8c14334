package openapi

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/bridge"
)

// A document with more values or bytes than these is not checked, and neither is
// one that takes more evaluations of schemas, or more time: a schema can make the
// work grow exponentially, and the server looks at its arguments itself.
const (
	maxValues     = 250_000
	maxDocBytes   = 16 << 20
	maxDocNesting = 10_000
	maxSteps      = 300_000
	maxTime       = 2 * time.Second

	fewSteps    = 300_000 // values times schemas up to which counting is not worth it
	largeValues = 16_000  // above which a document is checked with few others
)

var errTooLong = fmt.Errorf("more than %d bytes", maxDocBytes)

// large admits checks of large documents, so that they cannot fill the memory together.
var large = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// A checker checks documents against one schema. It is safe for concurrent use.
type checker struct {
	sketch *sketch // what most documents can be checked by; nil if the schema says more
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
	if c.sketch != nil && c.sketch.fits(&reader{b: doc, depth: maxDocNesting}) {
		return doc, nil
	}
	var v any
	values := 0
	if err = errTooLong; len(doc) <= maxDocBytes {
		v, values, err = decode(doc, maxValues)
	}
	if err != nil {
		c.unchecked(err)
		return doc, nil
	}
	if values > largeValues {
		large <- struct{}{}
		defer func() { <-large }()
	}
	defer func() {
		if r := recover(); r != nil {
			c.unchecked(r)
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
		if v, _, err = decode(cut, maxValues); err != nil {
			panic(err) // it decoded with more in it
		}
		if bad = s.Validate(v); bad == nil {
			return cut, nil
		}
	}
	return nil, invalid(bad, v, c.fault)
}

func (c *checker) unchecked(why any) {
	c.log.Warn("check given up, taken as valid",
		slog.String("tool", c.label), slog.String("why", firstChars(fmt.Sprint(why), 500)))
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
	c.meter.reset()
	return c.metered, c.mu.Unlock
}

// A meter stops a validation that evaluates too many schemas. It is a keyword of a
// vocabulary of its own, that every schema has: the library offers no other way in.
type meter struct {
	steps    int
	deadline time.Time
}

var (
	errSteps = fmt.Errorf("more than %d evaluations", maxSteps)
	errTime  = fmt.Errorf("more than %v", maxTime)
)

func (m *meter) reset() { m.steps, m.deadline = 0, time.Now().Add(maxTime) }

// Validate implements [jsonschema.SchemaExt]. Its panic ends in the checker.
func (m *meter) Validate(*jsonschema.ValidatorContext, any) {
	m.steps++
	switch {
	case m.steps > maxSteps:
		panic(errSteps)
	case m.steps%1024 == 0 && time.Now().After(m.deadline):
		panic(errTime)
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
