package local

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/breaker"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/gate"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/openapi"
)

// elsewhere is where the clients of all other targets are.
type elsewhere struct{}

var errElsewhere = errors.New("asked elsewhere")

func (elsewhere) Client(context.Context, *bridge.Target) (bridge.Client, func(), error) {
	return nil, nil, errElsewhere
}

// A catalogue has the servers of a host.
type catalogue struct{ snapshot *bridge.Snapshot }

func (c catalogue) Snapshot(bridge.Caller) *bridge.Snapshot { return c.snapshot }

func (catalogue) Attach(bridge.Caller, string, bool) (settled <-chan struct{}, err error) {
	return nil, nil
}

func host(t *testing.T, o Options) *Host {
	t.Helper()
	o.Compiler, o.Next = openapi.NewSchemas(nil), elsewhere{}
	h, err := NewHost(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// over returns a bridge over the host, with all that calls pass elsewhere.
func over(h *Host, k bridge.Keeper) *bridge.Bridge {
	return &bridge.Bridge{
		Catalogue: catalogue{bridge.NewSnapshot(1, true, h.Servers())}, Policy: identity.Rules{}, Budget: identity.NewBudget(),
		Breaker: breaker.New(breaker.Options{}), Gate: gate.New(gate.Options{}), Clients: h, Keeper: k, Nesting: 100,
	}
}

var anything = json.RawMessage(`{"type":"object"}`)

func TestHostRunsItsTools(t *testing.T) {
	h := host(t, Options{Handles: []Handle{
		{Name: "a", Title: "A", Description: "d", Instructions: "i", Tools: []Tool{
			{
				Name: "who", Title: "Who?", Description: "Says who calls.", Annotations: Annotations{ReadOnly: true},
				Input: json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}}`),
				Run: func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
					return Answer(map[string]any{"user": r.Caller.User, "args": json.RawMessage(r.Args)}, "<ok>")
				},
			},
			{Name: "no", Input: anything, Run: func(context.Context, bridge.Request) (*bridge.Result, error) { return Failure("it cannot be done") }},
			{Name: "broken", Input: anything, Run: func(context.Context, bridge.Request) (*bridge.Result, error) {
				return nil, &bridge.Error{Kind: bridge.StoreUnavailable, Op: "test", Msg: "down"}
			}},
			{Name: "unwritable", Input: anything, Run: func(context.Context, bridge.Request) (*bridge.Result, error) { return Answer(func() {}) }},
		}},
		{Name: "b", Transient: true, Tools: []Tool{{Name: "t", Input: anything, Run: func(context.Context, bridge.Request) (*bridge.Result, error) { return Answer(map[string]int{"n": 1}) }}}},
	}})
	b := over(h, artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 20)}))
	call := func(handle, tool, args string) (*bridge.Answer, error) {
		return b.Invoke(t.Context(), &bridge.Call{Handle: handle, Tool: tool, Args: []byte(args), Caller: bridge.Caller{User: "ann"}})
	}
	a, err := call("a", "who", `{"n":9007199254740993}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Result.Raw), `{"content":[{"type":"text","text":"<ok>"}],"structuredContent":{"args":{"n":9007199254740993},"user":"ann"}}`; got != want {
		t.Errorf("the result is %s, want %s", got, want)
	}
	if a.Artifact == nil {
		t.Error("the result is not kept")
	}
	if a, err := call("b", "t", ""); err != nil || a.Artifact != nil {
		t.Errorf("what is transient: %+v, %v", a, err)
	}
	for tool, want := range map[string]bridge.Kind{"no": bridge.ToolError, "broken": bridge.StoreUnavailable, "unwritable": bridge.Internal, "missing": bridge.NotFound} {
		for range 10 { // no circuit opens
			if _, err := call("a", tool, ""); bridge.KindOf(err) != want {
				t.Errorf("%s: %v, want %s", tool, err, want)
			}
		}
	}
	if _, err := call("a", "who", `{"n":"x"}`); bridge.KindOf(err) != bridge.InvalidArguments {
		t.Errorf("wrong arguments: %v", err)
	}

	s := h.Servers()[0]
	if s.Handle != "a" || s.Title != "A" || s.Description != "d" || s.Instructions != "i" || s.State != bridge.Ready || s.Listed.IsZero() {
		t.Errorf("the entry is %+v", s)
	}
	who := s.Tool("who")
	if string(who.Input) != `{"type":"object","properties":{"n":{"type":"integer"}}}` || who.Title != "Who?" || !*who.Annotations.ReadOnly || *who.Annotations.OpenWorld || len(who.SchemaHash) != 64 ||
		string(who.Raw) != `{"name":"who","title":"Who?","description":"Says who calls.","inputSchema":`+string(who.Input)+`,"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}}` {
		t.Errorf("the tool is %+v, %s", who, who.Raw)
	}
	if h.Servers()[0].Endpoint == h.Servers()[1].Endpoint {
		t.Error("two handles have one endpoint")
	}
	if _, _, err := h.Client(t.Context(), &bridge.Target{Handle: "a", Endpoint: bridge.EndpointID{Label: "mcp:a"}}); !errors.Is(err, errElsewhere) {
		t.Errorf("the client of another target: %v", err)
	}
}

func TestHostNeedsUsableSchemas(t *testing.T) {
	for schema, says := range map[string]string{
		`5`:                 "its input schema",
		`{"type":"string"}`: "no object",
		`{"type":"object","minProperties":"three"}`: "not checked",
		`{`: "unexpected end",
	} {
		h, err := NewHost(Options{Handles: []Handle{{Name: "a", Tools: []Tool{{Name: "t", Input: json.RawMessage(schema)}}}}, Compiler: openapi.NewSchemas(nil), Next: elsewhere{}})
		if err == nil || !strings.Contains(err.Error(), "a/t cannot be offered: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v, want an error that says %q", schema, h, err, says)
		}
	}
}

// A tool that says how far it is may take longer than one that does not, but not for ever.
func TestHostBoundsCalls(t *testing.T) {
	tool := func(every, pause time.Duration) Tool {
		return Tool{Name: "wait", Input: anything, Run: func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
			for end := time.Now().Add(pause); time.Now().Before(end); {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(every):
					r.Progress(json.RawMessage(`{}`))
				}
			}
			return Answer(nil, "done")
		}}
	}
	for name, tt := range map[string]struct {
		every, pause time.Duration
		took         time.Duration
		want         bridge.Kind
	}{
		"in time":              {time.Hour, 0, 0, ""},
		"silent":               {time.Hour, time.Hour, 20 * time.Second, bridge.DeadlineExceeded},
		"with progress":        {15 * time.Second, 45 * time.Second, 45 * time.Second, ""},
		"with progress, long":  {15 * time.Second, time.Hour, time.Minute, bridge.DeadlineExceeded},
		"its progress is slow": {25 * time.Second, 50 * time.Second, 20 * time.Second, bridge.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(t, Options{Timeout: 20 * time.Second, MaxTimeout: time.Minute, Handles: []Handle{{Name: "a", Tools: []Tool{tool(tt.every, tt.pause)}}}})
				heard := 0
				began := time.Now()
				_, err := over(h, artifacts.Discard{}).Invoke(t.Context(), &bridge.Call{Handle: "a", Tool: "wait", Progress: func(json.RawMessage) { heard++ }})
				if kindOf(err) != tt.want || time.Since(began) != tt.took {
					t.Errorf("after %v: %v, want %q after %v", time.Since(began), err, tt.want, tt.took)
				}
				if want := int(tt.took / tt.every); tt.want == "" && heard != want {
					t.Errorf("%d reports were passed on, want %d", heard, want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := host(t, Options{Handles: []Handle{{Name: "a", Tools: []Tool{{Name: "wait", Input: anything, Run: func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}}}}})
		_, err := over(h, artifacts.Discard{}).Invoke(t.Context(), &bridge.Call{Handle: "a", Tool: "wait", Timeout: time.Second})
		if kindOf(err) != bridge.DeadlineExceeded {
			t.Errorf("the caller's own bound: %v", err)
		}
	})
}

func kindOf(err error) bridge.Kind {
	if err == nil {
		return ""
	}
	return bridge.KindOf(err)
}
