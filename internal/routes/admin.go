package routes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// An Admin changes the configuration while the bridge runs. Its errors are of
// package bridge: NotFound, Forbidden, PreconditionFailed with the member "version",
// InvalidArguments with the members "errors" and "count", or StoreUnavailable.
type Admin interface {
	// Servers returns every server of the configuration, by handle and then by user.
	Servers() []AdminServer
	// Put makes the entry the server's, and returns when it is in use.
	Put(ctx context.Context, by bridge.Caller, key AdminKey, entry []byte, p Precondition) (s AdminServer, created bool, err error)
	// Delete takes the server away, and returns when no new call goes to it.
	Delete(ctx context.Context, by bridge.Caller, key AdminKey, p Precondition) error
	// Reset closes the circuits of the server's endpoints.
	Reset(by bridge.Caller, handle string) error
}

// An AdminKey names a server of the configuration: everybody's, or one user's own.
type AdminKey struct{ Handle, User, Tenant string }

// A Precondition is which version a request is for. The zero value is any, or none.
type Precondition struct {
	Versions []string // If-Match: one of these; "*" is any that is there
	New      bool     // If-None-Match: *
}

// An AdminServer is one server of the configuration.
type AdminServer struct {
	Handle      string          `json:"handle"`
	User        string          `json:"user,omitempty" doc:"Whose own server it is; absent for everybody's."`
	Tenant      string          `json:"tenant,omitempty" doc:"The user's tenant."`
	Source      string          `json:"source" doc:"Where it comes from: file, redis, state file, or command line."`
	Version     string          `json:"version,omitempty" doc:"Of an entry that can be changed here: what ETag says. Absent for others."`
	Fingerprint string          `json:"fingerprint,omitempty" doc:"A digest of all that the entry says, secrets included."`
	Shadowed    bool            `json:"shadowed,omitempty" doc:"The configuration file has a server of this handle, which is the one in use."`
	Errors      []AdminProblem  `json:"errors,omitempty" doc:"Why a kept entry is not in use."`
	Warnings    []AdminProblem  `json:"warnings,omitempty" doc:"What has no effect in the entry."`
	State       string          `json:"state,omitempty" doc:"How the server is, after it was put; GET /tools/{handle} says it at any time."`
	LastError   string          `json:"last_error,omitempty" doc:"Why it is not ready, after it was put."`
	Entry       json.RawMessage `json:"entry,omitempty" doc:"What it says beside the defaults, with [hidden] in place of secrets: values of headers and env, credentials, the proxy, a URL's query, and all that the file takes from elsewhere."`
}

// An AdminProblem is one thing about an entry.
type AdminProblem struct {
	Pointer string `json:"pointer" doc:"A JSON pointer into the entry; empty for the entry as a whole."`
	Message string `json:"message"`
}

// An AdminList is the answer of GET /admin/servers.
type AdminList struct {
	Servers []AdminServer `json:"servers" nullable:"false"`
}

