package routes

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

// Documents makes the OpenAPI documents of views of the catalogue, and keeps them.
type Documents interface {
	// Whole returns the document of all tools in the view.
	Whole(view *bridge.Snapshot) *openapi.Document
	// Handle returns the document of one server, or nil if the view has no such server.
	Handle(view *bridge.Snapshot, handle string) *openapi.Document
}

var _ Documents = (*openapi.Documents)(nil)

func (s *server) documentRoutes() {
	for _, f := range []struct {
		ext, name, mediaType string
		encode               func(*openapi.Document) openapi.Encoded
	}{
		{"json", "JSON", "application/json", (*openapi.Document).JSON},
		{"yaml", "YAML", "application/yaml", (*openapi.Document).YAML},
	} {
		ok := &huma.Response{
			Description: "The document.",
			Headers:     map[string]*huma.Header{"ETag": {Description: "Names these bytes.", Schema: &huma.Schema{Type: huma.TypeString}}},
			Content:     map[string]*huma.MediaType{f.mediaType: {Schema: &huma.Schema{}}},
		}
		handles := param("query", "handles", "Only the tools of these servers, by their handles with commas between. An empty list is none; a handle that is not there, or not visible, is left out.")
		s.register(huma.Operation{
			Method: http.MethodGet, Path: "/openapi." + f.ext, OperationID: "get-openapi-" + f.ext, Tags: []string{"documents"},
			Summary:     "Get the document of all tools, as " + f.name,
			Description: "The OpenAPI 3.1 document of all tools that the caller may call.",
			Parameters:  []*huma.Param{handles},
			Responses:   notModified(s.answers(ok, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotReady)),
		}, func(x *exchange, r *http.Request) error {
			view, err := x.view(r)
			if err != nil {
				return err
			}
			if err := coldStart(view.Ready, view.Servers...); err != nil {
				return err
			}
			x.writeDocument(r, f.encode(s.Documents.Whole(view)))
			return nil
		})
		s.register(huma.Operation{
			Method: http.MethodGet, Path: "/tools/{handle}/openapi." + f.ext, OperationID: "get-server-openapi-" + f.ext, Tags: []string{"documents"},
			Summary:     "Get the document of one server's tools, as " + f.name,
			Description: "The OpenAPI 3.1 document of one server's tools. Its paths are relative to /tools/{handle}.",
			Parameters:  []*huma.Param{handleParam},
			Responses:   notModified(s.answers(ok, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.NotReady)),
		}, func(x *exchange, r *http.Request) error {
			handle := segment(r, "handle")
			view, err := x.view(r)
			if err != nil {
				return err
			}
			srv := view.Server(handle)
			if srv == nil {
				return unknownServer(handle)
			}
			if err := coldStart(view.Ready, srv); err != nil {
				return err
			}
			x.writeDocument(r, f.encode(s.Documents.Handle(view, handle)))
			return nil
		})
	}
}

// coldStart refuses a document that would lack a server which has neither
// answered nor failed yet. A consumer takes what it gets for the whole, and would
// believe that there are no such tools.
func coldStart(ready bool, servers ...*bridge.Server) error {
	if ready {
		return nil
	}
	for _, srv := range servers {
		if srv.State == bridge.Connecting && srv.Listed.IsZero() {
			return &bridge.Error{
				Kind: bridge.NotReady, Op: "routes.document", RetryAfter: time.Second,
				Msg: "The bridge has just been started, and servers of this document have not answered yet; try again in a moment.",
			}
		}
	}
	return nil
}

func (x *exchange) writeDocument(r *http.Request, doc openapi.Encoded) {
	x.Header().Set("Vary", "Accept-Encoding")
	p := page{mediaType: doc.ContentType, etag: doc.ETag, body: doc.Body}
	if acceptsGzip(r.Header) && len(doc.Body) > 1024 {
		// A strong tag names the bytes that are sent, so each encoding has its own.
		p.etag = doc.ETag[:len(doc.ETag)-1] + `-gzip"`
		p.encoding = "gzip"
		p.body = x.s.zipped.get(doc.ETag, doc.Body)
	}
	p.write(x, r)
}

// notModified adds the answer to a conditional request.
func notModified(m map[string]*huma.Response) map[string]*huma.Response {
	m["304"] = &huma.Response{Description: "The caller has these bytes, by If-None-Match."}
	return m
}
