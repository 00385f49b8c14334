package config

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const (
	maxNesting = 200
	// maxNodes bounds the tree, aliases expanded: a few lines of YAML can stand
	// for billions of nodes.
	maxNodes = 200_000
)

// A node is a value of the file, whatever format it was written in.
type node struct {
	kind    kind
	line    int
	text    string   // of a scalar: as written, strings decoded
	members []member // of a mapping, in order; keys may come twice
	items   []*node  // of a sequence
}

type member struct {
	key   string
	line  int
	value *node
}

type kind uint8

const (
	kindNull kind = iota
	kindString
	kindNumber
	kindBool
	kindMapping
	kindSequence
)

func (k kind) String() string {
	return [...]string{"null", "text", "a number", "true or false", "a mapping", "a list"}[k]
}

// syntaxErrorf is an error that ends parsing: what follows it is anybody's guess.
func syntaxErrorf(line int, format string, args ...any) error {
	return &Error{Problems: []Problem{{Line: line, Msg: fmt.Sprintf(format, args...)}}}
}

// parse brings either format to a tree. Its error is an [*Error].
func parse(data []byte) (*node, error) {
	// A byte order mark is no part of the text, and on no line of its own.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := checkBytes(data); err != nil {
		return nil, err
	}
	if isJSON(data) {
		return parseJSON(data)
	}
	return parseYAML(data)
}

// checkBytes finds what neither format allows, with its line: the parsers do
// not say where, or do not say at all.
func checkBytes(data []byte) error {
	line := 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return syntaxErrorf(line, "the file is not UTF-8")
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85:
			return syntaxErrorf(line, "control character %U", r)
		}
		i += size
	}
	return nil
}

// isJSON reports whether the first character that is neither space nor in a
// comment opens an object. VS Code's files often start with a comment.
func isJSON(data []byte) bool {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		switch {
		case bytes.HasPrefix(data, []byte("//")):
			_, data, _ = bytes.Cut(data, []byte("\n"))
		case bytes.HasPrefix(data, []byte("/*")):
			_, data, _ = bytes.Cut(data, []byte("*/"))
		default:
			return bytes.HasPrefix(data, []byte("{"))
		}
	}
}
