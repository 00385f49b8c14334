package publish

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/raw"
)

// A result is one whose JSON is there already. It is sent as it is, but for what is
// added here, and line ends between its tokens, which become spaces.
type result struct {
	mcp.ResultBase // which makes it a result to the SDK; its field stays empty

	out    *splices
	raw    []byte // a JSON object
	ref    string // of the artifact, to be added to its _meta; "" adds none
	modern bool   // the client wants to be told that the result is complete, and whose it is
	server any    // what says whose it is; the SDK sets it
}

const (
	refKey    = "artifact_ref"
	serverKey = mcp.MetaKeyServerInfo
)

// GetMeta says no more of _meta than the SDK asks for: whether it names a server.
func (r *result) GetMeta() map[string]any {
	if v := raw.Get(raw.Get(r.raw, "_meta"), serverKey); v != nil {
		return map[string]any{serverKey: json.RawMessage(v)}
	}
	return map[string]any{}
}

// SetMeta takes from the SDK what it adds to _meta.
func (r *result) SetMeta(m map[string]any) { r.server = m[serverKey] }

// MarshalJSON returns the mark of the object with what is added to it.
func (r *result) MarshalJSON() ([]byte, error) {
	b, err := r.whole()
	if err != nil {
		return nil, err
	}
	return r.out.hold(b), nil
}

func (r *result) whole() ([]byte, error) {
	var add []byte // members of _meta
	drop := map[string]bool{}
	if r.ref != "" {
		drop[refKey] = true
		add = raw.AppendQuote(append(add, `,"`+refKey+`":`...), "«artifact:"+r.ref+"»")
	}
	if r.server != nil && r.modern {
		b, err := json.Marshal(r.server)
		if err != nil {
			return nil, err
		}
		drop[serverKey] = true
		add = append(append(add, `,"`+serverKey+`":`...), b...)
	}
	out := r.raw
	if add != nil {
		out = withMeta(out, add[1:], drop)
	}
	if r.modern && raw.Get(out, "resultType") == nil {
		out = withMember(out, []byte(`"resultType":"complete"`))
	}
	return out, nil
}

// withMeta returns the object v with members added to its _meta, in place of those that are dropped.
func withMeta(v, add []byte, drop map[string]bool) []byte {
	meta := raw.Get(v, "_meta")
	if raw.KindOf(meta) != raw.Object {
		v = raw.Cut(v, func(m raw.Member) bool { return m.Is("_meta") })
		return withMember(v, append(append([]byte(`"_meta":{`), add...), '}'))
	}
	at := cap(v) - cap(meta) // meta is a part of v
	changed := withMember(raw.Cut(meta, func(m raw.Member) bool { return drop[m.Name()] }), add)
	out := make([]byte, 0, len(v)+len(changed)-len(meta))
	out = append(append(out, v[:at]...), changed...)
	return append(out, v[at+len(meta):]...)
}

// withMember returns the object v with one member or more at its end.
func withMember(v, member []byte) []byte {
	end := bytes.LastIndexByte(v, '}')
	body := bytes.TrimRight(v[:end], " \t\r\n")
	out := append(make([]byte, 0, len(v)+len(member)+1), body...)
	if body[len(body)-1] != '{' {
		out = append(out, ',')
	}
	return append(append(out, member...), '}')
}
