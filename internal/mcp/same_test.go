package mcp

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// Whatever matters of a server makes it another one when it changes, and nothing else
// does. A new option of a server has to be put on one side or the other.
func TestLikeness(t *testing.T) {
	stdio := func(change func(*StdioConfig)) Endpoint {
		c := StdioConfig{Name: "s", Command: Arg{Text: "x"}, Start: time.Second}
		if change != nil {
			change(&c)
		}
		return NewStdio(c)
	}
	base := func() ServerConfig {
		return ServerConfig{Handle: "s", Endpoint: stdio(nil), Allow: nil}
	}
	matter := map[string]func(*ServerConfig){ // :: field -> how to change it
		"Handle":         func(s *ServerConfig) { s.Handle = "t" },
		"Title":          func(s *ServerConfig) { s.Title = "T" },
		"Description":    func(s *ServerConfig) { s.Description = "D" },
		"Disabled":       func(s *ServerConfig) { s.Disabled = true },
		"Endpoint":       func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Args = []Arg{{Text: "a"}} }) },
		"Own":            func(s *ServerConfig) { s.Endpoint, s.Own = nil, &Own{} },
		"Allow":          func(s *ServerConfig) { s.Allow = []string{} },
		"Deny":           func(s *ServerConfig) { s.Deny = []string{"x"} },
		"Exclude":        func(s *ServerConfig) { s.Exclude = []string{"x"} },
		"Timeout":        func(s *ServerConfig) { s.Timeout = 1 },
		"MaxTimeout":     func(s *ServerConfig) { s.MaxTimeout = 1 },
		"ParseText":      func(s *ServerConfig) { s.ParseText = true },
		"Strict":         func(s *ServerConfig) { s.Strict = true },
		"Asks":           func(s *ServerConfig) { s.Asks = true },
		"Forward":        func(s *ServerConfig) { s.Forward = []string{"X-A"} },
		"Idle":           func(s *ServerConfig) { s.Idle = 1 },
		"NoReconnect":    func(s *ServerConfig) { s.NoReconnect = true },
		"ReconnectDelay": func(s *ServerConfig) { s.ReconnectDelay = 1 },
		"Heartbeat":      func(s *ServerConfig) { s.Heartbeat = 1 },
		"RPC":            func(s *ServerConfig) { s.RPC.Handshake = 1 },

		"RPC.ClientName":    func(s *ServerConfig) { s.RPC.ClientName = "c" },
		"RPC.ClientVersion": func(s *ServerConfig) { s.RPC.ClientVersion = "1" },
		"RPC.Handshake":     func(s *ServerConfig) { s.RPC.Handshake = 1 },
		"RPC.CancelGrace":   func(s *ServerConfig) { s.RPC.CancelGrace = 1 },
		"RPC.ResultBytes":   func(s *ServerConfig) { s.RPC.ResultBytes = 1 },
		"RPC.Elicitation":   func(s *ServerConfig) { s.RPC.Elicitation = true },
		"RPC.Exclusive":     func(s *ServerConfig) { s.RPC.Exclusive = true },

		"its label":       func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Name = "t" }) },
		"its secrets":     func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Command.Secret = true }) },
		"its rate":        func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Rate = Rate{PerSecond: 1} }) },
		"its concurrency": func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.MaxConcurrent = 3 }) },
		"its start":       func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Start = 2 }) },
		"its environment": func(s *ServerConfig) {
			s.Endpoint = stdio(func(c *StdioConfig) { c.Env = map[string]string{"A": "1"} })
		},
		"its directory": func(s *ServerConfig) { s.Endpoint = stdio(func(c *StdioConfig) { c.Dir = "/" }) },
		"its owner":     func(s *ServerConfig) { s.Endpoint = owned{s.Endpoint, bridge.Owner{User: "a"}} },
	}
	rest := map[string]func(*ServerConfig){
		"RPC.Log":         func(s *ServerConfig) { s.RPC.Log = slog.Default() },
		"RPC.ListChanged": func(s *ServerConfig) { s.RPC.ListChanged = func(string) {} },
	}
	same := base()
	for name, change := range matter {
		if s := base(); s.likeness() != same.likeness() {
			t.Fatal("a server is not like itself")
		} else if change(&s); s.likeness() == same.likeness() {
			t.Errorf("a change of %s is not seen", name)
		}
	}
	for name, change := range rest {
		if s := base(); change != nil {
			if change(&s); s.likeness() != same.likeness() {
				t.Errorf("a change of %s makes it another server", name)
			}
		}
	}
	for prefix, typ := range map[string]reflect.Type{"": reflect.TypeFor[ServerConfig](), "RPC.": reflect.TypeFor[rpc.Options]()} {
		for f := range typ.Fields() {
			if matter[prefix+f.Name] == nil && rest[prefix+f.Name] == nil {
				t.Errorf("does a change of %s%s make another server? Say so in settings, and here", prefix, f.Name)
			}
		}
	}
}

// Of a server that callers do not share, the template counts, and how it is shared.
func TestLikenessOfOwn(t *testing.T) {
	base := ServerConfig{Handle: "s", Own: &Own{Template: [32]byte{1}, Headers: []string{"X-A"}}}
	for _, own := range []*Own{
		{Template: [32]byte{2}, Headers: []string{"X-A"}},
		{Template: [32]byte{1}, Headers: []string{"X-B"}},
		{Template: [32]byte{1}, Headers: []string{"X-A"}, ByTenant: true},
	} {
		s := base
		if s.Own = own; s.likeness() == base.likeness() {
			t.Errorf("%+v is taken for %+v", own, base.Own)
		}
	}
	again := base
	again.Own = &Own{Template: [32]byte{1}, Headers: []string{"X-A"}, For: func(bridge.Caller) (Endpoint, error) { return nil, nil }}
	if again.likeness() != base.likeness() {
		t.Error("the same template is not like itself")
	}
}
