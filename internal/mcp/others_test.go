package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// offering returns a server with one tool that answers its other lists by method; a method that is not there is not found.
func offering(answers map[string]func(context.Context, *rpc.Request) (string, error)) *fakeServer {
	return &fakeServer{
		name: "s", peer: &rpc.Peer{Protocol: "2025-11-25", Capabilities: rpc.Capabilities{Tools: true, Resources: true, Prompts: true}},
		do: func(ctx context.Context, r *rpc.Request) (string, error) {
			if r.Method == "tools/list" {
				return `{"tools":[{"name":"t"}]}`, nil
			}
			if f := answers[r.Method]; f != nil {
				return f(ctx, r)
			}
			return "", &rpc.Error{Code: rpc.MethodNotFound, Message: "Method not found"}
		},
	}
}

func says(s string) func(context.Context, *rpc.Request) (string, error) {
	return func(context.Context, *rpc.Request) (string, error) { return s, nil }
}

// offers says what an entry has, on a line each.
func offers(s *bridge.Server) []string {
	lines := []string{}
	for _, r := range s.Resources {
		lines = append(lines, fmt.Sprintf("resource %s %s|%s|%s|%s|%s", r.URI, r.Name, r.Title, r.Description, r.MediaType, r.Raw))
	}
	for _, r := range s.Templates {
		lines = append(lines, "template "+r.URI)
	}
	for _, p := range s.Prompts {
		lines = append(lines, fmt.Sprintf("prompt %s %s|%s|%q", p.Name, p.Title, p.Description, p.Required))
	}
	for _, k := range s.SkippedResources {
		lines = append(lines, fmt.Sprintf("no resource %q: %s", k.Name, k.Reason))
	}
	for _, k := range s.SkippedPrompts {
		lines = append(lines, fmt.Sprintf("no prompt %q: %s", k.Name, k.Reason))
	}
	if s.ResourcesError != "" {
		lines = append(lines, "resources: "+s.ResourcesError)
	}
	if s.PromptsError != "" {
		lines = append(lines, "prompts: "+s.PromptsError)
	}
	return lines
}

// What a server lists beside its tools is taken entry by entry, over all pages.
func TestOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering(map[string]func(context.Context, *rpc.Request) (string, error){
			"resources/list": func(_ context.Context, r *rpc.Request) (string, error) {
				if len(r.Params) == 0 {
					return `{"resources":[{ "uri":"a:1","name":"one","title":"One","description":"D","mimeType":"text/plain","size":1.0 },5,{"name":"x"},{"uri":7}],"nextCursor":"n"}`, nil
				}
				return `{"resources":[{"uri":"a:1"},{"uri":"a:2","name":5,"title":[],"mimeType":{}}]}`, nil
			},
			"resources/templates/list": says(`{"resourceTemplates":[{"uriTemplate":"a:{id}"},{"uri":"a:3"}]}`),
			"prompts/list": says(`{"prompts":[{"name":"p","arguments":[{"name":"x","required":true},{"name":"y"},{"required":true},5,{"name":"z","required":"yes"}]},
				{"name":"q","title":"Q","description":"D","arguments":{}},null,{"name":"p"}]}`),
		})
		c := startCatalogue(t, s)
		synctest.Wait()
		srv := c.Snapshot(bridge.Caller{}).Server("s")
		want := []string{
			`resource a:1 one|One|D|text/plain|{ "uri":"a:1","name":"one","title":"One","description":"D","mimeType":"text/plain","size":1.0 }`,
			`resource a:2 ||||{"uri":"a:2","name":5,"title":[],"mimeType":{}}`,
			`template a:{id}`,
			`prompt p ||["x"]`, `prompt q Q|D|[]`,
			`no resource "": entry 1 of the list has no uri`, `no resource "": entry 2 of the list has no uri`, `no resource "": entry 3 of the list has no uri`,
			`no resource "a:1": the list has it twice; the first one counts`, `no resource "": entry 1 of the list has no uriTemplate`,
			`no prompt "": entry 2 of the list has no name`, `no prompt "p": the list has it twice; the first one counts`,
		}
		if diff := cmp.Diff(want, offers(srv)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if srv.State != bridge.Ready || srv.Target == nil || srv.Target != srv.Tool("t").Target {
			t.Errorf("%s, target %v", srv.State, srv.Target)
		}
	})
}

