package bridge

import (
	"context"
	"encoding/json"
)

// Kinds of errors of long calls.
const (
	JobConflict         Kind = "job-conflict"         // input for a job that asked nothing, or no longer asks
	IdempotencyConflict Kind = "idempotency-conflict" // the key was used with other arguments
)

// A Question is what a server asks the caller during a call: an elicitation.
type Question struct {
	ID      string          `json:"id"` // within the call: the server's key, or one of ours
	Mode    string          `json:"mode"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"` // of the content wanted, as the server sent it; nil if there is none
	URL     string          `json:"url,omitempty"`    // where to go, with mode url
}

// A Reply is the caller's answer to a [Question].
type Reply struct {
	Action  string          `json:"action"`            // accept, decline or cancel
	Content json.RawMessage `json:"content,omitempty"` // with accept
}

// The actions of a reply.
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// An Asker brings a server's questions, which come together, to the caller and
// returns its replies, one for each, by the question's ID. It blocks until then.
// Its error ends the call.
type Asker func(ctx context.Context, q []Question) (map[string]Reply, error)
