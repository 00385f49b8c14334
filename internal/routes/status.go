package routes

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// A Status is the health of what stands behind the tools, at one moment.
type Status struct {
	Ready        bool             `json:"ready" doc:"Every server has answered or failed its first attempt, or was waited for long enough."`
	Waiting      int              `json:"waiting" doc:"Calls in line for admission."`
	Processes    int              `json:"processes" doc:"Processes of MCP servers that run or are being started."`
	MaxProcesses int              `json:"max_processes"`
	Endpoints    []EndpointStatus `json:"endpoints" nullable:"false"`
	Gates        []GateStatus     `json:"gates" nullable:"false"`
	Config       *ConfigStatus    `json:"config,omitempty" doc:"For callers with the scope admin only."`
	Artifacts    *ArtifactStatus  `json:"artifacts,omitempty" doc:"For callers with the scope admin only, since it is about everybody's."`
}

// An ArtifactStatus is how the results of all callers are kept.
type ArtifactStatus struct {
	Store   string `json:"store" enum:"memory,redis"`
	Down    bool   `json:"down" doc:"The store could not be reached when that was last tried, or was full."`
	Kept    int64  `json:"kept" doc:"Results that became artifacts, since the start."`
	TooBig  int64  `json:"too_big" doc:"Results that the store is too small for."`
	Failed  int64  `json:"failed" doc:"Results that the store could not take: it was down, slow or full."`
	Count   *int   `json:"count,omitempty" doc:"Artifacts in memory; absent with another store."`
	Bytes   *int64 `json:"bytes,omitempty" doc:"Bytes that they take."`
	Evicted *int64 `json:"evicted,omitempty" doc:"Artifacts that had to go before their time, to make room."`
}

// An EndpointStatus is how one endpoint is.
type EndpointStatus struct {
	ID bridge.EndpointID `json:"-"` // whose the row is

	Name       string        `json:"name" doc:"As mcp:github."`
	Endpoint   string        `json:"endpoint,omitempty" doc:"How it is connected, for callers with the scope admin; what may be secret is hashed."`
	Handles    []string      `json:"handles" nullable:"false" doc:"The servers that it serves."`
	Connection string        `json:"connection" enum:"connected,connecting,none"`
	Users      int           `json:"users" doc:"Calls that hold its client or wait for it."`
	LastUsed   *time.Time    `json:"last_used,omitempty"`
	Circuit    CircuitStatus `json:"circuit"`
}

// A CircuitStatus is how one endpoint's circuit is.
type CircuitStatus struct {
	State    string     `json:"state" enum:"closed,open,half-open" doc:"Calls pass, fail fast, or one of them may try."`
	Failures int        `json:"failures" doc:"Counted in a row."`
	Until    *time.Time `json:"until,omitempty" doc:"When an open circuit lets a call try."`
	Reason   string     `json:"reason,omitempty" doc:"Why it opened."`
}

// A GateStatus is how one account of admission is.
type GateStatus struct {
	ID bridge.EndpointID `json:"-"` // zero if all servers share it

	Name         string     `json:"name" doc:"As mcp:stdio for all subprocesses, mcp:http for all remote servers, or mcp:github for one server."`
	Kind         string     `json:"kind" enum:"slots,rate"`
	InUse        int        `json:"in_use" doc:"Slots that calls hold; of a rate, what is missing from its burst."`
	Capacity     int        `json:"capacity" doc:"Slots, or the burst of a rate."`
	Waiting      int        `json:"waiting" doc:"Calls in line that need it."`
	LastActivity *time.Time `json:"last_activity,omitempty" doc:"When a call last gave back what it held."`
}

func (s *server) statusRoutes() {
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/status", OperationID: "get-status", Tags: []string{"operations"},
		Summary:     "How are the servers, circuits and gates?",
		Description: "A snapshot of endpoints, circuits, gates and processes: those of the servers that the caller may see, and all for a caller with the scope admin.",
		Responses:   s.answers(s.jsonAnswer("The snapshot.", Status{}), Unauthenticated, bridge.Forbidden),
	}, s.getStatus)
}

func (s *server) getStatus(x *exchange, r *http.Request) error {
	c, err := x.requires(r, 0)
	if err != nil {
		return err
	}
	st := s.Status()
	if !c.Scopes.Has(bridge.ScopeAdmin) {
		if err := identity.Require(c, bridge.ScopeCall); err != nil {
			return err
		}
		st = st.visibleIn(s.Bridge.View(c))
	}
	body, err := encode(st)
	if err != nil {
		return err
	}
	page{mediaType: "application/json", cache: "no-store", body: body}.write(x, r)
	return nil
}

// visibleIn returns the part of the status that is about the servers of a view. It goes by
// endpoint: a server that callers do not share has one for each, under one handle and name.
func (st Status) visibleIn(view *bridge.Snapshot) Status {
	st.Config = nil
	st.Artifacts = nil
	seen := map[bridge.EndpointID]bool{}
	for _, s := range view.Servers {
		seen[s.Endpoint] = true
	}
	delete(seen, bridge.EndpointID{})
	st.Endpoints = slices.DeleteFunc(st.Endpoints, func(e EndpointStatus) bool { return !seen[e.ID] })
	for i := range st.Endpoints {
		e := &st.Endpoints[i]
		e.Endpoint = "" // a command line may have a secret in plain text
		e.Handles = slices.DeleteFunc(slices.Clone(e.Handles), func(h string) bool { return view.Server(h) == nil })
	}
	st.Gates = slices.DeleteFunc(st.Gates, func(g GateStatus) bool { return g.ID != bridge.EndpointID{} && !seen[g.ID] })
	return st
}
