package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpbridge/internal/raw"
)

const (
	blockText  = 1 << 10 // bytes of a block's text that a tool error shows
	blockBytes = 4 << 10 // bytes of a block in all
	blockCount = 20      // blocks that it shows
	detailText = 500     // characters of text in its message
)

// toolError tells what a tool reported: its text in the message, its blocks, cut, as members.
func toolError(a *Answer) *Error {
	var texts []string
	blocks := []json.RawMessage{}
	count := 0
	for b := range a.Result.Blocks() {
		if t, ok := b.Text(); ok {
			texts = append(texts, t)
		}
		if count++; count <= blockCount {
			blocks = append(blocks, shorten(b))
		}
	}
	msg := FirstChars(strings.Join(texts, "\n"), detailText)
	if msg == "" && a.Result.Structured != nil {
		msg = FirstChars(string(a.Result.Structured), detailText)
	}
	if msg == "" {
		msg = "no text was given"
	}
	m := a.members()
	m["content"] = blocks
	if count > blockCount {
		m["content_count"] = count
	}
	return &Error{Kind: ToolError, Op: "bridge.keep", Msg: "The tool reported an error: " + msg, Members: m, Result: a.Result}
}

// members names the artifact in which the whole result is kept, if it is.
func (a *Answer) members() map[string]any {
	m := map[string]any{}
	if a.Artifact != nil {
		m["artifact_ref"] = a.Artifact.Ref
	}
	return m
}

// shorten returns the block with every long string in it cut, or only its type if
// it is large for other reasons; the artifact has it whole.
func shorten(b Block) json.RawMessage {
	if len(b.Raw) <= blockText {
		return b.Raw
	}
	if short := cutStrings(nil, b.Raw); len(short) <= blockBytes {
		return short
	}
	out := raw.AppendQuote([]byte(`{"type":`), FirstChars(b.Type, 100))
	return fmt.Appendf(out, `,"omitted":"%d bytes"}`, len(b.Raw))
}

func cutStrings(dst, v []byte) []byte {
	switch raw.KindOf(v) {
	case raw.String:
		if len(v) <= blockText {
			return append(dst, v...)
		}
		return raw.AppendQuote(dst, strings.ToValidUTF8(raw.Unquote(v)[:min(blockText, len(raw.Unquote(v)))], "")+"…")
	case raw.Object:
		dst = append(dst, '{')
		n := 0
		for m := range raw.Members(v) {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, m.Key...), ':')
			dst = cutStrings(dst, m.Val)
		}
		return append(dst, '}')
	case raw.Array:
		dst = append(dst, '[')
		for i, e := range raw.Elements(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = cutStrings(dst, e)
		}
		return append(dst, ']')
	default:
		return append(dst, v...)
	}
}

// FirstChars returns the first n characters of s, with an ellipsis if there are more.
func FirstChars(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// breach says how a result breaks the tool's output schema, or returns "".
func breach(t *Tool, r *Result) string {
	if t.Output == nil {
		return ""
	}
	if r.Structured == nil {
		return "there is no structured content"
	}
	if t.Result == nil {
		return ""
	}
	_, err := t.Result.Check(r.Structured)
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Msg
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// parseText takes the JSON of a result that is one text block as its data.
func (r *Result) parseText() {
	if r.Structured != nil {
		return
	}
	var text string
	n := 0
	for b := range r.Blocks() {
		t, ok := b.Text()
		if n++; n > 1 || !ok || b.Type != "text" {
			return
		}
		text = t
	}
	b := []byte(text)
	if k := raw.KindOf(b); (k == raw.Object || k == raw.Array) && raw.CheckAny(b) == nil {
		r.data = [][]byte{b}
	}
}
