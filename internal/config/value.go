package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// redacted stands for a secret wherever a Value is printed.
const redacted = "[hidden]"

// A Value is text of a server entry that may be a secret, and that may hold
// references to the caller: ${caller.user}, ${caller.tenant} and
// ${caller.header.NAME}, which are known only when a call comes in.
//
// Printing a Value in any way, alone or inside a struct, shows "[hidden]" if it
// is secret; [Value.Text] and [Value.Resolve] give the text itself.
type Value struct {
	parts  []part
	secret bool
}

// part is literal text or, with a caller, a reference to the caller.
type part struct {
	text   string
	caller string
}

// Plain is a Value that is no secret and refers to nothing.
func Plain(text string) Value { return Value{parts: literal(text)} }

// Hidden is a secret Value that refers to nothing.
func Hidden(text string) Value { return Value{parts: literal(text), secret: true} }

func literal(text string) []part {
	if text == "" {
		return nil
	}
	return []part{{text: text}}
}

// Text returns the text. References to the caller are in it as they were
// written; use [Value.Resolve] if there may be any.
func (v Value) Text() string {
	var b strings.Builder
	for _, p := range v.parts {
		if p.caller != "" {
			b.WriteString("${caller." + p.caller + "}")
			continue
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// Secret reports whether the text must not be shown: it came from the
// environment or a file, or it is a value of env or headers, or a credential.
func (v Value) Secret() bool { return v.secret }

// IsZero reports whether the text is empty.
func (v Value) IsZero() bool { return len(v.parts) == 0 }

// Caller returns what the text needs of the caller, each once: "user",
// "tenant", or "header." and the header's name.
func (v Value) Caller() []string {
	var refs []string
	for _, p := range v.parts {
		if p.caller != "" && !slices.Contains(refs, p.caller) {
			refs = append(refs, p.caller)
		}
	}
	return refs
}

// Resolve returns the text with each reference to the caller replaced by what
// lookup returns for it. Lookup gets the strings that [Value.Caller] returns,
// and judges whether a value is fit for use; its errors are returned, joined.
func (v Value) Resolve(lookup func(ref string) (string, error)) (string, error) {
	var b strings.Builder
	var errs []error
	for _, p := range v.parts {
		if p.caller == "" {
			b.WriteString(p.text)
			continue
		}
		text, err := lookup(p.caller)
		if err != nil {
			errs = append(errs, err)
		}
		b.WriteString(text)
	}
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	return b.String(), nil
}

// Equal reports whether both are the same text, equally secret.
func (v Value) Equal(o Value) bool {
	return v.secret == o.secret && slices.Equal(v.parts, o.parts)
}

// String returns the text, or "[hidden]" if it is secret.
func (v Value) String() string {
	if v.secret && !v.IsZero() {
		return redacted
	}
	return v.Text()
}

// Format prints what String returns, for every verb: with only a String method,
// %d and %#v would print the fields.
func (v Value) Format(s fmt.State, verb rune) {
	if verb == 'q' || s.Flag('#') {
		fmt.Fprintf(s, "%q", v.String())
		return
	}
	fmt.Fprint(s, v.String())
}

// MarshalText returns what String returns, so that no encoder shows a secret.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
