package openapi

import (
	"slices"

	"mcpbridge/internal/bridge"
)

// okDescription is what every operation says of its answer. The other ways of being answered are
// said here and not in parameters and media types of their own: those would change the
// signature of every method that is generated, for what most callers never use.
const okDescription = "What the tool returned. With Accept: text/event-stream it comes as server-sent events: progress, log and input, then one result or problem. " +
	"Prefer: wait=N bounds the call to N seconds; Prefer: respond-async answers 202 with a job at once, and with wait=N after that time. Idempotency-Key makes the call once, however often it is sent."

// accepted is the response of a call that goes on as a job.
var accepted = compact(`{"Accepted": {
	"description": "The call goes on as a job, at Location: the tool asks something, which requests says and POST …/input answers; or Prefer: respond-async wanted it.",
	"headers": {
		"Location": {"description": "The job, relative to this request.", "schema": {"type": "string"}},
		"Retry-After": {"$ref": "#/components/headers/Retry-After"},
		"Request-Id": {"$ref": "#/components/headers/Request-Id"}
	},
	"content": {"application/json": {
		"schema": {"$ref": "#/components/schemas/Job"},
		"example": {
			"id": "d2u5nqjx3f7wkayv6mbzcp4hrt", "handle": "everything", "tool": "trigger-elicitation-request", "state": "input_required",
			"requests": [{"id": "1", "mode": "form", "message": "Who are you?", "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}]
		}
	}}
}}`)

// jobSchema is the component that accepted refers to.
var jobSchema = compact(`{"Job": {
	"description": "A call that goes on behind its request. There may be members that are not listed here.",
	"type": "object",
	"properties": {
		"id": {"type": "string"},
		"handle": {"type": "string"},
		"tool": {"type": "string"},
		"state": {"type": "string", "enum": ["queued", "running", "input_required", "done", "failed", "cancelled"]},
		"requests": {
			"description": "What the tool asks, in state input_required.",
			"type": "array",
			"items": {
				"type": "object",
				"properties": {
					"id": {"type": "string", "description": "The key of the answer."},
					"mode": {"type": "string", "description": "form, or url for a page to visit."},
					"message": {"type": "string"},
					"schema": {"type": "object", "description": "The JSON Schema of the content that is wanted."},
					"url": {"type": "string"}
				},
				"required": ["id", "mode", "message"]
			}
		}
	},
	"required": ["id", "handle", "tool", "state"]
}}`)

// asks reports whether a plain call of the tool may be answered with a job.
func asks(t *bridge.Tool) bool { return t.Target != nil && t.Target.Asks }

// anyAsks reports whether one of the servers has such a tool.
func anyAsks(servers []*bridge.Server) bool {
	for _, s := range servers {
		if slices.ContainsFunc(offered(s), asks) {
			return true
		}
	}
	return false
}
