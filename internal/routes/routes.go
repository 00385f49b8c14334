// Package routes serves the bridge over HTTP.
//
// Start with [New] and [server.ServeHTTP], which is the way of every request in
// the order of its steps; routes lists the operations, call.go holds the one that
// runs a tool, and problem.go the one table from a kind of error to what a caller
// sees of it.
//
// The routes are fixed: a tool that comes or goes changes documents, never the
// router. Every operation is one of huma's, so that the surface has a document
// of its own ([FixedOpenAPI]); those whose bytes are ours to read and write take
// the request itself, the others take huma's typed input.
package routes

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/jobs"
)

// Options say what to serve, and to whom. Bridge and Documents must be set.
type Options struct {
	Bridge    *bridge.Bridge
	Documents Documents
	Log       *slog.Logger // nil logs nothing

	Version  string   // of the bridge, for people; "" shows none
	BasePath string   // path in front of all of ours, like "/bridge"; "" is none
	Loopback bool     // only this machine can connect, so only its own names are right in Host
	Hosts    []string // names allowed in Host; on loopback beside its own. None elsewhere allows any.
	Origins  []string // origins whose pages may call from a browser (CORS), like "https://app.example.com", or "*"; none is none

	RequestBytes int64         // most bytes in a request's body; zero is 4 MiB
	BodyTimeout  time.Duration // most time for a request's body to arrive; zero is a minute
	WriteTimeout time.Duration // most time for a caller to take the next piece of a large answer; zero is 30 s
	MaxTimeout   time.Duration // most time a caller can ask for by "Prefer: wait"; zero is 10 minutes

	// Ready reports whether to send requests here: the catalogue has been read, or
	// was waited for long enough, and the process is not about to end. Nil is always.
	Ready func() bool
	// Status takes the snapshot that GET /status answers; its slices are the handler's. Nil is an empty one.
	Status func() Status
	// Caller finds out who makes a request, or why it cannot. Nil takes everybody as an anonymous caller with all scopes.
	Caller func(*http.Request) (bridge.Caller, error)
	// Admin changes the configuration. Nil is none.
	Admin Admin
	// MCPO serves the tools under /mcpo too, in the shapes of the program mcpo.
	MCPO bool
	// Allowance tells what a caller has left of its rate, or that it has none. Nil tells nobody.
	Allowance func(bridge.Caller) (identity.Allowance, bool)
	// Metrics answers scrapes at /metrics; nil is nothing there. Observe, if set, is told of each call that
	// has ended: its server, if that is one of ours, and the problem's code, if there was one.
	Metrics http.Handler
	Observe func(server string, code bridge.Kind, took time.Duration)
	// Trace, if set, begins the span of a request that has begun then and that came with the trace in, which may be
	// none; it returns the trace that the request's calls are to be part of, and end is told how the request ended. Nil passes the trace on as it came.
	Trace func(in bridge.Trace, method, route string, began time.Time) (t bridge.Trace, end func(status int, code bridge.Kind, id string))
	// Jobs runs the calls that outlast their request, and those that are answered as events. Nil has every call wait.
	Jobs *jobs.Manager
	// Artifacts has the results that can be fetched again at /artifacts, so answers refer to that. Nil is none.
	Artifacts *artifacts.Keeper
	// Console has the calls that have ended lately, for the page at the root. Nil keeps those that come here.
	Console *Console
	// MCP serves MCP clients at /mcp, for the caller that was identified, as part of the trace. Nil is none.
	MCP func(w http.ResponseWriter, r *http.Request, c bridge.Caller, t bridge.Trace)
}

// server is the handler that New returns.
type server struct {
	Options
	log    *slog.Logger
	origin *http.CrossOriginProtection
	hosts  map[string]bool // lower case, with a port where the option has one
	cors   cors
	mux    *chi.Mux
	api    huma.API
	zipped zipCache

	strangers *strangers
}

// New returns the handler of everything that the bridge serves.
func New(o Options) http.Handler { return newServer(o) }

func newServer(o Options) *server {
	o.BasePath = strings.TrimRight(o.BasePath, "/")
	o.RequestBytes = cmp.Or(o.RequestBytes, 4<<20)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, 10*time.Minute)
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	if o.Status == nil {
		o.Status = func() Status { return Status{Endpoints: []EndpointStatus{}, Gates: []GateStatus{}} }
	}
	if o.Console == nil {
		o.Console = NewConsole()
	}
	if o.Caller == nil {
		o.Caller = func(*http.Request) (bridge.Caller, error) { return bridge.Caller{Scopes: bridge.AllScopes}, nil }
	}
	s := &server{
		Options: o,
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		origin:  http.NewCrossOriginProtection(),
		hosts:   make(map[string]bool, len(o.Hosts)),
		cors:    newCORS(o.Origins),
		mux:     chi.NewMux(),
	}
	s.strangers = &strangers{log: s.log}
	for _, h := range o.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	s.mux.NotFound(s.notFound)
	s.mux.MethodNotAllowed(s.methodNotAllowed)
	s.api = huma.NewAPI(apiConfig(), adapter{s})
	s.routes()
	return s
}

// routes registers every operation. Where two patterns fit a path, a fixed
// segment goes before a name: "docs" and "openapi.json" are pages for GET, and
// tools like any other for POST.
func (s *server) routes() {
	s.callRoutes()      // POST /tools/{handle}/{tool}, POST /tools/{handle}?tool=
	s.mcpoRoutes()      // /mcpo…
	s.catalogueRoutes() // GET /tools…
	s.resourceRoutes()  // GET /resources/{handle}…
	s.promptRoutes()    // GET, POST /prompts/{handle}, POST /prompts/{handle}/{prompt}
	s.completeRoutes()  // POST /complete/{handle}
	s.artifactRoutes()  // GET, DELETE /artifacts…
	s.jobRoutes()       // GET, DELETE /jobs…, POST /jobs/{id}/input
	s.documentRoutes()  // GET /openapi.json …
	s.pageRoutes()      // GET /docs …
	s.fixedRoutes()     // GET /openapi-bridge.json
	s.consoleRoutes()   // GET /, /console/events
	s.healthRoutes()    // GET /healthz, /readyz
	s.statusRoutes()    // GET /status
	s.adminRoutes()     // GET, PUT, DELETE, POST /admin…
	s.problemRoutes()   // GET /problems/{slug}
	s.mcpRoutes()       // /mcp
}

// nosniff is shared by all answers, and so never appended to.
var nosniff = []string{"nosniff"}

// ServeHTTP is the way of every request. CORS, when there is one, goes before the
// checks, since a browser must be able to read a refusal too.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(s, w, r)
	defer func() { x.end(r, recover()) }()

	// On every answer: no browser may take it for another type than it says.
	x.Header()["X-Content-Type-Options"] = nosniff
	if x.cors(r) {
		return
	}
	inside, ok := s.stripBase(x, r)
	if !ok {
		s.notFound(x, r)
		return
	}
	x.mcpo = s.inMCPO(inside.URL.Path)
	if err := s.checkHost(inside); err != nil {
		x.fail(inside, err)
		return
	}
	if err := s.checkOrigin(inside); err != nil {
		x.fail(inside, err)
		return
	}
	s.mux.ServeHTTP(x, inside)
}
