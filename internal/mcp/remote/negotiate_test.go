package remote

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

func rpcErr(status int, code, more string) handler {
	return answerRaw(status, "application/json", `{"jsonrpc":"2.0","id":%ID%,"error":{"code":`+code+`,"message":"m"`+more+`}}`)
}

// onceThen answers the first request in one way, and the others in another.
func onceThen(first, others handler) handler {
	var asked atomic.Bool
	return func(w http.ResponseWriter, r *http.Request, s *seen) {
		if asked.CompareAndSwap(false, true) {
			first(w, r, s)
		} else {
			others(w, r, s)
		}
	}
}

// TestNegotiation: which answers to the probe lead to an older era, and which are final.
func TestNegotiation(t *testing.T) {
	init := initialize(v20250618, "")
	for _, test := range []struct {
		name     string
		discover handler
		init     handler
		want     string     // the version, or
		reason   rpc.Reason // of the failure
		says     string
		tried    bool // initialize
	}{
		{"modern", answerJSON(discovered), init, v20260728, "", "", false},
		{"modern, by events", events(`data: {"id":%ID%,"result":` + discovered + "}\n\n"), init, v20260728, "", "", false},
		{"unknown method", rpcErr(200, "-32601", ""), init, v20250618, "", "", true},
		{"unknown method, 404", rpcErr(404, "-32601", ""), init, v20250618, "", "", true},
		{"invalid params", rpcErr(200, "-32602", ""), init, v20250618, "", "", true},
		{"-32600 about a session", answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-32600,"message":"no session"}}`), init, v20250618, "", "", true},
		{"400 of the older era", answerRaw(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`), init, v20250618, "", "", true},
		{"400", answerRaw(400, "text/plain", "what?"), init, v20250618, "", "", true},
		{"404", status(404), init, v20250618, "", "", true},
		{"405", status(405), init, v20250618, "", "", true},
		{"202", status(202), init, v20250618, "", "", true},
		{"events without answer", events(""), init, v20250618, "", "", true},
		{"older versions only", answerJSON(`{"supportedVersions":["2025-11-25"],"capabilities":{}}`), init, v20250618, "", "", true},
		{"older versions only, by error", rpcErr(400, "-32022", `,"data":{"supported":["2025-11-25"],"requested":"2026-07-28"}`), init, v20250618, "", "", true},
		{"an odd result", answerJSON(`{"supportedVersions":5}`), init, v20250618, "", "", true},

		{"newer versions only", answerJSON(`{"supportedVersions":["2027-01-01"]}`), init, "", rpc.Handshake, "2027-01-01", false},
		{"newer versions only, by error", rpcErr(400, "-32022", `,"data":{"supported":["2027-01-01"]}`), init, "", rpc.Handshake, "2027-01-01", false},
		{"refused at first", onceThen(rpcErr(400, "-32022", `,"data":{"supported":["2026-07-28"]}`), answerJSON(discovered)), init, v20260728, "", "", false},
		{"refused for no reason", rpcErr(400, "-32022", `,"data":{"supported":["2026-07-28"]}`), init, "", rpc.Handshake, "no protocol version", false},
		{"modern error without data", rpcErr(400, "-32022", ""), init, "", rpc.Handshake, "no protocol version", false},
		{"header mismatch", rpcErr(400, "-32020", ""), init, "", rpc.Handshake, "error -32020", false},
		{"needs capabilities", rpcErr(400, "-32021", ""), init, "", rpc.Handshake, "error -32021", false},
		{"401", status(401), init, "", rpc.Auth, "401", false},
		{"403", rpcErr(403, "-32601", ""), init, "", rpc.Auth, "403", false},
		{"429", status(429), init, "", rpc.Protocol, "429", false},
		{"500", rpcErr(500, "-32601", ""), init, "", rpc.Handshake, "-32601", false},
		{"502", status(502), init, "", rpc.Start, "502", false},
		{"503", status(503), init, "", rpc.Start, "503", false},
		{"406", status(406), init, "", rpc.Protocol, "406", false},
		{"over the limit", answerJSON(`"` + strings.Repeat("x", 5000) + `"`), init, "", rpc.Handshake, "4096", false},
		{"dropped", func(http.ResponseWriter, *http.Request, *seen) { panic(http.ErrAbortHandler) }, init, "", rpc.Start, "EOF", false},

		{"initialize 401", status(404), status(401), "", rpc.Auth, "401", true},
		{"initialize 500", status(404), status(500), "", rpc.Start, "500", true},
		{"initialize html", status(404), answerRaw(200, "text/html", "<p>"), "", rpc.Protocol, "text/html", true},
		{"initialize error", status(404), rpcErr(200, "-32602", ""), "", rpc.Handshake, "error -32602 to the handshake: m", true},
		{"initialize with a version of ours that has none", status(404), initialize(v20260728, ""), "", rpc.Handshake, `"2026-07-28"`, true},
		{"initialize with another version", status(404), initialize("1999-01-01", ""), "", rpc.Handshake, `"1999-01-01"`, true},
		{"initialize with nonsense", status(404), answerJSON(`{"protocolVersion":"2025-11-25","capabilities":5}`), "", rpc.Handshake, "could not be understood", true},
		{"initialize over the limit", status(404), answerJSON(`"` + strings.Repeat("x", 5000) + `"`), "", rpc.Handshake, "4096", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := newServer(t, map[string]handler{
				"server/discover": test.discover, "initialize": test.init, "notifications/initialized": status(202), "ping": answerJSON("{}"),
			})
			c, err := Dial(t.Context(), Options{URL: s.URL, Options: rpc.Options{ResultBytes: 4096}})
			if test.reason != "" {
				if f := failed(t, err, test.reason); !strings.Contains(f.Msg, test.says) {
					t.Errorf("failure is %q, want %q", f.Msg, test.says)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				if got := c.Peer().Protocol; got != test.want {
					t.Errorf("protocol is %s, want %s", got, test.want)
				}
				if _, err := c.Do(t.Context(), &rpc.Request{Method: "ping"}); err != nil {
					t.Error(err)
				}
				_ = c.Close()
			}
			if got := len(s.got("initialize")) > 0; got != test.tried {
				t.Errorf("initialize was sent: %t, want %t", got, test.tried)
			}
		})
	}
}

