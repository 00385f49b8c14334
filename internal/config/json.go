package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(data []byte) (*node, error) {
	if line, ok := tooDeep(data); ok {
		return nil, syntaxErrorf(line, "nested more than %d deep", maxNesting)
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, jsonError(data, err)
	}
	c := jsonConverter{lines: lineStarts(data)}
	return c.value(v)
}

// tooDeep finds the line where nesting passes its bound. The parser recurses
// without one, and a stack that overflows cannot be recovered.
func tooDeep(data []byte) (line int, ok bool) {
	line = 1
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '\n':
			line++
		case '{', '[':
			if depth++; depth > maxNesting {
				return line, true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				switch data[i] {
				case '\\':
					i++
				case '\n': // not allowed in a string, which is for the parser to say
					line++
				}
			}
		case '/':
			end := -1
			switch {
			case bytes.HasPrefix(data[i:], []byte("//")):
				end = bytes.IndexByte(data[i:], '\n')
			case bytes.HasPrefix(data[i:], []byte("/*")):
				if n := bytes.Index(data[i+2:], []byte("*/")); n >= 0 {
					end = n + 4
				}
			default:
				continue
			}
			if end < 0 {
				return 0, false
			}
			line += bytes.Count(data[i:i+end], []byte("\n"))
			i += end - 1
		}
	}
	return 0, false
}

var jsonErrorLine = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

// jsonError makes the parser's error one of ours. The parser repeats literals
// that it does not like, and a literal may be a secret.
func jsonError(data []byte, err error) error {
	line, msg := 0, err.Error()
	if m := jsonErrorLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		msg = "the file ends in the middle of something"
		line = 1 + bytes.Count(bytes.TrimRight(data, "\r\n\t "), []byte("\n"))
	case strings.HasPrefix(msg, "invalid literal"):
		msg = "no string, number, true, false or null of JSON; keys need quotes, too"
	}
	return syntaxErrorf(line, "not JSON (the file starts with a brace): %s", msg)
}

// lineStarts returns the offset at which each line starts.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

type jsonConverter struct {
	lines []int
	nodes int
}

func (c *jsonConverter) line(v hujson.Value) int {
	i, found := slices.BinarySearch(c.lines, v.StartOffset)
	if found {
		return i + 1
	}
	return i
}

func (c *jsonConverter) value(v hujson.Value) (*node, error) {
	n := &node{line: c.line(v)}
	if c.nodes++; c.nodes > maxNodes {
		return nil, syntaxErrorf(n.line, "the file holds more than %d values", maxNodes)
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindMapping
		for _, m := range t.Members {
			key, err := c.value(m.Name)
			if err != nil {
				return nil, err
			}
			value, err := c.value(m.Value)
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{key: key.text, line: key.line, value: value})
		}
	case *hujson.Array:
		n.kind = kindSequence
		for _, e := range t.Elements {
			item, err := c.value(e)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case hujson.Literal:
		return n, c.literal(n, t)
	}
	return n, nil
}

func (c *jsonConverter) literal(n *node, lit hujson.Literal) error {
	n.text = string(lit)
	switch lit.Kind() {
	case '"':
		n.kind = kindString
		if loneSurrogate(lit) {
			return syntaxErrorf(n.line, "not JSON: half a surrogate pair in a string")
		}
		if err := json.Unmarshal(lit, &n.text); err != nil {
			return syntaxErrorf(n.line, "not JSON: bad string")
		}
		if strings.ContainsRune(n.text, 0) {
			return syntaxErrorf(n.line, "control character U+0000")
		}
	case '0':
		n.kind = kindNumber
	case 't', 'f':
		n.kind = kindBool
	default:
		n.kind = kindNull
	}
	return nil
}

// loneSurrogate reports whether a valid string literal holds a surrogate without
// its partner, which encoding/json would quietly replace.
func loneSurrogate(lit []byte) bool {
	for i := 0; i < len(lit); i++ {
		if lit[i] != '\\' {
			continue
		}
		i++
		r, ok := escapedUnit(lit, i)
		if !ok || !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := escapedUnit(lit, i+6)
		if !ok || lit[i+5] != '\\' || utf16.DecodeRune(r, low) == '\ufffd' {
			return true
		}
		i += 10
	}
	return false
}

// escapedUnit reads uXXXX at i.
func escapedUnit(lit []byte, i int) (rune, bool) {
	if i+5 > len(lit) || lit[i] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(lit[i+1:i+5]), 16, 16)
	return rune(n), err == nil
}
