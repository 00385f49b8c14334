package routes

import (
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// mostMatches bounds the matches of one search.
const mostMatches = 1000

// A reading is what a request wants of an artifact.
type reading struct {
	pointer string
	view    string // "data", "summary" or "result"
	q       string
	search  bool
	raw     bool
	slice   bool
	offset  int
	limit   int // -1 if the request says nothing of it
}

// parseReading reads the query, in which nothing may be unknown: a mistyped limit
// must not fetch 50 MB.
func parseReading(r *http.Request) (*reading, error) {
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	in := &reading{view: "data", limit: -1}
	var behind bool
	in.pointer, behind = pathPointer(r)
	for name, values := range q {
		if len(values) > 1 {
			return nil, badReading("The query has %s more than once.", name)
		}
		v := values[0]
		switch name {
		case "pointer":
			if behind {
				return nil, badReading("The pointer is in the path or in the query, not in both.")
			}
			in.pointer = v
		case "view":
			if v != "data" && v != "summary" && v != "result" {
				return nil, badReading("view is data, summary or result.")
			}
			in.view = v
		case "q":
			in.q, in.search = v, true
		case "format":
			if v != "raw" {
				return nil, badReading("format is raw, or left out.")
			}
			in.raw = true
		case "offset":
			in.slice = true
			if in.offset, err = parseCount(name, v); err != nil {
				return nil, err
			}
		case "limit":
			if in.limit, err = parseCount(name, v); err != nil {
				return nil, err
			}
		default:
			return nil, badReading("The query key %.100q is unknown; there are pointer, view, offset, limit, q and format.", name)
		}
	}
	switch {
	case in.search && (in.raw || in.slice || in.view == "summary"):
		return nil, badReading("A search (q) takes no offset and no format, and no view=summary: it finds all of the text.")
	case in.search && (in.limit == 0 || in.limit > mostMatches):
		return nil, badReading("With q, limit is from 1 to %d.", mostMatches)
	case in.raw && in.view == "summary":
		return nil, badReading("format=raw is what a summary leaves out; leave out one of the two.")
	}
	in.slice = in.slice || in.limit >= 0
	return in, nil
}

func badReading(format string, args ...any) error {
	return &bridge.Error{Kind: bridge.Malformed, Op: "routes.artifact", Msg: fmt.Sprintf(format, args...)}
}

// parseCount reads a number of characters, items or keys. One that is larger than any value has is as good as the largest.
func parseCount(name, v string) (int, error) {
	for _, c := range []byte(v) {
		if c < '0' || c > '9' {
			v = ""
			break
		}
	}
	if v == "" {
		return 0, badReading("%s is a whole number from 0.", name)
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		n = math.MaxInt
	}
	return n, nil
}

// readArtifact answers GET and HEAD.
func (s *server) readArtifact(x *exchange, r *http.Request) error {
	c, err := x.identify(r)
	if err != nil {
		return err
	}
	in, err := parseReading(r)
	if err != nil {
		return err
	}
	x.Header().Set("Vary", "Accept")
	if s.Artifacts == nil {
		return noArtifact(segment(r, "ref"))
	}
	a, err := s.Artifacts.Open(r.Context(), c, segment(r, "ref"))
	if err != nil {
		return err
	}
	v, err := in.find(a)
	if err != nil {
		return err
	}
	m := a.Meta()
	h := x.Header()
	if in.slice && !in.search {
		part, err := v.Slice(in.offset, in.limitOr(math.MaxInt))
		if err != nil {
			return err
		}
		v = part.Value
		h.Set("Artifact-Total", strconv.Itoa(part.Total))
		if part.Next >= 0 && in.limit > 0 {
			q := r.URL.Query()
			q.Set("offset", strconv.Itoa(part.Next))
			h.Set("Link", "<?"+q.Encode()+`>; rel="next"`)
		}
	} else if m.More && m.Parent == "" && in.view != "result" && in.pointer == "" {
		h.Set("Link", wholeResult(""))
	}
	describe(h, m)
	return in.answer(x, r, a, v)
}

func (in *reading) limitOr(n int) int {
	if in.limit < 0 {
		return n
	}
	return in.limit
}

func (in *reading) find(a *artifacts.Artifact) (*artifacts.Value, error) {
	if in.view == "result" {
		return a.Result(in.pointer)
	}
	return a.Data(in.pointer)
}

// wholeResult is a link to the whole result of an artifact at ref.
func wholeResult(ref string) string {
	return "<" + ref + `?view=result>; rel="alternate"; title="the whole result"`
}

// describe says in the headers what an artifact is.
func describe(h http.Header, m artifacts.Meta) {
	h.Set("Artifact-Ref", m.Ref)
	h.Set("Artifact-Type", m.Type)
	if m.Parent != "" {
		h.Set("Artifact-Parent", m.Parent)
	}
	h.Set("Expires", m.Expires.UTC().Format(http.TimeFormat))
}

// answer writes the value in the form that the request wants.
func (in *reading) answer(x *exchange, r *http.Request, a *artifacts.Artifact, v *artifacts.Value) error {
	switch {
	case in.search:
		if x.unchanged(r, a, in, "search") {
			return nil
		}
		return in.writeMatches(x, r, a.Meta().Ref, v)
	case in.view == "summary":
		if x.unchanged(r, a, in, "summary "+x.s.Artifacts.SummaryTag()) {
			return nil
		}
		return x.stream(r, "application/json", -1, v.Summarize)
	}
	blob, form, err := in.form(v, parseAccept(r.Header["Accept"]))
	if err != nil {
		return err
	}
	switch form {
	case "bytes":
		x.Header().Set("Accept-Ranges", "bytes")
		if x.unchanged(r, a, in, form) {
			return nil
		}
		if err := x.writeBytes(r, blob); err == nil || in.raw || bridge.KindOf(err) != bridge.Malformed {
			return err
		}
		x.Header().Del("Accept-Ranges") // there are no bytes after all, so it is JSON
	case "text":
		if x.unchanged(r, a, in, form) {
			return nil
		}
		x.foreign("text/plain")
		return x.stream(r, "text/plain; charset=utf-8", -1, v.Text)
	}
	if x.unchanged(r, a, in, "json") {
		return nil
	}
	return x.stream(r, "application/json", v.Size(), func(w io.Writer) error {
		_, err := v.WriteTo(w)
		return err
	})
}

// form decides between the value's forms: "json" always is one, a string has
// "text", and a content block of bytes has "bytes".
func (in *reading) form(v *artifacts.Value, accept ranges) (blob *artifacts.Blob, form string, err error) {
	if in.raw {
		blob, err = v.Binary()
		if bridge.KindOf(err) == bridge.Malformed && err != nil && v.Kind == raw.String {
			return nil, "text", nil
		}
		return blob, "bytes", err
	}
	tried := false
	for _, want := range accept {
		switch {
		case want.q == 0, want.matches("application", "json") && accept.weight("application", "json") > 0:
			return nil, "json", nil
		case v.Kind == raw.String && want.matches("text", "plain") && accept.weight("text", "plain") > 0:
			return nil, "text", nil
		case !tried:
			tried = true
			blob, err = v.Binary()
			if err != nil && bridge.KindOf(err) != bridge.Malformed {
				return nil, "", err
			}
		}
		if blob == nil {
			continue
		}
		if typ, sub, _ := strings.Cut(plainType(blob.MediaType), "/"); want.matches(typ, sub) && accept.weight(typ, sub) > 0 {
			return blob, "bytes", nil
		}
	}
	return nil, "json", nil
}

// plainType returns a stranger's media type without its parameters, which are a
// stranger's text too, or that of bytes of no known type.
func plainType(declared string) string {
	if t, _, err := mime.ParseMediaType(declared); err == nil && strings.Contains(t, "/") {
		return t
	}
	return "application/octet-stream"
}

// unchanged says how long the answer may be kept, and answers 304 to a request that has it.
func (x *exchange) unchanged(r *http.Request, a *artifacts.Artifact, in *reading, form string) bool {
	h := x.Header()
	etag := a.ETag(in.view, form, in.pointer, in.q, strconv.Itoa(in.offset), strconv.Itoa(in.limit))
	cache := fmt.Sprintf("private, max-age=%d", max(0, int(time.Until(a.Meta().Expires).Seconds())))
	if in.view != "summary" {
		cache += ", immutable" // data never changes; summaries do with settings
	}
	h.Set("Cache-Control", cache)
	h.Set("ETag", etag)
	if !matches(r.Header["If-None-Match"], etag) {
		return false
	}
	x.WriteHeader(http.StatusNotModified)
	return true
}

// A SearchAnswer is the answer to ?q=.
type SearchAnswer struct {
	Matches []SearchMatch `json:"matches" nullable:"false" doc:"In the order of the artifact's bytes."`
	More    bool          `json:"more" doc:"There are more than these."`
}

// A SearchMatch is a place where the text was found.
type SearchMatch struct {
	Pointer string `json:"pointer" doc:"Where the string is that has it."`
	Offset  int    `json:"offset" doc:"How many of the string's characters are before it."`
	Excerpt string `json:"excerpt" doc:"It, with 200 characters before and behind."`
	Link    string `json:"link" format:"uri-reference" doc:"That string."`
}

// writeMatches answers with where the text is found in the value.
func (in *reading) writeMatches(x *exchange, r *http.Request, ref string, v *artifacts.Value) error {
	found, more, err := v.Search(artifacts.Search{Text: in.q, Limit: max(in.limit, 0)})
	if err != nil {
		return err
	}
	answer := SearchAnswer{Matches: make([]SearchMatch, len(found)), More: more}
	for i, m := range found {
		q := url.Values{"pointer": {m.Pointer}}
		if in.view == "result" {
			q.Set("view", in.view)
		}
		answer.Matches[i] = SearchMatch{Pointer: m.Pointer, Offset: m.Offset, Excerpt: m.Excerpt, Link: artifactRef(x, r, ref) + "?" + q.Encode()}
	}
	body, err := encode(answer)
	if err != nil {
		return err
	}
	x.send(r, http.StatusOK, "application/json", body)
	return nil
}