func TestProbeCarriesItsMeta(t *testing.T) {
	s := modernServer(t, nil)
	dial(t, Options{URL: s.URL})
	m := s.got("server/discover")
	if len(m) != 1 {
		t.Fatalf("%d probes", len(m))
	}
	want := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcp-bridge","version":"dev"},"io.modelcontextprotocol/clientCapabilities":{}}}`
	if string(m[0].params) != want || m[0].header.Get("Mcp-Method") != "server/discover" || m[0].header.Get("Mcp-Protocol-Version") != v20260728 {
		t.Errorf("the probe is %s with %v", m[0].params, m[0].header)
	}
}

// TestSilentProbe: a server that ignores what it does not know is asked in the older way.
func TestSilentProbe(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, answerJSON("{}"))
	s.set("server/discover", hang)
	c := dial(t, Options{URL: s.URL, Options: rpc.Options{Handshake: 2 * time.Second}})
	if got := c.Peer().Protocol; got != v20251125 {
		t.Errorf("protocol is %s", got)
	}
}

func TestPinned(t *testing.T) {
	t.Run("modern never falls back", func(t *testing.T) {
		s := sessionServer(t, nil)
		_, err := Dial(t.Context(), Options{URL: s.URL, Protocol: v20260728})
		failed(t, err, rpc.Handshake)
		if got := s.got("initialize"); len(got) > 0 {
			t.Error("initialize was sent")
		}
	})
	for _, v := range []string{v20251125, v20250618, v20250326, v20241105} {
		t.Run(v, func(t *testing.T) {
			s := sessionServer(t, nil)
			s.set("initialize", initialize(v, ""))
			c := dial(t, Options{URL: s.URL, Protocol: v})
			m := s.got("initialize")[0]
			if !strings.Contains(string(m.params), `"protocolVersion":"`+v+`"`) || c.Peer().Protocol != v {
				t.Errorf("initialize asked %s, Peer speaks %s", m.params, c.Peer().Protocol)
			}
			if got := s.got("server/discover"); len(got) > 0 {
				t.Error("a probe was sent")
			}
			if got := s.await(t, "notifications/initialized", 1)[0].header.Get("Mcp-Session-Id"); got != "" {
				t.Errorf("a session %q out of nowhere", got)
			}
			_ = c.Close()
			if got := s.got("DELETE"); len(got) > 0 {
				t.Error("a session that there is not was deleted")
			}
		})
	}
}

