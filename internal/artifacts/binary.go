package artifacts

import (
	"encoding/base64"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Binary returns the bytes of a content block that holds some, an image, audio or an embedded
// resource with a blob, and the media type that its server gave it, which may be empty. The value is the block, the
// resource in it, or its base64. The bytes are a stranger's. The error is of kind
// Malformed if the value is none of these, or its base64 is broken.
func (v *Value) Binary() (data []byte, mediaType string, err error) {
	text, mediaType, ok := v.base64()
	if err := v.a.c.failed(); err != nil {
		return nil, "", err
	}
	if !ok {
		return nil, "", &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Binary", Msg: "The value is not a block of bytes: an image, audio, or an embedded resource with a blob. It can be had as JSON."}
	}
	enc := base64.StdEncoding
	if !strings.HasSuffix(text, "=") && len(text)%4 != 0 {
		enc = base64.RawStdEncoding
	}
	data, err = enc.DecodeString(text)
	if err != nil {
		return nil, "", &bridge.Error{Kind: bridge.Malformed, Op: "artifacts.Binary", Msg: "The server sent base64 that is broken, so there are no bytes; what it sent can be had as JSON.", Err: err}
	}
	return data, mediaType, nil
}

// base64 returns the text of a block's bytes.
func (v *Value) base64() (text, mediaType string, ok bool) {
	a := v.a
	if v.before != "" || v.wrapped {
		return "", "", false
	}
	object := v.span
	if v.Kind == raw.String { // it is the object around it that says what it is
		i := strings.LastIndexByte(v.Pointer, '/')
		if i < 0 {
			return "", "", false
		}
		p, err := a.around(v, i)
		if err != nil || p.wrapped {
			return "", "", false
		}
		object = p.span
	}
	name := "data"
	switch a.member(object, "type") {
	case "image", "audio":
	case "resource":
		var found bool
		if object, found = a.c.member(object, "resource"); !found {
			return "", "", false
		}
		name = "blob"
	default:
		if a.member(object, "uri") == "" {
			return "", "", false
		}
		name = "blob"
	}
	s, found := a.c.member(object, name)
	if !found || a.c.byte(s.from) != '"' || v.Kind == raw.String && s != v.span {
		return "", "", false
	}
	return unquoteInner(a.c.need(s.from+1, s.to-s.from-2)), a.member(object, "mimeType"), true
}

// around returns the value that the first n bytes of a value's pointer lead to.
func (a *Artifact) around(v *Value, n int) (*Value, error) {
	if v.whole {
		return a.Result(v.Pointer[:n])
	}
	return a.Data(v.Pointer[:n])
}
