package openapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

const (
	maxFindings = 20  // that an error lists
	inMessage   = 3   // of them that its message names
	maxText     = 300 // characters of a name or value in a message
)

// A finding is one thing that is wrong with a document.
type finding struct {
	Pointer       string `json:"pointer"`
	Message       string `json:"message"`
	SchemaPointer string `json:"schema_pointer"`
}

// invalid turns what the validator found into an error for the caller. It names
// places and rules, never values.
func invalid(err error, doc any, fault string) error {
	bad, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns this very type
	if !ok {
		return &bridge.Error{Kind: bridge.InvalidArguments, Op: "openapi.Check", Msg: fault + ".", Err: err}
	}
	r := report{doc: doc}
	r.add(bad)
	slices.SortFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.SchemaPointer, b.SchemaPointer), cmp.Compare(a.Message, b.Message))
	})
	r.found = slices.Compact(r.found)
	count := len(r.found) + r.more
	first := r.found[:min(len(r.found), maxFindings)]
	return &bridge.Error{
		Kind: bridge.InvalidArguments, Op: "openapi.Check", Msg: message(fault, first, count),
		Members: map[string]any{"errors": slices.Clone(first), "count": count},
	}
}

func message(fault string, first []finding, count int) string {
	var b strings.Builder
	b.WriteString(fault + ": ")
	for i, f := range first[:min(len(first), inMessage)] {
		if i > 0 {
			b.WriteString("; ")
		}
		if f.Pointer != "" {
			fmt.Fprintf(&b, "%s: ", firstChars(f.Pointer, maxText))
		}
		b.WriteString(f.Message)
	}
	if count > inMessage {
		fmt.Fprintf(&b, "; and %d more", count-inMessage)
	}
	b.WriteByte('.')
	return b.String()
}

// enough bounds the findings that are sorted; the rest is only counted.
const enough = 10_000

type report struct {
	doc      any
	found    []finding
	more     int
	searches int
}

// add notes the leaves of the validator's tree of errors.
func (r *report) add(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.alternatives(e, "anyOf")
		return
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			r.alternatives(e, "oneOf")
			return
		}
	case *kind.Required:
		for _, name := range k.Missing {
			r.note(e, "misses "+quote(name))
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			r.note(e, "does not allow "+quote(name))
		}
		return
	case *kind.PropertyNames:
		text := "does not allow the name " + quote(k.Property)
		if leaf := e.Causes; len(leaf) == 1 && len(leaf[0].Causes) == 0 {
			text += ": it " + explain(leaf[0].ErrorKind)
		}
		e.InstanceLocation = r.holder(k.Property, len(e.InstanceLocation))
		r.note(e, text)
		return
	case *kind.Contains, *kind.MinContains:
		r.note(e, "")
		return
	}
	if len(e.Causes) == 0 {
		r.note(e, "")
		return
	}
	for _, c := range e.Causes {
		r.add(c)
	}
}

// holder returns the place of the one object at that depth that has a member of
// that name, or the root: the library gives a name's error a location that it
// overwrites afterwards.
func (r *report) holder(name string, depth int) []string {
	var found [][]string
	var visit func(v any, at []string)
	visit = func(v any, at []string) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v[name]; ok && len(at) == depth {
				found = append(found, slices.Clone(at))
			}
			if len(at) < depth {
				for k, e := range v {
					visit(e, append(at, k))
				}
			}
		case []any:
			if len(at) < depth {
				for i, e := range v {
					visit(e, append(at, strconv.Itoa(i)))
				}
			}
		}
	}
	if r.searches++; r.searches <= maxFindings {
		visit(r.doc, nil)
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

// alternatives tells why a value fits none of several schemas: the types that they
// want if that is all; the faults of the only one whose type is right; else that
// none fits, and all their faults.
func (r *report) alternatives(e *jsonschema.ValidationError, word string) {
	var want []string
	var got string
	var right []*jsonschema.ValidationError
	for _, c := range e.Causes {
		if t := mismatch(c, e.InstanceLocation); t != nil {
			got = t.Got
			for _, w := range t.Want {
				if !slices.Contains(want, w) {
					want = append(want, w)
				}
			}
			continue
		}
		right = append(right, c)
	}
	switch {
	case len(right) == 0 && len(want) > 0:
		r.note(e, wrongType(got, want))
	case len(right) == 1:
		r.add(right[0])
	default:
		r.note(e, fmt.Sprintf("fits none of the %d alternatives of %s", len(e.Causes), word))
		for _, c := range right {
			r.add(c)
		}
	}
}

// mismatch returns the wrong type that is all that e says of the value at a place, or nil.
func mismatch(e *jsonschema.ValidationError, at []string) *kind.Type {
	for {
		if !slices.Equal(e.InstanceLocation, at) {
			return nil
		}
		if t, ok := e.ErrorKind.(*kind.Type); ok {
			return t
		}
		if _, ok := e.ErrorKind.(*kind.Reference); !ok || len(e.Causes) != 1 {
			return nil
		}
		e = e.Causes[0]
	}
}

func (r *report) note(e *jsonschema.ValidationError, text string) {
	if len(r.found) >= enough {
		r.more++
		return
	}
	if text == "" {
		text = explain(e.ErrorKind)
	}
	f := finding{Message: text, SchemaPointer: schemaPointer(e)}
	for _, token := range e.InstanceLocation {
		f.Pointer = raw.AppendToken(f.Pointer, token)
	}
	r.found = append(r.found, f)
}

// schemaPointer is where the rule stands in the tool's own schema.
func schemaPointer(e *jsonschema.ValidationError) string {
	_, p, _ := strings.Cut(e.SchemaURL, "#")
	if decoded, err := url.PathUnescape(p); err == nil {
		p = decoded
	}
	if _, ok := e.ErrorKind.(*kind.PropertyNames); ok { // it names the keyword already
		return p
	}
	for _, k := range e.ErrorKind.KeywordPath() {
		if k == "dependency" { // the library's word for it
			k = "dependencies"
		}
		p = raw.AppendToken(p, k)
	}
	return p
}
