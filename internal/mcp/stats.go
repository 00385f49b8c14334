package mcp

import (
	"cmp"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// PoolStats are how a pool is at one moment.
type PoolStats struct {
	Processes    int // alive or starting
	MaxProcesses int
	Endpoints    []EndpointStats // by label, then printed id
}

// EndpointStats are how one attached endpoint is at one moment.
type EndpointStats struct {
	ID         bridge.EndpointID
	Handles    []string
	Printed    string // the endpoint for people; what may be secret is hashed
	Process    bool   // its client is a process of ours
	Connected  bool
	Connecting bool
	Users      int       // calls that hold its client or wait for it
	Used       time.Time // when a call last gave the client back, or when it was made; zero if never
}

// Stats returns a consistent snapshot.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PoolStats{Processes: p.processes, MaxProcesses: p.opts.MaxProcesses, Endpoints: make([]EndpointStats, 0, len(p.slots))}
	for id, slot := range p.slots {
		var handles []string
		for l := range slot.listeners {
			handles = append(handles, l.handle())
		}
		slices.Sort(handles)
		handles = slices.Compact(handles) // a server that is being replaced has two connectors
		s.Endpoints = append(s.Endpoints, EndpointStats{
			ID: id, Handles: handles, Printed: slot.printed, Process: slot.process,
			Connected: slot.client != nil && slot.client.Connected(), Connecting: slot.attempt != nil,
			Users: slot.users, Used: slot.used,
		})
	}
	slices.SortFunc(s.Endpoints, func(a, b EndpointStats) int {
		return cmp.Or(cmp.Compare(a.ID.Label, b.ID.Label), cmp.Compare(a.Printed, b.Printed))
	})
	return s
}
