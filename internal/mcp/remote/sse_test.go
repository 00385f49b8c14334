package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

type jsonRaw = json.RawMessage

// An sseServer speaks HTTP+SSE: what is sent on its channel goes out on the stream.
type sseServer struct {
	*server
	out chan string
}

// newSSEServer makes a server whose tools/call is answered by h on the stream, with what h writes.
func newSSEServer(t *testing.T, endpoint string, h func(m *seen) string) *sseServer {
	s := &sseServer{out: make(chan string, 16)}
	post := func(answer func(m *seen) string) handler {
		return func(w http.ResponseWriter, _ *http.Request, m *seen) {
			if text := answer(m); text != "" {
				s.out <- text
			}
			w.WriteHeader(202)
		}
	}
	s.server = newServer(t, map[string]handler{
		"GET": func(w http.ResponseWriter, r *http.Request, _ *seen) {
			stream(w)
			say(w, ": hello\n\nevent: endpoint\ndata: %s\n\n", endpoint)
			for {
				select {
				case text := <-s.out:
					if text == "END" {
						return
					}
					say(w, "%s", text)
				case <-r.Context().Done():
					return
				}
			}
		},
		"initialize": post(func(m *seen) string {
			return "event: message\ndata: " + respond(m, `{"protocolVersion":"2024-11-05","capabilities":`+capabilities+`,"serverInfo":{"name":"old","version":"0"}}`) + "\n\n"
		}),
		"notifications/initialized": status(202),
		"notifications/cancelled":   status(202),
		"response":                  status(202),
		"tools/call":                post(h),
	})
	return s
}

func respond(m *seen, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","result":%s,"id":%s}`, result, m.id)
}

// conns connects to a server of each kind whose tools/call is answered by h. The
// context of Dial has ended when they are returned.
func conns(t *testing.T, h handler) map[string]*Conn {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := map[string]*Conn{}
	add := func(name string, o Options) {
		c, err := Dial(ctx, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		all[name] = c
	}
	add("session", pinned(sessionServer(t, h)))
	add("modern", Options{URL: modernServer(t, h).URL})
	add("sse", Options{URL: newSSEServer(t, "/post?session=1", func(m *seen) string {
		return "data: " + respond(m, `{"ok":true}`) + "\n\n"
	}).URL, Protocol: SSE})
	return all
}

func TestSSEExactBytes(t *testing.T) {
	leakFree(t)
	s := newSSEServer(t, "/post?session=1", func(m *seen) string {
		return "data: " + respond(m, exact) + "\n\n"
	})
	c := dial(t, Options{URL: s.URL + "/sse", Protocol: SSE, Headers: http.Header{"X-Key": {"k1"}}})
	if got, err := call1(t, c, odd); err != nil || got != exact {
		t.Fatalf("Do = %s, %v, want %s", got, err, exact)
	}
	m := s.got("tools/call")[0]
	if !strings.Contains(string(m.body), odd) || m.header.Get("X-Key") != "k1" || m.header.Get("Mcp-Protocol-Version") != "" {
		t.Errorf("the request is %s with %v", m.body, m.header)
	}
	if p := c.Peer(); p.Name != "old" || p.Protocol != v20241105 {
		t.Errorf("Peer = %+v", p)
	}
	if got := s.got("GET")[0].header.Get("X-Key"); got != "k1" {
		t.Errorf("X-Key of the stream is %q", got)
	}
}

func TestSSEManyAtOnce(t *testing.T) {
	s := newSSEServer(t, "/post", func(m *seen) string {
		return "data: " + respond(m, string(m.params)) + "\n\n"
	})
	c := dial(t, Options{URL: s.URL, Protocol: SSE})
	errs := make(chan error)
	for i := range 50 {
		go func() {
			args := fmt.Sprintf(`{"i":%d}`, i)
			got, err := c.Do(t.Context(), request1(args))
			if err == nil && !strings.HasSuffix(string(got), args+"}") {
				err = fmt.Errorf("call %d got %s", i, got)
			}
			errs <- err
		}()
	}
	for range 50 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestSSEStreamEnds(t *testing.T) {
	leakFree(t)
	s := newSSEServer(t, "/post", func(*seen) string { return "END" })
	c := dial(t, Options{URL: s.URL, Protocol: SSE})
	let := make(chan struct{})
	r := request1(`{}`)
	r.LetGo = func() { close(let) }
	_, err := c.Do(t.Context(), r)
	failed(t, err, rpc.Lost)
	<-let
	<-c.Done()
	failed(t, c.Err(), rpc.Lost)
	_, err = call1(t, c, `{}`)
	failed(t, err, rpc.NotSent)
}

func TestSSEMisbehaviour(t *testing.T) {
	big := strings.Repeat("x", 2000)
	for _, test := range []struct {
		name   string
		answer func(m *seen) string
		want   string     // the result, or
		reason rpc.Reason // of the failure
	}{
		{"id as a string", func(m *seen) string { return `data: {"result":1,"id":"` + m.id + "\"}\n\n" }, "1", ""},
		{"garbage before", func(m *seen) string { return "data: {{{\n\ndata: " + respond(m, `2`) + "\n\n" }, "2", ""},
		{"other ids before", func(m *seen) string {
			return "data: {\"id\":7,\"result\":7}\n\ndata: " + respond(m, `3`) + "\n\n"
		}, "3", ""},
		{"other event", func(m *seen) string {
			return "event: other\ndata: " + respond(m, `0`) + "\n\ndata: " + respond(m, `4`) + "\n\n"
		}, "4", ""},
		{"a batch", func(m *seen) string {
			return "data: [{\"method\":\"x\"}," + respond(m, `5`) + "]\n\n"
		}, "5", ""},
		{"over the limit", func(m *seen) string { return "data: " + respond(m, `"`+big+`"`) + "\n\n" }, "", rpc.TooLarge},
		{"over the limit, of somebody else", func(m *seen) string {
			return "data: {\"id\":" + m.id + ",\"method\":\"" + big + "\"}\n\ndata: " + respond(m, `6`) + "\n\n"
		}, "6", ""},
		{"neither result nor error", func(m *seen) string { return `data: {"result":null,"error":[],"id":` + m.id + "}\n\n" }, "", rpc.Protocol},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := newSSEServer(t, "/post", test.answer)
			c := dial(t, Options{URL: s.URL, Protocol: SSE, Options: rpc.Options{ResultBytes: 1000}})
			got, err := call1(t, c, `{}`)
			if test.reason != "" {
				failed(t, err, test.reason)
			} else if err != nil || got != test.want {
				t.Errorf("Do = %s, %v, want %s", got, err, test.want)
			}
			// It has cost one call at most.
			s.set("tools/call", func(w http.ResponseWriter, _ *http.Request, m *seen) {
				w.WriteHeader(202)
				s.out <- "data: " + respond(m, `{}`) + "\n\n"
			})
			if got, err := call1(t, c, `{}`); err != nil || got != `{}` {
				t.Errorf("the next call = %s, %v", got, err)
			}
		})
	}
}

