package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcpbridge/internal/raw"
)

// The codes of errors that come from here and not from the SDK.
const (
	codeParse          = jsonrpc.CodeParseError
	codeInvalidRequest = jsonrpc.CodeInvalidRequest
	codeMethodNotFound = jsonrpc.CodeMethodNotFound
	codeNoSession      = -32001
	codeBusy           = -32000
)

// maxBatch is how many messages a batch may have: each call in it waits in the line.
const maxBatch = 100

// incoming is what must be known of a body before the SDK gets it.
type incoming struct {
	body       []byte
	batch      bool
	initialize bool   // it opens a session
	method     string // of its only message; "" for a response or a batch
	name       string // of the tool that is called
	args       []byte // of the call, nil if there are none
	version    string // of the protocol, as the message says it
	rawID      []byte // of its only message; nil for a notification
	params     []byte // of its only message, a part of body
	resume     []byte // what it goes on with; nil if it begins
}

// parseIncoming looks at a body. The error says what is wrong with it, under the code.
func parseIncoming(body []byte) (*incoming, int64, error) {
	if err := raw.CheckAny(body); err != nil {
		return nil, codeParse, fmt.Errorf("this is not JSON: %w", err)
	}
	in := &incoming{body: body}
	if raw.KindOf(body) != raw.Array {
		f, err := parseMessage(body)
		if err != nil {
			return nil, codeInvalidRequest, err
		}
		in.method = raw.Unquote(f.Method)
		in.initialize = in.method == "initialize"
		in.name = raw.GetString(f.Params, "name")
		in.args = raw.Get(f.Params, "arguments")
		in.params = f.Params
		in.version = raw.GetString(raw.Get(f.Params, "_meta"), "io.modelcontextprotocol/protocolVersion")
		if !raw.IsNull(f.ID) && f.Method != nil {
			in.rawID = f.ID
		}
		return in, 0, nil
	}
	in.batch = true
	n := 0
	for _, e := range raw.Elements(body) {
		if n++; n > maxBatch {
			return nil, codeInvalidRequest, fmt.Errorf("the batch has more than %d messages", maxBatch)
		}
		f, err := parseMessage(e)
		if err != nil {
			return nil, codeInvalidRequest, err
		}
		in.initialize = in.initialize || raw.Unquote(f.Method) == "initialize"
	}
	if n == 0 {
		return nil, codeInvalidRequest, errors.New("the batch is empty")
	}
	return in, 0, nil
}

// parseMessage checks the form of one message.
func parseMessage(b []byte) (raw.Frame, error) {
	f, err := raw.ParseFrame(b)
	switch {
	case err != nil:
		return f, fmt.Errorf("a message is wrong: %w", err)
	case raw.GetString(b, "jsonrpc") != "2.0":
		return f, errors.New(`a message is not of JSON-RPC 2.0: it has no "jsonrpc": "2.0"`)
	case f.Method == nil && !f.Response():
		return f, errors.New("a message is neither request nor notification nor response")
	case f.Method != nil && raw.KindOf(f.Method) != raw.String:
		return f, errors.New("a method is no string")
	}
	switch raw.KindOf(f.ID) {
	case raw.Invalid, raw.Null, raw.String, raw.Number:
		return f, nil
	default:
		return f, errors.New("an id is neither string nor number")
	}
}

// id returns the id of the only request of a body, or nil.
func (in *incoming) id() []byte {
	if in == nil {
		return nil
	}
	return in.rawID
}

// known are the methods that the SDK's server knows. Of others it says so with a
// status instead of an answer, which clients take for a broken session.
var known = map[string]bool{
	"": true, "initialize": true, "ping": true, "server/discover": true,
	"tools/list": true, "tools/call": true, "completion/complete": true, "logging/setLevel": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"prompts/list": true, "prompts/get": true, "subscriptions/listen": true,
	"notifications/initialized": true, "notifications/cancelled": true, "notifications/progress": true, "notifications/roots/list_changed": true,
}

// unknown reports whether the body is one message of a method that does not exist.
func (in *incoming) unknown() bool { return in != nil && !in.batch && !known[in.method] }

// take takes what the SDK is not to decode out of the body, once: replies, which fail
// if they are of a kind that it does not know, and perhaps the arguments of a call, which
// fail for numbers that no float holds. They are in resume and args.
func (in *incoming) take(args bool) {
	args = args && in.args != nil
	if !args && in.resume == nil {
		return
	}
	rest := raw.Cut(in.params, func(m raw.Member) bool { return m.Is("inputResponses") || args && m.Is("arguments") })
	at := cap(in.body) - cap(in.params)
	in.body = slices.Concat(in.body[:at], rest, in.body[at+len(in.params):])
}

func (in *incoming) reader() io.ReadCloser { return io.NopCloser(bytes.NewReader(in.body)) }

// appendError appends an error of JSON-RPC for the request with this id, null if nil.
func appendError(dst, id []byte, code int64, msg string) []byte {
	if id == nil {
		id = []byte("null")
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), code, 10)
	return append(raw.AppendQuote(append(dst, `,"message":`...), msg), "}}"...)
}

// refuse answers with an error and nothing else.
func refuse(w http.ResponseWriter, status int, id []byte, code int64, msg string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(appendError(nil, id, code, msg)) // who has gone needs no answer
}
