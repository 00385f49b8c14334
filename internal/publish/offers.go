package publish

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/raw"
)

// A kind is what a list beside that of the tools is of.
type kind uint8

const (
	resources kind = iota
	templates
	prompts
)

// subject is what changes with the list.
func (k kind) subject() subject {
	if k == prompts {
		return ofPrompts
	}
	return ofResources
}

// member is where a result has the list.
func (k kind) member() string {
	return [...]string{"resources", "resourceTemplates", "prompts"}[k]
}

// An offered is one entry of a list: its key in its server's list, and the entry as it was sent.
type offered struct {
	key string
	raw json.RawMessage
}

// of returns a server's list.
func (k kind) of(s *bridge.Server) []offered {
	var all []offered
	switch k {
	case prompts:
		for _, p := range s.Prompts {
			all = append(all, offered{p.Name, p.Raw})
		}
	case templates:
		for _, r := range s.Templates {
			all = append(all, offered{r.URI, r.Raw})
		}
	case resources:
		for _, r := range s.Resources {
			all = append(all, offered{r.URI, r.Raw})
		}
	}
	return all
}

// lister returns what answers a request for a list.
func (p *peer) lister(req mcp.Request, k kind, version string) func(context.Context) (mcp.Result, error) {
	return func(ctx context.Context) (mcp.Result, error) { return p.listOffers(ctx, req, k, version) }
}

// cursorOf returns the cursor of a request for a list.
func cursorOf(req mcp.Request) string {
	switch p := req.GetParams().(type) {
	case *mcp.ListResourcesParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListResourceTemplatesParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListPromptsParams:
		if p != nil {
			return p.Cursor
		}
	}
	return ""
}

// listOffers answers with the entries of the servers' own lists.
func (p *peer) listOffers(ctx context.Context, req mcp.Request, k kind, version string) (mcp.Result, error) {
	view, err := p.s.settled(ctx, p.request(req))
	if err != nil {
		return nil, err
	}
	var from place
	if cursor := cursorOf(req); cursor != "" {
		if from, err = parsePlace(cursor); err != nil {
			return nil, err
		}
	} else {
		p.knows(k.subject(), view)
	}
	isModern := version >= modern
	out := append(raw.AppendQuote([]byte{'{'}, k.member()), ":["...)
	out, next := p.s.appendPage(out, view, k, from)
	out = append(out, ']')
	if next != "" {
		out = raw.AppendQuote(append(out, `,"nextCursor":`...), next)
	}
	if isModern {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return &result{out: p.request(req).out, raw: append(out, '}'), modern: isModern}, nil
}

// appendPage appends the entries behind a place, as many as a page holds, and returns the cursor of the next page.
func (s *Server) appendPage(dst []byte, view *bridge.Snapshot, k kind, from place) (_ []byte, next string) {
	n := 0
	last := place{}
	for _, srv := range view.Servers {
		if srv.Handle < from.Handle {
			continue
		}
		all := k.of(srv)
		if srv.Handle == from.Handle {
			// If it is gone, the server's list begins anew: twice is better than never.
			all = all[1+slices.IndexFunc(all, func(e offered) bool { return e.key == from.Tool }):]
		}
		for _, e := range all {
			if n == s.opts.PageTools || len(dst) > s.opts.PageBytes {
				return dst, last.String()
			}
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = k.appendEntry(dst, srv.Handle, e)
			last = place{srv.Handle, e.key}
		}
	}
	return dst, ""
}

// appendEntry appends an entry as its server sent it, under what it is called here.
// What a strict client would refuse the whole list for is left out.
func (k kind) appendEntry(dst []byte, handle string, e offered) []byte {
	named := false
	switch k {
	case resources:
		dst = raw.AppendQuote(append(dst, `{"uri":`...), publicURI(handle, e.key))
	case templates:
		dst = raw.AppendQuote(append(dst, `{"uriTemplate":`...), publicURI(handle, e.key))
	case prompts:
		dst = raw.AppendQuote(append(dst, `{"name":`...), openapi.OperationID(handle, e.key))
		named = true
	}
	for m := range raw.Members(e.raw) {
		name, val := m.Name(), m.Val
		switch name {
		case "uri", "uriTemplate":
			continue
		case "name":
			if k == prompts || raw.KindOf(val) != raw.String {
				continue
			}
			named = true
		case "title", "description", "mimeType":
			if raw.KindOf(val) != raw.String {
				continue
			}
		case "size":
			if _, err := strconv.ParseInt(string(val), 10, 64); err != nil {
				continue
			}
		case "annotations":
			if !hints(val) {
				continue
			}
		case "arguments":
			if val = arguments(val); val == nil {
				continue
			}
		case "_meta":
			if raw.KindOf(val) != raw.Object {
				continue
			}
		case "icons":
			if !icons(val) {
				continue
			}
		}
		dst = append(append(append(append(dst, ','), m.Key...), ':'), val...)
	}
	if !named { // the protocol demands one
		dst = raw.AppendQuote(append(dst, `,"name":`...), e.key)
	}
	return append(dst, '}')
}

// hints reports whether v is what the protocol calls the annotations of a resource.
func hints(v []byte) bool {
	var a struct {
		Audience     []string `json:"audience"`
		LastModified string   `json:"lastModified"`
		Priority     float64  `json:"priority"`
	}
	return raw.KindOf(v) == raw.Object && json.Unmarshal(v, &a) == nil
}

// arguments returns those of a prompt's arguments that clients can read, or nil if v is no list.
func arguments(v []byte) []byte {
	if raw.KindOf(v) != raw.Array {
		return nil
	}
	out := []byte{'['}
	for _, e := range raw.Elements(v) {
		if !argument(e) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// argument reports whether v describes an argument as the protocol has it.
func argument(v []byte) bool {
	if raw.KindOf(raw.Get(v, "name")) != raw.String {
		return false
	}
	for m := range raw.Members(v) {
		k := raw.KindOf(m.Val)
		if m.Is("required") && k != raw.Bool || (m.Is("title") || m.Is("description")) && k != raw.String {
			return false
		}
	}
	return true
}