func TestSSERefusals(t *testing.T) {
	for _, test := range []struct {
		name     string
		get      handler
		endpoint string
		reason   rpc.Reason
		want     string
	}{
		{"another origin", nil, "http://127.0.0.2:1/steal?x=1", rpc.Protocol, "another origin"},
		{"another scheme", nil, "https://HOST/steal", rpc.Protocol, "another origin"},
		{"no stream", answerRaw(200, "text/html", "<p>hello"), "", rpc.Protocol, "text/html"},
		{"no credentials", status(401), "", rpc.Auth, "HTTP 401"},
		{"not there", status(404), "", rpc.Protocol, "HTTP 404"},
		{"ends", events("event: other\ndata: 1\n\n"), "", rpc.Start, "ended before it said where"},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := newSSEServer(t, test.endpoint, nil)
			if test.get != nil {
				s.set("GET", test.get)
			}
			_, err := Dial(t.Context(), Options{URL: s.URL, Protocol: SSE})
			if f := failed(t, err, test.reason); !strings.Contains(f.Msg, test.want) {
				t.Errorf("error is %q, want %q", f.Msg, test.want)
			}
		})
	}
}

func TestSSESessionExpired(t *testing.T) {
	leakFree(t)
	for name, h := range map[string]handler{
		"404": status(404),
		"400": answerRaw(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No transport found for sessionId"}}`),
	} {
		s := newSSEServer(t, "/post", nil)
		s.set("tools/call", h)
		c := dial(t, Options{URL: s.URL, Protocol: SSE})
		_, err := call1(t, c, `{}`)
		failed(t, err, rpc.SessionExpired)
		<-c.Done()
		t.Log(name, c.Err())
	}
}

func TestSSEAnswerBeforeThePost(t *testing.T) {
	leakFree(t)
	s := newSSEServer(t, "/post", nil)
	s.set("tools/call", func(_ http.ResponseWriter, r *http.Request, m *seen) {
		s.out <- "data: " + respond(m, `{"early":1}`) + "\n\n"
		<-r.Context().Done() // the POST itself is never answered
	})
	c := dial(t, Options{URL: s.URL, Protocol: SSE})
	if got, err := call1(t, c, `{}`); err != nil || got != `{"early":1}` {
		t.Errorf("Do = %s, %v", got, err)
	}
}

func TestSSECancel(t *testing.T) {
	leakFree(t)
	s := newSSEServer(t, "/post", func(*seen) string { return "" })
	c := dial(t, Options{URL: s.URL, Protocol: SSE, Options: rpc.Options{CancelGrace: time.Minute}})
	let := make(chan struct{})
	r := request1(`{}`)
	r.LetGo = func() { close(let) }
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s.await(t, "tools/call", 1)
		cancel()
	}()
	if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	id := s.got("tools/call")[0].id
	m := s.await(t, "notifications/cancelled", 1)[0]
	if want := `{"requestId":` + id + `,"reason":"the caller went away"}`; string(m.params) != want {
		t.Errorf("params are %s, want %s", m.params, want)
	}
	select {
	case <-let:
		t.Error("let go before the late answer or the end of its grace")
	default:
	}
	s.out <- `data: {"id":` + id + `,"result":{}}` + "\n\n"
	<-let
}
