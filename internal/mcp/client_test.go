package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A server that asks several things at once has its caller asked one after the other.
func TestAskerTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, reply := make(chan bridge.Question, 3), make(chan bridge.Reply)
		var ended []error
		ask := asker(func(_ context.Context, q []bridge.Question) (map[string]bridge.Reply, error) {
			asked <- q[0]
			r := <-reply
			if r.Action == "" {
				return nil, errors.New("no reply")
			}
			return map[string]bridge.Reply{q[0].ID: r}, nil
		}, func(err error) { ended = append(ended, err) })
		told := make(chan string, 3)
		for i := range 3 {
			go func() { // ends with its reply
				b, err := ask(t.Context(), fmt.Appendf(nil, `{"message":"%d"}`, i))
				told <- fmt.Sprintf("%s %v", b, err)
			}()
		}
		for i, want := range []string{`{"action":"cancel"} <nil>`, ` no reply`, `{"action":"accept","content":{"n": 1.10}} <nil>`} {
			synctest.Wait()
			if n := len(asked); n != 1 {
				t.Fatalf("%d questions at a time", n)
			}
			if q := <-asked; q.ID != fmt.Sprint(i+1) || q.Mode != "form" {
				t.Errorf("question %d is %+v", i+1, q)
			}
			reply <- []bridge.Reply{{Action: bridge.Cancel}, {}, {Action: bridge.Accept, Content: json.RawMessage("{\"n\":\n1.10}")}}[i]
			if got := <-told; got != want {
				t.Errorf("the server was told %q, want %q", got, want)
			}
		}
		if len(ended) != 1 || ended[0].Error() != "no reply" {
			t.Errorf("the call was ended by %v", ended)
		}
	})
}

// A call that ends before its turn asks nothing.
func TestAskerEndsInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ask := asker(func(context.Context, []bridge.Question) (map[string]bridge.Reply, error) {
			<-release
			return nil, errors.New("no reply")
		}, func(error) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			go func() { // ends with release or ctx
				_, err := ask(ctx, nil)
				ended <- err
			}()
		}
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		close(release)
		if err := <-ended; err == nil {
			t.Error("there was a reply")
		}
	})
}

// What goes on with a call is for servers that know of such; another would begin it anew.
func TestResumeNeedsThoseWhoKnow(t *testing.T) {
	for protocol, want := range map[string]bridge.Kind{"2025-11-25": bridge.Malformed, "2026-07-28": ""} {
		var sent []string
		c := &Client{name: "s", conn: &fakeConn{done: make(chan struct{}), server: &fakeServer{
			peer: &rpc.Peer{Protocol: protocol},
			do: func(_ context.Context, r *rpc.Request) (string, error) {
				sent = append(sent, string(r.Params))
				return `{"content":[]}`, nil
			},
		}}}
		freed := 0
		_, err := c.Call(t.Context(), bridge.Request{Tool: &bridge.Tool{Params: []byte(`"name":"t"`), Target: &bridge.Target{}}, Resume: []byte(`"requestState":"x"`)}, func() { freed++ })
		kind := bridge.Kind("")
		if err != nil {
			kind = bridge.KindOf(err)
		}
		if kind != want || freed != 1 {
			t.Errorf("%s: err = %v, and the slot was given back %d times", protocol, err, freed)
		}
		if told := want == ""; told != (len(sent) == 1) || told && sent[0] != `"requestState":"x","name":"t"` {
			t.Errorf("%s: the server got %q", protocol, sent)
		}
	}
}

// A server's error is told with its data, which may say what to do first, unless that is large.
func TestErrorData(t *testing.T) {
	c := &Client{name: "s"}
	page := `{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://example.com/?state=` + strings.Repeat("x", 4000) + `","message":"Sign in."}]}`
	for _, tt := range []struct {
		data string
		told bool
	}{{page, true}, {``, false}, {`"` + strings.Repeat("x", upstreamBytes) + `"`, false}} {
		e, ok := errors.AsType[*bridge.Error](c.explain(&rpc.Error{Code: -32042, Message: "sign in first", Data: json.RawMessage(tt.data)}, nil))
		if !ok || e.Kind != bridge.UpstreamError || e.Members["upstream_code"] != int64(-32042) || e.Members["upstream_message"] != "sign in first" {
			t.Fatalf("error = %+v", e)
		}
		if data, ok := e.Members["upstream_data"].(json.RawMessage); ok != tt.told || ok && string(data) != tt.data {
			t.Errorf("of %d bytes of data %d are told", len(tt.data), len(data))
		}
	}
}
