package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// requestFor is a call with headers of its caller.
func requestFor(header http.Header) *rpc.Request {
	r := request1(`{}`)
	r.Header = header
	return r
}

// A caller's header reaches the server on its call alone, and so do the call's
// cancellation and the request that resumes it.
func TestForwardedHeaders(t *testing.T) {
	leakFree(t)
	var call atomic.Value
	s := sessionServer(t, nil)
	s.set("tools/call", func(w http.ResponseWriter, r *http.Request, m *seen) {
		switch r.Header.Get("X-User-Id") {
		case "resumes":
			call.Store(m.id)
			events("id: e1\nretry: 1\ndata:\n\n")(w, r, m)
		case "hangs":
			stream(w)
			hang(w, r, m)
		default:
			answerJSON("1")(w, r, m)
		}
	})
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m *seen) {
		if m.header.Get("Last-Event-Id") == "" {
			stream(w)
			hang(w, r, m)
			return
		}
		events(`data: {"id":`+call.Load().(string)+",\"result\":2}\n\n")(w, r, m)
	})
	o := pinned(s)
	o.CancelGrace = time.Millisecond
	c := dial(t, o)
	user := func(v string) http.Header { return http.Header{"X-User-Id": {v, "too"}} }
	for _, v := range []string{"first", "resumes"} {
		if _, err := c.Do(t.Context(), requestFor(user(v))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s.await(t, "tools/call", 4)
		cancel()
	}()
	if _, err := c.Do(ctx, requestFor(user("hangs"))); err == nil {
		t.Error("a call that hangs was answered")
	}
	s.await(t, "notifications/cancelled", 1)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, m := range s.got("") {
		if v := m.header["X-User-Id"]; v != nil {
			got = append(got, m.name()+" "+strings.Join(v, ","))
		}
	}
	want := "tools/call first,too|tools/call resumes,too|GET resumes,too|tools/call hangs,too|notifications/cancelled hangs,too"
	if got := strings.Join(got, "|"); got != want {
		t.Errorf("the header came with %q, want %q", got, want)
	}
	if all := len(s.got("")); all < 8 {
		t.Errorf("%d requests came; the rest of the connection is missing", all)
	}
}

// What is configured wins over a caller, and some names are no caller's business.
func TestForwardedNames(t *testing.T) {
	s := modernServer(t, answerJSON("1"))
	o := Options{URL: s.URL, Headers: http.Header{"X-Tenant": {"ours"}, "Authorization": {"Bearer ours"}}}
	c := dial(t, o)
	given := http.Header{
		"X-Tenant": {"theirs"}, "Authorization": {"Bearer theirs"}, "cookie": {"theirs"}, "Connection": {"theirs"}, "Te": {"theirs"},
		"Transfer-Encoding": {"theirs"}, "Host": {"theirs"}, "Mcp-Name": {"theirs"}, "mcp-session-id": {"theirs"}, "Mcp-Param-X": {"theirs"},
		"Content-Type": {"theirs"}, "Accept": {"theirs"}, "Last-Event-Id": {"theirs"}, "Proxy-Authorization": {"theirs"},
		"X-Bad": {"the\nirs"}, "X Bad": {"theirs"}, "x-good": {"the caller's"}, "User-Agent": {"the caller's"}, "X-Half": {"a\x00b", "the caller's"},
	}
	if _, err := c.Do(t.Context(), requestFor(given)); err != nil {
		t.Fatal(err)
	}
	h := s.got("tools/call")[0].header
	for name, values := range h {
		if strings.Contains(strings.Join(values, ","), "theirs") {
			t.Errorf("%s came as %q", name, values)
		}
	}
	for name, want := range map[string]string{
		"X-Tenant": "ours", "Authorization": "Bearer ours", "X-Good": "the caller's", "X-Half": "the caller's", "User-Agent": "the caller's", "Mcp-Name": "echo",
	} {
		if got := strings.Join(h[name], ","); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	if h := s.got("tools/call")[1].header; h.Get("X-Good") != "" || h.Get("User-Agent") != "mcp-bridge/dev" {
		t.Errorf("the next call came with %v", h)
	}
}

// A server that repeats a caller's header does not get it into what is logged.
func TestForwardedStaySecret(t *testing.T) {
	const secret = "key-24680"
	long := strings.Repeat("x", 195) + secret // which the end of an excerpt would cut through
	for name, h := range map[string]handler{
		"page":            answerRaw(500, "text/html", secret),
		"cut":             answerRaw(500, "text/html", long),
		"401":             answerRaw(401, "text/plain", secret),
		"session":         answerRaw(404, "text/plain", secret),
		"session refused": answerRaw(400, "application/json", `{"id":%ID%,"error":{"code":-1,"message":"no session for `+secret+`"}}`),
		"session error":   answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-32600,"message":"no session for `+secret+`"}}`),
		"error":           answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-1,"message":"`+secret+`","data":{"h":"`+secret+`"}}}`),
		"refused":         answerRaw(400, "application/json", `{"id":%ID%,"error":{"code":-1,"message":"`+secret+`"}}`),
		"no error":        answerRaw(200, "application/json", `{"id":%ID%,"error":"`+secret+`"}`),
		"no answer":       answerRaw(200, "application/json", `{"id":5,"result":"`+secret+`"}`),
		"no JSON":         answerRaw(200, "application/json", secret),
		"no events":       events("data: " + secret + "\n\n"),
		"another type":    answerRaw(200, "text/plain", secret),
		"type":            answerRaw(200, "x/"+secret, ""),
		"events":          events(`data: {"id":%ID%,"error":{"code":-1,"message":"` + secret + `"}}` + "\n\n"),
		"www": func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			challengeWith(w, 403, `Bearer error_description="`+secret+`"`)
		},
		"redirect": func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			w.Header().Set("Location", "/"+secret)
			w.WriteHeader(307)
		},
		"redirect other": func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			w.Header().Set("Location", "http://h/"+secret)
			w.WriteHeader(302)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			var logs logged
			s := sessionServer(t, h)
			o := pinned(s)
			o.Log = logs.logger()
			c := dial(t, o)
			_, err := c.Do(t.Context(), requestFor(http.Header{"X-Api-Key": {secret}}))
			if err == nil {
				t.Fatal("no error")
			}
			texts := []string{err.Error(), logs.String()}
			if e, ok := errors.AsType[*rpc.Error](err); ok {
				texts = append(texts, string(e.Data))
			}
			if err := c.Err(); err != nil {
				texts = append(texts, err.Error())
			}
			for _, text := range texts {
				if strings.Contains(text, "key-2") {
					t.Errorf("the secret is in %q", text)
				}
			}
			if n := len(s.got("tools/call")); n != 1 {
				t.Errorf("%d requests came: a redirect was followed with a caller's header", n)
			}
		})
	}
}

func challengeWith(w http.ResponseWriter, status int, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	w.WriteHeader(status)
}
