package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newOffers returns a world whose server has resources and prompts too. sent is the last request.
func newOffers(answers ...string) (w *world, sent *Request) {
	w = newWorld()
	srv := w.snapshot.Server("s").Copy()
	srv.Target = srv.Tool("t").Target
	srv.Resources = []*Resource{{URI: "a:1", Raw: json.RawMessage(`{}`)}, {URI: "a:2", Raw: json.RawMessage(`{}`)}}
	srv.Templates = []*Resource{{URI: "a:{x}", Raw: json.RawMessage(`{}`)}}
	srv.Prompts = []*Prompt{{Name: "p", Raw: json.RawMessage(`{"name":"p"}`), Required: []string{"x"}}}
	w.snapshot = NewSnapshot(2, true, []*Server{srv})
	sent = new(Request)
	w.clients[0].call = func(_ context.Context, r Request, letGo func()) (*Result, error) {
		letGo()
		*sent = r
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		if wanted := ParseWanted([]byte(answer)); wanted != nil {
			return &Result{Wanted: wanted}, nil
		}
		return r.Method.Parse([]byte(answer))
	}
	return w, sent
}

// A resource is read in the same steps as a tool is called, and the result is kept.
func TestReadGoesTheWayOfACall(t *testing.T) {
	const result = `{"contents":[{"text":"x","n":1.10}]}`
	w, sent := newOffers(result)
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: ReadResource, Tool: "a:\"3\n"})
	if err != nil || string(a.Result.Raw) != result || a.Artifact == nil || a.Breach != "" {
		t.Fatalf("answer %v, %v", a, err)
	}
	want := []string{"spend", "open?", "client", "admit", "permit", "call", "keep", "unspend"}
	if diff := cmp.Diff(want, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := string(sent.Tool.Params) + string(sent.Args); got != `"uri":"a:\"3\u000a"` || sent.Method != ReadResource || w.released != 1 || w.held != 0 {
		t.Errorf("%s with %s, %d released, %d held", sent.Method, got, w.released, w.held)
	}
}

func TestPromptsAndCompletionsAreNotKept(t *testing.T) {
	w, sent := newOffers(`{"messages":[]}`, `{"completion":{"values":[]}}`)
	if a, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: GetPrompt, Tool: "p", Args: []byte("{\"x\":\n\"\"}")}); err != nil || a.Artifact != nil {
		t.Fatalf("answer %v, %v", a, err)
	}
	if got := string(sent.Tool.Params) + string(sent.Args); got != `"name":"p","arguments":{"x": ""}` {
		t.Errorf("params = %s", got)
	}
	c := &Call{Handle: "s", Method: Complete, Args: []byte(`{"ref":{"type":"ref/resource","uri":"a:{x}"},"argument":{"name":"x","value":"1"}}`)}
	if a, err := w.Invoke(t.Context(), c); err != nil || a.Artifact != nil || c.Tool != "a:{x}" {
		t.Fatalf("answer %v of %q, %v", a, c.Tool, err)
	}
	if slices.Contains(w.steps, "keep") {
		t.Errorf("steps = %q", w.steps)
	}
}

// Also what is no tool may want something first.
func TestPromptWantsInput(t *testing.T) {
	w, sent := newOffers(`{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}}}`, `{"messages":[]}`)
	w.snapshot.Server("s").Target.Asks = true
	ask := func(context.Context, []Question) (map[string]Reply, error) {
		return map[string]Reply{"k": {Action: Decline}}, nil
	}
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: GetPrompt, Tool: "p", Args: []byte(`{"x":""}`), Ask: ask})
	if err != nil || string(a.Result.Raw) != `{"messages":[]}` {
		t.Fatalf("answer %v, %v", a, err)
	}
	for asks, says := range map[bool]string{true: "does not offer to be asked", false: "elicitation: true"} {
		w, _ := newOffers(`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}`)
		w.snapshot.Server("s").Target.Asks = asks
		if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: ReadResource, Tool: "a:1"}); KindOf(err) != UpstreamError || !strings.Contains(err.Error(), says) {
			t.Errorf("nobody to ask: %v, want an error that says %q", err, says)
		}
	}
	if got := string(sent.Resume); got != `"inputResponses":{"k":{"action":"decline"}},"requestState":"s"` {
		t.Errorf("resumed with %s", got)
	}
}

