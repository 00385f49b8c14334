package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/raw"
)

// list answers tools/list with the entries of the servers' own lists.
func (p *peer) list(ctx context.Context, req *mcp.ListToolsRequest) (mcp.Result, error) {
	view, err := p.s.settled(ctx, p.request(req))
	if err != nil {
		return nil, err
	}
	var from place
	if req.Params != nil && req.Params.Cursor != "" {
		if from, err = parsePlace(req.Params.Cursor); err != nil {
			return nil, err
		}
	} else {
		p.knows(ofTools, view)
	}
	isModern := req.ProtocolVersion() >= modern
	out := []byte(`{"tools":[`)
	n, next := 0, ""
	last := place{}
	for t := range from.behind(view) {
		if n == p.s.opts.PageTools || len(out) > p.s.opts.PageBytes {
			next = last.String()
			break
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = appendEntry(out, t, isModern)
		last = place{t.Handle, t.Name}
		n++
	}
	out = append(out, ']')
	if next != "" {
		out = raw.AppendQuote(append(out, `,"nextCursor":`...), next)
	}
	if isModern {
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return &result{out: p.request(req).out, raw: append(out, '}'), modern: isModern}, nil
}

// appendEntry appends a tool's entry as its server sent it, under its name here.
// What a strict client would refuse the whole list for is left out.
func appendEntry(dst []byte, t *bridge.Tool, isModern bool) []byte {
	dst = raw.AppendQuote(append(dst, `{"name":`...), openapi.OperationID(t.Handle, t.Name))
	for m := range raw.Members(t.Raw) {
		name, val := m.Name(), m.Val
		switch name {
		case "name", "inputSchema", "outputSchema":
			continue
		case "title", "description":
			if raw.KindOf(val) != raw.String {
				continue
			}
		case "annotations":
			if val = annotations(val); val == nil {
				continue
			}
		case "_meta", "execution":
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
	dst = append(append(dst, `,"inputSchema":`...), asObject(t.Input)...)
	switch {
	case t.Output == nil:
	case isModern, raw.GetString(t.Output, "type") == "object":
		dst = append(append(dst, `,"outputSchema":`...), t.Output...)
	}
	return append(dst, '}')
}

// asObject returns the schema with "type": "object", which the protocol demands of
// it in every version: arguments are an object, whatever else the schema says.
func asObject(schema []byte) []byte {
	if raw.KindOf(schema) != raw.Object { // true, which accepts anything
		return []byte(`{"type":"object"}`)
	}
	if raw.GetString(schema, "type") == "object" {
		return schema
	}
	rest := raw.Cut(schema, func(m raw.Member) bool { return m.Is("type") })
	rest = bytes.TrimLeft(rest[bytes.IndexByte(rest, '{')+1:], " \t\r\n")
	if rest[0] == '}' {
		return append([]byte(`{"type":"object"`), rest...)
	}
	return append([]byte(`{"type":"object",`), rest...)
}

// annotations returns a tool's hints without those of a wrong type, or nil if they are none.
func annotations(v []byte) []byte {
	if raw.KindOf(v) != raw.Object {
		return nil
	}
	return raw.Cut(v, func(m raw.Member) bool {
		switch m.Name() {
		case "title":
			return raw.KindOf(m.Val) != raw.String
		case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
			return raw.KindOf(m.Val) != raw.Bool
		}
		return false
	})
}

// icons reports whether v is a list of icons: objects with a source.
func icons(v []byte) bool {
	if raw.KindOf(v) != raw.Array {
		return false
	}
	for _, e := range raw.Elements(v) {
		if raw.KindOf(raw.Get(e, "src")) != raw.String {
			return false
		}
		for m := range raw.Members(e) {
			k := raw.KindOf(m.Val)
			if m.Is("sizes") && k != raw.Array || (m.Is("mimeType") || m.Is("theme")) && k != raw.String {
				return false
			}
		}
	}
	return true
}

// digest is equal for lists that are equal.
func digest(view *bridge.Snapshot, of subject) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, srv := range view.Servers {
		h.Write(raw.AppendQuote(nil, srv.Handle))
		switch of {
		case ofTools:
			for _, t := range srv.Tools {
				h.Write(t.Raw) // which says where it ends
			}
		case ofResources:
			for _, l := range [...][]*bridge.Resource{srv.Resources, srv.Templates} {
				for _, r := range l {
					h.Write(r.Raw)
				}
				h.Write([]byte{0})
			}
		case ofPrompts:
			for _, e := range srv.Prompts {
				h.Write(e.Raw)
			}
		}
	}
	h.Sum(sum[:0])
	return sum
}

// A place is a tool, or another entry, in its list, behind which another page begins. To clients it is an opaque string.
type place struct {
	Handle string `json:"h"`
	Tool   string `json:"t"`
}

func (c place) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // two strings
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePlace(s string) (c place, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Handle == "" {
		return c, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none that was given out; list again without one"}
	}
	return c, nil
}

// behind yields the tools that come after the place, all of them for the zero one.
// Where its tool is gone, its server's list begins anew: twice is better than never.
func (c place) behind(view *bridge.Snapshot) func(yield func(*bridge.Tool) bool) {
	return func(yield func(*bridge.Tool) bool) {
		for _, srv := range view.Servers {
			tools := srv.Tools
			switch {
			case srv.Handle < c.Handle:
				continue
			case srv.Handle == c.Handle:
				for i, t := range tools {
					if t.Name == c.Tool {
						tools = tools[i+1:]
						break
					}
				}
			}
			for _, t := range tools {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// names finds tools by the names that they are published under.
type names struct {
	last atomic.Pointer[index]
}

// An index is of the names in one snapshot that do not say themselves what they name.
type index struct {
	snap  *bridge.Snapshot
	tools map[string]*bridge.Tool
}

// find returns the tool that is published under name, or nil.
func (n *names) find(snap *bridge.Snapshot, name string) *bridge.Tool {
	if handle, tool, ok := strings.Cut(name, separator); ok && openapi.OperationID(handle, tool) == name {
		if srv := snap.Server(handle); srv != nil {
			return srv.Tool(tool)
		}
		return nil
	}
	ix := n.last.Load()
	if ix == nil || ix.snap != snap {
		ix = &index{snap, make(map[string]*bridge.Tool)}
		for t := range snap.Tools() {
			if id := openapi.OperationID(t.Handle, t.Name); id != t.Handle+separator+t.Name {
				ix.tools[id] = t
			}
		}
		n.last.Store(ix)
	}
	return ix.tools[name]
}

// separator stands between handle and tool in a name.
const separator = "__"
