package stdio

import (
	"encoding/json"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// What goes along in _meta stands beside what the lane writes there; without it, nothing is different.
func TestMeta(t *testing.T) {
	const modern, mine = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"traceparent":"00-1"`
	watch := func(json.RawMessage) {}
	for _, tt := range []struct {
		lane, meta string
		progress   func(json.RawMessage)
		want       string
	}{
		{"", "", nil, `"name":1`},
		{"", mine, nil, `"_meta":{` + mine + `},"name":1`},
		{"", "", watch, `"_meta":{"progressToken":7},"name":1`},
		{"", mine, watch, `"_meta":{"progressToken":7,` + mine + `},"name":1`},
		{modern, "", nil, `"_meta":{` + modern + `},"name":1`},
		{modern, mine, nil, `"_meta":{` + modern + `,` + mine + `},"name":1`},
		{modern, "", watch, `"_meta":{"progressToken":7,` + modern + `},"name":1`},
		{modern, mine, watch, `"_meta":{"progressToken":7,` + modern + `,` + mine + `},"name":1`},
	} {
		l := &lane{meta: []byte(tt.lane)}
		got := string(l.appendRequest(nil, 7, &rpc.Request{Method: "m", Params: []byte(`"name":`), Args: []byte(`1`), Meta: []byte(tt.meta), Progress: tt.progress}))
		if want := `{"jsonrpc":"2.0","id":7,"method":"m","params":{` + tt.want + "}}\n"; got != want {
			t.Errorf("the frame is %s, want %s", got, want)
		}
	}
	got := string((&lane{}).appendRequest(nil, 7, &rpc.Request{Method: "m", Meta: []byte(mine)}))
	if want := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{` + mine + "}}}\n"; got != want {
		t.Errorf("without params the frame is %s, want %s", got, want)
	}
}

// Whoever wants to know is told how a request went; what is on two lines is not sent.
func TestWire(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "mirror"))
	r := &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(`{}`), Meta: []byte(`"traceparent":"00-1"`), Total: time.Minute, Wire: new(rpc.Wire)}
	res, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"_meta":{"traceparent":"00-1"},"name":"echo","arguments":{}}`; string(res) != want {
		t.Errorf("the server got %s, want %s", res, want)
	}
	if want := (rpc.Wire{ID: "1099511627777", Pipe: true}); *r.Wire != want {
		t.Errorf("the wire is %+v, want %+v", *r.Wire, want)
	}
	r.Meta = []byte("\"a\":\n1")
	if _, err := c.Do(t.Context(), r); err == nil {
		t.Error("two lines were sent")
	}
}
