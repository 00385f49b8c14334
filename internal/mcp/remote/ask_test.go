package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const question = `{"jsonrpc":"2.0","id":"q 1","method":"elicitation/create","params":{"message":"who?","n":1.10}}`

// An asking server asks on the stream of each call, and answers it with what it was told.
type asking struct {
	*server
	told chan string
}

func newAsking(t *testing.T) *asking {
	s := &asking{told: make(chan string, 8)}
	s.server = sessionServer(t, func(w http.ResponseWriter, r *http.Request, m *seen) {
		stream(w)
		say(w, "data: %s\n\n", question)
		select {
		case text := <-s.told:
			say(w, "data: %s\n\n", respond(m, text))
		case <-r.Context().Done():
		}
	})
	s.takeAnswers(s.told)
	return s
}

// takeAnswers has the server take what it is answered.
func (s *server) takeAnswers(told chan string) {
	s.set("response", func(w http.ResponseWriter, _ *http.Request, m *seen) {
		w.WriteHeader(202)
		told <- string(m.body)
	})
}

func willing(o Options) Options {
	o.Elicitation = true
	return o
}

func asks(ask func(context.Context, json.RawMessage) ([]byte, error)) *rpc.Request {
	r := request1(`{}`)
	r.Ask = ask
	return r
}

func says(text string) func(context.Context, json.RawMessage) ([]byte, error) {
	return func(context.Context, json.RawMessage) ([]byte, error) { return []byte(text), nil }
}

func nobody(t *testing.T) func(context.Context, json.RawMessage) ([]byte, error) {
	return func(context.Context, json.RawMessage) ([]byte, error) {
		t.Error("somebody was asked")
		return []byte(`{}`), nil
	}
}

func wantText(t *testing.T, got json.RawMessage, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("the server was told (-want +got):\n%s", d)
	}
}

func TestAsk(t *testing.T) {
	leakFree(t)
	s := newAsking(t)
	c := dial(t, willing(pinned(s.server)))
	if got := raw.Get(raw.Get(s.got("initialize")[0].params, "capabilities"), "elicitation"); !slices.Contains([]string{`{"form":{},"url":{}}`, `{"url":{},"form":{}}`}, string(got)) {
		t.Errorf("offered %s", got)
	}
	res, err := c.Do(t.Context(), asks(func(_ context.Context, params json.RawMessage) ([]byte, error) {
		if want := `{"message":"who?","n":1.10}`; string(params) != want {
			t.Errorf("params = %s", params)
		}
		return []byte(`{"action":"accept","content":{"n":1.10}}`), nil
	}))
	wantText(t, res, err, `{"jsonrpc":"2.0","id":"q 1","result":{"action":"accept","content":{"n":1.10}}}`)
	if h := s.got("response")[0].header; h.Get("Mcp-Session-Id") != "s1" || h.Get("Mcp-Protocol-Version") != v20251125 {
		t.Errorf("headers of the answer: %v", h)
	}
	res, err = c.Do(t.Context(), asks(func(context.Context, json.RawMessage) ([]byte, error) { return nil, errors.New("secret") }))
	wantText(t, res, err, `{"jsonrpc":"2.0","id":"q 1","error":{"code":-32603,"message":"the question could not be answered"}}`)
}

// Questions on the streams of several calls reach the caller of each.
func TestAskSideBySide(t *testing.T) {
	leakFree(t)
	told := make(map[string]chan string)
	const n = 8
	for i := range n {
		told[fmt.Sprint(i)] = make(chan string, 1)
	}
	s := sessionServer(t, func(w http.ResponseWriter, _ *http.Request, m *seen) {
		key := string(raw.Get(raw.Get(m.params, "arguments"), "k"))
		stream(w)
		say(w, "data: %s\n\n", `{"jsonrpc":"2.0","id":`+key+`,"method":"elicitation/create","params":`+key+`}`)
		say(w, "data: %s\n\n", respond(m, <-told[key]))
	})
	s.set("response", func(w http.ResponseWriter, _ *http.Request, m *seen) {
		w.WriteHeader(202)
		told[m.id] <- string(raw.Get(m.body, "result"))
	})
	c := dial(t, willing(pinned(s)))
	all := make(chan struct{}) // closed when all have been asked
	asked := make(chan string, n)
	type answer struct {
		key string
		res json.RawMessage
		err error
	}
	answers := make(chan answer, n)
	for i := range n {
		r := asks(func(_ context.Context, params json.RawMessage) ([]byte, error) {
			asked <- string(params)
			<-all
			return []byte(`"` + string(params) + `"`), nil
		})
		r.Args = fmt.Appendf(nil, `{"k":%d}`, i)
		go func() { // ends with its call
			res, err := c.Do(t.Context(), r)
			answers <- answer{fmt.Sprint(i), res, err}
		}()
	}
	for range n {
		<-asked
	}
	close(all)
	for range n {
		if a := <-answers; a.err != nil || string(a.res) != `"`+a.key+`"` {
			t.Errorf("call %s got the answer to %s, %v", a.key, a.res, a.err)
		}
	}
}

