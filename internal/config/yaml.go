package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads one YAML document.
func parseYAML(data []byte) (*node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	switch {
	case len(bytes.TrimSpace(data)) == 0, errors.Is(err, io.EOF), err == nil && emptyDocument(&doc):
		// Not a file without servers: an editor may be about to write it.
		return nil, syntaxErrorf(1, "the file is empty; write {} if nothing is meant")
	case err != nil:
		return nil, yamlError(data, err)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, syntaxErrorf(second.Line, "a second document; the file holds one")
	case !errors.Is(err, io.EOF):
		return nil, yamlError(data, err)
	}
	var c yamlConverter
	return c.value(doc.Content[0], 0)
}

func emptyDocument(doc *yaml.Node) bool {
	if len(doc.Content) == 0 {
		return true
	}
	n := doc.Content[0]
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

var (
	yamlErrorLine = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor    = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// yamlError makes the parser's error one of ours, and mends its line: the parser
// counts from zero in some messages, and leaves out the first line in all. In
// those messages the line may be that where the broken mapping or list starts.
func yamlError(data []byte, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlErrorLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
		if strings.HasPrefix(msg, "did not find expected") {
			line++
			msg += ", here or further down"
		}
	}
	if m := yamlAnchor.FindStringSubmatch(msg); m != nil {
		// What looks like a reference may be a secret that starts with a star.
		msg = "a reference (*name) to an anchor that is not there; put quotes around text that starts with a star"
		if before, _, ok := bytes.Cut(data, []byte("*"+m[1])); ok {
			line = 1 + bytes.Count(before, []byte("\n"))
		}
	}
	last := 1 + bytes.Count(bytes.TrimRight(data, " \t\r\n"), []byte("\n"))
	return syntaxErrorf(min(line, last), "not YAML: %s", msg)
}

type yamlConverter struct {
	nodes     int
	expanding []*yaml.Node // aliases being expanded
}

func (c *yamlConverter) value(y *yaml.Node, depth int) (*node, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, syntaxErrorf(y.Line, "the file holds more than %d values, those that aliases stand for included", maxNodes)
	}
	if depth > maxNesting {
		return nil, syntaxErrorf(y.Line, "nested more than %d deep", maxNesting)
	}
	switch y.Kind {
	case yaml.AliasNode:
		if slices.Contains(c.expanding, y.Alias) {
			return nil, syntaxErrorf(y.Line, "an alias inside what it stands for")
		}
		c.expanding = append(c.expanding, y.Alias)
		n, err := c.value(y.Alias, depth+1)
		c.expanding = c.expanding[:len(c.expanding)-1]
		return n, err
	case yaml.MappingNode:
		return c.mapping(y, depth)
	case yaml.SequenceNode:
		if err := checkTag(y, "!!seq"); err != nil {
			return nil, err
		}
		n := &node{kind: kindSequence, line: y.Line}
		for _, e := range y.Content {
			item, err := c.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	default:
		return c.scalar(y)
	}
}

func (c *yamlConverter) mapping(y *yaml.Node, depth int) (*node, error) {
	if err := checkTag(y, "!!map"); err != nil {
		return nil, err
	}
	n := &node{kind: kindMapping, line: y.Line}
	var merged []member
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, err := c.value(y.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		value, err := c.value(y.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if y.Content[i].Tag == "!!merge" {
			from, err := mergeSources(value, y.Content[i].Line)
			if err != nil {
				return nil, err
			}
			merged = append(merged, from...)
			continue
		}
		if key.kind == kindMapping || key.kind == kindSequence {
			return nil, syntaxErrorf(key.line, "a key must be text, not %s", key.kind)
		}
		n.members = append(n.members, member{key: key.text, line: key.line, value: value})
	}
	if len(merged) == 0 {
		return n, nil
	}
	// What the mapping says itself wins, then what is merged first.
	has := make(map[string]bool)
	for _, m := range n.members {
		has[m.key] = true
	}
	for _, m := range merged {
		if !has[m.key] {
			has[m.key] = true
			n.members = append(n.members, m)
		}
	}
	return n, nil
}

func mergeSources(value *node, line int) ([]member, error) {
	sources := []*node{value}
	if value.kind == kindSequence {
		sources = value.items
	}
	var ms []member
	for _, s := range sources {
		if s.kind != kindMapping {
			return nil, syntaxErrorf(line, "<< merges a mapping, or a list of mappings, not %s", s.kind)
		}
		ms = append(ms, s.members...)
	}
	return ms, nil
}

func (c *yamlConverter) scalar(y *yaml.Node) (*node, error) {
	if err := checkTag(y, "!!str", "!!int", "!!float", "!!bool", "!!null"); err != nil {
		return nil, err
	}
	n := &node{kind: kindString, line: y.Line, text: y.Value}
	switch y.ShortTag() {
	case "!!int", "!!float":
		n.kind = kindNumber
	case "!!bool":
		n.kind = kindBool
	case "!!null":
		n.kind = kindNull
	}
	// Everything else is text: a date such as 2025-11-25 is a protocol version.
	if strings.ContainsRune(n.text, 0) {
		return nil, syntaxErrorf(n.line, "control character U+0000")
	}
	return n, nil
}

// checkTag refuses tags written by hand that would need a decoder of their own.
func checkTag(y *yaml.Node, allowed ...string) error {
	if y.Style&yaml.TaggedStyle == 0 || slices.Contains(allowed, y.ShortTag()) {
		return nil
	}
	return syntaxErrorf(y.Line, "a tag (!…) that has no meaning here; put quotes around text that starts with an exclamation mark")
}
