package routes

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// A page is an answer to GET and HEAD that is known as a whole.
type page struct {
	mediaType string
	etag      string // strong and quoted; "" has none
	encoding  string // Content-Encoding; "" is none
	cache     string // Cache-Control; "" lets the caller keep it and ask each time
	body      []byte
}

// write answers with the page, or with 304 to a request that has it.
func (p page) write(x *exchange, r *http.Request) {
	h := x.Header()
	// What a caller sees is its own, and may be another thing the next moment.
	h.Set("Cache-Control", cmp.Or(p.cache, "private, no-cache"))
	if p.etag != "" {
		h.Set("ETag", p.etag)
		if matches(r.Header["If-None-Match"], p.etag) {
			x.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if p.encoding != "" {
		h.Set("Content-Encoding", p.encoding)
	}
	x.send(r, http.StatusOK, p.mediaType, p.body)
}

// tagOf returns a strong entity tag for body.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// matches reports whether a list of entity tags, as in If-None-Match, has etag by
// weak comparison (RFC 9110 section 13.1.2).
func matches(values []string, etag string) bool {
	etag = strings.TrimPrefix(etag, "W/")
	for _, v := range values {
		if strings.TrimSpace(v) == "*" {
			return true
		}
		for v != "" {
			v = strings.TrimLeft(v, ", \t")
			v = strings.TrimPrefix(v, "W/")
			if v == "" || v[0] != '"' {
				break // no entity tag, and no telling where the next one begins
			}
			end := strings.IndexByte(v[1:], '"')
			if end < 0 {
				break
			}
			if v[:end+2] == etag {
				return true
			}
			v = v[end+2:]
		}
	}
	return false
}