func TestFallBackToSSE(t *testing.T) {
	for _, test := range []struct {
		name     string
		protocol string
		status   int
		header   string
		sse      bool
	}{
		{"400", Auto, 400, "", true},
		{"404", "", 404, "", true},
		{"405", Auto, 405, "", true},
		{"pinned to its version", v20241105, 405, "", true},
		{"with another header", Auto, 405, "X-Key", true},
		{"with credentials", Auto, 405, "Authorization", false},
		{"pinned to another version", v20250326, 405, "", false},
		{"another status", Auto, 410, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := newSSEServer(t, "/post", func(m *seen) string { return "data: " + respond(m, "{}") + "\n\n" })
			answered := s.on["initialize"]
			s.set("server/discover", status(404))
			s.set("initialize", func(w http.ResponseWriter, r *http.Request, m *seen) {
				if r.URL.Path == "/post" {
					answered(w, r, m)
				} else {
					w.WriteHeader(test.status)
				}
			})
			o := Options{URL: s.URL + "/sse", Protocol: test.protocol}
			if test.header != "" {
				o.Headers = http.Header{test.header: {"Bearer token"}}
			}
			c, err := Dial(t.Context(), o)
			if !test.sse {
				if f := failed(t, err, rpc.Protocol); f.Status != test.status {
					t.Errorf("failure is %v", f.Msg)
				}
				if got := s.got("GET"); len(got) > 0 {
					t.Error("HTTP+SSE was tried")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := call1(t, c, `{}`); err != nil || got != "{}" {
				t.Errorf("Do = %s, %v", got, err)
			}
			_ = c.Close()
		})
	}
}

// TestNeitherTransport: what is told is what the server said to initialize.
func TestNeitherTransport(t *testing.T) {
	leakFree(t)
	s := newServer(t, map[string]handler{"GET": status(500)})
	_, err := Dial(t.Context(), Options{URL: s.URL})
	if f := failed(t, err, rpc.Protocol); f.Status != 405 {
		t.Errorf("failure is %v", f.Msg)
	}
	s.set("GET", status(401))
	_, err = Dial(t.Context(), Options{URL: s.URL})
	failed(t, err, rpc.Auth)
}

// TestRefusedNotifications: what a server thinks of a notification breaks nothing,
// unless it says that we may not talk to it.
func TestRefusedNotifications(t *testing.T) {
	leakFree(t)
	for _, code := range []int{200, 204, 400, 405, 406, 422, 500, 503} {
		s := sessionServer(t, answerJSON("{}"))
		s.set("notifications/initialized", status(code))
		c := dial(t, pinned(s))
		if _, err := call1(t, c, `{}`); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
	for code, want := range map[int]rpc.Reason{401: rpc.Auth, 403: rpc.Auth, 404: rpc.Handshake} {
		s := sessionServer(t, nil)
		s.set("notifications/initialized", status(code))
		_, err := Dial(t.Context(), pinned(s))
		failed(t, err, want)
	}
	s := sessionServer(t, nil)
	s.set("notifications/initialized", func(http.ResponseWriter, *http.Request, *seen) { panic(http.ErrAbortHandler) })
	_, err := Dial(t.Context(), pinned(s))
	failed(t, err, rpc.Start)
}

func TestModernServerThatCannotBeUsed(t *testing.T) {
	leakFree(t)
	s := modernServer(t, nil)
	s.set("server/discover", answerJSON(`{"supportedVersions":["2026-07-28"],"capabilities":5}`))
	_, err := Dial(t.Context(), Options{URL: s.URL})
	if f := failed(t, err, rpc.Handshake); !strings.Contains(f.Msg, "cannot be used") {
		t.Errorf("failure is %q", f.Msg)
	}
	if got := s.got("initialize"); len(got) > 0 {
		t.Error("initialize was sent to a modern server")
	}
}

// TestModernServerAsks: it may not, and is not answered.
func TestModernServerAsks(t *testing.T) {
	leakFree(t)
	s := modernServer(t, events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":%ID%,\"result\":{}}\n\n"))
	c := dial(t, Options{URL: s.URL})
	if _, err := call1(t, c, `{}`); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	if got := s.got("response"); len(got) > 0 {
		t.Errorf("it was answered %s", got[0].body)
	}
}

// TestServerRequests: requests of the server are answered by the session, whatever stream they come on.
func TestServerRequests(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
		say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{}}}\n\n")
		say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
	})
	s.set("response", status(400)) // which harms nobody
	c := dial(t, pinned(s))
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.await(t, "response", 2) {
		id := "ping"
		if m.id == "5" {
			id = "elicitation"
		}
		if id == "ping" && !strings.Contains(string(m.body), `"result":{}`) {
			t.Errorf("ping was answered %s", m.body)
		}
		if id == "elicitation" && !strings.Contains(string(m.body), `"error":`) {
			t.Errorf("an elicitation was answered %s", m.body)
		}
		got = append(got, id)
	}
	slices.Sort(got) // they are handled side by side
	if diff := cmp.Diff([]string{"elicitation", "ping"}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if _, err := call1(t, c, `{}`); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
