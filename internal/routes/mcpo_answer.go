package routes

import (
	"net/http"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// named says under which reference the result of the call is kept. What /mcpo
// answers is a rendering of that result, which is never the very bytes that are kept.
func (x *exchange) named(r *http.Request, ref, kind string) {
	if x.s.Artifacts == nil {
		return
	}
	h := x.Header()
	h.Set("Artifact-Ref", ref)
	if kind != "" {
		h.Set("Artifact-Type", kind)
	}
	h.Set("Link", wholeResult(artifactRef(x, r, ref)))
}

// bodyMCPO is a result in mcpo's form: the content of its one block, or a list
// of the contents of several. Only where there are no blocks at all does
// structured content count, which mcpo never shows. The bytes of the result are
// part of it, or are it.
func bodyMCPO(res *bridge.Result) []byte {
	var contents [][]byte
	for b := range res.Blocks() {
		contents = append(contents, contentMCPO(b))
	}
	switch {
	case len(contents) == 1:
		return contents[0]
	case len(contents) == 0 && res.Structured != nil:
		return res.Structured
	}
	n := 2
	for _, c := range contents {
		n += len(c) + 1
	}
	body := append(make([]byte, 0, n), '[')
	for i, c := range contents {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, c...)
	}
	return append(body, ']')
}

// contentMCPO is one block's content as JSON: the JSON that a text is, or the
// text; the bytes of an image, a sound or a resource as a data: URI; and what is
// none of these, like a link, as it was sent, where mcpo leaves it out.
func contentMCPO(b bridge.Block) []byte {
	if t, ok := b.Text(); ok {
		// Its bytes are the answer: no digit changes, and a key that is there twice stays.
		if text := []byte(t); raw.CheckAny(text) == nil {
			return text
		}
		if b.Type == "resource" {
			return raw.Get(raw.Get(b.Raw, "resource"), "text")
		}
		return raw.Get(b.Raw, "text")
	}
	if mediaType, _, ok := b.Binary(); ok {
		data := raw.Get(b.Raw, "data")
		if b.Type == "resource" {
			data = raw.Get(raw.Get(b.Raw, "resource"), "blob")
		}
		if mediaType == "" {
			mediaType = "application/octet-stream"
		}
		return dataURI(mediaType, data)
	}
	return b.Raw
}

// dataURI is a data: URI as a JSON string; base64 is one too, with its quotes.
func dataURI(mediaType string, base64 []byte) []byte {
	out := raw.AppendQuote(make([]byte, 0, len(mediaType)+len(base64)+16), "data:"+mediaType+";base64,")
	return append(out[:len(out)-1], base64[1:]...)
}
