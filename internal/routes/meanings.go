package routes

import (
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// The kinds of errors that only HTTP has.
const (
	Unauthenticated                  = identity.Unauthenticated
	MethodNotAllowed     bridge.Kind = "method-not-allowed"
	NotAcceptable        bridge.Kind = "not-acceptable"
	SchemaChanged        bridge.Kind = "schema-changed"
	PreconditionFailed   bridge.Kind = "precondition-failed"
	TooLarge             bridge.Kind = "request-too-large"
	UnsupportedMediaType bridge.Kind = "unsupported-media-type"
	RangeNotSatisfiable  bridge.Kind = "range-not-satisfiable"
)

// A meaning is what one kind of error is over HTTP.
type meaning struct {
	status int
	title  string
	what   string // what happened
	do     string // what the caller can do about it
}

// meanings is the only place where a kind becomes a status. The texts are what
// GET /problems/{slug} answers.
var meanings = map[bridge.Kind]meaning{
	bridge.Malformed: {
		400, "Malformed request",
		"The request cannot be read: the body is not exactly one strict JSON object (well-formed, no key twice, valid UTF-8, not nested too deeply), or a header or query parameter has a wrong form.",
		"Mend the request; detail says where it is wrong. The tool was not called.",
	},
	Unauthenticated: {
		401, "Unauthenticated",
		"The request has no credential, or a wrong one.",
		"Send a valid credential in the way that WWW-Authenticate names.",
	},
	bridge.Forbidden: {
		403, "Forbidden",
		"The request came from a page of another origin, was sent to a host name that is not the bridge's, or its caller lacks the right to do this.",
		"Use an address of the bridge that it knows (see hosts in its configuration), or ask its operator for the right.",
	},
	bridge.NotFound: {
		404, "Not found",
		"There is no such path, server, tool, resource, prompt or artifact, or this caller may not see it; or the pointer leads to nothing in the artifact.",
		"Look at GET /tools for the servers and tools there are, at GET /resources/{handle} and /prompts/{handle} for what else a server has, and at GET /artifacts for the caller's artifacts, which expire. A tool can be left out because its schema cannot be used; GET /tools/{handle} says so under skipped. For a pointer, resolved is how far it leads, and keys or length is what is there.",
	},
	MethodNotAllowed: {
		405, "Method not allowed",
		"The path exists, but not for this method.",
		"Use one of the methods in Allow.",
	},
	NotAcceptable: {
		406, "Not acceptable",
		"Accept names only types that no tool can produce. The tool was not called.",
		"Accept application/json, text/plain, or an image or audio type.",
	},
	bridge.JobConflict: {
		409, "Job conflict",
		"The job asks nothing, or no longer does, or it was cancelled.",
		"Look at GET /jobs/{id}: requests is what it asks, and only then can it be answered, once.",
	},
	bridge.IdempotencyConflict: {
		409, "Idempotency conflict",
		"The Idempotency-Key was used before with another tool or other arguments. The tool was not called.",
		"Use a new key for each new call, and the same key only to repeat the very same call.",
	},
	SchemaChanged: {
		412, "Schema changed",
		"The tool's schemas are no longer those that If-Match names. The tool was not called.",
		"Read the tool anew: GET /tools/{handle}/{tool} has its schemas, and schema_sha256 is what to send in If-Match then.",
	},
	PreconditionFailed: {
		412, "Precondition failed",
		"The entry is of another version than If-Match names, or If-None-Match was to make a new one and it is there. Nothing was changed.",
		"Read the entry anew: GET has its version in ETag, and this problem has it in version. Then decide whether the change is still right.",
	},
	TooLarge: {
		413, "Request too large",
		"The body is larger than the bridge takes (limits.requestBytes). The tool was not called.",
		"Send less, or ask the operator for a higher limit.",
	},
	UnsupportedMediaType: {
		415, "Unsupported media type",
		"The body is not declared to be JSON in UTF-8, or it is compressed. The tool was not called.",
		"Send the arguments with Content-Type: application/json and without Content-Encoding; a body that is empty needs no type.",
	},
	RangeNotSatisfiable: {
		416, "Range not satisfiable",
		"The range begins behind the end of the bytes.",
		"Ask for a range within the length that Content-Range names, or for all by leaving Range out.",
	},
	bridge.InvalidArguments: {
		422, "Invalid arguments",
		"The arguments do not fit the tool's schema, and the tool was not called; or a prompt, or its server, does not take them; or the entry of a server is not right, and nothing was changed.",
		"Mend what errors lists; GET /tools/{handle}/{tool} has a tool's schema.",
	},
	bridge.ToolError: {
		422, "The tool reported an error",
		"The tool ran and said that it failed.",
		"Read detail and content: they are the tool's own words.",
	},
	bridge.RateLimited: {
		429, "Rate limited",
		"The caller is over its own rate or number of calls at a time. The tool was not called.",
		"Wait for the time in Retry-After.",
	},
	bridge.Internal: {
		500, "Internal error",
		"The bridge has a fault.",
		"Report it with the request_id, which is also in the bridge's log.",
	},
	bridge.UpstreamError: {
		502, "The server failed",
		"The MCP server broke the protocol or answered with a JSON-RPC error.",
		"Read detail; the server's own log may say more.",
	},
	bridge.UpstreamAuth: {
		502, "The server refused the bridge",
		"The MCP server, or its authorization server, does not accept the credentials that the bridge has for it. The caller's own are fine.",
		"Ask the operator to renew the credentials of this server.",
	},
	bridge.OutcomeUnknown: {
		502, "Outcome unknown",
		"The call was sent to the server, and its answer was lost: the tool may or may not have run.",
		"Find out whether it ran before calling again, unless running it twice does no harm.",
	},
	bridge.ResultTooLarge: {
		502, "Result too large",
		"The tool ran, but its result is larger than the bridge takes (limits.resultBytes).",
		"Ask the tool for less, or the operator for a higher limit.",
	},
	bridge.InvalidResult: {
		502, "Invalid result",
		"The tool ran, but its result breaks its own output schema, which is an error for this server (checkResults: strict).",
		"Report it to the server's authors.",
	},
	bridge.Overloaded: {
		503, "Overloaded",
		"The call was not admitted in time, or too many are waiting; short lists what was full. The tool was not called.",
		"Try again after the time in Retry-After.",
	},
	bridge.Unavailable: {
		503, "Server unavailable",
		"The MCP server could not be started or reached, or failed so often that calls are held off for a while. The tool was not called.",
		"Try again after the time in Retry-After; the operator finds the cause in the log.",
	},
	bridge.NotReady: {
		503, "Not ready",
		"The bridge has just been started, and servers that this request needs have not answered yet.",
		"Try again after the time in Retry-After.",
	},
	bridge.StoreUnavailable: {
		503, "Store unavailable",
		"The store of results cannot be reached.",
		"Try again later.",
	},
	bridge.DeadlineExceeded: {
		504, "Deadline exceeded",
		"The time for the call was up. The server was told to cancel, but the tool may have run.",
		"Allow more time (Prefer: wait, up to the bridge's limit), or ask the tool for less.",
	},
}
