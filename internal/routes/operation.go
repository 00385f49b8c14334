package routes

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"mcpbridge/internal/bridge"
)

// adapter lets huma register its operations on our router.
type adapter struct{ s *server }

// Handle registers an operation, with what goes without saying: HEAD where there
// is GET, and no difference made by a slash at the end, unless the path is a file's.
func (a adapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "path" {
			names = append(names, p.Name)
		}
	}
	f := func(w http.ResponseWriter, r *http.Request) {
		w.(*exchange).enter(r, op.Path) // no middleware of the router wraps it
		for _, name := range names {
			if r.PathValue(name) == "" { // as in /tools//echo, which the router lets pass
				a.s.notFound(w, r)
				return
			}
		}
		handler(humachi.NewContext(op, r, w))
	}
	methods := []string{op.Method}
	if op.Method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, m := range methods {
		a.s.mux.MethodFunc(m, op.Path, f)
		if op.Path != "/" && path.Ext(op.Path) == "" {
			a.s.mux.MethodFunc(m, op.Path+"/", f)
		}
	}
}

func (a adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.s.ServeHTTP(w, r) }

// A handler answers a request, or returns why it cannot, having written nothing.
type handler func(x *exchange, r *http.Request) error

// register registers an operation whose handler reads and writes the bytes itself.
func (s *server) register(op huma.Operation, h handler) {
	if !op.Hidden {
		s.api.OpenAPI().AddOperation(&op)
	}
	s.api.Adapter().Handle(&op, func(ctx huma.Context) { run(ctx, h) })
}

// registerInput registers an operation whose parameters huma reads into an I, and
// refuses if they do not fit its tags.
func registerInput[I any](s *server, op huma.Operation, h func(x *exchange, r *http.Request, in *I) error) {
	huma.Register(s.api, op, func(_ context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			run(ctx, func(x *exchange, r *http.Request) error { return h(x, r, in) })
		}}, nil
	})
}

func run(ctx huma.Context, h handler) {
	r, w := humachi.Unwrap(ctx)
	x := w.(*exchange) // no middleware of the router wraps it
	if err := h(x, r); err != nil {
		x.fail(r, err)
	}
}

// notFound answers for paths that are nothing here.
func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	w.(*exchange).fail(r, &bridge.Error{
		Kind: bridge.NotFound, Op: "routes",
		Msg: "There is nothing at this path. GET /tools lists the tools; a slash in a name is written %2F there, or the tool is named by POST /tools/{handle}?tool=.",
	})
}

// methodNotAllowed answers for paths that are something, but not for this method.
func (s *server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	at := cmp.Or(r.URL.RawPath, r.URL.Path)
	var allow []string
	for _, m := range [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if s.mux.Match(chi.NewRouteContext(), m, at) {
			allow = append(allow, m)
		}
	}
	if allow == nil { // a method that the router does not know, on any path
		s.notFound(w, r)
		return
	}
	list := strings.Join(allow, ", ")
	w.Header().Set("Allow", list)
	w.(*exchange).fail(r, &bridge.Error{Kind: MethodNotAllowed, Op: "routes", Msg: "This path takes only " + list + "."})
}