func (s *server) adminRoutes() {
	tags := []string{"administration"}
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/admin/servers", OperationID: "list-configured-servers", Tags: tags,
		Summary:     "List the configured servers",
		Description: "All of them: those of the configuration file, those that were put here, and users' own. How they are is at /tools and /status.",
		Responses:   s.answers(s.jsonAnswer("The servers.", AdminList{}), Unauthenticated, bridge.Forbidden, bridge.NotFound),
	}, s.showServers)
	for _, p := range []struct{ path, id, what, doc string }{
		{"/admin/servers/{handle}", "configured-server", "a server", "A server for everybody."},
		{"/admin/users/{user}/servers/{handle}", "configured-user-server", "a user's own server", "A server of one user's own, which that user sees in place of everybody's server of the same handle."},
	} {
		params := []*huma.Param{handleParam}
		if p.id == "configured-user-server" {
			params = []*huma.Param{
				param("path", "user", "The user, percent-encoded."), handleParam,
				param("query", "tenant", "The user's tenant; without it, a user who has none."),
			}
		}
		common := []bridge.Kind{bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound}
		changes := append(slices.Clip(common), PreconditionFailed, bridge.StoreUnavailable)
		get := s.answers(s.jsonAnswer("The server.", AdminServer{}), common...)
		get["200"].Headers = map[string]*huma.Header{"ETag": textHeader("The version, if the entry can be changed here.")}
		get["304"] = &huma.Response{Description: "It is what If-None-Match names."}
		s.register(huma.Operation{
			Method: http.MethodGet, Path: p.path, OperationID: "get-" + p.id, Tags: tags,
			Summary: "See how " + p.what + " is configured", Description: p.doc, Parameters: params, Responses: get,
		}, s.showServer)

		put := s.answers(s.jsonAnswer("It is changed, and in use.", AdminServer{}), append(changes, TooLarge, UnsupportedMediaType, bridge.InvalidArguments)...)
		put["200"].Headers = get["200"].Headers
		created := *put["200"]
		created.Description = "It is new, and in use."
		put["201"] = &created
		s.register(huma.Operation{
			Method: http.MethodPut, Path: p.path, OperationID: "put-" + p.id, Tags: tags,
			Summary:     "Configure " + p.what,
			Description: p.doc + " The body is an entry as in the configuration file, as JSON, but nothing in it is a reference: ${…} stays as it is written. Servers with a command, and paths of files, are refused unless the bridge allows them. Other bridges that share its Redis follow.",
			Parameters: append(slices.Clip(params),
				param("header", "If-Match", "The version that is to be replaced, as an entity tag."),
				param("header", "If-None-Match", "With *, there must be no such entry yet.")),
			RequestBody: &huma.RequestBody{Required: true, Description: "The entry.", Content: map[string]*huma.MediaType{"application/json": {
				Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
			}}},
			Responses: put,
		}, s.putServer)

		del := s.answers(nil, changes...)
		delete(del, "200")
		del["204"] = &huma.Response{Description: "It is gone."}
		s.register(huma.Operation{
			Method: http.MethodDelete, Path: p.path, OperationID: "delete-" + p.id, Tags: tags,
			Summary: "Take " + p.what + " away", Description: "No new call goes to it; those that are under way may end.",
			Parameters: append(slices.Clip(params), param("header", "If-Match", "The version that is to be deleted, as an entity tag.")),
			Responses:  del,
		}, s.deleteServer)
	}
	reset := s.answers(nil, Unauthenticated, bridge.Forbidden, bridge.NotFound)
	delete(reset, "200")
	reset["204"] = &huma.Response{Description: "Calls go to it again."}
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/admin/servers/{handle}/reset", OperationID: "reset-server", Tags: tags,
		Summary:     "Close a server's circuit",
		Description: "For when a server has been mended and is not to be waited for: calls that would fail fast go to it again.",
		Parameters:  []*huma.Param{handleParam}, Responses: reset,
	}, s.resetServer)
}

// admin finds out who makes a request to the administration, which must be there.
func (x *exchange) admin(r *http.Request) (bridge.Caller, Admin, error) {
	c, err := x.requires(r, bridge.ScopeAdmin)
	if err == nil && x.s.Admin == nil {
		err = &bridge.Error{Kind: bridge.NotFound, Op: "routes.admin", Msg: "This bridge has no administration."}
	}
	return c, x.s.Admin, err
}

func (s *server) showServers(x *exchange, r *http.Request) error {
	_, a, err := x.admin(r)
	if err != nil {
		return err
	}
	body, err := encode(AdminList{Servers: a.Servers()})
	if err != nil {
		return err
	}
	page{mediaType: "application/json", etag: tagOf(body), body: body}.write(x, r)
	return nil
}

func (s *server) showServer(x *exchange, r *http.Request) error {
	_, a, err := x.admin(r)
	if err != nil {
		return err
	}
	key, err := adminKey(r)
	if err != nil {
		return err
	}
	// Everybody's servers of one handle can be two: the one of the file is in use.
	for _, srv := range a.Servers() {
		if srv.Handle == key.Handle && srv.User == key.User && srv.Tenant == key.Tenant && !srv.Shadowed {
			return srv.write(x, r, http.StatusOK)
		}
	}
	return &bridge.Error{Kind: bridge.NotFound, Op: "routes.admin", Msg: fmt.Sprintf("There is no server %.200q of that kind; GET /admin/servers lists them.", key.Handle)}
}

