package openapi

import (
	"bytes"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbridge/internal/raw"
)

// A sketch is a schema that says no more than most tools' do: the types of values,
// the properties of objects and which are required, the items of arrays. A
// document that fits it is seen to fit as it lies; for any other, and for why it does not fit, there is the
// library. Decoding a small document and asking the library took a tenth of what a call
// allocates (BenchmarkCheck).
type sketch struct {
	kinds      kinds // that values may be; zero is any
	integers   bool  // numbers must be
	properties map[string]property
	required   uint64  // the bits of all that are
	others     *sketch // what properties without a name of their own must be
	closed     bool    // there may be none of these
	items      *sketch
}

type property struct {
	*sketch
	bit uint64 // of one that is required
}

// maxSketch bounds the levels of a sketch.
const maxSketch = 20

// sketchOf returns the sketch of a schema, or nil if it says more than a sketch can.
func sketchOf(s *jsonschema.Schema, depth int) *sketch {
	if depth > maxSketch || !simple(s) {
		return nil
	}
	o := &sketch{}
	if s.Bool != nil {
		if !*s.Bool {
			return nil
		}
		return o
	}
	if s.Types != nil {
		types := s.Types.ToStrings()
		o.kinds = kindsOf(types)
		o.integers = slices.Contains(types, "integer") && !slices.Contains(types, "number")
	}
	ok := true
	sub := func(s *jsonschema.Schema) *sketch {
		if s == nil {
			return nil
		}
		in := sketchOf(s, depth+1)
		ok = ok && in != nil
		return in
	}
	switch more := s.AdditionalProperties.(type) {
	case bool:
		o.closed = !more
	case *jsonschema.Schema:
		o.others = sub(more)
	}
	if len(s.Properties)+len(s.Required) > 0 {
		o.properties = make(map[string]property, len(s.Properties))
	}
	for name, p := range s.Properties {
		o.properties[name] = property{sketch: sub(p)}
	}
	for i, name := range s.Required {
		p, named := o.properties[name]
		switch {
		case i >= 64:
			return nil
		case !named && o.closed:
			p.sketch = &sketch{kinds: 1 << raw.Invalid} // no value will do
		case !named:
			p.sketch = o.others
		}
		p.bit |= 1 << i
		o.required |= 1 << i
		o.properties[name] = p
	}
	o.items = sub(s.Items2020)
	if items, is := s.Items.(*jsonschema.Schema); is {
		o.items = sub(items)
	}
	if !ok {
		return nil
	}
	return o
}

// understood are the fields of a schema that a sketch has, or that demand nothing.
var understood = []string{
	"DraftVersion", "Location", "Bool", "ID", "Anchor", "Types", "Required", "Properties", "AdditionalProperties", "Items", "Items2020",
	"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
}

// demanding are the indices of all other fields.
var demanding = func() (all []int) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		if f.IsExported() && !slices.Contains(understood, f.Name) {
			all = append(all, f.Index[0])
		}
	}
	return all
}()

// simple reports whether nothing else stands in a schema.
func simple(s *jsonschema.Schema) bool {
	if _, list := s.Items.([]*jsonschema.Schema); list {
		return false
	}
	v := reflect.ValueOf(s).Elem()
	return !slices.ContainsFunc(demanding, func(i int) bool { return !v.Field(i).IsZero() })
}

// kinds are a set of [raw.Kind].
type kinds uint8

var kindOfType = map[string]raw.Kind{
	"object": raw.Object, "array": raw.Array, "string": raw.String, "number": raw.Number, "integer": raw.Number, "boolean": raw.Bool, "null": raw.Null,
}

func kindsOf(types []string) (all kinds) {
	for _, t := range types {
		all |= 1 << kindOfType[t]
	}
	return all
}

// fits reports whether the value at the cursor certainly fits. A sketch that is nil demands nothing.
func (o *sketch) fits(r *reader) bool {
	r.space()
	kind := raw.KindOf(r.b[r.i:])
	if o != nil && o.kinds != 0 && o.kinds&(1<<kind) == 0 {
		return false
	}
	switch kind {
	case raw.Object:
		return o.object(r)
	case raw.Array:
		return o.array(r)
	case raw.String:
		r.str()
		return true
	default:
		n := r.scalar()
		return kind != raw.Number || o == nil || !o.integers || !bytes.ContainsAny(n, ".eE") // 1.0 is an integer too
	}
}

func (o *sketch) array(r *reader) bool {
	var items *sketch
	if o != nil {
		items = o.items
	}
	more, err := r.enter(']')
	for ; more && err == nil; more = !r.leave(']') {
		if !items.fits(r) {
			return false
		}
	}
	return err == nil
}

func (o *sketch) object(r *reader) bool {
	var seen uint64
	more, err := r.enter('}')
	for ; more && err == nil; more = !r.leave('}') {
		name := r.name()
		var p property
		if o != nil {
			if bytes.IndexByte(name, '\\') >= 0 || !utf8.Valid(name) {
				return false // it may be any name
			}
			named := false
			if p, named = o.properties[string(name[1:len(name)-1])]; !named {
				if o.closed {
					return false
				}
				p.sketch = o.others
			}
		}
		seen |= p.bit
		if !p.fits(r) {
			return false
		}
	}
	return err == nil && (o == nil || seen&o.required == o.required)
}
