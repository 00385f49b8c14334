package routes

import (
	"bytes"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/web"
)

func (s *server) consoleRoutes() {
	s.register(huma.Operation{Method: http.MethodGet, Path: "/", Hidden: true}, s.front)
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/console/events", OperationID: "get-console-events", Tags: []string{"operations"},
		Summary: "See live how everything is",
		Description: "What the page at the root shows, as server-sent events: snapshot with servers, circuits, gates and the latest calls, at most once a second and only when something has changed, and tools with their names. " +
			"Servers, circuits and gates are those that the caller may see, and calls its own; a caller with the scope admin sees those of all. The stream ends when the caller may no longer look. Its form may change with each version; GET /status and /tools are for programs.",
		Responses: s.answers(eventsAnswer, Unauthenticated, bridge.Forbidden, bridge.Overloaded, bridge.NotReady),
	}, s.consoleEvents)
}

// front is the page at the root, which is open to all: what it shows comes by its events.
func (s *server) front(x *exchange, r *http.Request) error {
	web.Console{Version: s.Version, Root: root(x, r)}.ServeHTTP(x, r)
	return nil
}

// looker finds out who makes the request, who must be allowed to see the status.
func (x *exchange) looker(r *http.Request) (bridge.Caller, error) {
	c, err := x.requires(r, 0)
	if err != nil || c.Scopes.Has(bridge.ScopeAdmin) {
		return c, err
	}
	return c, identity.Require(c, bridge.ScopeCall)
}

// consoleEvents sends the visitor what is to be seen, until it goes away, may no longer
// look, or the bridge stops. Who it is, and so what it may see, is asked anew each second.
func (s *server) consoleEvents(x *exchange, r *http.Request) error {
	c, err := x.looker(r)
	if err != nil {
		return err
	}
	leave := s.Console.enter(c.Scopes.Has(bridge.ScopeAdmin))
	if leave == nil {
		return &bridge.Error{
			Kind: bridge.Overloaded, Op: "routes.console", RetryAfter: 10 * time.Second,
			Msg: "Too many are looking at the console just now; try again in a moment.",
		}
	}
	defer leave()
	select {
	case <-s.Console.ended:
		return &bridge.Error{Kind: bridge.NotReady, Op: "routes.console", RetryAfter: time.Second, Msg: "The bridge is about to stop."}
	default:
	}
	if r.Method == http.MethodHead {
		x.Header().Set("Content-Type", "text/event-stream")
		x.WriteHeader(http.StatusOK)
		return nil
	}
	st := x.events()
	defer st.end()
	tick := time.NewTicker(freshFor)
	defer tick.Stop()
	var shown shownSight
	for {
		if err := shown.show(st, s.Console.look(s.Status).sight(s, c)); err != nil {
			x.note(err) // the answer has begun, so only the log can tell
			return nil
		}
		if st.err != nil {
			return nil // the reader is gone, or too slow
		}
		select {
		case <-tick.C:
		case <-s.Console.ended:
			return nil
		case <-r.Context().Done():
			return nil
		}
		if c, err = x.looker(r); err != nil {
			return nil // it will be told when it comes again
		}
	}
}

// A shownSight is what a stream has sent.
type shownSight struct {
	snapshot, tools []byte
	who             visitor   // as whom it got the tools
	version         uint64    // of the catalogue that these are of
	quiet           time.Time // since when nothing was sent
}

// show sends what is new in a sight, or from time to time that there is nothing.
func (sh *shownSight) show(st *eventStream, now *sight) error {
	snapshot, err := now.snapshot()
	if err != nil {
		return err
	}
	if version := now.view().Version; sh.tools == nil || version != sh.version || now.who != sh.who {
		tools, err := now.tools()
		if err != nil {
			return err
		}
		if !bytes.Equal(tools, sh.tools) {
			st.bytes(0, "tools", tools)
			sh.quiet = time.Now()
		}
		sh.tools, sh.version, sh.who = tools, version, now.who
	}
	switch {
	case !bytes.Equal(snapshot, sh.snapshot):
		sh.snapshot = snapshot
		// The reader's clock may be another one: ages and waits are counted from this.
		st.bytes(0, "snapshot", append([]byte(`{"now":"`+time.Now().UTC().Format(time.RFC3339Nano)+`",`), snapshot[1:]...))
		sh.quiet = time.Now()
	case time.Since(sh.quiet) >= heartbeat:
		st.write([]byte(": still here\n\n"))
		sh.quiet = time.Now()
	}
	return nil
}
