package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"mcpbridge/internal/bridge"
)

// builtin is the handle of the bridge's own tools, which nobody's server takes the place of.
const builtin = "bridge"

// A plan is what is configured, by handle. It is never changed.
type plan struct {
	local   map[string]*bridge.Server // written in Go
	servers map[string]*ServerConfig  // of everybody, shared or not
	users   map[bridge.Owner]map[string]*ServerConfig

	apart   []*ServerConfig // of servers: those that callers do not share
	headers []string        // canonical names of all that are taken from callers' requests
	static  map[string]*bridge.Server
}

func newPlan(local []*bridge.Server, servers []ServerConfig, users map[bridge.Owner][]ServerConfig) *plan {
	p := &plan{
		local:   make(map[string]*bridge.Server, len(local)),
		servers: make(map[string]*ServerConfig, len(servers)),
		users:   make(map[bridge.Owner]map[string]*ServerConfig, len(users)),
		static:  make(map[string]*bridge.Server, len(servers)),
	}
	for _, s := range local {
		p.local[s.Handle] = s
	}
	headers := map[string]bool{}
	note := func(s *ServerConfig) {
		if s.Own != nil {
			for _, h := range s.Own.Headers {
				headers[h] = true
			}
		}
	}
	for _, s := range servers {
		p.servers[s.Handle] = &s
		note(&s)
		if p.local[s.Handle] != nil {
			continue
		}
		p.static[s.Handle] = s.unattached(&bridge.Caller{}, nil)
		if s.Own != nil {
			p.apart = append(p.apart, &s)
		}
	}
	for owner, list := range users {
		own := make(map[string]*ServerConfig, len(list))
		for _, s := range list {
			if s.Handle != builtin {
				own[s.Handle] = &s
				note(&s)
			}
		}
		if len(own) > 0 {
			p.users[owner] = own
		}
	}
	p.headers = slices.Sorted(maps.Keys(headers))
	return p
}

// unattached returns the entry of a server that is not attached for this caller.
func (s *ServerConfig) unattached(c *bridge.Caller, owner *bridge.Owner) *bridge.Server {
	if s.Disabled {
		return s.entry(bridge.Disabled)
	}
	if s.Own == nil && owner == nil {
		return s.entry(bridge.Connecting)
	}
	if _, err := s.resolve(c, owner); err != nil {
		e := s.entry(bridge.NeedsCaller)
		e.LastError = messageOf(err)
		return e
	}
	return s.entry(bridge.Idle)
}

// shared returns the servers that are attached for everybody.
func (p *plan) shared() map[string]*ServerConfig {
	all := make(map[string]*ServerConfig, len(p.servers))
	for h, s := range p.servers {
		if !s.Disabled && s.Own == nil && p.local[h] == nil {
			all[h] = s
		}
	}
	return all
}

// differs reports whether the caller's catalogue is another one than everybody's.
func (p *plan) differs(c *bridge.Caller) bool {
	return len(p.apart) > 0 || len(p.users) > 0 && p.users[c.Owner()] != nil
}

// of returns the server of that handle that is connected for this caller apart, or nil
// if there is none or another one wins; the owner if it is one of a user's own.
func (p *plan) of(c *bridge.Caller, handle string) (*ServerConfig, *bridge.Owner) {
	owner := c.Owner()
	if s := p.users[owner][handle]; s != nil {
		return s, &owner
	}
	if s := p.servers[handle]; s != nil && s.Own != nil && p.local[handle] == nil {
		return s, nil
	}
	return nil, nil
}

// A viewKey is what a caller's catalogue depends on. It is a struct: user 1 of a tenant is
// never mistaken for user 1_2.
type viewKey struct {
	owner   bridge.Owner
	headers [32]byte // digest of the values of the plan's headers; zero if it has none
}

func (p *plan) key(c *bridge.Caller) viewKey {
	k := viewKey{owner: c.Owner()}
	if len(p.headers) == 0 {
		return k
	}
	text := func(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b := make([]byte, 0, 256)
	for _, name := range p.headers {
		values := c.Headers[name]
		b = binary.AppendUvarint(text(b, name), uint64(len(values)))
		for _, v := range values {
			b = text(b, v)
		}
	}
	k.headers = sha256.Sum256(b)
	return k
}

// taken returns those of the caller's headers that the plan's servers take.
func (p *plan) taken(c *bridge.Caller) map[string][]string {
	h := make(map[string][]string, len(p.headers))
	for _, name := range p.headers {
		if v := c.Headers[name]; len(v) > 0 {
			h[name] = v
		}
	}
	return h
}

// A ServerName names a configured server.
type ServerName struct {
	Owner  bridge.Owner // zero if it is everybody's
	Handle string
}

// Changes are what an Apply made of a catalogue, each by owner and handle.
type Changes struct {
	Added, Changed, Removed, Kept []ServerName
}

// changes compares two plans.
func (p *plan) changes(next *plan) Changes {
	var c Changes
	compare := func(owner bridge.Owner, old, now map[string]*ServerConfig) {
		for h, s := range now {
			name := ServerName{owner, h}
			switch was := old[h]; {
			case was == nil:
				c.Added = append(c.Added, name)
			case was.likeness() == s.likeness():
				c.Kept = append(c.Kept, name)
			default:
				c.Changed = append(c.Changed, name)
			}
		}
		for h := range old {
			if now[h] == nil {
				c.Removed = append(c.Removed, ServerName{owner, h})
			}
		}
	}
	compare(bridge.Owner{}, p.servers, next.servers)
	for owner := range next.users {
		compare(owner, p.users[owner], next.users[owner])
	}
	for owner := range p.users {
		if next.users[owner] == nil {
			compare(owner, p.users[owner], nil)
		}
	}
	for _, names := range [][]ServerName{c.Added, c.Changed, c.Removed, c.Kept} {
		slices.SortFunc(names, func(a, b ServerName) int {
			return cmp.Or(cmp.Compare(a.Owner.Tenant, b.Owner.Tenant), cmp.Compare(a.Owner.User, b.Owner.User), cmp.Compare(a.Handle, b.Handle))
		})
	}
	return c
}
