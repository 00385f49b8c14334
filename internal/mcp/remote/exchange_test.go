package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

// dropped answers the beginning of something and cuts the connection.
func dropped(text string) handler {
	return func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		say(w, "%s", strings.ReplaceAll(text, "%ID%", m.id))
		panic(http.ErrAbortHandler)
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer handler
		want   string
	}{
		{"json", answerJSON(exact), exact},
		{"json with charset", answerRaw(200, "Application/JSON; charset=utf-8", `{"id":%ID%,"result":1}`), "1"},
		{"json, id last, spaced", answerRaw(200, "application/json", " {\n\"result\" : {\"id\":7} ,\n\"id\" : %ID% }\n"), `{"id":7}`},
		{"json, id as a string", answerRaw(200, "application/json", `{"id":"%ID%","result":1}`), "1"},
		{"json batch", answerRaw(200, "application/json", `[{"method":"x"},{"id":%ID%,"result":2}]`), "2"},
		{"null result", answerRaw(200, "application/json", `{"id":%ID%,"result":null,"error":null}`), "null"},
		{"events, id last", events("data: {\"result\":" + exact + ",\"id\":%ID%}\n\n"), exact},
		{"CRLF", events("event: message\r\nid: 1\r\ndata: {\"id\":%ID%,\"result\":3}\r\n\r\n"), "3"},
		{"CR", events("event: message\rdata: {\"id\":%ID%,\"result\":4}\r\r"), "4"},
		{"no space, comments, BOM", events("\ufeff:\n: x\ndata:{\"id\":%ID%,\"result\":5}\n:\n\n"), "5"},
		{"lines of data", events("data: {\"id\":%ID%,\ndata:\"result\":\ndata:  [1,\ndata: 2]}\n\n"), "[1,\n2]"},
		{"other event names", events("event: ping\ndata: {\"id\":%ID%,\"result\":0}\n\ndata: {\"id\":%ID%,\"result\":6}\n\n"), "6"},
		{"no end", events("data: {\"id\":%ID%,\"result\":7}"), "7"},
		{"wrong ids first", events("data: {\"id\":1,\"result\":0}\n\ndata: {\"id\":\"x\",\"result\":0}\n\ndata: {\"id\":%ID%,\"result\":8}\n\n"), "8"},
		{"a request with our id first", events("data: {\"jsonrpc\":\"2.0\",\"id\":%ID%,\"method\":\"ping\"}\n\ndata: {\"id\":%ID%,\"result\":9}\n\n"), "9"},
		{"empty events", events("id: 5\ndata:\n\nid: 6\ndata: \n\ndata: {\"id\":%ID%,\"result\":10}\n\n"), "10"},
		{"a notification nobody can decode", events("data: {\"method\":5}\n\ndata: {\"id\":%ID%,\"result\":11}\n\n"), "11"},
		{"events in the id of the answer", events("data: {\"method\":\"x\",\"params\":{\"id\":%ID%,\"result\":0}}\n\ndata: {\"id\":%ID%,\"result\":12}\n\n"), "12"},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := sessionServer(t, test.answer)
			s.set("response", status(202))
			c := dial(t, pinned(s))
			if got, err := call1(t, c, `{}`); err != nil || got != test.want {
				t.Errorf("Do = %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestNeverEndingStream: the answer counts when it is there, not when the stream ends.
func TestNeverEndingStream(t *testing.T) {
	for _, era := range []string{v20251125, v20260728} {
		t.Run(era, func(t *testing.T) {
			leakFree(t)
			h := func(w http.ResponseWriter, r *http.Request, m *seen) {
				stream(w)
				say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
				<-r.Context().Done()
			}
			s := sessionServer(t, h)
			s.set("server/discover", answerJSON(discovered))
			c := dial(t, Options{URL: s.URL, Protocol: era})
			for range 3 {
				if got, err := call1(t, c, `{}`); err != nil || got != "{}" {
					t.Errorf("Do = %s, %v", got, err)
				}
			}
		})
	}
}

func TestBadAnswers(t *testing.T) {
	long := strings.Repeat("long words and\x00\x1b[31m ", 100)
	for _, test := range []struct {
		name   string
		answer handler
		reason rpc.Reason
		status int
		want   string
	}{
		{"401", status(401), rpc.Auth, 401, "refused our credentials with HTTP 401"},
		{"403 with a body", answerRaw(403, "text/plain", "no entry"), rpc.Auth, 403, "HTTP 403: no entry"},
		{"404 without JSON", status(404), rpc.SessionExpired, 404, "forgotten the session"},
		{"404 with JSON", answerRaw(404, "application/json", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`), rpc.SessionExpired, 404, "Session not found"},
		{"400 about the session", answerRaw(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`), rpc.SessionExpired, 400, "No valid session"},
		{"-32600 in a 200", answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-32600,"message":"unknown Session"}}`), rpc.SessionExpired, 0, "unknown Session"},
		{"400 without JSON", answerRaw(400, "text/plain", "your session is bad"), rpc.Protocol, 400, "HTTP 400: your session is bad"},
		{"405", status(405), rpc.Protocol, 405, "HTTP 405"},
		{"429", status(429), rpc.Protocol, 429, "HTTP 429"},
		{"500", answerRaw(500, "application/json", `{"jsonrpc":"2.0","error":{"code":-32603,"message":"oops"},"id":null}`), rpc.Protocol, 500, "HTTP 500: oops"},
		{"502", answerRaw(502, "text/html", "<html>\n\n<h1>Bad   Gateway</h1>"), rpc.Lost, 502, "HTTP 502: <html> <h1>Bad Gateway</h1>"},
		{"503", status(503), rpc.Protocol, 503, "HTTP 503"},
		{"504", status(504), rpc.Lost, 504, "HTTP 504"},
		{"202", status(202), rpc.Protocol, 202, "HTTP 202 with nothing and not JSON"},
		{"html", answerRaw(200, "text/html", "<html>"), rpc.Protocol, 200, "with text/html and not JSON or events: <html>"},
		{"capped and escaped", answerRaw(200, "text/plain", long), rpc.Protocol, 200, `long words and\x00\x1b[31m`},
		{"no content type", answerRaw(200, "", ""), rpc.Protocol, 200, "with nothing and not JSON"},
		{"garbage", answerRaw(200, "application/json", `{"id":%ID%,"result":{{}`), rpc.Protocol, 200, "no JSON-RPC message"},
		{"garbage in a batch", answerRaw(200, "application/json", `[7]`), rpc.Protocol, 200, "no JSON-RPC message"},
		{"an unfinished batch", answerRaw(200, "application/json", `[`), rpc.Protocol, 200, "no JSON-RPC message"},
		{"empty", answerRaw(200, "application/json", ``), rpc.Protocol, 200, "no JSON-RPC message"},
		{"wrong id", answerRaw(200, "application/json", `{"id":1,"result":{}}`), rpc.Protocol, 200, "without a response"},
		{"no member", answerRaw(200, "application/json", `{"id":%ID%}`), rpc.Protocol, 200, "without a response"},
		{"error is no object", answerRaw(200, "application/json", `{"id":%ID%,"error":"x"}`), rpc.Protocol, 0, "an error that is no object"},
		{"garbage event", events("data: {\"id\":%ID%,\n\n"), rpc.Protocol, 200, "no JSON-RPC message"},
		{"events without answer", events("data: {\"method\":\"notifications/message\",\"jsonrpc\":\"2.0\"}\n\n"), rpc.Lost, 0, "the stream ended"},
		{"no events", events(""), rpc.Lost, 0, "the stream ended"},
		{"torn event", events("data: {\"id\":%ID%,"), rpc.Lost, 0, "unexpected EOF"},
		{"dropped events", dropped("data: {\"id\":%ID%,"), rpc.Lost, 0, "unexpected EOF"},
		{"dropped after an event without id", dropped("data: {\"method\":\"x\"}\n\n"), rpc.Lost, 0, "unexpected EOF"},
		{"dropped json", func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			say(w, `{"id":`)
			panic(http.ErrAbortHandler)
		}, rpc.Lost, 0, "unexpected EOF"},
		{"dropped at once", func(http.ResponseWriter, *http.Request, *seen) { panic(http.ErrAbortHandler) }, rpc.Lost, 0, "EOF"},
		{"a refusal that hangs", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			w.WriteHeader(502)
			say(w, "wait for it")
			<-r.Context().Done()
		}, rpc.Lost, 502, "HTTP 502: wait for it"},
		{"html that hangs", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			w.Header().Set("Content-Type", "text/html")
			say(w, "<p>")
			<-r.Context().Done()
		}, rpc.Protocol, 200, "<p>"},
		{"json over the limit", answerJSON(`"` + strings.Repeat("x", 5000) + `"`), rpc.TooLarge, 0, "more than 4096 bytes"},
		{"json over the limit, and it says so", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "5000")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, rpc.TooLarge, 0, "more than 4096 bytes"},
		{"error is null", answerRaw(200, "application/json", `{"id":%ID%,"error":null}`), rpc.Protocol, 0, "neither a result nor an error"},
		{"json over the limit, in chunks", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				say(w, "%s", strings.Repeat(" ", 1000))
			}
		}, rpc.TooLarge, 0, "more than 4096 bytes"},
		{"an event over the limit", func(w http.ResponseWriter, r *http.Request, _ *seen) {
			stream(w)
			say(w, "data: ")
			for r.Context().Err() == nil {
				say(w, "%s", strings.Repeat("x", 1000))
			}
		}, rpc.TooLarge, 0, "more than 4096 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := sessionServer(t, test.answer)
			o := pinned(s)
			o.ResultBytes = 4096
			c := dial(t, o)
			let := make(chan struct{})
			r := request1(`{}`)
			r.LetGo = func() { close(let) }
			began := time.Now()
			_, err := c.Do(t.Context(), r)
			f := failed(t, err, test.reason)
			<-let
			if f.Status != test.status || !strings.Contains(f.Msg, test.want) || len(f.Msg) > 600 {
				t.Errorf("failure has status %d and says %q (%d bytes), want %d and %q", f.Status, f.Msg, len(f.Msg), test.status, test.want)
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("it took %s", d)
			}
			if n := len(s.got("tools/call")); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if test.reason == rpc.SessionExpired {
				<-c.Done()
				if _, err := call1(t, c, `{}`); err == nil {
					t.Error("a call on a session that has expired was made")
				} else {
					failed(t, err, rpc.SessionExpired)
				}
				if n := len(s.got("tools/call")); n != 1 {
					t.Errorf("%d calls were sent to a session that has expired", n)
				}
				_ = c.Close()
				if got := s.got("DELETE"); len(got) > 0 {
					t.Error("a session that has expired was deleted")
				}
				return
			}
			// It has cost this call alone.
			s.set("tools/call", answerJSON(`{}`))
			if got, err := call1(t, c, `{}`); err != nil || got != `{}` {
				t.Errorf("the next call = %s, %v", got, err)
			}
		})
	}
}

func TestErrorAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer handler
		want   *rpc.Error
	}{
		{"in a 200", answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-32602,"message":"bad \u00e9","data":{"x":1.10}}}`), &rpc.Error{Code: -32602, Message: "bad é", Data: jsonRaw(`{"x":1.10}`)}},
		{"without id", answerRaw(200, "application/json", `{"id":null,"error":{"code":-32700,"message":"parse"}}`), &rpc.Error{Code: -32700, Message: "parse"}},
		{"by event", events(`data: {"error":{"code":1e2,"message":5},"id":%ID%}` + "\n\n"), &rpc.Error{}},
		{"in a 400", answerRaw(400, "application/json", `{"id":%ID%,"error":{"code":-32602,"message":"bad"}}`), &rpc.Error{Code: -32602, Message: "bad"}},
		{"in a 404, method not found", answerRaw(404, "application/json", `{"id":%ID%,"error":{"code":-32601,"message":"no"}}`), &rpc.Error{Code: -32601, Message: "no"}},
		{"in a 500, to us", answerRaw(500, "application/json", `{"id":%ID%,"error":{"code":-32603,"message":"oops"}}`), &rpc.Error{Code: -32603, Message: "oops"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, pinned(sessionServer(t, test.answer)))
			_, err := call1(t, c, `{}`)
			if diff := cmp.Diff(test.want, err); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBigEvents(t *testing.T) {
	big := `{"t":"` + strings.Repeat("0123456789", 2<<20) + `"}`
	for _, test := range []struct {
		name string
		h    handler
	}{
		{"json", answerJSON(big)},
		{"one event", events("data: {\"result\":" + big + ",\"id\":%ID%}\n\n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, pinned(sessionServer(t, test.h)))
			if got, err := call1(t, c, `{}`); err != nil || got != big {
				t.Errorf("Do = %d bytes, %v, want %d", len(got), err, len(big))
			}
		})
	}
}

func TestProgress(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		for i := range 3 {
			say(w, "id: %d\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d.10}}\r\n\r\n", i, m.id, i)
		}
		say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"somebody else's\",\"progress\":9}}\n\n")
		say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
	})
	c := dial(t, pinned(s))
	var got []string
	r := request1(`{}`)
	r.Progress = func(p jsonRaw) { got = append(got, string(p)) }
	if _, err := c.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	id := s.got("tools/call")[0].id
	want := []string{}
	for i := range 3 {
		want = append(want, fmt.Sprintf(`{"progressToken":%s,"progress":%d.10}`, id, i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// TestProgressKeepsACallAlive: the idle time starts anew with each, the total does not.
func TestProgressKeepsACallAlive(t *testing.T) {
	leakFree(t)
	next := make(chan bool)
	s := sessionServer(t, func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		for more := range next {
			if !more {
				say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
				return
			}
			say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1}}\n\n", m.id)
		}
	})
	c := dial(t, pinned(s))
	heard := make(chan struct{}, 8)
	r := request1(`{}`)
	r.Idle, r.Progress = 2*time.Second, func(jsonRaw) { heard <- struct{}{} }
	began := time.Now()
	go func() {
		for range 6 {
			time.Sleep(400 * time.Millisecond)
			next <- true
			<-heard
		}
		next <- false
	}()
	if _, err := c.Do(t.Context(), r); err != nil || time.Since(began) < 2*time.Second {
		t.Errorf("Do failed after %s: %v", time.Since(began), err)
	}
}

func TestNotSent(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	o := pinned(s)
	o.Transport = &http.Transport{DisableKeepAlives: true} // else the call may be written before the end of an idle connection is seen
	c := dial(t, o)
	s.await(t, "GET", 1)
	s.close()
	_, err := call1(t, c, `{}`)
	if f := failed(t, err, rpc.NotSent); !strings.Contains(f.Msg, "connection refused") {
		t.Errorf("failure is %q", f.Msg)
	}
}

func TestResume(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  handler
		get    []handler // one after the other; the last one stays
		want   string
		reason rpc.Reason
		gets   int
	}{
		{"dropped after an event", dropped("id: e1\ndata: {\"method\":\"x\"}\n\n"), []handler{events("data: {\"id\":%CALL%,\"result\":1}\n\n")}, "1", "", 1},
		{"closed on purpose", events("id: e1\nretry: 1\ndata:\n\n"), []handler{
			events("id: e2\ndata:\n\n"), status(503), events("id: e3\ndata:\n\n"), events("data: {\"id\":%CALL%,\"result\":2}\n\n"),
		}, "2", "", 4},
		{"dropped in the answer", dropped("id: e1\ndata:\n\ndata: {\"id\":%ID%,\"res"), []handler{events("data: {\"id\":%CALL%,\"result\":3}\n\n")}, "3", "", 1},
		{"not to be had", events("id: e1\nretry: 1\ndata:\n\n"), []handler{status(405)}, "", rpc.Lost, 1},
		{"gone", events("id: e1\nretry: 1\ndata:\n\n"), []handler{status(404)}, "", rpc.Lost, 1},
		{"never any further", events("id: e1\nretry: 1\ndata:\n\n"), []handler{events("")}, "", rpc.Lost, resumeTries},
		{"down", events("id: e1\nretry: 1\ndata:\n\n"), []handler{status(502)}, "", rpc.Lost, resumeTries},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			s := sessionServer(t, test.first)
			var mu sync.Mutex
			n := 0
			s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
				if m.header.Get("Last-Event-Id") == "" {
					w.WriteHeader(405)
					return
				}
				mu.Lock()
				h := test.get[min(n, len(test.get)-1)]
				n++
				mu.Unlock()
				id := s.got("tools/call")[0].id
				h(replacing{w, "%CALL%", id}, r, m)
			})
			c := dial(t, pinned(s))
			got, err := call1(t, c, `{}`)
			if test.reason != "" {
				failed(t, err, test.reason)
			} else if err != nil || got != test.want {
				t.Errorf("Do = %s, %v, want %s", got, err, test.want)
			}
			mu.Lock()
			defer mu.Unlock()
			if n != test.gets {
				t.Errorf("%d GETs came, want %d", n, test.gets)
			}
			if test.name == "gone" {
				<-c.Done()
				failed(t, c.Err(), rpc.SessionExpired)
			}
		})
	}
}

// TestGivenUpWhileResuming: the clock runs on while a stream is looked for, and
// nothing goes on when the call is over.
func TestGivenUpWhileResuming(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, events("id: e1\nretry: 60000\ndata:\n\n"))
	o := pinned(s)
	o.CancelGrace = 50 * time.Millisecond
	c := dial(t, o)
	let := make(chan struct{})
	r := request1(`{}`)
	r.Total, r.LetGo = 200*time.Millisecond, func() { close(let) }
	_, err := c.Do(t.Context(), r)
	failed(t, err, rpc.Deadline)
	<-let
	for _, m := range s.got("GET") {
		if m.header.Get("Last-Event-Id") != "" {
			t.Error("it was resumed")
		}
	}
}

