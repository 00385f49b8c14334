package main

import (
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/routes"
)

// status puts together what pool, circuits, gate and keeper say of themselves.
func (a *app) status(k *artifacts.Keeper) routes.Status {
	pool, gates := a.pool.Stats(), a.gate.Stats()
	st := routes.Status{
		Ready:     a.catalogue.Snapshot(bridge.Caller{}).Ready,
		Waiting:   gates.Waiting,
		Processes: pool.Processes, MaxProcesses: pool.MaxProcesses,
		Endpoints: make([]routes.EndpointStatus, 0, len(pool.Endpoints)),
		Gates:     make([]routes.GateStatus, 0, len(gates.Accounts)),
		Artifacts: artifactStatus(k.Stats()),
		Config:    a.reload.status(),
	}
	for _, e := range pool.Endpoints {
		row := routes.EndpointStatus{
			ID: e.ID, Name: e.ID.Label, Endpoint: e.Printed, Handles: e.Handles,
			Connection: "none", Users: e.Users, LastUsed: orNil(e.Used),
		}
		switch {
		case e.Connected:
			row.Connection = "connected"
		case e.Connecting:
			row.Connection = "connecting"
		}
		c := a.circuits.Stats(e.ID)
		row.Circuit = routes.CircuitStatus{State: string(c.State), Failures: c.Failures, Until: orNil(c.Until), Reason: c.Reason}
		st.Endpoints = append(st.Endpoints, row)
	}
	for _, g := range gates.Accounts {
		kind := "slots"
		if g.Account.Kind == bridge.EndpointRate {
			kind = "rate"
		}
		st.Gates = append(st.Gates, routes.GateStatus{
			ID: g.Account.Endpoint, Name: g.Account.Label(), Kind: kind, InUse: g.InUse, Capacity: g.Capacity, Waiting: g.Waiting, LastActivity: orNil(g.Last),
		})
	}
	return st
}

// artifactStatus is what the keeper says of itself.
func artifactStatus(s artifacts.Stats) *routes.ArtifactStatus {
	st := &routes.ArtifactStatus{Store: s.Store.Kind, Down: s.Store.Down, Kept: s.Kept, TooBig: s.TooBig, Failed: s.Failed}
	if s.Store.Kind == "memory" {
		st.Count, st.Bytes, st.Evicted = &s.Store.Artifacts, &s.Store.Bytes, &s.Store.Evicted
	}
	return st
}

// orNil returns nil for the zero time, which is never.
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
