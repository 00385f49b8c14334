package remote

import (
	"encoding/json"
	"testing"

	"mcpbridge/internal/mcp/rpc"
)

// Params may all come as Args, or not at all.
func TestParamsInParts(t *testing.T) {
	leakFree(t)
	for _, tt := range []struct{ params, args, want string }{
		{`"a":`, `1.10`, `,"a":1.10`},
		{``, `"a":1.10`, `,"a":1.10`},
		{`"a":1.10`, ``, `,"a":1.10`},
		{``, ``, ``},
	} {
		c := dial(t, pinned(sessionServer(t, answerJSON(`{}`))))
		frame := string(c.frame("7", &rpc.Request{Method: "m", Params: []byte(tt.params), Args: []byte(tt.args), Progress: func(json.RawMessage) {}}, false))
		if want := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":7}` + tt.want + `}}`; frame != want {
			t.Errorf("the frame is %s, want %s", frame, want)
		}
	}
}