// TestResumeWhenTheServerIsGone: the tries are few.
func TestResumeWhenTheServerIsGone(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, nil)
	s.set("tools/call", func(w http.ResponseWriter, _ *http.Request, _ *seen) {
		stream(w)
		say(w, "id: e1\nretry: 1\ndata:\n\n")
		_ = s.Listener.Close() // nobody listens any more
		panic(http.ErrAbortHandler)
	})
	c := dial(t, pinned(s))
	_, err := call1(t, c, `{}`)
	failed(t, err, rpc.Lost)
}

// replacing replaces a text in what is written.
type replacing struct {
	http.ResponseWriter
	from, to string
}

func (r replacing) Write(b []byte) (int, error) {
	_, err := r.ResponseWriter.Write([]byte(strings.ReplaceAll(string(b), r.from, r.to)))
	return len(b), err
}

func (r replacing) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

// TestModernIsNotResumed: 2026-07-28 has no resumption, whatever ids its events have.
func TestModernIsNotResumed(t *testing.T) {
	s := modernServer(t, dropped("id: e1\ndata: {\"method\":\"x\"}\n\n"))
	c := dial(t, Options{URL: s.URL})
	_, err := call1(t, c, `{}`)
	failed(t, err, rpc.Lost)
	if got := s.got("GET"); len(got) > 0 {
		t.Errorf("%d GETs came", len(got))
	}
}

