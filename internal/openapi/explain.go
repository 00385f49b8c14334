package openapi

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpbridge/internal/raw"
)

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
	case *kind.Format:
		return "is no " + k.Want
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
