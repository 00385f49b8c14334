package openapi

import (
	"bytes"
	"encoding/json"
)

const wholeDescription = "The tools of MCP servers as HTTP operations: the request body is a tool's arguments, the answer is what it returned."

// A problem is one status that a call can answer besides 200, as a shared response.
type problem struct {
	status, name, description string
	retry                     bool // it can say when to come back
}

// problems are all the failures of a call, by status. Every operation refers to each.
var problems = []problem{
	{"400", "malformed-request", "The body is not one strict JSON object, or a header or query is wrong.", false},
	{"401", "unauthenticated", "The request has no credential, or a wrong one.", false},
	{"403", "forbidden", "The request's Origin or Host is not one that this service answers to, or the caller lacks the right.", false},
	{"404", "not-found", "There is no such tool any more, or the caller may not see it.", false},
	{"406", "not-acceptable", "No tool can answer in a media type that the Accept header allows.", false},
	{"412", "schema-changed", "The schemas of the tool are no longer those that If-Match names; nothing was called.", false},
	{"413", "request-too-large", "The body is over the limit for requests.", false},
	{"415", "unsupported-media-type", "The body is not declared as JSON.", false},
	{"422", "unprocessable", "invalid-arguments: the arguments do not fit the tool's schema, errors says where. tool-error: the tool ran and reported failure, content holds what it said.", false},
	{"429", "rate-limited", "The caller is over its own rate or concurrency.", true},
	{"500", "internal", "A fault of this service.", false},
	{"502", "bad-upstream", "upstream-error, upstream-auth, outcome-unknown, result-too-large or invalid-result: the MCP server failed, or its answer cannot be used.", false},
	{"503", "unavailable", "overloaded, server-unavailable, not-ready or store-unavailable: the call was not made, and can be tried again later.", true},
	{"504", "deadline-exceeded", "The call's time was up; the server was told to cancel.", false},
}

// responseHeaders are the headers of an answer; problems carry the first alone.
var responseHeaders = []struct{ name, description string }{
	{"Request-Id", "Names this request in the service's log."},
	{"Artifact-Ref", "The reference under which the whole result is kept, if it is."},
	{"Artifact-Type", "The type of the kept result."},
	{"Server-Timing", "Where the call's time went, by step."},
}

// fixedSchemas are the components that every document has.
const fixedSchemas = `
"Content": {
	"description": "What a tool without structured output returned: its content blocks, as sent.",
	"type": "object",
	"properties": {
		"content": {"type": "array", "items": {"$ref": "#/components/schemas/ContentBlock"}}
	},
	"required": ["content"]
},
"ContentBlock": {
	"description": "One block of content. Its type says which of the other members it has; there may be types and members that are not listed here.",
	"type": "object",
	"properties": {
		"type": {"type": "string", "description": "text, image, audio, resource, resource_link, or another.", "examples": ["text"]},
		"text": {"type": "string", "description": "The text of a text block."},
		"data": {"type": "string", "description": "The bytes of an image or audio block, in base64."},
		"mimeType": {"type": "string", "description": "The media type of data, or of the linked resource."},
		"uri": {"type": "string", "description": "Where a linked resource is."},
		"name": {"type": "string", "description": "The name of a linked resource."},
		"title": {"type": "string", "description": "The title of a linked resource, for people."},
		"description": {"type": "string", "description": "What a linked resource is."},
		"size": {"type": "integer", "description": "The size of a linked resource in bytes."},
		"resource": {
			"description": "An embedded resource: its text, or its bytes as a blob in base64.",
			"type": "object",
			"properties": {
				"uri": {"type": "string"},
				"mimeType": {"type": "string"},
				"text": {"type": "string"},
				"blob": {"type": "string"}
			}
		},
		"annotations": {"type": "object", "description": "Hints for clients: audience, priority, lastModified."},
		"_meta": {"type": "object", "description": "What the server adds."}
	},
	"required": ["type"]
},
"Problem": {
	"description": "Why a request failed (RFC 9457). There may be members that are not listed here.",
	"type": "object",
	"properties": {
		"type": {"type": "string", "format": "uri-reference", "description": "Where this kind of problem is explained."},
		"title": {"type": "string"},
		"status": {"type": "integer", "description": "The HTTP status."},
		"detail": {"type": "string", "description": "What happened and what to do."},
		"code": {"type": "string", "description": "The kind of problem, for programs.", "examples": ["invalid-arguments"]},
		"request_id": {"type": "string", "description": "Names the request in the service's log."},
		"errors": {
			"description": "What is wrong with the arguments, the first 20.",
			"type": "array",
			"items": {
				"type": "object",
				"properties": {
					"pointer": {"type": "string", "description": "JSON pointer to the value in the arguments."},
					"message": {"type": "string"},
					"schema_pointer": {"type": "string", "description": "JSON pointer to the rule in the tool's schema."}
				},
				"required": ["pointer", "message"]
			}
		},
		"count": {"type": "integer", "description": "How many errors there are in all."},
		"content": {"type": "array", "description": "What the tool said of its failure.", "items": {"$ref": "#/components/schemas/ContentBlock"}},
		"artifact_ref": {"type": "string", "description": "The reference under which the whole result is kept."},
		"artifact": {"type": "string", "format": "uri-reference", "description": "Where the whole result is, relative to this request."}
	},
	"required": ["type", "title", "status", "code"]
}`

// What every document, or every operation, has in common is rendered once.
var (
	commonSchemas   = compact("{" + fixedSchemas + "}")
	commonHeaders   = headerComponents()
	commonResponses = responses(problems, `{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}`)
	problemAnswers  = problemReferences() // the responses of an operation besides 200
	okHeaders       = headerReferences()
	contentSchema   = []byte(`{"$ref":"#/components/schemas/Content"}`)
)

// compact removes the white space between tokens, and the outer braces.
func compact(s string) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		panic("openapi: a fixed component is not JSON: " + err.Error())
	}
	return b.Bytes()[1 : b.Len()-1]
}

func headerComponents() []byte {
	var w writer
	for _, h := range responseHeaders {
		w.key(h.name).open('{').text("description", h.description).key("schema").raw(`{"type":"string"}`).close('}')
	}
	w.key("Retry-After").open('{').text("description", "Seconds to wait before another try.").key("schema").raw(`{"type":"integer"}`).close('}')
	return w.b
}

func headerReferences() []byte {
	var w writer
	for _, h := range responseHeaders {
		w.reference(h.name, "headers", h.name)
	}
	return w.b
}

// responses renders failures, each with the same content.
func responses(failures []problem, content string) []byte {
	var w writer
	for _, p := range failures {
		w.key(p.name).open('{').text("description", p.description)
		w.key("headers").open('{').reference("Request-Id", "headers", "Request-Id")
		if p.retry {
			w.reference("Retry-After", "headers", "Retry-After")
		}
		w.close('}')
		w.key("content").raw(content)
		w.close('}')
	}
	return w.b
}

func problemReferences() []byte {
	var w writer
	for _, p := range problems {
		w.reference(p.status, "responses", p.name)
	}
	return w.b
}
