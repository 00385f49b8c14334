package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// wanted is what a server of 2026-07-28 asks, in its own bytes.
const wanted = `{"resultType":"input_required", "requestState":"op\u0061que","inputRequests":{"n":{"method":"elicitation/create","params":{"message":"A number?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"own":1.10}}}}`

// asking makes the fake server want input before it answers, and returns what went on with each request.
func (f *fixture) asking() func() []string {
	var mu sync.Mutex
	var resumed []string
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		resumed = append(resumed, string(r.Resume))
		if r.Resume == nil {
			return &bridge.Result{Raw: json.RawMessage(wanted), Wanted: bridge.ParseWanted([]byte(wanted))}, nil
		}
		return r.Method.Parse([]byte(`{"content":[],"contents":[],"messages":[]}`))
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return resumed
	}
}

// asks returns a server whose tool, prompt and resource may ask their caller.
func asks() *bridge.Server {
	tool := newTool("demo", "add", "")
	tool.Target.Asks = true
	s := newServer("demo", tool)
	s.Target = tool.Target
	s.Prompts = []*bridge.Prompt{{Name: "greet", Raw: json.RawMessage(`{"name":"greet"}`)}}
	s.Resources = []*bridge.Resource{{URI: "demo://r", Raw: json.RawMessage(`{"uri":"demo://r"}`)}}
	return s
}

// modernly makes a request without a session, of a client that can be asked.
func (f *fixture) modernly(method, name, params string, caps string) response {
	f.t.Helper()
	return f.do("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, method, params, caps),
		versionHeader, "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
}

// Since 2026-07-28 a server's question is the answer, and the client goes on with its own: both to the byte.
func TestRelay(t *testing.T) {
	for _, tt := range []struct{ method, name, params string }{
		{"tools/call", "demo__add", `"name":"demo__add","arguments":{}`},
		{"prompts/get", "demo__greet", `"name":"demo__greet"`},
		{"resources/read", "demo://r", `"uri":"demo://r"`},
	} {
		t.Run(tt.method, func(t *testing.T) {
			f := newFixture(t, asks())
			f.ref = "mcp~abc"
			resumed := f.asking()
			f.serve()
			r := f.modernly(tt.method, tt.name, tt.params, `{"elicitation":{}}`)
			var got struct{ Result json.RawMessage }
			if err := json.Unmarshal([]byte(r.message()), &got); err != nil {
				t.Fatalf("%v: %s", err, r.body)
			}
			if want := strings.TrimSuffix(wanted, "}"); !strings.HasPrefix(string(got.Result), want) || strings.Contains(r.body, "artifact_ref") || strings.Contains(r.body, "cacheScope") {
				t.Errorf("the answer is %s\nwant %s and no artifact", got.Result, want)
			}
			goesOn := `"requestState":"op\u0061que", "inputResponses":{"n":{"action":"accept","content":{"n":9007199254740993}}}`
			r = f.modernly(tt.method, tt.name, tt.params+","+goesOn, `{"elicitation":{}}`)
			if r.status != http.StatusOK || !strings.Contains(r.message(), `"resultType":"complete"`) {
				t.Errorf("the second answer is %d %s", r.status, r.body)
			}
			want := []string{"", `"inputResponses":{"n":{"action":"accept","content":{"n":9007199254740993}}},"requestState":"op\u0061que"`}
			if diff := cmp.Diff(want, resumed()); diff != "" {
				t.Errorf("went on with (-want +got):\n%s", diff)
			}
		})
	}
}

// A server that is a bridge itself has states that look like ours.
func TestRelayOfBridge(t *testing.T) {
	f := newFixture(t, asks())
	f.serve()
	other := New(f.opts)
	state, err := other.park(&held{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.unpark(state, bridge.Owner{}, "")
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Resume == nil {
			b := []byte(strings.Replace(wanted, `op\u0061que`, state, 1))
			return &bridge.Result{Raw: b, Wanted: bridge.ParseWanted(b)}, nil
		}
		return newResult(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Resume)), nil
	}
	if r := f.modernly("tools/call", "demo__add", `"name":"demo__add"`, `{"elicitation":{}}`); !strings.Contains(r.body, state) {
		t.Fatalf("asked %d %s", r.status, r.body)
	}
	r := f.modernly("tools/call", "demo__add", `"name":"demo__add","requestState":"`+state+`","inputResponses":{"n":{"action":"decline"}}`, `{"elicitation":{}}`)
	if r.status != http.StatusOK || !strings.Contains(r.body, state) || !strings.Contains(r.body, "decline") {
		t.Errorf("went on with %d %s", r.status, r.body)
	}
}

// A client that cannot be asked is told so.
func TestNobodyToAsk(t *testing.T) {
	f := newFixture(t, asks())
	f.asking()
	f.serve()
	if r := f.modernly("tools/call", "demo__add", `"name":"demo__add"`, `{}`); !strings.Contains(r.body, "does not offer to be asked") {
		t.Errorf("got %s", r.body)
	}
}

// The SDK's client does the rounds by itself, over HTTP and over pipes.
func TestRelayRounds(t *testing.T) {
	f := newFixture(t, asks())
	resumed := f.asking()
	f.serve()
	o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": len(r.Params.Message)}}, nil
	}}
	for name, cs := range map[string]*mcp.ClientSession{"http": f.connect(modern, o), "stdio": f.connectPipes(modern, o)} {
		t.Run(name, func(t *testing.T) {
			before := len(resumed())
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"}); err != nil {
				t.Fatal(err)
			}
			want := []string{"", `"inputResponses":{"n":{"action":"accept","content":{"n":9}}},"requestState":"opaque"`}
			got := resumed()[before:]
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], `op\u0061que`, "opaque")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("went on with (-want +got):\n%s", diff)
			}
		})
	}
}

// What only the client's program gets wrong is no result for a model: the server's own error, whole.
func TestProgramsErrors(t *testing.T) {
	f := newFixture(t, asks())
	fails := func(code int64, data string) {
		f.client = func(context.Context, bridge.Request) (*bridge.Result, error) {
			return nil, &bridge.Error{Kind: bridge.UpstreamError, Msg: "It answered an error.", Members: map[string]any{"upstream_code": code, "upstream_message": "no", "upstream_data": json.RawMessage(data)}}
		}
	}
	f.serve()
	const name = `"name":"demo__add"`
	fails(mcp.CodeMissingRequiredClientCapabilities, `{"requiredCapabilities":{"sampling":{}}}`)
	r := f.modernly("tools/call", "demo__add", name, `{}`)
	if r.status != http.StatusBadRequest || !strings.Contains(r.body, `"code":-32021,"message":"no"`) || !strings.Contains(r.body, `"requiredCapabilities":{"sampling":{}}`) {
		t.Errorf("a capability that the client lacks: %d %s", r.status, r.body)
	}
	fails(-32602, `"bad state"`)
	if r = f.modernly("tools/call", "demo__add", name+`,"requestState":"x"`, `{"elicitation":{}}`); !strings.Contains(r.message(), `"code":-32602,"message":"no"`) {
		t.Errorf("a call that was resumed wrongly: %d %s", r.status, r.body)
	}
	if r = f.modernly("tools/call", "demo__add", name, `{"elicitation":{}}`); !strings.Contains(r.message(), `"isError":true`) {
		t.Errorf("a call that began: %d %s", r.status, r.body)
	}
	if r = f.modernly("resources/read", "x://nothing", `"uri":"x://nothing"`, `{}`); !strings.Contains(r.message(), `"uri":"x://nothing"`) {
		t.Errorf("a resource that is not there: %d %s", r.status, r.body)
	}
}