// The time that a person takes is not the server's silence.
func TestAskStopsTheIdleClock(t *testing.T) {
	s := newAsking(t)
	c := dial(t, willing(pinned(s.server)))
	r := asks(func(ctx context.Context, _ json.RawMessage) ([]byte, error) {
		select {
		case <-time.After(600 * time.Millisecond):
			return []byte(`{"action":"decline"}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	r.Idle, r.Total = 200*time.Millisecond, time.Minute
	res, err := c.Do(t.Context(), r)
	wantText(t, res, err, `{"jsonrpc":"2.0","id":"q 1","result":{"action":"decline"}}`)
	// But a server that says nothing when it has been answered is.
	s.set("response", status(202))
	r.Ask = says(`{"action":"decline"}`)
	_, err = c.Do(t.Context(), r)
	failed(t, err, rpc.Deadline)
}

// A call that ends takes its question along, and the server hears of the end alone.
func TestAskEndsWithTheCall(t *testing.T) {
	leakFree(t)
	s := newAsking(t)
	o := willing(pinned(s.server))
	o.CancelGrace = 50 * time.Millisecond
	c := dial(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := c.Do(ctx, asks(func(ctx context.Context, _ json.RawMessage) ([]byte, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return []byte(`{}`), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-ended
	s.await(t, "notifications/cancelled", 1)
	if err := c.Close(); err != nil { // after which nothing more is sent
		t.Error(err)
	}
	if got := s.got("response"); len(got) != 0 {
		t.Errorf("the server was answered %s", got[0].body)
	}
}

// An answer that the server refuses is logged, without what was answered.
func TestAskRefusedAnswer(t *testing.T) {
	s := newAsking(t)
	s.set("response", status(500))
	o := willing(pinned(s.server))
	var log logged
	o.Log = log.logger()
	c := dial(t, o)
	r := asks(says(`{"action":"accept","content":{"k":"hidden"}}`))
	r.Idle, r.Total = 300*time.Millisecond, time.Minute
	_, err := c.Do(t.Context(), r)
	failed(t, err, rpc.Deadline)
	if got := log.String(); !strings.Contains(got, "the answer to a question of the server was refused") || strings.Contains(got, "hidden") {
		t.Errorf("logged %s", got)
	}
}

// Whose question it is must be beyond doubt: B must not answer A's.
func TestAskInDoubt(t *testing.T) {
	// asked makes a call during which the server asks on its GET stream, while others go on
	// that are able to answer, and returns what the server was told.
	asked := func(t *testing.T, exclusive bool, others int, ask func(context.Context, json.RawMessage) ([]byte, error)) string {
		t.Helper()
		leakFree(t)
		questions, told := make(chan string), make(chan string, 1)
		s := sessionServer(t, func(w http.ResponseWriter, r *http.Request, m *seen) {
			if strings.Contains(string(m.params), "wait") {
				hang(w, r, m)
				return
			}
			stream(w)
			questions <- question
			say(w, "data: %s\n\n", respond(m, <-told))
		})
		s.set("GET", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			stream(w)
			select {
			case q := <-questions:
				say(w, "data: %s\n\n", q)
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		})
		s.takeAnswers(told)
		o := willing(pinned(s))
		o.Exclusive, o.CancelGrace = exclusive, time.Millisecond
		c := dial(t, o)
		s.await(t, "GET", 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, others)
		for range others {
			go func() { // ends with ctx
				r := asks(nobody(t))
				r.Args = []byte(`"wait"`)
				_, err := c.Do(ctx, r)
				ended <- err
			}()
		}
		s.await(t, "tools/call", max(others, 0))
		res, err := c.Do(t.Context(), asks(ask))
		cancel()
		for range others {
			if err := <-ended; err == nil {
				t.Error("a call that waits was answered")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(res)
	}
	refused := func(t *testing.T, got string) {
		t.Helper()
		if raw.GetString([]byte(got), "id") != "q 1" || raw.Get([]byte(got), "error") == nil {
			t.Errorf("the question was answered %s", got)
		}
	}
	t.Run("one call at a time", func(t *testing.T) {
		if got := asked(t, true, 0, says(`{"action":"cancel"}`)); !strings.HasSuffix(got, `"result":{"action":"cancel"}}`) {
			t.Errorf("the question was answered %s", got)
		}
	})
	t.Run("a call that cannot be asked", func(t *testing.T) { refused(t, asked(t, true, 0, nil)) })
	t.Run("several calls", func(t *testing.T) { refused(t, asked(t, true, 1, nobody(t))) })
	t.Run("not one at a time", func(t *testing.T) { refused(t, asked(t, false, 0, nobody(t))) })
	t.Run("not offered", func(t *testing.T) {
		s := newAsking(t)
		c := dial(t, pinned(s.server))
		if got := raw.Get(s.got("initialize")[0].params, "capabilities"); raw.Get(got, "elicitation") != nil {
			t.Errorf("offered %s", got)
		}
		res, err := c.Do(t.Context(), asks(nobody(t)))
		if err != nil {
			t.Fatal(err)
		}
		refused(t, string(res))
	})
	t.Run("a call of its own stream that cannot be asked", func(t *testing.T) {
		s := newAsking(t)
		c := dial(t, willing(pinned(s.server)))
		res, err := c.Do(t.Context(), request1(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		refused(t, string(res))
	})
}

// Who is asked on the stream of the session has it before the first call: a question would be lost before that.
func TestAskNotBeforeTheStream(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	var open atomic.Bool
	s.set("GET", func(w http.ResponseWriter, r *http.Request, _ *seen) {
		time.Sleep(50 * time.Millisecond) // a server is not instant
		open.Store(true)
		stream(w)
		<-r.Context().Done()
	})
	o := willing(pinned(s))
	o.Exclusive = true
	dial(t, o)
	if !open.Load() {
		t.Error("the connection was ready before the stream")
	}
}

// The one stream of HTTP+SSE says nothing of the call that a question belongs to.
func TestAskSSE(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		var call *seen
		s := newSSEServer(t, "/post", func(m *seen) string {
			call = m
			return "data: " + question + "\n\n"
		})
		s.set("response", func(w http.ResponseWriter, _ *http.Request, m *seen) {
			w.WriteHeader(202)
			s.out <- "data: " + respond(call, string(m.body)) + "\n\n"
		})
		o := willing(Options{URL: s.URL, Protocol: SSE})
		o.Exclusive = exclusive
		c := dial(t, o)
		if got := raw.Get(s.got("initialize")[0].params, "capabilities"); (raw.Get(got, "elicitation") != nil) != exclusive {
			t.Errorf("exclusive %v: offered %s", exclusive, got)
		}
		ask := nobody(t)
		if exclusive {
			ask = says(`{"action":"decline"}`)
		}
		res, err := c.Do(t.Context(), asks(ask))
		if err != nil {
			t.Fatal(err)
		}
		if got := raw.Get(res, "result"); (string(got) == `{"action":"decline"}`) != exclusive || (raw.Get(res, "error") == nil) != exclusive {
			t.Errorf("exclusive %v: the question was answered %s", exclusive, res)
		}
	}
}

// A server of 2026-07-28 asks with its answer; one that asks as before is not heard.
func TestModernQuestion(t *testing.T) {
	s := modernServer(t, events("data: "+question+"\n\ndata: {\"id\":%ID%,\"result\":{}}\n\n"))
	c := dial(t, willing(Options{URL: s.URL}))
	if _, err := c.Do(t.Context(), asks(nobody(t))); err != nil {
		t.Fatal(err)
	}
	if got := s.got("response"); len(got) != 0 {
		t.Errorf("it was answered %s", got[0].body)
	}
}

// A call that goes on with what its server wanted carries the same headers as the first time.
func TestResumedCallHeaders(t *testing.T) {
	s := modernServer(t, answerJSON(`{}`))
	c := dial(t, Options{URL: s.URL})
	r := request1(`{"to":"Zürich"}`)
	r.Input = json.RawMessage(`{"properties":{"to":{"type":"string","x-mcp-header":"To"}}}`)
	for _, resume := range []string{"", `"inputResponses":{"a":{"action":"cancel"}},"requestState":"\u0041\/=",`} {
		r := *r
		r.Params = append([]byte(resume), r.Params...)
		if _, err := c.Do(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	calls := s.got("tools/call")
	for _, name := range []string{"Mcp-Method", "Mcp-Name", "Mcp-Param-To", "Mcp-Protocol-Version"} {
		if a, b := calls[0].header.Get(name), calls[1].header.Get(name); a == "" || a != b {
			t.Errorf("%s is %q, then %q", name, a, b)
		}
	}
	if got := raw.Get(calls[1].params, "requestState"); string(got) != `"\u0041\/="` {
		t.Errorf("state = %s", got)
	}
}