// TestExpiryLeavesOthersAlone: calls that are under way are not cut by another one's 404.
func TestExpiryLeavesOthersAlone(t *testing.T) {
	leakFree(t)
	release := make(chan struct{})
	s := sessionServer(t, func(w http.ResponseWriter, _ *http.Request, m *seen) {
		stream(w)
		<-release
		say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
	})
	s.set("tools/list", status(404))
	c := dial(t, pinned(s))
	errs := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), request1(`{}`))
		errs <- err
	}()
	s.await(t, "tools/call", 1)
	_, err := c.Do(t.Context(), &rpc.Request{Method: "tools/list"})
	failed(t, err, rpc.SessionExpired)
	<-c.Done()
	close(release)
	if err := <-errs; err != nil {
		t.Errorf("the other call: %v", err)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	for _, era := range []string{v20251125, v20260728} {
		t.Run(era, func(t *testing.T) {
			leakFree(t)
			h := func(w http.ResponseWriter, r *http.Request, m *seen) {
				if len(m.body)%2 == 0 {
					answerJSON(string(m.params))(w, r, m)
				} else {
					events(`data: {"id":%ID%,"result":`+string(m.params)+"}\n\n")(w, r, m)
				}
			}
			s := sessionServer(t, h)
			s.set("server/discover", answerJSON(discovered))
			c := dial(t, Options{URL: s.URL, Protocol: era})
			var wg sync.WaitGroup
			for i := range 200 {
				wg.Go(func() {
					args := fmt.Sprintf(`{"i":%d}`, i)
					got, err := call1(t, c, args)
					if err != nil || !strings.HasSuffix(got, args+"}") {
						t.Errorf("call %d got %s, %v", i, got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
