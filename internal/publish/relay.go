package publish

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// relay makes a call of 2026-07-28 one that is answered with what its server asks, if the
// client offers to be asked. Nothing is kept here in between: what the client sends then goes
// to the server as it is, and says there where the call stood.
func relay(c *bridge.Call, version string, caps *mcp.ClientCapabilities, resume []byte) {
	c.Relay = version >= modern && caps != nil && caps.Elicitation != nil
	if c.Relay {
		c.Resume = resume
	}
}

// resumeOf returns the members of params that go on with a call, on one line; nil if there are none.
func resumeOf(params []byte) (resume []byte) {
	for _, name := range [...]string{"inputResponses", "requestState"} {
		v := raw.Get(params, name)
		if v == nil {
			continue
		}
		if resume != nil {
			resume = append(resume, ',')
		}
		resume = append(append(append(resume, '"'), name...), `":`...)
		v = bytes.Clone(v)
		raw.Flatten(v)
		resume = append(resume, v...)
	}
	return resume
}

// resumed returns the same of what the SDK has read: over pipes nothing else is at hand.
func (rq request) resumed(responses mcp.InputResponseMap, state string) ([]byte, error) {
	if rq.resume != nil || responses == nil && state == "" {
		return rq.resume, nil
	}
	b, err := json.Marshal(struct {
		InputResponses mcp.InputResponseMap `json:"inputResponses,omitempty"`
		RequestState   string               `json:"requestState,omitempty"`
	}{responses, state})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the inputResponses cannot be read"}
	}
	return b[1 : len(b)-1], nil
}
