package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Kind classifies an [Error]. Its text is the code that callers see; a
// transport maps it to its own status in one table and may have kinds of its own.
type Kind string

// The kinds of errors.
const (
	Internal         Kind = "internal"           // a bug of ours
	Malformed        Kind = "malformed-request"  // the arguments are not one strict JSON object
	Forbidden        Kind = "forbidden"          // a valid caller without the right
	NotFound         Kind = "not-found"          // unknown or not visible to this caller
	InvalidArguments Kind = "invalid-arguments"  // the arguments do not fit the tool's schema
	ToolError        Kind = "tool-error"         // the tool ran and reported failure
	RateLimited      Kind = "rate-limited"       // this caller is over its own share
	Overloaded       Kind = "overloaded"         // not admitted in time, or the line is full
	Unavailable      Kind = "server-unavailable" // the circuit is open, or no client could be made
	NotReady         Kind = "not-ready"          // the catalogue is still being read
	StoreUnavailable Kind = "store-unavailable"  // the artifact or job store is down
	UpstreamError    Kind = "upstream-error"     // the server broke the protocol or answered a JSON-RPC error
	UpstreamAuth     Kind = "upstream-auth"      // the server refused our credentials
	OutcomeUnknown   Kind = "outcome-unknown"    // sent, and the answer was lost
	ResultTooLarge   Kind = "result-too-large"   // over the limit for results
	InvalidResult    Kind = "invalid-result"     // breaks the tool's own output schema, and checking is strict
	DeadlineExceeded Kind = "deadline-exceeded"  // the call's time was up
	Canceled         Kind = "canceled"           // the caller went away; seen only in logs
)

// Error is the only error type that crosses a package boundary on purpose.
type Error struct {
	Kind       Kind
	Op         string         // the step that failed: "gate.Admit"
	Msg        string         // for the caller: what happened and what to do; no secrets
	RetryAfter time.Duration  // zero when retrying is not known to help
	Members    map[string]any // more for the caller, by name; each is encoded as JSON
	Result     *Result        // what the tool returned, whole, if it is that which failed; else nil
	Fault      bool           // the server or its connection is at fault: it counts against the circuit
	Conn       uint64         // the connection that broke, so that many calls on it count once; 0 if none did
	Replay     bool           // the tool was not run, or may run twice: the call can be made again on a new connection
	Gone       bool           // the endpoint is no longer served: the tool is to be found again, elsewhere perhaps
	Err        error          // for the log, never for the caller
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Op, e.Msg)
	}
	return fmt.Sprintf("%s: %s: %v", e.Op, e.Msg, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Answered reports whether the server answered the call that ended with err: the
// circuit takes that for a sign of health, whatever the answer was.
func Answered(err error) bool {
	switch KindOf(err) {
	case ToolError, UpstreamError, ResultTooLarge, InvalidResult, NotFound, InvalidArguments:
		e, ok := errors.AsType[*Error](err)
		return ok && !e.Fault
	default:
		return err == nil
	}
}

// KindOf returns the kind of the outermost [Error] in err's tree, classifying
// context errors as DeadlineExceeded or Canceled and all others as Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return DeadlineExceeded
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	return Internal
}
