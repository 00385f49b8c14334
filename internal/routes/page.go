package routes

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/web"
)

func (s *server) pageRoutes() {
	for _, p := range []struct {
		path, id, of string
		page         web.Page
	}{
		{"/docs", "get-docs", "all tools", web.Page{Title: "MCP Bridge", Document: "openapi.json", Assets: "docs/assets/"}},
		{"/docs/bridge", "get-bridge-docs", "the bridge's own operations", web.Page{Title: "MCP Bridge: its own operations", Document: "../openapi-bridge.json", Assets: "assets/"}},
	} {
		s.register(huma.Operation{
			Method: http.MethodGet, Path: p.path, OperationID: p.id, Tags: []string{"documents"},
			Summary:     "See the document of " + p.of,
			Description: "A page that shows the document and can make its requests.",
			Responses:   s.answers(htmlAnswer("The page.")),
		}, func(x *exchange, r *http.Request) error {
			p.page.ServeHTTP(x, r)
			return nil
		})
	}
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/tools/{handle}/docs", OperationID: "get-server-docs", Tags: []string{"documents"},
		Summary:     "See the document of one server's tools",
		Description: "A page that shows the document and can make its requests.",
		Parameters:  []*huma.Param{handleParam},
		Responses:   s.answers(htmlAnswer("The page."), bridge.NotFound),
	}, s.serverDocs)

	assets := web.Assets(http.HandlerFunc(s.notFound))
	s.register(huma.Operation{Method: http.MethodGet, Path: "/docs/assets/{name}", Hidden: true}, func(x *exchange, r *http.Request) error {
		assets.ServeHTTP(x, r)
		return nil
	})
}

// serverDocs is open to all, since a browser that is led to a page sends no
// credential: a caller that has none gets the page whether there is such a server
// or not, and all that is in it comes with the document.
func (s *server) serverDocs(x *exchange, r *http.Request) error {
	handle := segment(r, "handle")
	title := handle
	if c, err := x.identify(r); err == nil {
		srv := s.Bridge.View(c).Server(handle)
		if srv == nil {
			return unknownServer(handle)
		}
		title = srv.Title
	}
	web.Page{Title: title, Document: "openapi.json", Assets: "../../docs/assets/"}.ServeHTTP(x, r)
	return nil
}

func htmlAnswer(description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}
