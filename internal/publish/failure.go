package publish

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// errEnded is why calls end whose session does.
var errEnded = errors.New("the session has ended")

// errFault says that it was nobody's doing but ours.
var errFault = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the bridge has a fault; its log says more"}

// errorKey is the member of _meta that says for programs what kind of failure a result is.
const errorKey = "mcp-bridge/error"

// failure returns what a client is told of a call that failed. What a model can
// mend or wait for is a result that says so; what only a program gets wrong is an
// error of the protocol. A resumed call is one that the client's program went on with.
func failure(err error, resumed bool) (*result, error) {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return nil, err // one of ours
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call was ended"}
	}
	switch e.Kind {
	case bridge.ToolError:
		if e.Result != nil { // the tool's own, whole
			ref, _ := e.Members[refKey].(string)
			return &result{raw: e.Result.Raw, ref: ref}, nil
		}
	case bridge.UpstreamError:
		if code, answered := upstreamCode(e); answered && (resumed || code == mcp.CodeMissingRequiredClientCapabilities) {
			return nil, answeredError(e, code, "")
		}
	case bridge.NotFound, bridge.Malformed:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Msg}
	case bridge.Internal, bridge.Canceled:
		if e.Msg == "" {
			return nil, errFault
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Msg}
	}
	return explained(e)
}

// explained returns a failure as a result: in words, and for programs in its _meta.
func explained(e *bridge.Error) (*result, error) {
	text := e.Msg
	about := map[string]any{"code": e.Kind}
	for name, v := range e.Members {
		if name != refKey && name != "content" && name != "content_count" {
			about[name] = v
		}
	}
	if e.RetryAfter > 0 {
		s := seconds(e.RetryAfter)
		about["retry_after"] = s
		text += " Try again in " + strconv.FormatInt(s, 10) + " s."
	}
	b, err := json.Marshal(about)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Msg} // a member that cannot be JSON: a bug, but the rest is true
	}
	out := raw.AppendQuote([]byte(`{"content":[{"type":"text","text":`), text)
	out = append(append(append(out, `}],"isError":true,"_meta":{"`+errorKey+`":`...), b...), "}}"...)
	ref, _ := e.Members[refKey].(string)
	return &result{raw: out, ref: ref}, nil
}

// seconds returns d in whole seconds, never too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
