package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
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

// explain says what a rule wants.
func explain(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return wrongType(k.Got, k.Want)
	case *kind.Enum:
		return oneOf(k.Want)
	case *kind.Const:
		return oneOf([]any{k.Want})
	case *kind.Not:
		return "is what must not be"
	case *kind.OneOf:
		return fmt.Sprintf("fits more than one alternative of oneOf: %d and %d", k.Subschemas[0], k.Subschemas[1])
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.RefCycle:
		return "cannot be checked: its schema refers to itself without end"
	case *kind.MinProperties:
		return fmt.Sprintf("has %d properties, at least %d are needed", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d properties, at most %d are allowed", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, at least %d are needed", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, at most %d are allowed", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items more than allowed", k.Count)
	case *kind.Dependency:
		return fmt.Sprintf("misses %s, which %s needs", quoteAll(k.Missing), quote(k.Prop))
	case *kind.DependentRequired:
		return fmt.Sprintf("misses %s, which %s needs", quoteAll(k.Missing), quote(k.Prop))
	case *kind.UniqueItems:
		return fmt.Sprintf("has equal items, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "has no item that fits contains"
	case *kind.MinContains:
		return fmt.Sprintf("has %d items that fit contains, at least %d are needed", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("has %d items that fit contains, at most %d are allowed", len(k.Got), k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, at least %d are needed", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, at most %d are allowed", k.Got, k.Want)
	case *kind.Pattern:
		return "does not match the pattern " + quote(k.Want)
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	default:
		return "does not fit"
	}
}

func wrongType(got string, want []string) string {
	return fmt.Sprintf("is %s, must be %s", article(got), strings.Join(each(want, article), " or "))
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "integer", "object", "array":
		return "an " + kind
	default:
		return "a " + kind
	}
}

// oneOf lists values of the schema, as JSON.
func oneOf(want []any) string {
	texts := each(want[:min(len(want), maxFindings)], func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return firstChars(string(b), maxText/3)
	})
	if len(want) > maxFindings {
		texts = append(texts, "…")
	}
	if len(texts) == 1 {
		return "must be " + texts[0]
	}
	return "must be one of " + strings.Join(texts, ", ")
}

// decimal writes a bound with all its digits, as far as they end.
func decimal(r *big.Rat) string {
	n, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	return firstChars(r.FloatString(n), maxText)
}

func each[T any](in []T, text func(T) string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = text(v)
	}
	return out
}

func quote(s string) string { return string(raw.AppendQuote(nil, firstChars(s, maxText))) }

func quoteAll(ss []string) string {
	return strings.Join(each(ss[:min(len(ss), maxFindings)], quote), ", ")
}

// firstChars returns the first n characters of s, with an ellipsis if there are more.
func firstChars(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
