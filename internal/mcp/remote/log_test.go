package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const logMessage = `{"jsonrpc":"2.0","method":"notifications\/message","params":{"level":"info","data":1.10}}`

// Log messages belong to the call on whose stream they come, and to no other.
func TestLog(t *testing.T) {
	streams := events("data: " + logMessage + "\n\ndata: {\"id\":%ID%,\"result\":{}}\n\n")
	t.Run("session", func(t *testing.T) {
		s := sessionServer(t, streams)
		quiet := make(chan struct{})
		s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
			stream(w)
			say(w, "data: %s\n\ndata: %s\n\n", logMessage, toolsChanged)
			hang(w, r, m)
		})
		o := pinned(s)
		o.ListChanged = func(string) { close(quiet) }
		c := dial(t, o)
		<-quiet // the message on the other stream has been read
		wantLogs(t, c, `{"level":"info","data":1.10}`)
	})
	t.Run("modern", func(t *testing.T) {
		s := modernServer(t, streams)
		c := dial(t, willing(Options{URL: s.URL}))
		wantLogs(t, c, `{"level":"info","data":1.10}`)
		if _, err := call1(t, c, `{}`); err != nil {
			t.Fatal(err)
		}
		calls := s.got("tools/call")
		for i, want := range []string{"info", ""} {
			meta := raw.Get(calls[i].params, "_meta")
			if got := raw.GetString(meta, "io.modelcontextprotocol/logLevel"); got != want {
				t.Errorf("log level of call %d = %q, want %q", i, got, want)
			}
			if got := raw.Get(meta, "io.modelcontextprotocol/clientCapabilities"); string(got) != `{"elicitation":{"form":{},"url":{}}}` {
				t.Errorf("capabilities = %s", got)
			}
		}
	})
}

func wantLogs(t *testing.T, c *Conn, want ...string) {
	t.Helper()
	var got []string
	r := request1(`{}`)
	r.Log = func(params json.RawMessage) { got = append(got, string(params)) }
	if _, err := c.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("log messages (-want +got):\n%s", d)
	}
}

// levelled returns a server of sessions that logs once it is told the level, to which set is the answer.
func levelled(t *testing.T, set handler) *server {
	s := sessionServer(t, events("data: "+logMessage+"\n\ndata: {\"id\":%ID%,\"result\":{}}\n\n"))
	s.set("initialize", func(w http.ResponseWriter, r *http.Request, m *seen) {
		w.Header().Set("Mcp-Session-Id", "s1")
		answerJSON(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"raw","version":"1"}}`)(w, r, m)
	})
	s.set("logging/setLevel", set)
	return s
}

// A session gets its level with the first call that wants log messages, before that call, and once.
func TestLogLevelOfASession(t *testing.T) {
	leakFree(t)
	s := levelled(t, answerJSON(`{}`))
	c := dial(t, pinned(s))
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	if got := s.got("logging/setLevel"); len(got) != 0 {
		t.Errorf("a call that wants none asked for log messages: %s", got[0].body)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { wantLogs(t, c, `{"level":"info","data":1.10}`) })
	}
	wg.Wait()
	got := s.got("logging/setLevel")
	if len(got) != 1 || string(got[0].params) != `{"level":"info"}` || got[0].header.Get("Mcp-Session-Id") != "s1" {
		t.Fatalf("the level was asked for so: %+v", got)
	}
	names := make([]string, 0, 8)
	for _, m := range s.got("") {
		if m.http == "POST" && !strings.HasPrefix(m.method, "notifications/") {
			names = append(names, m.method)
		}
	}
	want := []string{"initialize", "tools/call", "logging/setLevel", "tools/call", "tools/call", "tools/call", "tools/call", "tools/call"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

// Whatever a server makes of the level, the call is made.
func TestLogLevelIsRefused(t *testing.T) {
	for name, set := range map[string]handler{
		"unknown":   answerRaw(200, typeJSON, `{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32601,"message":"no such method"}}`),
		"forbidden": status(403),
		"broken":    status(500),
		"silent":    hang,
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			o := pinned(levelled(t, set))
			var log logged
			o.Log = log.logger()
			c := dial(t, o)
			for range 2 {
				wantLogs(t, c, `{"level":"info","data":1.10}`)
			}
			if n := strings.Count(log.String(), "the level of log messages was not set"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, log.String())
			}
		})
	}
}

// A caller that goes away while the level is being set is not kept waiting, and its call is not made.
func TestLogLevelIsNotWaitedFor(t *testing.T) {
	leakFree(t)
	s := levelled(t, hang)
	c := dial(t, pinned(s))
	ctx, cancel := context.WithCancel(t.Context())
	r := wanting()
	letGo := make(chan struct{})
	r.LetGo = func() { close(letGo) }
	ended := make(chan error, 1)
	go func() { // ends with ctx
		_, err := c.Do(ctx, r)
		ended <- err
	}()
	s.await(t, "logging/setLevel", 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-letGo
	if got := s.got("tools/call"); len(got) != 0 {
		t.Errorf("the call was made: %s", got[0].body)
	}
	if err := c.Close(); err != nil { // during which nobody answers
		t.Error(err)
	}
	_, err := c.Do(t.Context(), wanting())
	failed(t, err, rpc.NotSent)
}

// wanting returns a call that wants log messages, and drops them.
func wanting() *rpc.Request {
	r := request1(`{}`)
	r.Log = func(json.RawMessage) {}
	return r
}

// On the one stream of HTTP+SSE nothing ties a message to a call, so none is asked for.
func TestNoLogLevelOverSSE(t *testing.T) {
	s := newSSEServer(t, "/post", func(m *seen) string { return "data: " + respond(m, `{}`) + "\n\n" })
	c := dial(t, Options{URL: s.URL, Protocol: SSE})
	c.peer.Capabilities.Logging = true
	wantLogs(t, c)
	if got := s.got("logging/setLevel"); len(got) != 0 {
		t.Errorf("asked for %s", got[0].body)
	}
}
