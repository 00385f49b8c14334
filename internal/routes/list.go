package routes

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"mcpbridge/internal/bridge"
)

// A cursor says which tool a page ended with: by name, and by its place in the
// server's list in case it is gone when the next page is asked for. To callers it
// is an opaque string.
type cursor struct {
	Handle string `json:"h"`
	Tool   string `json:"t"`
	Index  int    `json:"i"`
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, &bridge.Error{Kind: bridge.Malformed, Op: "routes.list", Msg: "The cursor is none that was given out; start again without one.", Err: err}
	}
	return c, nil
}

// listPage returns the page of the servers' tools that a request asks for.
func listPage(r *http.Request, servers []*bridge.Server, in ListInput, up string) (ToolList, error) {
	p := ToolList{Tools: []ToolInfo{}}
	var after cursor
	if in.Cursor != "" {
		var err error
		if after, err = parseCursor(in.Cursor); err != nil {
			return p, err
		}
	}
	var last cursor
	q := strings.ToLower(in.Q)
	for _, srv := range servers {
		start := after.in(srv)
		for i, t := range srv.Tools {
			if !has(t, q) {
				continue
			}
			p.Total++
			switch {
			case i < start:
			case len(p.Tools) < in.Limit:
				p.Tools = append(p.Tools, toolInfo(t, up))
				last = cursor{srv.Handle, t.Name, i}
			case p.Next == "":
				p.Next = next(r, last)
			}
		}
	}
	return p, nil
}

// in returns the index of the first of srv's tools that comes after the cursor.
func (c cursor) in(srv *bridge.Server) int {
	switch {
	case srv.Handle < c.Handle:
		return len(srv.Tools)
	case srv.Handle > c.Handle:
		return 0
	}
	for i, t := range srv.Tools {
		if t.Name == c.Tool {
			return i + 1
		}
	}
	return c.Index // it is gone, and those behind it moved up
}

// has reports whether the tool's texts hold q, which is in lower case.
func has(t *bridge.Tool, q string) bool {
	return q == "" ||
		strings.Contains(strings.ToLower(t.Name), q) ||
		strings.Contains(strings.ToLower(t.Title), q) ||
		strings.Contains(strings.ToLower(t.Description), q)
}

// next is the reference to the page that goes on after c: the same request with another cursor.
func next(r *http.Request, c cursor) string {
	q := r.URL.Query()
	q.Set("cursor", c.String())
	return "?" + q.Encode()
}
