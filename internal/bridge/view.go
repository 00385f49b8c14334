package bridge

import "slices"

// Sees reports whether the caller may see anything of a server: a tool it may
// call, or the like, or, where no tool is known yet, the server itself. What goes for the names of
// tools goes for the names of prompts and the URIs of resources.
func (b *Bridge) Sees(c Caller, s *Server) bool {
	for _, t := range s.Tools {
		if b.Policy.Allows(c, s.Handle, t.Name) {
			return true
		}
	}
	for _, p := range s.Prompts {
		if b.Policy.Allows(c, s.Handle, p.Name) {
			return true
		}
	}
	for _, list := range [...][]*Resource{s.Resources, s.Templates} {
		for _, r := range list {
			if b.Policy.Allows(c, s.Handle, r.URI) {
				return true
			}
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

// visible returns s without the tools, resources and prompts that the caller may not use: s itself if there are none.
func (b *Bridge) visible(c Caller, s *Server) *Server {
	tools, some := allowed(b, c, s.Handle, s.Tools, func(t *Tool) string { return t.Name })
	resources, r := allowed(b, c, s.Handle, s.Resources, func(r *Resource) string { return r.URI })
	templates, t := allowed(b, c, s.Handle, s.Templates, func(r *Resource) string { return r.URI })
	prompts, p := allowed(b, c, s.Handle, s.Prompts, func(p *Prompt) string { return p.Name })
	if !some && !r && !t && !p {
		return s
	}
	name := func(k Skipped) string { return k.Name }
	part := s.Copy()
	part.SetTools(tools)
	part.Resources, part.Templates, part.Prompts = resources, templates, prompts
	part.Skipped, _ = allowed(b, c, s.Handle, s.Skipped, name)
	part.SkippedResources, _ = allowed(b, c, s.Handle, s.SkippedResources, name)
	part.SkippedPrompts, _ = allowed(b, c, s.Handle, s.SkippedPrompts, name)
	return part
}

// allowed returns those of a server's things that the caller may use, and whether others were left out.
func allowed[T any](b *Bridge, c Caller, handle string, all []T, name func(T) string) (part []T, some bool) {
	for i, t := range all {
		switch ok := b.Policy.Allows(c, handle, name(t)); {
		case !ok && !some:
			part, some = append([]T{}, all[:i]...), true
		case ok && some:
			part = append(part, t)
		}
	}
	if !some {
		return all, false
	}
	return part, true
}
