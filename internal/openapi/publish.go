package openapi

import (
	"slices"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A publication is what documents show of a tool's schemas, rendered.
type publication struct {
	input      []byte // the request body's schema; nil if the tool takes no arguments
	required   bool   // a call without a body is refused
	output     []byte // the answer's schema
	components []byte // members of #/components/schemas that the two refer to
}

// published returns what [Schemas.Compile] left with the tool. Of a tool that was
// not compiled nothing is known but that it takes an object.
func published(t *bridge.Tool) *publication {
	if p, ok := t.Published.(*publication); ok {
		return p
	}
	return &publication{input: []byte(`{"type":"object"}`), output: contentSchema}
}

func describesObject(root *node) bool {
	if root.get("properties").is(raw.Object) {
		return true
	}
	t := root.get("type")
	return t.text() == "object" || t != nil && slices.ContainsFunc(t.elems, func(e *node) bool { return e.text() == "object" })
}

// takesArguments reports whether there is anything to send: properties, or leave
// to send others, or rules that may want some.
func takesArguments(root *node) bool {
	for _, m := range root.members {
		switch m.key {
		case "type", "maxProperties":
		case "properties", "required", "patternProperties":
			if len(m.val.members)+len(m.val.elems) > 0 {
				return true
			}
		case "additionalProperties", "unevaluatedProperties":
			if !m.val.isFalse() {
				return true
			}
		default:
			if keywords[m.key].asserts || m.key == "$ref" {
				return true
			}
		}
	}
	return false
}

// open reports whether the schema of arguments refuses no object at all.
func open(root *node) bool {
	for _, m := range root.members {
		switch m.key {
		case "type":
			if m.val.text() != "object" {
				return false
			}
		case "properties", "patternProperties":
			for _, p := range m.val.members {
				if !anything(p.val) {
					return false
				}
			}
		case "additionalProperties":
			if !anything(m.val) {
				return false
			}
		case "required":
			if len(m.val.elems) > 0 {
				return false
			}
		default:
			if refuses(m.key) {
				return false
			}
		}
	}
	return root.is(raw.Object) || root.isTrue()
}

// anything reports whether the schema plainly refuses nothing.
func anything(n *node) bool {
	return n.isTrue() || n.is(raw.Object) && !slices.ContainsFunc(n.members, func(m member) bool { return refuses(m.key) })
}

func refuses(key string) bool {
	k := keywords[key]
	return k.asserts || key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef"
}

func bytesOf(n *node) []byte {
	var w writer
	n.write(&w)
	return w.b
}
