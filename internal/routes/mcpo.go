package routes

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/web"
)

// The tree under /mcpo is for those who come from the program mcpo and for hosts
// that were made for it. It finds, checks and runs tools as everything here does;
// only what is answered has another form: mcpo_answer.go has that of results,
// mcpo_error.go that of failures. It is there only if the configuration wants
// it, and has documents of its own, so the fixed surface does not list it.

// inMCPO reports whether the path, without the base path, is in that tree.
func (s *server) inMCPO(path string) bool {
	rest, ok := strings.CutPrefix(path, "/mcpo")
	return s.MCPO && ok && (rest == "" || rest[0] == '/')
}

func (s *server) mcpoRoutes() {
	if !s.MCPO {
		return
	}
	hidden := func(method, path string, h handler, params ...*huma.Param) {
		s.register(huma.Operation{Method: method, Path: path, Hidden: true, Parameters: params}, h)
	}
	hidden(http.MethodPost, "/mcpo/{handle}/{tool}", func(x *exchange, r *http.Request) error {
		return x.invokeMCPO(r, segment(r, "handle"), segment(r, "tool"))
	}, handleParam, toolParam)
	// There a slash in a tool's name stands in the path as it is.
	s.mux.Post("/mcpo/{handle}/*", func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.enter(r, "/mcpo/{handle}/*")
		if err := x.invokeMCPO(r, segment(r, "handle"), segment(r, "*")); err != nil {
			x.fail(r, err)
		}
	})
	hidden(http.MethodGet, "/mcpo/openapi.json", s.wholeMCPO)
	hidden(http.MethodGet, "/mcpo/{handle}/openapi.json", s.handleMCPO, handleParam)
	hidden(http.MethodGet, "/mcpo/docs", func(x *exchange, r *http.Request) error {
		web.Page{Title: "MCP Bridge", Document: "openapi.json", Assets: "../docs/assets/"}.ServeHTTP(x, r)
		return nil
	})
	hidden(http.MethodGet, "/mcpo/{handle}/docs", s.serverDocs, handleParam)
}

// invokeMCPO answers a call as mcpo does. The query and Accept mean nothing there.
func (x *exchange) invokeMCPO(r *http.Request, handle, tool string) (err error) {
	c := &bridge.Call{Handle: handle, Tool: tool}
	x.call = c
	if c.Caller, err = x.identify(r); err != nil {
		return err
	}
	wait, err := x.wait(r)
	if err != nil {
		return err
	}
	if r.Header["Content-Type"] == nil {
		// It takes an undeclared body for JSON, and clients rely on that. A page of
		// another origin can send such a body too, but was refused for its origin.
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Args, err = x.readBody(r); err != nil {
		return err
	}
	a, err := x.perform(r, c, wait)
	if err != nil {
		return err
	}
	x.breach = a.Breach
	if a.Artifact != nil {
		x.named(r, a.Artifact.Ref, a.Artifact.Type)
	}
	x.send(r, http.StatusOK, "application/json", bodyMCPO(a.Result))
	return nil
}

func (s *server) wholeMCPO(x *exchange, r *http.Request) error {
	view, err := x.view(r)
	if err != nil {
		return err
	}
	form, err := profiled(r, openapi.Form{})
	if err != nil {
		return err
	}
	if err := coldStart(view.Ready, view.Servers...); err != nil {
		return err
	}
	x.writeDocument(r, s.Documents.WholeMCPO(view).Form(form))
	return nil
}

func (s *server) handleMCPO(x *exchange, r *http.Request) error {
	handle := segment(r, "handle")
	view, err := x.view(r)
	if err != nil {
		return err
	}
	form, err := profiled(r, openapi.Form{})
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
	x.writeDocument(r, s.Documents.HandleMCPO(view, handle).Form(form))
	return nil
}
