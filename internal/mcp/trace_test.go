package mcp

import (
	"context"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A call's trace goes along in _meta, and its tracer learns how.
func TestTraceGoesAlong(t *testing.T) {
	var got rpc.Request
	conn := &fakeConn{done: make(chan struct{}), server: &fakeServer{
		peer: &rpc.Peer{Protocol: "2025-11-25"},
		do: func(_ context.Context, r *rpc.Request) (string, error) {
			got = *r
			if r.Wire != nil {
				*r.Wire = rpc.Wire{ID: "7", Session: "s", Pipe: true, Host: "h", Port: 1}
			}
			return `{"content":[]}`, nil
		},
	}}
	c := &Client{conn: conn, name: "s"}
	call := func(trace bridge.Trace, w *bridge.Wire) {
		t.Helper()
		r := bridge.Request{Tool: &bridge.Tool{Name: "t", Target: &bridge.Target{}}, Trace: trace, Wire: w}
		if _, err := c.Call(t.Context(), r, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	call(bridge.Trace{}, nil)
	if got.Meta != nil || got.Wire != nil {
		t.Errorf("without a trace the request has %q and %v", got.Meta, got.Wire)
	}
	var w bridge.Wire
	call(bridge.Trace{Parent: "00-1", State: `a="`}, &w)
	if want := `"traceparent":"00-1","tracestate":"a=\""`; string(got.Meta) != want {
		t.Errorf("_meta has %s, want %s", got.Meta, want)
	}
	if want := (bridge.Wire{ID: "7", Protocol: "2025-11-25", Session: "s", Pipe: true, Host: "h", Port: 1}); w != want {
		t.Errorf("the wire is %+v, want %+v", w, want)
	}
}
