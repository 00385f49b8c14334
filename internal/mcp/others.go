package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// othersGrace is how long a server's tools wait for its other lists, so that one
// of these that does not come holds up no tool.
const othersGrace = 2 * time.Second

// others are the lists of a server beside that of its tools.
type others struct {
	resources, templates, prompts listed
}

// listed is one list as it was read, or why it could not be.
type listed struct {
	entries []json.RawMessage
	err     error
}

var errUnread = errors.New("the list has not been read yet")

// unread is what is known of the lists before they come.
func unread() *others {
	l := listed{err: errUnread}
	return &others{l, l, l}
}

// A reading is the other lists being read, beside the tools.
type reading struct {
	cancel context.CancelFunc
	done   chan struct{}
	others others // once done
}

// readOthers begins to read the lists that the server offers. It goes on until stop.
func readOthers(ctx context.Context, conn rpc.Conn, l ListLimits) *reading {
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		read := func(method, member string) listed {
			entries, err := list(ctx, conn, method, member, l)
			return listed{entries, err}
		}
		offers := conn.Peer().Capabilities
		if offers.Resources {
			r.others.resources = read("resources/list", "resources")
			r.others.templates = read("resources/templates/list", "resourceTemplates")
			if e, ok := errors.AsType[*rpc.Error](r.others.templates.err); ok && e.Code == rpc.MethodNotFound {
				r.others.templates = listed{} // not all that have resources have templates too
			}
		}
		if offers.Prompts {
			r.others.prompts = read("prompts/list", "prompts")
		}
	}()
	return r
}

// within waits for the lists, no longer than d, and returns them if they have come.
func (r *reading) within(ctx context.Context, d time.Duration) (*others, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.done:
		return &r.others, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return unread(), false
}

// stop ends the reading and waits until it has ended.
func (r *reading) stop() {
	r.cancel()
	<-r.done
}

// put puts the lists into the server's entry. Where one could not be read, the last good one stays.
func (o *others) put(s *bridge.Server, explain func(error) error) {
	s.ResourcesError, s.PromptsError = "", ""
	if err := errors.Join(o.resources.err, o.templates.err); err != nil {
		s.ResourcesError = listError(err, explain)
	} else {
		s.SkippedResources = nil
	}
	if o.resources.err == nil {
		s.Resources = decodeResources(o.resources.entries, "uri", &s.SkippedResources)
	}
	if o.templates.err == nil {
		s.Templates = decodeResources(o.templates.entries, "uriTemplate", &s.SkippedResources)
	}
	if o.prompts.err != nil {
		s.PromptsError = listError(o.prompts.err, explain)
		return
	}
	s.SkippedPrompts = nil
	s.Prompts = decodePrompts(o.prompts.entries, &s.SkippedPrompts)
}

// listError is what people are told of a list that could not be read.
func listError(err error, explain func(error) error) string {
	if errors.Is(err, errUnread) {
		return errUnread.Error()
	}
	return messageOf(explain(err))
}

// A leaver notes what is left out of a list.
type leaver struct {
	seen map[string]bool
	out  *[]bridge.Skipped
}

// leaves reports whether an entry is to be left out, for it has no key or the same as another one.
func (l *leaver) leaves(i int, key, member string) bool {
	switch {
	case key == "":
		*l.out = append(*l.out, bridge.Skipped{Reason: fmt.Sprintf("entry %d of the list has no %s", i, member)})
	case l.seen[key]:
		*l.out = append(*l.out, bridge.Skipped{Name: key, Reason: "the list has it twice; the first one counts"})
	default:
		l.seen[key] = true
		return false
	}
	return true
}

// decodeResources takes what is usable of a list of resources, or of templates: key is where an
// entry has its URI. Texts of a wrong type are as if they were missing.
func decodeResources(entries []json.RawMessage, key string, skipped *[]bridge.Skipped) []*bridge.Resource {
	l := leaver{map[string]bool{}, skipped}
	var all []*bridge.Resource
	for i, e := range entries {
		uri := raw.GetString(e, key)
		if l.leaves(i, uri, key) {
			continue
		}
		all = append(all, &bridge.Resource{
			URI: uri, Raw: e, Name: raw.GetString(e, "name"), Title: raw.GetString(e, "title"),
			Description: raw.GetString(e, "description"), MediaType: raw.GetString(e, "mimeType"),
		})
	}
	return all
}

// decodePrompts takes what is usable of a list of prompts.
func decodePrompts(entries []json.RawMessage, skipped *[]bridge.Skipped) []*bridge.Prompt {
	l := leaver{map[string]bool{}, skipped}
	var all []*bridge.Prompt
	for i, e := range entries {
		name := raw.GetString(e, "name")
		if l.leaves(i, name, "name") {
			continue
		}
		p := &bridge.Prompt{Name: name, Raw: e, Title: raw.GetString(e, "title"), Description: raw.GetString(e, "description")}
		for _, a := range raw.Elements(raw.Get(e, "arguments")) {
			if arg := raw.GetString(a, "name"); arg != "" && string(raw.Get(a, "required")) == "true" {
				p.Required = append(p.Required, arg)
			}
		}
		all = append(all, p)
	}
	return all
}