// The predicate for tools is that for prompts, by name, and for resources, by URI.
func TestOffersAndPolicy(t *testing.T) {
	w, _ := newOffers(`{"contents":[]}`)
	w.allows = func(handle, name string) bool { return handle == "s" && (name == "a:1" || name == "a:9") }
	for _, tt := range []struct {
		method Method
		name   string
		kind   Kind
	}{
		{ReadResource, "a:1", ""},
		{ReadResource, "a:9", ""}, // not listed, and the server may have it all the same
		{ReadResource, "a:2", NotFound},
		{GetPrompt, "p", NotFound},
		{GetPrompt, "a:1", NotFound}, // allowed, but no prompt
		{CallTool, "a:1", NotFound},
	} {
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: tt.method, Tool: tt.name})
		if (err == nil) != (tt.kind == "") || err != nil && KindOf(err) != tt.kind {
			t.Errorf("%s of %s: %v, want %q", tt.method, tt.name, err, tt.kind)
		}
	}
	s := w.View(Caller{}).Server("s")
	if len(s.Tools) != 0 || len(s.Resources) != 1 || s.Resources[0].URI != "a:1" || len(s.Templates) != 0 || len(s.Prompts) != 0 {
		t.Errorf("the view has %d tools, %v, %v, %v", len(s.Tools), s.Resources, s.Templates, s.Prompts)
	}
	if whole := w.snapshot.Server("s"); len(whole.Resources) != 2 || len(whole.Prompts) != 1 {
		t.Errorf("the catalogue changed: %v", whole)
	}
	for _, name := range []string{"p", "a:{x}"} {
		w.allows = func(_, got string) bool { return got == name }
		if w.View(Caller{}).Server("s") == nil {
			t.Errorf("the server is not seen by one who may use %q", name)
		}
	}
	w.allows = func(_, got string) bool { return got == "other" }
	if w.View(Caller{}).Server("s") != nil {
		t.Error("the server is seen by one who may use nothing of it")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	w, _ := newOffers(`{}`)
	s := w.snapshot.Server("s").Copy()
	complete := []byte(`{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"x","value":"1"}}`)
	for _, tt := range []struct {
		change func(*Server)
		method Method
		kind   Kind
		says   string
	}{
		{func(*Server) {}, GetPrompt, NotFound, "GET /prompts/s lists"},
		{func(s *Server) { s.PromptsError = "it hangs" }, GetPrompt, UpstreamError, "not known: it hangs"},
		{func(s *Server) { s.Target = nil }, ReadResource, NotFound, "GET /resources/s lists"},
		{func(s *Server) { s.Target = nil }, GetPrompt, NotFound, "GET /prompts/s lists"},
		{func(s *Server) { s.Target = nil }, Complete, NotFound, "no prompt or resource"},
		{func(s *Server) { s.Target = nil; s.SetTools(nil); s.State = Disabled }, ReadResource, NotFound, "disabled"},
		{func(s *Server) { s.SetTools(nil); s.State = Connecting; s.Prompts = nil }, GetPrompt, NotReady, "still being connected"},
	} {
		changed := s.Copy()
		tt.change(changed)
		w.snapshot = NewSnapshot(3, true, []*Server{changed})
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: tt.method, Tool: "x", Args: complete})
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != tt.kind || !strings.Contains(e.Msg, tt.says) {
			t.Errorf("%s: %v, want %s that says %q", tt.method, err, tt.kind, tt.says)
		}
	}
}

// A server that is not connected yet is connected by the first request, whatever it is.
func TestReadAttaches(t *testing.T) {
	w, _ := newOffers(`{"contents":[]}`)
	there := w.snapshot
	w.snapshot = NewSnapshot(3, true, []*Server{{Handle: "s", State: Idle}})
	settled := make(chan struct{})
	w.attach = func(_ Caller, handle string, headers bool) (<-chan struct{}, error) {
		if handle != "s" || !headers {
			t.Errorf("attached %q, headers %v", handle, headers)
		}
		w.snapshot = there
		close(settled)
		return settled, nil
	}
	if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Method: ReadResource, Tool: "a:1"}); err != nil {
		t.Error(err)
	}
}
