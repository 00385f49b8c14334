package openapi

import (
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
)

// whole renders the document of all tools of these servers.
func (o *Options) whole(servers []*bridge.Server, sec security) []byte {
	w := o.head(servers, o.Title, o.Version, o.Description)
	w.key("paths").open('{')
	names := idSet{}
	for _, s := range servers {
		for _, t := range offered(s) {
			w.key("/tools/" + segment(t.Handle) + "/" + segment(t.Name)).open('{').key("post")
			o.operation(w, t, names.add(OperationID(t.Handle, t.Name), t))
			w.close('}')
		}
	}
	w.close('}')
	return components(w, servers, sec)
}

// handle renders the document of one server. What the server says about how to
// use its tools is its description.
func (o *Options) handle(s *bridge.Server, sec security) []byte {
	servers := []*bridge.Server{s}
	w := o.handleHead(s)
	w.key("paths").open('{')
	names := idSet{}
	for _, t := range offered(s) {
		w.key("/" + segment(t.Name)).open('{').key("post")
		o.operation(w, t, names.add(o.toolID(t.Name), t))
		w.close('}')
	}
	w.close('}')
	return components(w, servers, sec)
}

func (o *Options) handleHead(s *bridge.Server) *writer {
	version := o.Version
	if s.Version != "" {
		version = s.Version
	}
	description := o.cut(strings.TrimSpace(s.Description + "\n\n" + strings.TrimSpace(s.Instructions)))
	return o.head([]*bridge.Server{s}, title(s), version, description)
}

// title names a server by what its operator calls it, never by what it calls
// itself: several may call themselves the same.
func title(s *bridge.Server) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Handle
}

// head writes all that comes before the paths. The server's URL is the directory
// of the document itself, so that it holds behind every proxy and base path.
func (o *Options) head(servers []*bridge.Server, title, version, description string) *writer {
	size := 16 << 10
	for _, s := range servers {
		for _, t := range s.Tools {
			size += 2<<10 + len(t.Input) + len(t.Output) + len(t.Description)
		}
	}
	w := &writer{b: make([]byte, 0, size)}
	w.open('{').text("openapi", "3.1.0")
	w.key("info").open('{').key("title").str(title).text("description", description).key("version").str(version).close('}')
	w.raw(`"servers":[{"url":"."}]`)
	w.key("tags").open('[')
	for _, s := range servers {
		if len(offered(s)) == 0 {
			continue
		}
		w.open('{').key("name").str(s.Handle)
		w.text("description", o.cut(tagDescription(s))).close('}')
	}
	w.close(']')
	return w
}

func tagDescription(s *bridge.Server) string {
	t := title(s)
	switch {
	case t == s.Handle:
		return s.Description
	case s.Description == "":
		return t
	default:
		return t + ": " + s.Description
	}
}

// components writes what the operations refer to, and ends the document.
func components(w *writer, servers []*bridge.Server, sec security) []byte {
	w.bytes(sec.wanted)
	if anyAsks(servers) {
		return parts(w, servers, both(commonSchemas, jobSchema), both(accepted, commonResponses), sec.schemes)
	}
	return parts(w, servers, commonSchemas, commonResponses, sec.schemes)
}

// both returns the members of two objects, neither of which is empty.
func both(a, b []byte) []byte { return slices.Concat(a, []byte{','}, b) }

func parts(w *writer, servers []*bridge.Server, schemas, responses, schemes []byte) []byte {
	w.key("components").open('{')
	w.key("schemas").open('{').bytes(schemas)
	for _, s := range servers {
		for _, t := range offered(s) {
			w.bytes(published(t).components)
		}
	}
	w.close('}')
	w.key("responses").open('{').bytes(responses).close('}')
	w.key("headers").open('{').bytes(commonHeaders).close('}')
	w.bytes(schemes)
	w.close('}')
	return w.close('}').b
}

// offered returns the tools of a server that a path can name.
func offered(s *bridge.Server) []*bridge.Tool {
	for i, t := range s.Tools {
		if !carried(t.Name) {
			out := append([]*bridge.Tool{}, s.Tools[:i]...)
			for _, t := range s.Tools[i+1:] {
				if carried(t.Name) {
					out = append(out, t)
				}
			}
			return out
		}
	}
	return s.Tools
}

// cut bounds a description.
func (o *Options) cut(s string) string {
	n := 0
	for i := range s {
		if n++; n > o.DescriptionChars {
			return s[:i] + "…"
		}
	}
	return s
}
