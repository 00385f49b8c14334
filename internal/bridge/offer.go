package bridge

import (
	"encoding/json"
	"slices"
)

// A Resource is an entry of a server's list of resources, or of templates of them. It
// is never changed once it is in a [Snapshot].
type Resource struct {
	URI         string // or a template of URIs (RFC 6570); exactly as listed
	Name        string
	Title       string
	Description string
	MediaType   string          // empty if the server does not say
	Raw         json.RawMessage // the whole entry, as sent
}

// A Prompt is an entry of a server's list of prompts. It is never changed once it
// is in a [Snapshot].
type Prompt struct {
	Name        string // exactly as listed; any text
	Title       string
	Description string
	Required    []string        // the names of the arguments that it cannot do without
	Raw         json.RawMessage // the whole entry, as sent
}

// Prompt returns the prompt called name, or nil.
func (s *Server) Prompt(name string) *Prompt {
	if i := slices.IndexFunc(s.Prompts, func(p *Prompt) bool { return p.Name == name }); i >= 0 {
		return s.Prompts[i]
	}
	return nil
}
