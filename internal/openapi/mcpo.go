package openapi

import (
	"strings"

	"mcpbridge/internal/bridge"
)

// The documents of /mcpo, which serves the tools as the program mcpo does: a
// result is its blocks' contents alone, and a failure is {"detail": …}.

// WholeMCPO returns the document of all tools of a view in mcpo's shapes. Its
// paths are /{handle}/{tool}. mcpo's own has no operations at that place, so the
// operations are named as in [Documents.Whole], where names are unique.
func (d *Documents) WholeMCPO(view *bridge.Snapshot) *Document {
	return d.cache.get(viewKey("mcpo", view.Servers), view.Servers, func() []byte { return d.o.wholeMCPO(view.Servers) })
}

// HandleMCPO returns the document of one server of the view in mcpo's shapes, or
// nil if the view has no such server. Its paths are the tools' names alone, and
// its operations are named as mcpo names them: tool_<name>_post.
func (d *Documents) HandleMCPO(view *bridge.Snapshot, handle string) *Document {
	s := view.Server(handle)
	if s == nil {
		return nil
	}
	servers := []*bridge.Server{s}
	return d.cache.get(viewKey("mcpo handle", servers), servers, func() []byte { return d.o.handleMCPO(s) })
}

func (o *Options) wholeMCPO(servers []*bridge.Server) []byte {
	var b strings.Builder
	b.WriteString(o.Description)
	if len(servers) > 0 {
		b.WriteString("\n\nEach server has a document and a page of its own:\n")
	}
	for _, s := range servers { // nothing in an escaped handle means anything in Markdown's links
		b.WriteString("\n- [" + segment(s.Handle) + "](" + segment(s.Handle) + "/docs)")
	}
	w := o.head(servers, o.Title, o.Version, b.String())
	w.key("paths").open('{')
	names := idSet{}
	for _, s := range servers {
		for _, t := range offered(s) {
			w.key("/" + segment(t.Handle) + "/" + segment(t.Name)).open('{').key("post")
			o.operationMCPO(w, t, names.add(OperationID(t.Handle, t.Name), t))
			w.close('}')
		}
	}
	w.close('}')
	return componentsMCPO(w, servers)
}

func (o *Options) handleMCPO(s *bridge.Server) []byte {
	servers := []*bridge.Server{s}
	w := o.handleHead(s)
	w.key("paths").open('{')
	names := idSet{}
	for _, t := range offered(s) {
		w.key("/" + segment(t.Name)).open('{').key("post")
		o.operationMCPO(w, t, names.add(mcpoID(t.Name), t))
		w.close('}')
	}
	w.close('}')
	return componentsMCPO(w, servers)
}

func (o *Options) operationMCPO(w *writer, t *bridge.Tool, id string) {
	o.request(w, t, id)
	w.key("responses").open('{')
	w.key("200").open('{').text("description", "What the tool returned: the content of its one block, or a list of the contents of several. Text that is JSON is that JSON, bytes are a data: URI.")
	w.key("headers").open('{').bytes(okHeaders).close('}')
	w.key("content").open('{').key("application/json").open('{').key("schema").open('{')
	if t.Output != nil {
		// Most say the same in a text block, but no rule makes them.
		w.key("anyOf").open('[').bytes(published(t).output).raw(`{}`).close(']')
	}
	w.close('}').close('}').close('}').close('}')
	for _, p := range failures {
		w.reference(p.status, "responses", p.name)
	}
	w.close('}')
	hints(w, t)
}

// failures are all the failures of a call, by status.
var failures = []problem{
	{"400", "malformed-request", "A header or the query is wrong, or the server could not read the request.", false},
	{"401", "unauthenticated", "There is no credential.", false},
	{"403", "forbidden", "The credential is wrong or lacks the right, or the request's Origin or Host is not one that this service answers to.", false},
	{"404", "not-found", "There is no such tool, or the caller may not see it, or the server says so.", false},
	{"413", "request-too-large", "The body is over the limit for requests.", false},
	{"415", "unsupported-media-type", "The body is declared as something else than JSON.", false},
	{"422", "unprocessable", "The body is not one JSON object, or does not fit the tool's schema: detail lists where. Or the server refuses the arguments.", false},
	{"429", "rate-limited", "The caller is over its own rate or concurrency.", true},
	{"500", "failed", "The tool ran and reported failure, the server answered an error, or this service has a fault.", false},
	{"502", "bad-upstream", "The server failed, or its answer cannot be used.", false},
	{"503", "unavailable", "The call was not made, and can be tried again later.", true},
	{"504", "deadline-exceeded", "The call's time was up; the server was told to cancel.", false},
}

const failureSchemas = `
"Failure": {
	"description": "Why a request failed.",
	"type": "object",
	"properties": {
		"detail": {
			"anyOf": [
				{"type": "string", "description": "What happened and what to do."},
				{"type": "array", "description": "What is wrong with the arguments.", "items": {"$ref": "#/components/schemas/ValidationError"}},
				{
					"description": "What the tool or its server said.",
					"type": "object",
					"properties": {
						"message": {"type": "string"},
						"data": {"description": "More than text: what the server sent with its error, or the tool's other blocks."}
					},
					"required": ["message"]
				}
			]
		}
	},
	"required": ["detail"]
},
"ValidationError": {
	"description": "One fault of the arguments.",
	"type": "object",
	"properties": {
		"type": {"type": "string", "description": "The rule that is broken.", "examples": ["missing"]},
		"loc": {
			"description": "Where: body, and the keys and indices from there.",
			"type": "array",
			"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}
		},
		"msg": {"type": "string"}
	},
	"required": ["loc", "msg", "type"]
}`

// What every document of these has in common.
var (
	commonFailures   = compact("{" + failureSchemas + "}")
	failureResponses = responses(failures, `{"application/json":{"schema":{"$ref":"#/components/schemas/Failure"}}}`)
)

func componentsMCPO(w *writer, servers []*bridge.Server) []byte {
	return parts(w, servers, commonFailures, failureResponses, nil)
}