func (s *server) putServer(x *exchange, r *http.Request) error {
	c, a, err := x.admin(r)
	if err != nil {
		return err
	}
	key, err := adminKey(r)
	if err != nil {
		return err
	}
	cond, err := precondition(r)
	if err != nil {
		return err
	}
	body, err := x.readBody(r)
	if err != nil {
		return err
	}
	if err := raw.Check(body, maxEntryDepth); err != nil {
		return &bridge.Error{Kind: bridge.Malformed, Op: "routes.admin", Msg: fmt.Sprintf("The entry must be one JSON object: %v.", err), Err: err}
	}
	srv, created, err := a.Put(r.Context(), c, key, body, cond)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return srv.write(x, r, status)
}

// maxEntryDepth bounds the nesting of an entry, whose own is less than ten.
const maxEntryDepth = 100

func (s *server) deleteServer(x *exchange, r *http.Request) error {
	c, a, err := x.admin(r)
	if err != nil {
		return err
	}
	key, err := adminKey(r)
	if err != nil {
		return err
	}
	cond, err := precondition(r)
	if err != nil {
		return err
	}
	if cond.New {
		return &bridge.Error{Kind: bridge.Malformed, Op: "routes.admin", Msg: "What is not there cannot be deleted: leave If-None-Match out."}
	}
	if err := a.Delete(r.Context(), c, key, cond); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) resetServer(x *exchange, r *http.Request) error {
	c, a, err := x.admin(r)
	if err != nil {
		return err
	}
	if err := a.Reset(c, segment(r, "handle")); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// write answers with the server, whose version is its entity tag.
func (a AdminServer) write(x *exchange, r *http.Request, status int) error {
	body, err := encode(a)
	if err != nil {
		return err
	}
	etag := ""
	if a.Version != "" {
		etag = `"` + a.Version + `"`
	}
	if status == http.StatusOK && r.Method != http.MethodPut {
		page{mediaType: "application/json", etag: etag, body: body}.write(x, r)
		return nil
	}
	if etag != "" {
		x.Header().Set("ETag", etag)
	}
	x.Header().Set("Cache-Control", "no-store")
	x.send(r, status, "application/json", body)
	return nil
}

// adminKey reads which server a path names. A query key that is none of ours is
// refused: a mistyped tenant must not change another user's server.
func adminKey(r *http.Request) (AdminKey, error) {
	key := AdminKey{Handle: segment(r, "handle"), User: segment(r, "user")}
	q, err := query(r)
	if err != nil {
		return key, err
	}
	for k := range q {
		if k != "tenant" || key.User == "" {
			return key, &bridge.Error{Kind: bridge.Malformed, Op: "routes.admin", Msg: fmt.Sprintf("The query key %.100q is unknown; the server of a user takes tenant.", k)}
		}
	}
	key.Tenant = q.Get("tenant")
	for _, name := range [...]string{key.User, key.Tenant} { // no key or token can have such a one
		if strings.ContainsFunc(name, unicode.IsControl) {
			return key, &bridge.Error{Kind: bridge.Malformed, Op: "routes.admin", Msg: fmt.Sprintf("%.100q is no name of a user or a tenant: it holds control characters.", name)}
		}
	}
	return key, nil
}

// precondition reads which version a change is for.
func precondition(r *http.Request) (Precondition, error) {
	var p Precondition
	if values := r.Header["If-Match"]; values != nil {
		p.Versions = []string{}
		for _, v := range values {
			for tag := range strings.SplitSeq(v, ",") {
				tag = strings.TrimSpace(tag)
				if tag == "*" || len(tag) > 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
					p.Versions = append(p.Versions, strings.Trim(tag, `"`))
				} // a weak tag never matches (RFC 9110 section 13.1.1)
			}
		}
	}
	switch values := r.Header["If-None-Match"]; {
	case values == nil:
	case len(values) == 1 && strings.TrimSpace(values[0]) == "*" && p.Versions == nil:
		p.New = true
	default:
		return p, &bridge.Error{Kind: bridge.Malformed, Op: "routes.admin", Msg: "If-None-Match takes only * here, and not beside If-Match."}
	}
	return p, nil
}
