package routes

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

type artifactsInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The most artifacts in one answer; next leads to the others."`
	Cursor string `query:"cursor" doc:"Where to go on, from an answer's next."`
}

// An ArtifactList is the answer of GET /artifacts.
type ArtifactList struct {
	Artifacts []ArtifactInfo `json:"artifacts" nullable:"false" doc:"The caller's artifacts, the newest first. Nested ones are found in their parents."`
	Next      string         `json:"next,omitempty" format:"uri-reference" doc:"The next page; absent on the last."`
}

// An ArtifactInfo says what an artifact is.
type ArtifactInfo struct {
	Ref     string        `json:"ref" doc:"The artifact's reference."`
	Type    string        `json:"type" doc:"mcp, or one of the types of results that name their own."`
	Handle  string        `json:"handle" doc:"The server that made it."`
	Tool    string        `json:"tool" doc:"The tool that made it."`
	Size    int64         `json:"size" doc:"The bytes of its data."`
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires" doc:"When it is forgotten."`
	Parent  string        `json:"parent,omitempty" doc:"The artifact that it is a part of."`
	Links   ArtifactLinks `json:"links"`
}

// ArtifactLinks are relative references from the answer's URL.
type ArtifactLinks struct {
	Self    string `json:"self" format:"uri-reference" doc:"Its data."`
	Summary string `json:"summary" format:"uri-reference" doc:"Its data, with long texts cut."`
	Result  string `json:"result,omitempty" format:"uri-reference" doc:"The whole result; absent when its data is all of it."`
}

func (s *server) artifactRoutes() {
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/artifacts", OperationID: "list-artifacts", Tags: []string{"artifacts"},
		Summary:     "List the caller's artifacts",
		Description: "What the caller's calls returned and is still kept, the newest first.",
		Responses:   s.answers(s.jsonAnswer("A page of artifacts.", ArtifactList{}), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.StoreUnavailable),
	}, s.listArtifacts)
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/artifacts/{ref}", OperationID: "get-artifact", Tags: []string{"artifacts"},
		Summary:     "Fetch an artifact, or a part of it",
		Description: "The data of a result as its server sent it, byte for byte, or the value at a JSON pointer in it. The pointer can also follow the path, as in /artifacts/{ref}/content/0/text.",
		Parameters:  append([]*huma.Param{refParam}, readParams...),
		Responses:   s.readAnswers(),
	}, s.readArtifact)
	// A pointer behind the reference; a parameter of OpenAPI holds no slash, so no operation is that.
	for _, method := range [...]string{http.MethodGet, http.MethodHead} {
		s.mux.MethodFunc(method, "/artifacts/{ref}/*", func(w http.ResponseWriter, r *http.Request) {
			x := w.(*exchange)
			if r.PathValue("ref") == "" {
				s.notFound(w, r)
			} else if err := s.readArtifact(x, r); err != nil {
				x.fail(r, err)
			}
		})
	}
	s.register(huma.Operation{
		Method: http.MethodDelete, Path: "/artifacts/{ref}", OperationID: "delete-artifact", Tags: []string{"artifacts"},
		Summary:     "Forget an artifact",
		Description: "Forgets the result with all that is nested in it.",
		Parameters:  []*huma.Param{refParam},
		Responses:   s.deleteAnswers(),
	}, s.deleteArtifact)
}

func (s *server) listArtifacts(x *exchange, r *http.Request, in *artifactsInput) error {
	c, err := x.identify(r)
	if err != nil {
		return err
	}
	list := ArtifactList{Artifacts: []ArtifactInfo{}}
	if s.Artifacts != nil {
		p, err := s.Artifacts.List(r.Context(), c, in.Cursor, in.Limit)
		if err != nil {
			return err
		}
		up := root(x, r)
		for _, m := range p.Artifacts {
			list.Artifacts = append(list.Artifacts, artifactInfo(m, up))
		}
		if p.Next != "" {
			q := r.URL.Query()
			q.Set("cursor", p.Next)
			list.Next = "?" + q.Encode()
			x.Header().Set("Link", "<"+list.Next+`>; rel="next"`)
		}
	}
	return x.writeJSON(r, "", list)
}

func artifactInfo(m artifacts.Meta, up string) ArtifactInfo {
	self := up + "artifacts/" + m.Ref
	i := ArtifactInfo{
		Ref: m.Ref, Type: m.Type, Handle: m.Handle, Tool: m.Tool, Size: m.Size,
		Created: m.Created.UTC(), Expires: m.Expires.UTC(), Parent: m.Parent,
		Links: ArtifactLinks{Self: self, Summary: self + "?view=summary"},
	}
	if m.More {
		i.Links.Result = self + "?view=result"
	}
	return i
}

