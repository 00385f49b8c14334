package routes

import (
	"slices"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

// A consoleSnapshot is all that the console shows at one moment, but for the names of tools. Times are
// moments rather than ages, so that it changes only when something does.
type consoleSnapshot struct {
	Version      string            `json:"version,omitempty"`
	Ready        bool              `json:"ready"`
	Everybody    bool              `json:"everybody"` // the calls are those of all callers
	Waiting      int               `json:"waiting"`
	Processes    int               `json:"processes"`
	MaxProcesses int               `json:"max_processes"`
	Config       *consoleConfig    `json:"config,omitempty"`
	Servers      []consoleServer   `json:"servers"`
	Circuits     []consoleCircuit  `json:"circuits"`
	Gates        []GateStatus      `json:"gates"`
	Calls        []consoleCall     `json:"calls"`
	Artifacts    *consoleArtifacts `json:"artifacts,omitempty"`
}

// A consoleConfig says what is wrong with the configuration.
type consoleConfig struct {
	Stale   bool     `json:"stale"`
	Errors  []string `json:"errors,omitempty"`
	Restart []string `json:"restart,omitempty"`
}

// consoleArtifacts say whether results are kept.
type consoleArtifacts struct {
	Store string `json:"store"`
	Down  bool   `json:"down"`
}

// A consoleServer is one server that the visitor may see.
type consoleServer struct {
	Handle     string         `json:"handle"`
	Title      string         `json:"title"`
	State      bridge.State   `json:"state"`
	LastError  string         `json:"last_error,omitempty"`
	Since      *time.Time     `json:"since,omitempty"`
	Next       *time.Time     `json:"next,omitempty"` // when it is tried again in the background
	Tools      int            `json:"tools"`
	Connection string         `json:"connection,omitempty"`
	Circuit    *CircuitStatus `json:"circuit,omitempty"`
	Docs       string         `json:"docs"` // from the root
}

// A consoleCircuit is the circuit of one endpoint.
type consoleCircuit struct {
	Name    string   `json:"name"`
	Handles []string `json:"handles"`
	CircuitStatus
}

// A consoleCall is a call that has ended.
type consoleCall struct {
	At     time.Time   `json:"at"`
	ID     string      `json:"id"`
	Handle string      `json:"handle"`
	Kind   string      `json:"kind"`
	Name   string      `json:"name"`
	Status int         `json:"status,omitempty"`
	Code   bridge.Kind `json:"code,omitempty"`
	Millis float64     `json:"ms"`
	In     int64       `json:"in"`
	Out    int64       `json:"out"`
}

// consoleTools are the tools of one server, each with the name of its operation in the server's document.
type consoleTools struct {
	Handle string      `json:"handle"`
	Tools  [][2]string `json:"tools"`
}

// A visitor is everything that decides what somebody sees, so that those who see the same share it.
type visitor struct {
	owner  bridge.Owner
	scopes bridge.Scopes
	rule   *bridge.Rule
}

// A sight is what one look shows to one visitor. Each part is made when it is first asked for.
type sight struct {
	who      visitor
	view     func() *bridge.Snapshot
	snapshot func() ([]byte, error) // a consoleSnapshot
	tools    func() ([]byte, error) // of consoleTools
}

// sight returns what the look shows to a caller.
func (l *look) sight(s *server, c bridge.Caller) *sight {
	who := visitor{c.Owner(), c.Scopes, c.Rule}
	if len(c.Headers) > 0 { // servers may be connected by these
		return l.sightOf(s, c, who)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[who] == nil {
		l.seen[who] = l.sightOf(s, c, who)
	}
	return l.seen[who]
}

func (l *look) sightOf(s *server, c bridge.Caller, who visitor) *sight {
	view := sync.OnceValue(func() *bridge.Snapshot { return s.Bridge.View(c) })
	return &sight{
		who: who, view: view,
		snapshot: sync.OnceValues(func() ([]byte, error) { return encode(l.snapshot(s, c, view())) }),
		tools:    sync.OnceValues(func() ([]byte, error) { return encode(toolsOf(view())) }),
	}
}

// snapshot is what a caller may know: the servers by the predicate of lists, circuits and gates as
// in /status, and of the calls its own; with the scope admin those of everybody.
func (l *look) snapshot(s *server, c bridge.Caller, view *bridge.Snapshot) consoleSnapshot {
	admin := c.Scopes.Has(bridge.ScopeAdmin)
	st := l.status
	if !admin {
		st.Endpoints, st.Gates = slices.Clone(st.Endpoints), slices.Clone(st.Gates) // others share them
		st = st.visibleIn(view)
	}
	snap := consoleSnapshot{
		Version: s.Version, Ready: st.Ready, Everybody: admin,
		Waiting: st.Waiting, Processes: st.Processes, MaxProcesses: st.MaxProcesses,
		Servers: make([]consoleServer, 0, len(view.Servers)), Circuits: make([]consoleCircuit, 0, len(st.Endpoints)),
		Gates: append([]GateStatus{}, st.Gates...), Calls: []consoleCall{},
	}
	if st.Config != nil {
		snap.Config = &consoleConfig{st.Config.Stale, st.Config.Errors, st.Config.Restart}
	}
	if st.Artifacts != nil {
		snap.Artifacts = &consoleArtifacts{st.Artifacts.Store, st.Artifacts.Down}
	}
	endpoints := make(map[bridge.EndpointID]*EndpointStatus, len(st.Endpoints))
	for i := range st.Endpoints {
		e := &st.Endpoints[i]
		endpoints[e.ID] = e
		snap.Circuits = append(snap.Circuits, consoleCircuit{e.Name, append([]string{}, e.Handles...), e.Circuit})
	}
	for _, srv := range view.Servers {
		row := consoleServer{
			Handle: srv.Handle, Title: srv.Title, State: srv.State, LastError: srv.LastError,
			Since: timeOf(srv.Since), Next: timeOf(srv.Next), Tools: len(srv.Tools), Docs: serverRef(srv.Handle) + "/docs",
		}
		if e := endpoints[srv.Endpoint]; e != nil && srv.Endpoint != (bridge.EndpointID{}) {
			row.Connection, row.Circuit = e.Connection, &e.Circuit
		}
		snap.Servers = append(snap.Servers, row)
	}
	for i := range snap.Gates {
		snap.Gates[i].LastActivity = nil // nobody is shown it, and each call changes it
	}
	for i := range l.calls {
		if len(snap.Calls) == shownCalls {
			break
		}
		rec := &l.calls[i]
		if (admin || rec.owner == c.Owner()) && s.Bridge.Policy.Allows(c, rec.handle, rec.name) {
			snap.Calls = append(snap.Calls, rec.shownAs())
		}
	}
	return snap
}

func (rec *endedCall) shownAs() consoleCall {
	return consoleCall{
		At: rec.at.UTC().Truncate(time.Millisecond), ID: rec.ID, Handle: rec.handle, Kind: rec.kind, Name: rec.shown,
		Status: rec.Status, Code: rec.Code, Millis: float64(rec.Took.Microseconds()) / 1000, In: rec.In, Out: rec.Out,
	}
}

func toolsOf(view *bridge.Snapshot) []consoleTools {
	all := make([]consoleTools, 0, len(view.Servers))
	for _, srv := range view.Servers {
		t := consoleTools{Handle: srv.Handle, Tools: make([][2]string, 0, len(srv.Tools))}
		for _, tool := range srv.Tools {
			t.Tools = append(t.Tools, [2]string{tool.Name, openapi.ToolID(tool.Name)})
		}
		all = append(all, t)
	}
	return all
}
