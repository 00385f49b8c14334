package routes

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
)

func (s *server) callRoutes() {
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/tools/{handle}/{tool}", OperationID: "call-tool", Tags: []string{"calls"},
		Summary:     "Call a tool",
		Description: "Runs the tool. The body is its arguments, one JSON object; an empty body is {}. What the tool takes and returns is in the bridge's own OpenAPI document.",
		Parameters:  append([]*huma.Param{handleParam, toolParam}, callParams...),
		RequestBody: argumentsBody,
		Responses:   s.callAnswers(),
	}, func(x *exchange, r *http.Request) error {
		return x.invoke(r, segment(r, "handle"), segment(r, "tool"))
	})
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/tools/{handle}", OperationID: "call-tool-by-query", Tags: []string{"calls"},
		Summary:     "Call a tool named in the query",
		Description: "The same as POST /tools/{handle}/{tool}, for names that a path or a proxy cannot carry.",
		Parameters:  append([]*huma.Param{handleParam, toolQuery}, callParams...),
		RequestBody: argumentsBody,
		Responses:   s.callAnswers(),
	}, func(x *exchange, r *http.Request) error {
		q, err := query(r)
		if err != nil {
			return err
		}
		if len(q["tool"]) != 1 {
			return &bridge.Error{Kind: bridge.Malformed, Op: "routes.call", Msg: "The query must name one tool: POST /tools/{handle}?tool=name, or POST /tools/{handle}/{tool}."}
		}
		return x.invoke(r, segment(r, "handle"), q["tool"][0])
	})
}

// invoke answers a call. All that can be refused without the tool is refused first, the body last.
func (x *exchange) invoke(r *http.Request, handle, tool string) (err error) {
	c := &bridge.Call{Handle: handle, Tool: tool}
	x.call = c
	if c.Caller, err = x.identify(r); err != nil {
		return err
	}
	if c.DryRun, err = dryRun(r); err != nil {
		return err
	}
	accept := parseAccept(r.Header["Accept"])
	m, err := x.manner(r, accept)
	if err != nil {
		return err
	}
	if !m.stream {
		if err := accept.check(); err != nil {
			return err
		}
	}
	if c.Args, err = x.readBody(r); err != nil {
		return err
	}
	// As late as can be: the tool may change while its caller sends the body.
	if err := x.precondition(r, c); err != nil {
		return err
	}
	if !c.DryRun && (m.async || m.stream || m.key != "" || x.mayAsk(c)) {
		return x.viaJob(r, c, m, func(a *bridge.Answer) { x.answer(r, a, accept) })
	}
	a, err := x.perform(r, c, m.wait)
	x.Header()["Vary"] = varyCall
	if err != nil {
		return err
	}
	x.breach = a.Breach
	if c.DryRun {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	x.answer(r, a, accept)
	return nil
}

// perform makes the call, within wait if that is not zero.
func (x *exchange) perform(r *http.Request, c *bridge.Call, wait time.Duration) (*bridge.Answer, error) {
	h := x.Header()
	if wait > 0 { // from the request's arrival, so the body's time counts
		h.Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait.Seconds())))
		c.Timeout = max(wait-time.Since(x.start), time.Nanosecond)
	}
	x.origin(c)
	a, err := x.s.Bridge.Invoke(r.Context(), c)
	h["Server-Timing"] = []string{serverTiming(&c.Timing)}
	x.rate(h, c.Caller)
	return a, err
}

// precondition holds a call to the schemas that its caller knows, if it says which.
func (x *exchange) precondition(r *http.Request, c *bridge.Call) error {
	known := r.Header["If-Match"]
	if known == nil {
		return nil
	}
	tool, err := x.s.Bridge.Find(c)
	if err != nil {
		return err
	}
	if hasTag(known, tool.SchemaHash) {
		return nil
	}
	return &bridge.Error{
		Kind: SchemaChanged, Op: "routes.call",
		Msg:     fmt.Sprintf("The schemas of %q of %q are not those that If-Match names; GET /tools/%s/%s has them.", c.Tool, c.Handle, url.PathEscape(c.Handle), url.PathEscape(c.Tool)),
		Members: map[string]any{"schema_sha256": tool.SchemaHash},
	}
}

