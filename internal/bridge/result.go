package bridge

import (
	"encoding/json"
	"errors"
	"iter"

	"mcpbridge/internal/raw"
)

// A Result is what a tool returned: the server's own bytes, and where its parts
// lie in them. Nothing in it is decoded or copied.
type Result struct {
	Raw        json.RawMessage // the whole result object, as sent
	Content    json.RawMessage // its content blocks, a JSON array; nil if it sent none
	Structured json.RawMessage // its structuredContent; nil if there is none
	Meta       json.RawMessage // its _meta; nil if there is none
	IsError    bool            // the tool says that it failed
	Wanted     *Wanted         // what the server wants first, if this is no answer yet

	data [][]byte
}

// ParseResult finds the parts of the result of a tools/call. The bytes must be
// valid JSON; the result keeps them. An error says how they are no such result.
func ParseResult(b []byte) (*Result, error) {
	if raw.KindOf(b) != raw.Object {
		return nil, errors.New("the result is not an object")
	}
	r := &Result{Raw: b}
	others := false // members beside content
	for m := range raw.Members(b) {
		switch {
		case m.Is("content"):
			r.Content = m.Val
			continue
		case m.Is("structuredContent"):
			r.Structured = m.Val
		case m.Is("_meta"):
			r.Meta = m.Val
		case m.Is("isError"):
			r.IsError = string(m.Val) == "true"
		}
		others = true
	}
	if raw.IsNull(r.Structured) {
		r.Structured = nil
	}
	if raw.IsNull(r.Content) {
		r.Content = nil
	}
	if r.Content != nil && raw.KindOf(r.Content) != raw.Array {
		return nil, errors.New("the result's content is not an array")
	}
	switch {
	case r.Structured != nil:
		r.data = [][]byte{r.Structured}
	case r.Content == nil:
		r.data = [][]byte{[]byte(`{"content":[]}`)}
	case !others:
		r.data = [][]byte{b}
	default:
		r.data = [][]byte{[]byte(`{"content":`), r.Content, []byte(`}`)}
	}
	return r, nil
}

// Data returns the result's data, in pieces that are to be joined: its
// structured content if there is any, else {"content": [blocks as sent]}.
func (r *Result) Data() [][]byte { return r.data }

// SetData makes b, which must be valid JSON, the result's data: a [Keeper] does when it finds out what the result is.
func (r *Result) SetData(b []byte) { r.data = [][]byte{b} }

// Size returns the length of the data in bytes.
func (r *Result) Size() int {
	n := 0
	for _, p := range r.data {
		n += len(p)
	}
	return n
}

// More reports whether the result holds something that its data does not show.
func (r *Result) More() bool {
	return r.Meta != nil || r.Structured != nil && raw.KindOf(r.Content) == raw.Array && len(r.Content) > len("[]")
}

// A Block is one content block of a result, as sent.
type Block struct {
	Raw  json.RawMessage
	Type string // "text", "image", "audio", "resource", "resource_link", or any other
}

// Blocks yields the content blocks in their order. What is no object is a block without type.
func (r *Result) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for _, b := range raw.Elements(r.Content) {
			if !yield(Block{Raw: b, Type: raw.GetString(b, "type")}) {
				return
			}
		}
	}
}

// Text returns the text of a text block or of an embedded text resource, and whether it is one.
func (b Block) Text() (string, bool) {
	v := raw.Get(b.Raw, "text")
	if b.Type == "resource" {
		v = raw.Get(raw.Get(b.Raw, "resource"), "text")
	}
	if raw.KindOf(v) != raw.String || b.Type != "text" && b.Type != "resource" {
		return "", false
	}
	return raw.Unquote(v), true
}

// Binary returns the media type and the base64 text of a block that holds bytes,
// an image, audio or an embedded blob, and whether it is one.
func (b Block) Binary() (mediaType string, base64 []byte, ok bool) {
	holder, name := []byte(b.Raw), "data"
	switch b.Type {
	case "image", "audio":
	case "resource":
		holder, name = raw.Get(b.Raw, "resource"), "blob"
	default:
		return "", nil, false
	}
	v := raw.Get(holder, name)
	if raw.KindOf(v) != raw.String {
		return "", nil, false
	}
	return raw.GetString(holder, "mimeType"), []byte(raw.Unquote(v)), true
}
