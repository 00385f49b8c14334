package routes

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/raw"
)

// A failureMCPO is an answer of /mcpo that is an error: a status, and the value of detail.
type failureMCPO struct {
	status int
	detail []byte
}

// failMCPO answers with err in mcpo's form.
func (x *exchange) failMCPO(r *http.Request, err error) {
	p := x.problem(err)
	f := x.failureMCPO(p, err)
	h := x.Header()
	p.prepare(h)
	if ref, ok := p.members["artifact_ref"].(string); ok {
		x.named(r, ref, "")
	}
	x.send(r, f.status, "application/json", append(append([]byte(`{"detail":`), f.detail...), '}'))
}

// failureMCPO turns an error into what mcpo would have answered in its place.
// Where mcpo knows no such failure, the status is ours.
func (x *exchange) failureMCPO(p *Problem, err error) failureMCPO {
	e, ok := errors.AsType[*bridge.Error](err)
	switch {
	case p.Code == Unauthenticated && !errors.Is(err, identity.ErrNoCredential):
		// There a wrong key is forbidden, and only one that is missing unauthenticated.
		return failureMCPO{http.StatusForbidden, said(p.Detail)}
	case p.Code == bridge.Malformed && ok:
		if at, ok := errors.AsType[*raw.SyntaxError](e.Err); ok {
			loc := strconv.AppendInt([]byte(`["body",`), int64(at.Offset), 10)
			return failureMCPO{http.StatusUnprocessableEntity, faults(fault("json_invalid", append(loc, ']'), p.Detail))}
		}
	case p.Code == bridge.InvalidArguments:
		return failureMCPO{http.StatusUnprocessableEntity, x.faultsMCPO(p)}
	case p.Code == bridge.ToolError && ok && e.Result != nil:
		return failureMCPO{http.StatusInternalServerError, toolErrorMCPO(e.Result)}
	case p.Code == bridge.UpstreamError && p.members["upstream_code"] != nil:
		return upstreamMCPO(p)
	}
	if p.Status >= http.StatusInternalServerError {
		return failureMCPO{p.Status, told(p.Detail, nil)}
	}
	return failureMCPO{p.Status, said(p.Detail)}
}

// said is the detail of what is refused before anything is called: a text.
func said(text string) []byte { return raw.AppendQuote(nil, text) }

// told is the detail of a call that failed: a message, and perhaps more.
func told(message string, data []byte) []byte {
	b := raw.AppendQuote([]byte(`{"message":`), message)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, '}')
}

// toolErrorMCPO is the detail of a tool's own error: all its texts, whole, and the
// other blocks as a result would have them.
func toolErrorMCPO(res *bridge.Result) []byte {
	text, ok := texts(res)
	if only := onlyTexts(res); ok && only {
		return told(string(text), nil)
	}
	body := bodyMCPO(res)
	if string(body) == "[]" {
		body = nil
	}
	if !ok {
		text = []byte("The tool reported an error without a text.")
	}
	return told(string(text), body)
}

func onlyTexts(res *bridge.Result) bool {
	for b := range res.Blocks() {
		if _, ok := b.Text(); !ok {
			return false
		}
	}
	return true
}

// upstreamMCPO maps the codes of JSON-RPC errors to the statuses that mcpo gives them.
func upstreamMCPO(p *Problem) failureMCPO {
	status := http.StatusInternalServerError
	switch p.members["upstream_code"] {
	case int64(-32700), int64(-32600):
		status = http.StatusBadRequest
	case int64(-32601):
		status = http.StatusNotFound
	case int64(-32602):
		status = http.StatusUnprocessableEntity
	}
	message, _ := p.members["upstream_message"].(string)
	var data []byte
	if v, ok := p.members["upstream_data"]; ok {
		data, _ = encode(v) // it is JSON that came from the server
	}
	return failureMCPO{status, told(message, data)}
}

// faultsMCPO lists what is wrong with the arguments as FastAPI does, which mcpo is built on.
func (x *exchange) faultsMCPO(p *Problem) []byte {
	found, err := encode(p.members["errors"])
	var list [][]byte
	if err == nil {
		for _, f := range raw.Elements(found) {
			list = append(list, x.faultMCPO(f))
		}
	}
	if list == nil {
		list = [][]byte{fault("value_error", []byte(`["body"]`), p.Detail)}
	}
	return faults(list...)
}

func faults(list ...[]byte) []byte {
	b := []byte{'['}
	for i, f := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f...)
	}
	return append(b, ']')
}

// fault is one fault; loc is JSON.
func fault(kind string, loc []byte, message string) []byte {
	b := raw.AppendQuote([]byte(`{"type":`), kind)
	b = append(append(b, `,"loc":`...), loc...)
	b = raw.AppendQuote(append(b, `,"msg":`...), message)
	return append(b, '}')
}

// faultMCPO turns one finding of the schema check into a fault. Its type is the
// schema's keyword, but for the two that FastAPI has words for; these name the
// member, not its object.
func (x *exchange) faultMCPO(finding []byte) []byte {
	message, pointer, rule := raw.GetString(finding, "message"), raw.GetString(finding, "pointer"), raw.GetString(finding, "schema_pointer")
	loc := x.locMCPO(pointer)
	kind := rule[strings.LastIndexByte(rule, '/')+1:]
	quoted := ""
	switch kind {
	case "required":
		kind, quoted = "missing", strings.TrimPrefix(message, "misses ")
	case "additionalProperties":
		kind, quoted = "extra_forbidden", strings.TrimPrefix(message, "does not allow ")
	}
	if raw.KindOf([]byte(quoted)) == raw.String && raw.CheckAny([]byte(quoted)) == nil {
		loc = append(append(loc[:len(loc)-1], ','), quoted...)
		loc = append(loc, ']')
	}
	return fault(kind, loc, message)
}

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// locMCPO is a pointer into the arguments as FastAPI has it: body, keys, and indices as numbers.
func (x *exchange) locMCPO(pointer string) []byte {
	loc := []byte(`["body"`)
	at := []byte(nil)
	if x.call != nil {
		at = x.call.Args
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		name := unescapeToken.Replace(token)
		loc = append(loc, ',')
		if raw.KindOf(at) != raw.Array {
			loc, at = raw.AppendQuote(loc, name), raw.Get(at, name)
			continue
		}
		loc = append(loc, name...)
		for i, e := range raw.Elements(at) {
			if strconv.Itoa(i) == name {
				at = e
				break
			}
		}
	}
	return append(loc, ']')
}
