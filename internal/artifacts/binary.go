package artifacts

import (
	"bytes"
	"encoding/base64"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A Blob is the bytes of a content block. They are a stranger's. It is read as its artifact is.
type Blob struct {
	MediaType string // that its server gave it; may be empty
	Size      int

	a    *Artifact
	text span   // their base64, which is only read where it is asked for; or else:
	data []byte // all of them
}

// Binary returns the bytes of a content block that holds some, an image, audio or an embedded
// resource with a blob. The value is the block, the resource in it, or its base64. The error is of kind
// Malformed if the value is none of these, or its base64 is found to be broken.
func (v *Value) Binary() (*Blob, error) {
	text, mediaType, ok := v.base64()
	b := &Blob{MediaType: mediaType, a: v.a, text: text}
	if !ok || b.measure() {
		if err := v.a.c.failed(); err != nil {
			return nil, err
		}
		if !ok {
			return nil, &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Binary", Msg: "The value is not a block of bytes: an image, audio, or an embedded resource with a blob. It can be had as JSON."}
		}
		return b, nil
	}
	plain := unquoteInner(v.a.c.need(text.from, text.to-text.from))
	if err := v.a.c.failed(); err != nil {
		return nil, err
	}
	var err error
	if b.data, err = decodeBase64([]byte(plain)); err != nil {
		return nil, err
	}
	b.Size = len(b.data)
	return b, nil
}

// measure finds out how many bytes there are without reading them, and reports whether it can: if the
// base64 is long and has no escapes, and its length and end are right.
func (b *Blob) measure() bool {
	c, n := b.a.c, b.text.to-b.text.from
	if n < bigBytes || c.count(span{b.text.from - 1, b.text.to + 1}) != n { // an escape is fewer characters than bytes
		return false
	}
	tail := c.need(b.text.to-3, 3)
	pad := len(tail) - len(bytes.TrimRight(tail, "="))
	if pad > 2 || pad > 0 && n%4 != 0 || n%4 == 1 {
		return false
	}
	b.Size = n/4*3 + max(n%4-1, 0) - pad
	return true
}

// Bytes returns the bytes from from to to, which lie within Size. Only their own base64 is
// decoded, so that what is broken elsewhere is not noticed. The error is of kind Malformed if it is broken, or one of reading.
func (b *Blob) Bytes(from, to int) ([]byte, error) {
	if from == to {
		return nil, nil
	}
	if b.data != nil {
		return b.data[from:to], nil
	}
	first := from / 3 // group of four characters, three bytes
	begin, end := b.text.from+4*first, b.text.from+4*((to+2)/3)
	text := b.a.c.need(begin, min(end, b.text.to)-begin)
	if err := b.a.c.failed(); err != nil {
		return nil, err
	}
	data, err := decodeBase64(text)
	if err != nil {
		return nil, err
	}
	if len(data) < to-3*first { // something in the middle looks like the end
		return nil, errBase64
	}
	return data[from-3*first : to-3*first], nil
}

var errBase64 = &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Binary", Msg: "The server sent base64 that is broken, so there are no bytes; what it sent can be had as JSON."}

func decodeBase64(text []byte) ([]byte, error) {
	enc := base64.StdEncoding
	if !bytes.HasSuffix(text, []byte("=")) && len(text)%4 != 0 {
		enc = base64.RawStdEncoding
	}
	data := make([]byte, enc.DecodedLen(len(text)))
	n, err := enc.Decode(data, text)
	if err != nil {
		return nil, errBase64
	}
	return data[:n], nil
}

// base64 returns where the text of a block's bytes is.
func (v *Value) base64() (text span, mediaType string, ok bool) {
	a := v.a
	if v.before != "" || v.wrapped {
		return span{}, "", false
	}
	object := v.span
	if v.Kind == raw.String { // it is the object around it that says what it is
		i := strings.LastIndexByte(v.Pointer, '/')
		if i < 0 {
			return span{}, "", false
		}
		p, err := a.around(v, i)
		if err != nil || p.wrapped {
			return span{}, "", false
		}
		object = p.span
	}
	name := "data"
	switch a.member(object, "type") {
	case "image", "audio":
	case "resource":
		var found bool
		if object, found = a.c.member(object, "resource"); !found {
			return span{}, "", false
		}
		name = "blob"
	default:
		if a.member(object, "uri") == "" {
			return span{}, "", false
		}
		name = "blob"
	}
	s, found := a.c.member(object, name)
	if !found || a.c.byte(s.from) != '"' || v.Kind == raw.String && s != v.span {
		return span{}, "", false
	}
	return span{s.from + 1, s.to - 1}, a.member(object, "mimeType"), true
}

// around returns the value that the first n bytes of a value's pointer lead to.
func (a *Artifact) around(v *Value, n int) (*Value, error) {
	if v.whole {
		return a.Result(v.Pointer[:n])
	}
	return a.Data(v.Pointer[:n])
}
