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
	// WholeMCPO and HandleMCPO return the same in mcpo's shapes.
	WholeMCPO(view *bridge.Snapshot) *openapi.Document
	HandleMCPO(view *bridge.Snapshot, handle string) *openapi.Document
}

var _ Documents = (*openapi.Documents)(nil)

func (s *server) documentRoutes() {
	handles := param("query", "handles", "Only the tools of these servers, by their handles with commas between. An empty list is none; a handle that is not there, or not visible, is left out.")
	profile := &huma.Param{
		Name: "profile", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"flat"}},
		Description: "flat writes the schemas of tools without references, recursion to a few levels, and what a body composes at its top as plain properties: for tool hosts that hardly resolve references.",
	}
	for _, f := range []struct {
		version, suffix, id string // in the text, the path and the operation's id
		ext, name           string
		form                openapi.Form
	}{
		{"3.1", "", "", "json", "JSON", openapi.Form{}},
		{"3.1", "", "", "yaml", "YAML", openapi.Form{YAML: true}},
		{"3.0", "-3.0", "-3-0", "json", "JSON", openapi.Form{Older: true}},
		{"3.0", "-3.0", "-3-0", "yaml", "YAML", openapi.Form{Older: true, YAML: true}},
	} {
		ok := &huma.Response{
			Description: "The document.",
			Headers:     map[string]*huma.Header{"ETag": {Description: "Names these bytes.", Schema: &huma.Schema{Type: huma.TypeString}}},
			Content:     map[string]*huma.MediaType{"application/" + f.ext: {Schema: &huma.Schema{}}},
		}
		what := f.name
		if f.form.Older {
			what = "OpenAPI " + f.version + " and " + f.name
		}
		s.register(huma.Operation{
			Method: http.MethodGet, Path: "/openapi" + f.suffix + "." + f.ext, OperationID: "get-openapi" + f.id + "-" + f.ext, Tags: []string{"documents"},
			Summary:     "Get the document of all tools, as " + what,
			Description: "The OpenAPI " + f.version + " document of all tools that the caller may call.",
			Parameters:  []*huma.Param{handles, profile},
			Responses:   notModified(s.answers(ok, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotReady)),
		}, func(x *exchange, r *http.Request) error {
			view, err := x.view(r)
			if err != nil {
				return err
			}
			form, err := profiled(r, f.form)
			if err != nil {
				return err
			}
			if err := coldStart(view.Ready, view.Servers...); err != nil {
				return err
			}
			x.writeDocument(r, s.Documents.Whole(view).Form(form))
			return nil
		})
		s.register(huma.Operation{
			Method: http.MethodGet, Path: "/tools/{handle}/openapi" + f.suffix + "." + f.ext, OperationID: "get-server-openapi" + f.id + "-" + f.ext, Tags: []string{"documents"},
			Summary:     "Get the document of one server's tools, as " + what,
			Description: "The OpenAPI " + f.version + " document of one server's tools. Its paths are relative to /tools/{handle}.",
			Parameters:  []*huma.Param{handleParam, profile},
			Responses:   notModified(s.answers(ok, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.NotReady)),
		}, func(x *exchange, r *http.Request) error {
			handle := segment(r, "handle")
			view, err := x.view(r)
			if err != nil {
				return err
			}
			form, err := profiled(r, f.form)
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
			x.writeDocument(r, s.Documents.Handle(view, handle).Form(form))
			return nil
		})
	}
}

// profiled is the form that the query asks for.
func profiled(r *http.Request, f openapi.Form) (openapi.Form, error) {
	q, err := query(r)
	if err != nil {
		return f, err
	}
	switch q.Get("profile") {
	case "":
	case "flat":
		f.Flat = true
	default:
		return f, &bridge.Error{Kind: bridge.Malformed, Op: "routes.document", Msg: "The only profile of a document is flat."}
	}
	return f, nil
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