// hasTag reports whether a list of entity tags, as in If-Match, has one for a hash.
// The bare hash will do; a weak tag never matches (RFC 9110 section 13.1.1).
func hasTag(values []string, hash string) bool {
	for _, v := range values {
		for tag := range strings.SplitSeq(v, ",") {
			if tag = strings.Trim(tag, " \t"); tag == "*" || tag == hash || tag == `"`+hash+`"` {
				return true
			}
		}
	}
	return false
}

// dryRun reads the query of a call. A key that is none of ours is refused: a
// mistyped dry_run must not run the tool.
func dryRun(r *http.Request) (bool, error) {
	q, err := query(r)
	if err != nil {
		return false, err
	}
	for k := range q {
		if k != "dry_run" && k != "tool" {
			return false, &bridge.Error{Kind: bridge.Malformed, Op: "routes.call", Msg: fmt.Sprintf("The query key %.100q is unknown; a call takes dry_run, and tool where the path names none. Arguments go into the body.", k)}
		}
	}
	switch q.Get("dry_run") {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, &bridge.Error{Kind: bridge.Malformed, Op: "routes.call", Msg: "dry_run is 1 or 0."}
	}
}

// query parses the request's query, all of it or none.
func query(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &bridge.Error{Kind: bridge.Malformed, Op: "routes.query", Msg: "The query cannot be read: it has a wrong escape or a semicolon.", Err: err}
	}
	return q, nil
}

// ---- what the document says of calls

var (
	handleParam = param("path", "handle", "The server's name in the bridge, percent-encoded.")
	toolParam   = param("path", "tool", "The tool's name, percent-encoded: a slash in it is %2F.")
	toolQuery   = func() *huma.Param {
		p := param("query", "tool", "The tool's name.")
		p.Required = true
		return p
	}()

	callParams = []*huma.Param{
		{
			Name: "dry_run", In: "query",
			Description: "With 1, the call is checked but not made: 204 says that the tool exists, the arguments fit its schema and its server is not held off.",
			Schema:      &huma.Schema{Type: huma.TypeString, Enum: []any{"0", "1", "false", "true"}},
		},
		param("header", "If-Match", "The schema_sha256 that the caller knows of the tool, as an entity tag: if the tool has other schemas by now, it is not called."),
		param("header", "Idempotency-Key", "Names the call: one that is repeated under the same key is made once, and each gets the answer of the first."),
		param("header", "Prefer", "wait=N gives the call N seconds at most. respond-async answers 202 with a job at once or, with wait=N, if the call lasts longer than that. return=minimal answers the summary view of the artifact, in which long texts are cut."),
	}

	argumentsBody = &huma.RequestBody{
		Description: "The arguments; the tool's own schema decides what they must be.",
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
		}},
	}
)

func (s *server) callAnswers() map[string]*huma.Response {
	ok := &huma.Response{
		Description: "The result's data: its structured content as the server sent it, or {\"content\": [...]} with its content blocks. With another Accept, its text, or the bytes of its one image or audio block of that type.",
		Headers: map[string]*huma.Header{
			"Server-Timing":        textHeader("How long each step took, in milliseconds."),
			"Idempotency-Replayed": textHeader("The answer is that of an earlier call under the same key."),
			"Preference-Applied":   textHeader("What was honoured of Prefer."),
			"Artifact-Ref":         textHeader("The reference under which the whole result is kept, if it is."),
			"Artifact-Type":        textHeader("The type of the kept result."),
			"Content-Location":     textHeader("Where GET returns this very answer again."),
			"Link":                 textHeader("The whole result (alternate), when it holds more than its data."),
		},
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{}},
			"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}},
			"image/*":          {Schema: &huma.Schema{}},
			"audio/*":          {Schema: &huma.Schema{}},
		},
	}
	m := s.answers(ok,
		bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, NotAcceptable, SchemaChanged, TooLarge, UnsupportedMediaType,
		bridge.InvalidArguments, bridge.ToolError, bridge.RateLimited, bridge.UpstreamError, bridge.UpstreamAuth, bridge.OutcomeUnknown,
		bridge.ResultTooLarge, bridge.InvalidResult, bridge.Overloaded, bridge.Unavailable, bridge.NotReady, bridge.DeadlineExceeded,
		bridge.IdempotencyConflict, bridge.StoreUnavailable)
	ok.Content["text/event-stream"] = eventsType()
	m["202"] = s.acceptedAnswer("The call goes on as a job: with Prefer: respond-async, or because the server asks something.")
	m["204"] = &huma.Response{Description: "The dry run found nothing against the call."}
	return m
}
