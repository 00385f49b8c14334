package routes

import (
	"net/http"
	"strings"
)

// cors is what the pages of other origins may do, by the configuration: the CORS
// protocol of the Fetch standard. The zero value allows nothing and says nothing.
//
// No cookie is ever wanted, so credentials in the protocol's sense stay
// forbidden, also for origins that are named: keys come in headers that a page sets.
type cors struct {
	every   bool // "*"
	origins map[string]bool
}

func newCORS(origins []string) cors {
	c := cors{origins: make(map[string]bool, len(origins))}
	for _, o := range origins {
		c.every = c.every || o == "*"
		c.origins[o] = true
	}
	return c
}

// allows reports whether the request is from a page of an origin that may call.
func (c cors) allows(r *http.Request) bool {
	origin := r.Header["Origin"]
	return len(origin) == 1 && origin[0] != "" && (c.every || c.origins[origin[0]])
}

// What a page may do and see. The lists are long since a header that is missing
// here is a riddle for who writes the page, while none of them gives it
// anything that other programs do not have.
const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsExposed = "Artifact-Ref, Artifact-Type, Artifact-Total, Content-Disposition, Content-Location, Content-Range, ETag, Link, Location, " +
		"Mcp-Protocol-Version, Mcp-Session-Id, Preference-Applied, RateLimit, RateLimit-Policy, Request-Id, Retry-After, Server-Timing, WWW-Authenticate"
	corsMaxAge = "7200" // seconds; browsers cap it there, or a little above
)

// corsHeaders are the request headers, in lower case, that a page may set beside those that every page may.
var corsHeaders = map[string]bool{
	"accept": true, "authorization": true, "content-type": true, "idempotency-key": true, "if-match": true, "if-none-match": true,
	"last-event-id": true, "prefer": true, "range": true, "request-id": true, "traceparent": true, "tracestate": true,
	"x-api-key": true, "x-request-id": true,
}

// cors says on every answer what its reader may be, and answers the question that
// browsers ask ahead of a request (the preflight): nothing that is checked on a
// request can be right on that one, which has neither key nor body. It reports
// whether it has answered.
func (x *exchange) cors(r *http.Request) bool {
	c, h := x.s.cors, x.Header()
	if len(c.origins) == 0 {
		return false
	}
	allowed := c.allows(r)
	if c.every {
		h.Set("Access-Control-Allow-Origin", "*") // to everybody alike, so a cache need not tell them apart
	} else {
		x.varies = true
		if allowed {
			h.Set("Access-Control-Allow-Origin", r.Header["Origin"][0])
		}
	}
	if !allowed || r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		if allowed || c.every {
			h.Set("Access-Control-Expose-Headers", corsExposed)
		}
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	if names := mayBeSent(r.Header["Access-Control-Request-Headers"]); names != "" {
		h.Set("Access-Control-Allow-Headers", names)
	}
	h.Set("Access-Control-Max-Age", corsMaxAge)
	h.Add("Vary", "Access-Control-Request-Headers")
	x.WriteHeader(http.StatusNoContent)
	return true
}

// mayBeSent returns those of the headers asked for that a page may set. They are
// named one by one: a star would not stand for Authorization.
func mayBeSent(asked []string) string {
	var names []string
	for _, line := range asked {
		for name := range strings.SplitSeq(strings.ToLower(line), ",") {
			name = strings.TrimSpace(name)
			if corsHeaders[name] || strings.HasPrefix(name, "mcp-") && isName(name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// isName reports whether the lower-case s has only characters that names of headers mostly have.
func isName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
