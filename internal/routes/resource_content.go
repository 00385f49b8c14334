package routes

import (
	"encoding/base64"
	"mime"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A content is what a resource is, as bytes of a type.
type content struct {
	mediaType string
	body      []byte
}

// onlyContent returns the content of a resource that has exactly one, whose bytes can be had.
func onlyContent(res *bridge.Result) (content, bool) {
	var only []byte
	n := 0
	for _, e := range raw.Elements(raw.Get(res.Raw, "contents")) {
		only = e
		n++
	}
	if n != 1 {
		return content{}, false
	}
	declared := raw.GetString(only, "mimeType")
	if text := raw.Get(only, "text"); raw.KindOf(text) == raw.String {
		return content{textType(declared), []byte(raw.Unquote(text))}, true
	}
	blob := raw.Get(only, "blob")
	if raw.KindOf(blob) != raw.String {
		return content{}, false
	}
	body, err := base64.StdEncoding.DecodeString(raw.Unquote(blob))
	return content{bareType(declared, "application/octet-stream"), body}, err == nil
}

// bareType returns a declared media type without its parameters, which are a stranger's
// text too, or other if there is none that can be read.
func bareType(declared, other string) string {
	t, _, err := mime.ParseMediaType(declared)
	if typ, sub, ok := strings.Cut(t, "/"); err != nil || !ok || typ == "" || sub == "" {
		return other
	}
	return t
}

// textType is the type of a text, which is in UTF-8 whatever its server declares: it came in JSON.
func textType(declared string) string {
	t := bareType(declared, "text/plain")
	if strings.HasPrefix(t, "text/") {
		t += "; charset=utf-8"
	}
	return t
}

// prefersJSON reports whether Accept names JSON, and wants it no less than the
// content's own type. Whoever takes anything gets the content.
func prefersJSON(accept []string, own string) bool {
	var all ranges
	for _, v := range accept {
		for part := range elements(v, ',') {
			if r, ok := parseRange(part); ok && len(all) < maxRanges {
				all = append(all, r)
			}
		}
	}
	t, _, _ := strings.Cut(own, ";")
	typ, sub, _ := strings.Cut(t, "/")
	for _, r := range all {
		if r.typ == "application" && r.sub == "json" && r.q > 0 {
			return r.q >= all.weight(typ, sub)
		}
	}
	return false
}
