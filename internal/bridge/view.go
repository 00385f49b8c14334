package bridge

import "slices"

// Sees reports whether the caller may see anything of a server: a tool it may
// call, or, where none is known yet, the server itself.
func (b *Bridge) Sees(c Caller, s *Server) bool {
	for _, t := range s.Tools {
		if b.Policy.Allows(c, s.Handle, t.Name) {
			return true
		}
	}
	return len(s.Tools) == 0 && b.Policy.Sees(c, s.Handle)
}

// View returns the part of the catalogue that the caller may call, by the same
// predicate that Invoke asks: the catalogue itself if that is all of it. It begins to
// connect those servers of the caller's own that need nothing but who the caller is.
func (b *Bridge) View(c Caller) *Snapshot {
	snap := b.attach(c, false)
	servers := make([]*Server, 0, len(snap.Servers))
	for _, s := range snap.Servers {
		if b.Sees(c, s) {
			servers = append(servers, b.visible(c, s))
		}
	}
	if slices.Equal(servers, snap.Servers) {
		return snap
	}
	return NewSnapshot(snap.Version, snap.Ready, servers)
}

// Attach begins to connect all servers of the caller's own that it may see, also those
// that take headers of its request.
func (b *Bridge) Attach(c Caller) { b.attach(c, true) }

func (b *Bridge) attach(c Caller, headers bool) *Snapshot {
	snap := b.Catalogue.Snapshot(c)
	attached := false
	for _, s := range snap.Servers {
		if s.unattached() && b.Policy.Sees(c, s.Handle) {
			_, err := b.Catalogue.Attach(c, s.Handle, headers)
			attached = attached || err == nil // a call will say what is wrong
		}
	}
	if attached {
		return b.Catalogue.Snapshot(c)
	}
	return snap
}

// visible returns s without the tools that the caller may not call: s itself if there are none.
func (b *Bridge) visible(c Caller, s *Server) *Server {
	all := true
	tools := make([]*Tool, 0, len(s.Tools))
	for _, t := range s.Tools {
		if b.Policy.Allows(c, s.Handle, t.Name) {
			tools = append(tools, t)
		} else {
			all = false
		}
	}
	if all {
		return s
	}
	part := s.Copy()
	part.SetTools(tools)
	part.Skipped = nil
	for _, k := range s.Skipped {
		if b.Policy.Allows(c, s.Handle, k.Name) {
			part.Skipped = append(part.Skipped, k)
		}
	}
	return part
}
