package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"mcpbridge/internal/bridge"
)

// settings are what matters of a server beside its handle and the identity of its
// endpoint. A server whose settings have changed is another one to the catalogue, though it
// may have the same endpoint, and so the same process.
type settings struct {
	Title, Description   string
	Disabled             bool
	Allow, Deny, Exclude []string // nil and empty differ
	Timeout, MaxTimeout  time.Duration
	ParseText, Strict    bool
	Asks                 bool
	Forward              []string
	Idle                 time.Duration
	NoReconnect          bool
	ReconnectDelay       time.Duration
	Heartbeat            time.Duration

	// Of RPC; not its log, nor what the pool sets.
	ClientName, ClientVersion string
	Handshake, CancelGrace    time.Duration
	ResultBytes               int64
	Elicitation, Exclusive    bool

	// Of the endpoint, beside its identity.
	Label   string
	Printed string // shows which of its parts are secret
	Demand  bridge.Demand
	Start   time.Duration

	// Of Own.
	ByTenant bool
	Headers  []string
}

// settings returns a digest of what matters of the server beside its handle and endpoint.
func (s *ServerConfig) settings() [32]byte {
	v := settings{
		Title: s.Title, Description: s.Description, Disabled: s.Disabled,
		Allow: s.Allow, Deny: s.Deny, Exclude: s.Exclude,
		Timeout: s.Timeout, MaxTimeout: s.MaxTimeout,
		ParseText: s.ParseText, Strict: s.Strict, Asks: s.Asks, Forward: s.Forward,
		Idle: s.Idle, NoReconnect: s.NoReconnect, ReconnectDelay: s.ReconnectDelay, Heartbeat: s.Heartbeat,
		ClientName: s.RPC.ClientName, ClientVersion: s.RPC.ClientVersion,
		Handshake: s.RPC.Handshake, CancelGrace: s.RPC.CancelGrace, ResultBytes: s.RPC.ResultBytes,
		Elicitation: s.RPC.Elicitation, Exclusive: s.RPC.Exclusive,
	}
	if e := s.Endpoint; e != nil {
		v.Label, v.Printed, v.Demand = e.ID().Label, e.String(), e.Demand()
		if e, ok := e.(interface{ start() time.Duration }); ok {
			v.Start = e.start()
		}
	}
	if s.Own != nil {
		v.ByTenant, v.Headers = s.Own.ByTenant, s.Own.Headers
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers only: it cannot fail
	}
	return sha256.Sum256(b)
}

// A likeness is what two configured servers have in common only if they are the same.
type likeness struct {
	connectorKey
	own bool // the key's endpoint is that of the template
}

func (s *ServerConfig) likeness() likeness {
	l := likeness{connectorKey{handle: s.Handle, settings: s.settings()}, s.Own != nil}
	switch {
	case s.Own != nil:
		l.endpoint = s.Own.Template
	case s.Endpoint != nil:
		l.endpoint = s.Endpoint.ID().Sum
	}
	return l
}
