package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpbridge/internal/raw"
)

// MessageBytes bounds the message of an [Error]: it goes into answers, logs and the
// catalogue, and a server may put anything there.
const MessageBytes = 4 << 10

// A Redactor hides secrets in what is shown of a server's words. Tool results are
// not shown but handed on, and are none of its business. The zero Redactor knows no secret.
type Redactor struct {
	mask string
	r    *strings.Replacer // nil if there is no secret
}

// NewRedactor returns a Redactor that shows mask in the place of each secret, as
// it is and in the ways that it is written in JSON.
func NewRedactor(mask string, secrets []string) Redactor {
	var all []string
	for _, s := range secrets {
		switch s {
		case "", "true", "false", "null": // which are in all JSON, and secret nowhere
			continue
		}
		plain := inner(raw.AppendQuote(nil, s))
		html, err := json.Marshal(s)
		if err != nil { // which a string never is
			html = []byte(`""`)
		}
		all = append(all, s, plain, strings.ReplaceAll(plain, "/", `\/`), inner(html))
	}
	// One may be the beginning of another, whose rest would stay.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	if len(all) == 0 {
		return Redactor{}
	}
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, mask)
	}
	return Redactor{mask: mask, r: strings.NewReplacer(pairs...)}
}

func inner(quoted []byte) string { return string(quoted[1 : len(quoted)-1]) }

// Text returns s without secrets.
func (r Redactor) Text(s string) string {
	if r.r == nil {
		return s
	}
	return r.r.Replace(s)
}

// Error hides the secrets in an error that a server answered, and clips its message to [MessageBytes].
// Data stays valid JSON; what holds no secret keeps its bytes.
func (r Redactor) Error(e *Error) {
	e.Message = clip(r.Text(e.Message))
	e.Data = r.data(e.Data)
}

// clip bounds a message. What is cut off is not kept in memory.
func clip(s string) string {
	if len(s) <= MessageBytes {
		return s
	}
	const more = "…"
	n := MessageBytes - len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}

// data hides secrets in a JSON value: in strings, however they are escaped, and in
// numbers. One that spans several of them takes the whole value along.
func (r Redactor) data(v json.RawMessage) json.RawMessage {
	if r.r == nil || len(v) == 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		n := tokenLen(v[i:])
		token := v[i : i+n]
		i += n
		text := string(token)
		if token[0] == '"' {
			text = raw.Unquote(token)
		}
		if clean := r.Text(text); clean != text {
			out = raw.AppendQuote(out, clean)
		} else {
			out = append(out, token...)
		}
	}
	if r.Text(string(out)) != string(out) {
		return raw.AppendQuote(nil, r.mask)
	}
	return out
}

// tokenLen returns the length of the string, number or literal that v begins with, or
// of what stands before the next.
func tokenLen(v []byte) int {
	const punctuation = " \t\r\n{}[]:,"
	inPunctuation := func(c byte) bool { return strings.IndexByte(punctuation, c) >= 0 }
	n := 1
	switch {
	case v[0] == '"':
		for ; n < len(v) && v[n] != '"'; n++ {
			if v[n] == '\\' {
				n++
			}
		}
		return min(n+1, len(v))
	case inPunctuation(v[0]):
		n = bytes.IndexFunc(v, func(c rune) bool { return c >= utf8.RuneSelf || !inPunctuation(byte(c)) })
	default:
		n = bytes.IndexAny(v, punctuation+`"`)
	}
	if n < 0 {
		return len(v)
	}
	return n
}