func (s *server) deleteArtifact(x *exchange, r *http.Request) error {
	c, err := x.identify(r)
	if err != nil {
		return err
	}
	if _, ok := pathPointer(r); ok {
		x.Header().Set("Allow", "GET, HEAD")
		return &bridge.Error{Kind: MethodNotAllowed, Op: "routes.artifact", Msg: "A slash behind the reference names a part of the artifact, and only the whole can be deleted."}
	}
	if s.Artifacts == nil {
		return noArtifact(segment(r, "ref"))
	}
	if err := s.Artifacts.Delete(r.Context(), c, segment(r, "ref")); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func noArtifact(ref string) error {
	return &bridge.Error{Kind: bridge.NotFound, Op: "routes.artifact", Msg: fmt.Sprintf("There is no artifact %q: this bridge keeps none.", cut(ref, loggedName))}
}

// pathPointer returns the JSON pointer that follows the reference in the path, and
// whether one does. Each segment is percent-decoded alone, and is then a token of the
// pointer: a slash that was escaped belongs to its key, and ~1 and ~0 are the pointer's own escapes.
func pathPointer(r *http.Request) (string, bool) {
	rest := strings.TrimPrefix(r.URL.EscapedPath(), "/artifacts/")
	_, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return "", false
	}
	var p strings.Builder
	for token := range strings.SplitSeq(rest, "/") {
		if u, err := url.PathUnescape(token); err == nil { // the server refuses a path with a broken escape
			token = u
		}
		p.WriteByte('/')
		p.WriteString(strings.ReplaceAll(token, "/", "~1"))
	}
	return p.String(), true
}

// ---- what the document says of artifacts

var refParam = param("path", "ref", "The artifact's reference, from the header Artifact-Ref or a list. «artifact:mcp~…» is understood too.")

var readParams = []*huma.Param{
	param("query", "pointer", "A JSON pointer (RFC 6901) into the data. Without one it is all of it."),
	{
		Name: "view", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"data", "summary", "result"}},
		Description: "With summary, long texts are cut and nested artifacts are references. With result it is the whole result, with the blocks beside structured content and _meta; the pointer begins there.",
	},
	number("offset", "Where a slice of a string (in characters), an array (items) or an object (keys) begins."),
	number("limit", "How long the slice is at most; with q, how many matches there are at most."),
	param("query", "q", "A text to search for, in whatever case. The answer is where it is found, with an excerpt of each place."),
	{
		Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"raw"}},
		Description: "With raw, a content block is its bytes under its own media type, whatever Accept says, and a string is its text.",
	},
	param("header", "Accept", "text/plain gives a string unquoted; the media type of a content block of bytes, before application/json, gives the bytes."),
	param("header", "Range", "One range of the bytes of a content block."),
}

func number(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}}
}

func textHeader(doc string) *huma.Header {
	return &huma.Header{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

func (s *server) readAnswers() map[string]*huma.Response {
	headers := map[string]*huma.Header{
		"Artifact-Ref":    textHeader("The artifact's reference."),
		"Artifact-Type":   textHeader("Its type."),
		"Artifact-Parent": textHeader("The artifact that it is a part of, if it is."),
		"Artifact-Total":  {Description: "Of a slice: how many characters, items or keys the whole has.", Schema: &huma.Schema{Type: huma.TypeInteger}},
		"Link":            textHeader("The next slice (next), or the whole result (alternate)."),
		"ETag":            textHeader("Of this view of the artifact."),
		"Expires":         textHeader("When the artifact is forgotten."),
	}
	ok := &huma.Response{
		Description: "The value; with q, the matches.",
		Headers:     headers,
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{}},
			"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}},
			"*/*":              {Schema: &huma.Schema{}},
		},
	}
	m := s.answers(ok, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, RangeNotSatisfiable, bridge.StoreUnavailable)
	m["206"] = &huma.Response{Description: "The range of the bytes that was asked for.", Content: map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{}}}}
	m["304"] = &huma.Response{Description: "It is what If-None-Match names."}
	return m
}

func (s *server) deleteAnswers() map[string]*huma.Response {
	m := s.answers(nil, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.StoreUnavailable)
	delete(m, "200")
	m["204"] = &huma.Response{Description: "It is forgotten."}
	return m
}