// What is wrong with the other lists takes no tool down, and is noted.
func TestOffersFail(t *testing.T) {
	for _, tt := range []struct {
		name                          string
		resources, templates, prompts func(context.Context, *rpc.Request) (string, error)
		want                          []string
	}{
		{"none offered in truth", nil, nil, nil, []string{
			`resources: The server "s" answered error -32601: Method not found`, `prompts: The server "s" answered error -32601: Method not found`,
		}},
		{"no templates", says(`{"resources":[]}`), nil, says(`{"prompts":[]}`), []string{}},
		{"templates that fail", says(`{"resources":[{"uri":"a"}]}`), says(`{}`), says(`{"prompts":[{"name":"p"}]}`), []string{
			`resource a ||||{"uri":"a"}`, `prompt p ||[]`, `resources: its answer to resources/templates/list has no array "resourceTemplates"`,
		}},
		{
			"no end of pages", func(_ context.Context, r *rpc.Request) (string, error) {
				return fmt.Sprintf(`{"resources":[],"nextCursor":"%dx"}`, len(r.Params)), nil
			}, says(`{"resourceTemplates":[]}`),
			func(context.Context, *rpc.Request) (string, error) {
				return "", &rpc.Failure{Reason: rpc.TooLarge, Msg: "the answer is too large"}
			},
			[]string{
				`resources: resources/list goes in circles: a cursor came twice`, `prompts: the answer is too large`,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCatalogue(t, offering(map[string]func(context.Context, *rpc.Request) (string, error){
					"resources/list": tt.resources, "resources/templates/list": tt.templates, "prompts/list": tt.prompts,
				}))
				synctest.Wait()
				snap := c.Snapshot(bridge.Caller{})
				if got := states(snap)["s"]; got != "ready t" || !snap.Ready {
					t.Errorf("state = %q, ready %v", got, snap.Ready)
				}
				if diff := cmp.Diff(tt.want, offers(snap.Server("s"))); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// A list that does not come holds up the tools for a moment at most, and comes in late.
func TestSilentList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		come := make(chan struct{})
		c := startCatalogue(t, offering(map[string]func(context.Context, *rpc.Request) (string, error){
			"resources/list": func(ctx context.Context, _ *rpc.Request) (string, error) {
				select {
				case <-come:
					return `{"resources":[{"uri":"a"}]}`, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
			"prompts/list": says(`{"prompts":[]}`),
		}))
		synctest.Wait()
		if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != "connecting" {
			t.Errorf("at first: %q", got)
		}
		time.Sleep(othersGrace)
		synctest.Wait()
		snap := c.Snapshot(bridge.Caller{})
		if got := states(snap)["s"]; got != "ready t" || !snap.Ready {
			t.Errorf("after the grace: %q, ready %v", got, snap.Ready)
		}
		want := []string{"resources: the list has not been read yet", "prompts: the list has not been read yet"}
		if diff := cmp.Diff(want, offers(snap.Server("s"))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		close(come)
		synctest.Wait()
		if diff := cmp.Diff([]string{`resource a ||||{"uri":"a"}`}, offers(c.Snapshot(bridge.Caller{}).Server("s"))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// A bridge that stops does not wait for a list.
func TestSilentListAtTheEnd(t *testing.T) {
	for _, after := range []time.Duration{othersGrace / 2, 2 * othersGrace} {
		synctest.Test(t, func(t *testing.T) {
			var ended atomic.Bool
			startCatalogue(t, offering(map[string]func(context.Context, *rpc.Request) (string, error){
				"resources/list": func(ctx context.Context, _ *rpc.Request) (string, error) {
					<-ctx.Done()
					ended.Store(true)
					return "", ctx.Err()
				},
			}))
			time.Sleep(after)
			if ended.Load() {
				t.Error("the list was given up before its time")
			}
		})
	}
}

// Each of the lists is read anew when the server says so; one that fails then keeps what was there.
func TestOffersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var round atomic.Int32
		s := offering(map[string]func(context.Context, *rpc.Request) (string, error){
			"resources/list": func(context.Context, *rpc.Request) (string, error) {
				return fmt.Sprintf(`{"resources":[{"uri":"a:%d"}]}`, round.Add(1)), nil
			},
			"resources/templates/list": says(`{"resourceTemplates":[]}`),
			"prompts/list": func(context.Context, *rpc.Request) (string, error) {
				if round.Load() > 1 {
					return "", errors.New("cut")
				}
				return `{"prompts":[{"name":"p"}]}`, nil
			},
		})
		c := startCatalogue(t, s)
		synctest.Wait()
		s.mu.Lock()
		s.options.ListChanged("resources")
		s.mu.Unlock()
		time.Sleep(time.Second)
		want := []string{`resource a:2 ||||{"uri":"a:2"}`, `prompt p ||[]`, "prompts: an internal error; the log has it"}
		if diff := cmp.Diff(want, offers(c.Snapshot(bridge.Caller{}).Server("s"))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// What is no tool goes as its method has it, and its errors have kinds of their own.
func TestOtherCalls(t *testing.T) {
	tool := &bridge.Tool{Handle: "s", Name: "n", Params: []byte(`"uri":"n"`), Annotations: bridge.Annotations{ReadOnly: new(true)}, Target: &bridge.Target{}}
	for _, tt := range []struct {
		method bridge.Method
		answer string
		err    error
		kind   bridge.Kind
		says   string
	}{
		{bridge.ReadResource, `{"contents":[]}`, nil, "", ""},
		{bridge.GetPrompt, `{"messages":[]}`, nil, "", ""},
		{bridge.Complete, `{"completion":{}}`, nil, "", ""},
		{bridge.ReadResource, `{"content":[]}`, nil, bridge.UpstreamError, `no usable "contents"`},
		{bridge.GetPrompt, `{"messages":{}}`, nil, bridge.UpstreamError, `no usable "messages"`},
		{bridge.Complete, `[]`, nil, bridge.UpstreamError, `no usable "completion"`},
		{bridge.ReadResource, "", &rpc.Error{Code: -32002, Message: "gone"}, bridge.NotFound, "gone"},
		{bridge.ReadResource, "", &rpc.Error{Code: -32602, Message: "gone"}, bridge.NotFound, "gone"},
		{bridge.GetPrompt, "", &rpc.Error{Code: -32602, Message: "wrong"}, bridge.InvalidArguments, "wrong"},
		{bridge.Complete, "", &rpc.Error{Code: -32602, Message: "wrong"}, bridge.InvalidArguments, "wrong"},
		{bridge.Complete, "", &rpc.Error{Code: -32601, Message: "no such method"}, bridge.NotFound, "no such method"},
		{bridge.GetPrompt, "", &rpc.Error{Code: -32603, Message: "broken"}, bridge.UpstreamError, "broken"},
		{bridge.CallTool, "", &rpc.Error{Code: -32602, Message: "wrong"}, bridge.UpstreamError, "wrong"},
		{bridge.ReadResource, "", &rpc.Failure{Reason: rpc.Lost, Msg: "it exited"}, bridge.Unavailable, "before it answered"},
		{bridge.CallTool, "", &rpc.Failure{Reason: rpc.Lost, Msg: "it exited"}, bridge.OutcomeUnknown, "not known whether the tool ran"},
		{bridge.ReadResource, "", &rpc.Failure{Reason: rpc.Deadline, Msg: "20 s"}, bridge.DeadlineExceeded, "in time"},
	} {
		var sent *rpc.Request
		s := &fakeServer{name: "s", do: func(_ context.Context, r *rpc.Request) (string, error) {
			sent = r
			return tt.answer, tt.err
		}}
		c := &Client{conn: &fakeConn{server: s}, name: "s", id: 1}
		res, err := c.Call(t.Context(), bridge.Request{Method: tt.method, Tool: tool}, func() {})
		switch {
		case tt.kind == "" && (err != nil || string(res.Raw) != tt.answer || string(res.Data()[0]) != tt.answer || res.More()):
			t.Errorf("%s: %v, %v", tt.method, res, err)
		case tt.kind != "" && (bridge.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v is of kind %s, want %s that says %q", tt.method, err, bridge.KindOf(err), tt.kind, tt.says)
		}
		wantMethod, wantName := string(tt.method), "n"
		switch tt.method {
		case bridge.CallTool:
			wantMethod = "tools/call"
		case bridge.Complete:
			wantName = ""
		}
		if sent.Method != wantMethod || sent.Name != wantName {
			t.Errorf("%s is sent as %s of %q", tt.method, sent.Method, sent.Name)
		}
		if tt.err != nil && tt.kind != bridge.OutcomeUnknown && tt.kind != bridge.DeadlineExceeded && tt.kind != bridge.Unavailable && !bridge.Answered(err) {
			t.Errorf("%s: %v does not count as an answer", tt.method, err)
		}
	}
}
