package remote

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

const (
	toolsChanged   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	promptsChanged = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`
)

// listening are options that report changed lists on a channel.
func listening(o Options) (Options, chan string) {
	lists := make(chan string, 64)
	o.ListChanged = func(list string) { lists <- list }
	return o, lists
}

func TestNotificationsOnTheGetStream(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
		stream(w)
		say(w, ": hello\n\n")
		say(w, "data: %s\n\n", toolsChanged)
		say(w, "data: {{\n\n")                                     // harms nobody
		say(w, "data: {\"jsonrpc\":\"1.0\",\"method\":\"x\"}\n\n") // nor this
		say(w, "data: %s\n\n", strings.Repeat("x", 2000))          // nor one over the limit
		say(w, "event: other\ndata: %s\n\n", toolsChanged)
		say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n")
		say(w, "data: [%s]\n\n", promptsChanged)
		hang(w, r, m)
	})
	o, lists := listening(pinned(s))
	o.ResultBytes = 1000
	dial(t, o)
	for _, want := range []string{"tools", "prompts"} {
		if got := <-lists; got != want {
			t.Errorf("%s changed, want %s", got, want)
		}
	}
	if m := s.got("GET")[0]; m.header.Get("Mcp-Session-Id") != "s1" || m.header.Get("Accept") != "text/event-stream" || m.header.Get("Mcp-Protocol-Version") != v20251125 {
		t.Errorf("headers of the GET: %v", m.header)
	}
}

func TestNotificationsOnACallsStream(t *testing.T) {
	s := sessionServer(t, events("data: "+toolsChanged+"\n\ndata: {\"id\":%ID%,\"result\":{}}\n\n"))
	o, lists := listening(pinned(s))
	c := dial(t, o)
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	if got := <-lists; got != "tools" {
		t.Errorf("%s changed", got)
	}
}

// TestProgressOnTheGetStream: many servers send it there.
func TestProgressOnTheGetStream(t *testing.T) {
	leakFree(t)
	out, heard := make(chan string, 1), make(chan bool, 1)
	s := sessionServer(t, func(w http.ResponseWriter, r *http.Request, m *seen) {
		out <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + m.id + `,"progress":1}}`
		<-heard
		answerJSON("{}")(w, r, m)
	})
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
		stream(w)
		select {
		case text := <-out:
			say(w, "data: %s\n\n", text)
			hang(w, r, m)
		case <-r.Context().Done():
		}
	})
	c := dial(t, pinned(s))
	s.await(t, "GET", 1)
	r := request1(`{}`)
	n := 0
	r.Progress = func(jsonRaw) { n++; heard <- true }
	if _, err := c.Do(t.Context(), r); err != nil || n != 1 {
		t.Errorf("Do failed: %v, with %d notifications", err, n)
	}
}

// TestNoStream: a server that says that it has none is not asked again.
func TestNoStream(t *testing.T) {
	for name, h := range map[string]handler{
		"405": status(405), "404": status(404), "400": status(400), "401": status(401), "json": answerRaw(200, "application/json", "{}"),
		"redirect": func(w http.ResponseWriter, r *http.Request, _ *seen) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			s := sessionServer(t, answerJSON("{}"))
			s.set("GET", h)
			var log logged
			o := pinned(s)
			o.Log = log.logger()
			c := dial(t, o)
			for !strings.Contains(log.String(), errNoFeed.Error()) {
				time.Sleep(time.Millisecond)
			}
			if _, err := call1(t, c, `{}`); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond)
			if n := len(s.got("GET")); n != 1 {
				t.Errorf("%d GETs came", n)
			}
		})
	}
}

// TestStreamNeverOpens: a server whose stream fails and whose calls work is alive.
func TestStreamNeverOpens(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, answerJSON("{}"))
	s.set("GET", status(503))
	o := pinned(s)
	o.listenFirst = time.Millisecond
	c := dial(t, o)
	s.await(t, "GET", listenTries+1)
	if _, err := call1(t, c, `{}`); err != nil {
		t.Error(err)
	}
	time.Sleep(200 * time.Millisecond)
	if n := len(s.got("GET")); n != listenTries+1 {
		t.Errorf("%d GETs came, want %d", n, listenTries+1)
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// TestServerGoesAwayUnderACall: a call that is under way is given its time.
func TestServerGoesAwayUnderACall(t *testing.T) {
	leakFree(t)
	release := make(chan struct{})
	s := sessionServer(t, func(w http.ResponseWriter, r *http.Request, m *seen) {
		<-release
		answerJSON("{}")(w, r, m)
	})
	var n atomic.Int32
	s.set("GET", func(w http.ResponseWriter, _ *http.Request, _ *seen) {
		if n.Add(1) == 1 {
			stream(w)
			say(w, "retry: 1\n\n")
			return
		}
		w.WriteHeader(502)
	})
	c := dial(t, pinned(s))
	errs := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), request1(`{}`))
		errs <- err
	}()
	s.await(t, "tools/call", 1)
	s.await(t, "GET", 1+2*listenTries)
	if err := c.Err(); err != nil {
		t.Errorf("the connection ended under a call: %v", err)
	}
	close(release)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	<-c.Done()
	failed(t, c.Err(), rpc.Lost)
}

// TestHangingStreams: neither connecting, nor calling, nor closing waits for a
// stream that is not answered, and the request for it does not stay.
func TestHangingStreams(t *testing.T) {
	for name, dialIt := range map[string]func(gone chan struct{}) (*server, Options){
		"GET": func(gone chan struct{}) (*server, Options) {
			s := sessionServer(t, answerJSON("{}"))
			s.set("GET", func(_ http.ResponseWriter, r *http.Request, _ *seen) { <-r.Context().Done(); close(gone) })
			return s, pinned(s)
		},
		"subscription": func(gone chan struct{}) (*server, Options) {
			s := modernServer(t, answerJSON("{}"))
			s.set("server/discover", answerJSON(strings.ReplaceAll(discovered, `"tools":{}`, `"tools":{"listChanged":true}`)))
			s.set("subscriptions/listen", func(_ http.ResponseWriter, r *http.Request, _ *seen) { <-r.Context().Done(); close(gone) })
			return s, Options{URL: s.URL}
		},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			gone := make(chan struct{})
			s, o := dialIt(gone)
			o, _ = listening(o)
			o.streamWait = 2 * time.Second
			began := time.Now()
			c := dial(t, o)
			if _, err := call1(t, c, `{}`); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("connecting and calling took %s", d)
			}
			<-gone
			if _, err := call1(t, c, `{}`); err != nil {
				t.Error(err)
			}
			if n := len(s.got(map[string]string{"GET": "GET", "subscription": "subscriptions/listen"}[name])); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
		})
	}
}

func TestSubscription(t *testing.T) {
	leakFree(t)
	s := modernServer(t, answerJSON("{}"))
	s.set("server/discover", answerJSON(strings.ReplaceAll(discovered, `"tools":{}`, `"tools":{"listChanged":true}`)))
	var n atomic.Int32
	s.set("subscriptions/listen", func(w http.ResponseWriter, r *http.Request, m *seen) {
		stream(w)
		say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":{\"toolsListChanged\":true}}}\n\n")
		if n.Add(1) == 1 {
			say(w, "data: %s\n\n", toolsChanged)
			say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.id) // ended by the server
			hang(w, r, m)
			return
		}
		hang(w, r, m)
	})
	o, lists := listening(Options{URL: s.URL})
	c := dial(t, o)
	if got := <-lists; got != "tools" {
		t.Errorf("%s changed", got)
	}
	// It is opened again, and what may have been missed is told.
	if got := <-lists; got != "tools" {
		t.Errorf("%s changed", got)
	}
	m := s.await(t, "subscriptions/listen", 2)[1]
	if m.header.Get("Mcp-Method") != "subscriptions/listen" || m.header.Get("Mcp-Protocol-Version") != v20260728 || !strings.Contains(string(m.params), `"toolsListChanged":true`) {
		t.Errorf("the subscription is %s with %v", m.params, m.header)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := s.got("notifications/cancelled"); len(got) > 0 {
		t.Error("a cancellation was POSTed")
	}
}

func TestSubscriptionRefused(t *testing.T) {
	for name, h := range map[string]handler{
		"404":      status(404),
		"error":    rpcErr(200, "-32601", ""),
		"by event": events("data: {\"jsonrpc\":\"2.0\",\"id\":%ID%,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			s := modernServer(t, answerJSON("{}"))
			s.set("server/discover", answerJSON(strings.ReplaceAll(discovered, `"tools":{}`, `"tools":{"listChanged":true}`)))
			s.set("subscriptions/listen", h)
			var log logged
			o, _ := listening(Options{URL: s.URL})
			o.Log = log.logger()
			c := dial(t, o)
			for !strings.Contains(log.String(), errNoFeed.Error()) {
				time.Sleep(time.Millisecond)
			}
			if _, err := call1(t, c, `{}`); err != nil {
				t.Error(err)
			}
			if n := len(s.got("subscriptions/listen")); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
		})
	}
}

// TestStreamIsOpenedAgain: from where it broke off, or from anew when the server does not know the place.
func TestStreamIsOpenedAgain(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	var n atomic.Int32
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
		switch n.Add(1) {
		case 1:
			stream(w)
			say(w, "id: e1\nretry: 1\ndata:\n\n")
		case 2:
			if got := m.header.Get("Last-Event-Id"); got != "e1" {
				t.Errorf("Last-Event-Id is %q", got)
			}
			w.WriteHeader(400)
		case 3:
			if got := m.header.Get("Last-Event-Id"); got != "" {
				t.Errorf("Last-Event-Id is %q after it was refused", got)
			}
			stream(w)
			hang(w, r, m)
		}
	})
	o, lists := listening(pinned(s))
	c := dial(t, o)
	s.await(t, "GET", 3)
	// What was said in between may be lost.
	got := map[string]bool{<-lists: true, <-lists: true, <-lists: true}
	if !got["tools"] || !got["prompts"] || !got["resources"] {
		t.Errorf("%v changed", got)
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

func TestStreamTellsThatTheSessionExpired(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	var n atomic.Int32
	s.set("GET", func(w http.ResponseWriter, _ *http.Request, _ *seen) {
		if n.Add(1) == 1 {
			stream(w)
			say(w, "retry: 1\n\n")
			return
		}
		w.WriteHeader(404)
	})
	c := dial(t, pinned(s))
	<-c.Done()
	failed(t, c.Err(), rpc.SessionExpired)
}

// TestServerGoesAway: a connection whose stream cannot be opened again has ended,
// though nobody calls.
func TestServerGoesAway(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	opened := make(chan struct{})
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
		stream(w)
		say(w, "retry: 1\n\n")
		close(opened)
		hang(w, r, m)
	})
	c := dial(t, pinned(s))
	<-opened
	s.close()
	select {
	case <-c.Done():
		failed(t, c.Err(), rpc.Lost)
	case <-time.After(20 * time.Second):
		t.Error("the connection is taken to be alive")
	}
}
