package rpc

import (
	"encoding/json"
	"fmt"
)

// An Error is a JSON-RPC error that the server answered.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage // nil if there is none
}

func (e *Error) Error() string {
	return fmt.Sprintf("the server answered error %d: %s", e.Code, e.Message)
}

// A Reason classifies a [Failure].
type Reason string

// The reasons why a request brings no answer.
const (
	NotSent        Reason = "not sent"        // nothing of it reached the server: it may be sent again
	Lost           Reason = "lost"            // sent, and the connection ended before its answer
	Deadline       Reason = "deadline"        // given up by its own clock; the server was told to cancel
	TooLarge       Reason = "too large"       // the answer is over the limit; the connection lives on
	SessionExpired Reason = "session expired" // the server has forgotten the session: the request was not run
	Auth           Reason = "auth"            // the server refused our credentials (401, 403)
	Protocol       Reason = "protocol"        // the server answered something that is no MCP
	Start          Reason = "start"           // the server could not be started or reached
	Handshake      Reason = "handshake"       // it did not finish the handshake
)

// A Failure is why a request, or a whole connection, failed on our side of the
// server. Msg is for people and holds no secrets: not the environment, nor headers, nor a URL's query.
type Failure struct {
	Reason Reason
	Msg    string // "the process exited with status 1; its last words: …"
	Status int    // the HTTP status, if there was one
	Err    error  // for the log; may be nil
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Msg
	}
	return f.Msg + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Codes of errors that mean something to us.
const (
	MethodNotFound   = -32601
	InvalidParams    = -32602
	ResourceNotFound = -32002 // of a resource, before 2026-07-28
)
