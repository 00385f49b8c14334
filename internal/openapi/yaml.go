package openapi

import (
	"bytes"
	"strings"
	"unicode"

	"mcpbridge/internal/raw"
)

// toYAML writes a JSON document as YAML, in blocks, every value the same: numbers
// keep their digits, strings that another reader could take for something else are
// quoted. YAML 1.1 and 1.2 readers get the same values.
func toYAML(doc []byte) []byte {
	y := yamlWriter{reader: reader{b: doc, depth: maxDocNesting}}
	y.out.Grow(len(doc) * 3 / 2)
	y.value(0, false)
	if y.out.Bytes()[y.out.Len()-1] != '\n' {
		y.out.WriteByte('\n')
	}
	return y.out.Bytes()
}

type yamlWriter struct {
	reader
	out bytes.Buffer
}

// value writes the value at the cursor. A block inside of something starts on its
// own line, unless it is an element, whose first member stands behind the dash.
func (y *yamlWriter) value(indent int, element bool) {
	switch y.peek() {
	case '{':
		y.collection(indent, element, '}', "{}", y.member)
	case '[':
		y.collection(indent, element, ']', "[]", y.element)
	case '"':
		y.text(indent)
	default:
		y.out.Write(yamlNumber(y.scalar()))
	}
}

func (y *yamlWriter) collection(indent int, element bool, closing byte, empty string, one func(indent int)) {
	more, err := y.enter(closing)
	if err != nil || !more {
		y.out.WriteString(empty)
		return
	}
	for first := true; more; more, first = !y.leave(closing), false {
		if !first || indent > 0 && !element {
			y.out.WriteByte('\n')
			y.spaces(indent)
		}
		one(indent)
	}
}

func (y *yamlWriter) element(indent int) {
	y.out.WriteString("- ")
	y.peek()
	y.value(indent+2, true)
}

func (y *yamlWriter) member(indent int) {
	key := raw.Unquote(y.name())
	long := len(key) > 1000 // what readers must find a colon behind is bounded
	if long {
		y.out.WriteString("? ")
	}
	if isPlain(key) {
		y.out.WriteString(key)
	} else {
		y.out.Write(yamlQuote(key))
	}
	if long {
		y.out.WriteByte('\n')
		y.spaces(indent)
	}
	y.out.WriteByte(':')
	switch y.peek() {
	case '{', '[':
		if next := y.second(); next == '}' || next == ']' {
			y.out.WriteByte(' ')
		}
	default:
		y.out.WriteByte(' ')
	}
	y.value(indent+2, false)
}

// second returns what comes behind the bracket at the cursor.
func (y *yamlWriter) second() byte {
	r := y.reader
	r.i++
	return r.peek()
}

func (y *yamlWriter) spaces(n int) {
	for range n {
		y.out.WriteByte(' ')
	}
}

// text writes a string: plain where it is a word, as a block where it has lines, else quoted.
func (y *yamlWriter) text(indent int) {
	s := raw.Unquote(y.str())
	switch {
	case isPlain(s):
		y.out.WriteString(s)
	case isBlock(s):
		y.out.WriteString("|-")
		for line := range strings.SplitSeq(s, "\n") {
			y.out.WriteByte('\n')
			if line != "" {
				y.spaces(max(indent, 2))
				y.out.WriteString(line)
			}
		}
	default:
		y.out.Write(yamlQuote(s))
	}
}

// isPlain reports whether s is a string also without quotes: words that no reader of
// YAML 1.1 or 1.2 takes for something else.
func isPlain(s string) bool {
	if s == "" || len(s) > 200 || s[len(s)-1] == ' ' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '/':
		case c == '$' && i == 0:
		case i == 0:
			return false
		case c >= '0' && c <= '9', c == '(':
		case c == ' ', c == '.', c == '-', c == ')':
			if s[i-1] == ' ' {
				return false
			}
		default:
			return false
		}
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

// isBlock reports whether s can be written line by line as it is.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || s[0] == ' ' || s[0] == '\n' || s[0] == '\t' || s[len(s)-1] == '\n' {
		return false
	}
	for _, c := range s {
		if c != '\n' && c != '\t' && !printable(c) {
			return false
		}
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) == "" && line != "" {
			return false
		}
	}
	return true
}

// printable reports whether c can stand as it is in every version of YAML.
func printable(c rune) bool {
	return c == ' ' || unicode.IsGraphic(c) && !unicode.IsSpace(c) && c != '\ufeff' && c != unicode.ReplacementChar && c < 0x10000
}

// yamlQuote writes a string in double quotes.
func yamlQuote(s string) []byte {
	const hex = "0123456789ABCDEF"
	b := []byte{'"'}
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case printable(c):
			b = append(b, string(c)...)
		case c < 0x10000:
			b = append(b, '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			b = append(b, '\\', 'U', '0', '0', hex[c>>20&15], hex[c>>16&15], hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		}
	}
	return append(b, '"')
}

// yamlNumber writes a number or literal. What has an exponent gets a point and a
// sign, without which readers of YAML 1.1 take it for a string.
func yamlNumber(n []byte) []byte {
	i := bytes.IndexAny(n, "eE")
	if i < 0 || n[0] == 't' || n[0] == 'f' {
		return n
	}
	out := append([]byte{}, n[:i]...)
	if !bytes.ContainsRune(out, '.') {
		out = append(out, ".0"...)
	}
	out = append(out, 'e')
	if n[i+1] != '+' && n[i+1] != '-' {
		out = append(out, '+')
	}
	return append(out, n[i+1:]...)
}
