package routes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

const (
	problemType = "application/problem+json"

	listed     = 20      // members of a list that a problem shows
	detailText = 2 << 10 // bytes of its detail
)

// A Problem is the body of every answer that is an error (RFC 9457).
type Problem struct {
	Type      string      `json:"type" format:"uri-reference" doc:"Where this kind of problem is explained." example:"/problems/not-found"`
	Title     string      `json:"title" doc:"What kind of problem it is, for people."`
	Status    int         `json:"status" doc:"The HTTP status."`
	Detail    string      `json:"detail" doc:"What happened, and what to do about it."`
	Code      bridge.Kind `json:"code" doc:"What kind of problem it is, for programs: the end of type."`
	RequestID string      `json:"request_id" doc:"Names this request in the bridge's log; also in the header Request-Id."`

	members map[string]any // more members, by name
	header  http.Header
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.HeadersError      = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
)

func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

// problem makes what the caller may see of err: its message and members, but not its cause.
func (x *exchange) problem(err error) *Problem {
	kind := bridge.KindOf(err)
	m, ok := meanings[kind]
	if !ok { // Canceled, though the caller is still there: not the caller's doing
		kind = bridge.Internal
		m = meanings[kind]
	}
	p := &Problem{
		// A full path, so that the type is the same at whatever path the problem was met.
		Type:  x.s.BasePath + "/problems/" + string(kind),
		Title: m.title, Status: m.status, Code: kind, RequestID: x.id, Detail: m.what,
		header: http.Header{},
	}
	if c := challenge(kind, err); c != "" {
		p.header.Set("WWW-Authenticate", c)
	}
	if e, ok := errors.AsType[*bridge.Error](err); ok && e.Kind == kind {
		p.Detail = short(cmp.Or(e.Msg, m.what))
		p.members = e.Members
		if e.RetryAfter > 0 {
			// Whole seconds, and never too early.
			p.header.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
		}
	}
	return p
}

// short returns s up to a bound, without half a character at its end.
func short(s string) string {
	if len(s) <= detailText {
		return s
	}
	return strings.ToValidUTF8(s[:detailText], "") + "…"
}

// write answers with p.
func (p *Problem) write(x *exchange, r *http.Request) {
	p.link(x, r)
	body, err := p.MarshalJSON()
	if err != nil { // a member that cannot be JSON: a bug, but the rest is true
		x.s.log.ErrorContext(r.Context(), "a problem has a member that is not JSON", "code", p.Code, "error", err)
		p.members = nil
		body, _ = p.MarshalJSON()
	}
	p.prepare(x.Header())
	x.send(r, p.Status, problemType, body)
}

// prepare sets the headers of an answer that is an error, and takes away those of one that was begun.
func (p *Problem) prepare(h http.Header) {
	maps.Copy(h, p.header)
	for _, name := range [...]string{"ETag", "Expires", "Accept-Ranges", "Content-Encoding", "Content-Disposition"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
}

// link makes the reference to a kept result one that can be followed, or takes it
// out where there is nothing to follow.
func (p *Problem) link(x *exchange, r *http.Request) {
	const name = "artifact_ref"
	ref, ok := p.members[name].(string)
	if !ok {
		return
	}
	p.members = maps.Clone(p.members)
	if x.s.Artifacts != nil {
		p.members["artifact"] = artifactRef(x, r, ref)
	} else {
		delete(p.members, name)
	}
}

// MarshalJSON writes the members of RFC 9457 first, then ours, then the others by name.
func (p *Problem) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 512), '{')
	field := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(raw.AppendQuote(b, name), ':')
	}
	text := func(name, value string) {
		field(name)
		b = raw.AppendQuote(b, value)
	}
	text("type", p.Type)
	text("title", p.Title)
	field("status")
	b = strconv.AppendInt(b, int64(p.Status), 10)
	text("detail", p.Detail)
	text("code", string(p.Code))
	if p.RequestID != "" {
		text("request_id", p.RequestID)
	}
	members := brief(p.members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		v, err := encode(members[name])
		if err != nil {
			return nil, err
		}
		field(name)
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// brief returns members with long lists cut, each beside its whole length, and
// without those that would say again what every problem says.
func brief(members map[string]any) map[string]any {
	out := make(map[string]any, len(members))
	for name, v := range members {
		switch name {
		case "type", "title", "status", "detail", "code", "request_id":
			continue
		}
		if _, ok := v.(json.RawMessage); !ok {
			if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.Len() > listed {
				if _, known := members[name+"_count"]; !known {
					out[name+"_count"] = rv.Len()
				}
				v = rv.Slice(0, listed).Interface()
			}
		}
		out[name] = v
	}
	return out
}

// init makes huma's own errors problems of ours; it has only global variables for
// that. NewError serves to describe them in documents.
func init() {
	huma.NewError = func(status int, msg string, _ ...error) huma.StatusError {
		return &Problem{Status: status, Detail: msg}
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		_, w := humachi.Unwrap(ctx)
		x := w.(*exchange)
		err := &bridge.Error{Kind: bridge.Malformed, Op: "huma", Msg: parameterErrors(errs)}
		if status >= 500 {
			err = &bridge.Error{Kind: bridge.Internal, Op: "huma", Err: fmt.Errorf("%s: %w", msg, errors.Join(errs...))}
		}
		x.note(err)
		return x.problem(err)
	}
}

// parameterErrors says which parameters are wrong, and how.
func parameterErrors(errs []error) string {
	parts := []string{}
	for _, err := range errs[:min(len(errs), listed)] {
		d := &huma.ErrorDetail{Message: err.Error()}
		if e, ok := err.(huma.ErrorDetailer); ok {
			d = e.ErrorDetail()
		}
		parts = append(parts, strings.TrimPrefix(d.Location+": "+d.Message, ": "))
	}
	return "The request's parameters are not right: " + strings.Join(parts, "; ") + "."
}
