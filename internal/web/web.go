// Package web holds the pages that the bridge shows to a person, and serves them
// from the binary: no page needs anything from another host.
//
// A [Page] is the documentation page of one OpenAPI document, drawn by Swagger UI.
// [Assets] are the scripts and styles that pages load. Pages refer to these and to
// their document by relative references only, so they work under any base path
// and behind a proxy that adds one. With Assets at /docs/assets/, the two pages
// of the bridge are
//
//	/docs                 Page{Document: "openapi.json", Assets: "docs/assets/"}
//	/tools/{handle}/docs  Page{Document: "openapi.json", Assets: "../../docs/assets/"}
//
// Handlers here answer GET and HEAD, and expect the router to refuse other methods.
package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// policy is the content security policy of pages and assets. All a page loads is
// its own host's: scripts and styles are files, never inline. Swagger UI draws
// its icons from data URLs, and an image that a tool returned from a blob URL.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serve answers with body, which tag identifies. Nothing here has its version in
// its name, so clients ask each time, and get a 304 while the tag is the same.
func serve(w http.ResponseWriter, r *http.Request, mediaType, tag string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// digest is a name for data in an entity tag.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// acceptsGzip reports whether the request takes a gzip-compressed answer. A
// client that says nothing gets the plain one: RFC 9110, section 12.5.3, allows
// either, and tools that do not ask often cannot decode.
func acceptsGzip(h http.Header) bool {
	wildcard := false
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				return wanted(params)
			case "*":
				wildcard = wanted(params)
			}
		}
	}
	return wildcard
}

// wanted reports whether a coding's parameters leave it acceptable: a weight
// other than zero, or none.
func wanted(params string) bool {
	name, value, found := strings.Cut(params, "=")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return true
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && q > 0
}
