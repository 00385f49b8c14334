package mcptest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An OAuthServer is an [OAuth] server process.
type OAuthServer struct {
	*HTTPServer
	t testing.TB
}

// StartOAuth runs an [OAuth] server, with faults from the start or none, until the test ends.
func StartOAuth(t testing.TB, args ...string) *OAuthServer {
	t.Helper()
	s := &OAuthServer{Start(t, OAuth, args...), t}
	s.Stats() // which tells it by what name it is known
	return s
}

// Stats returns what the server has seen so far.
func (s *OAuthServer) Stats() OAuthStats {
	s.t.Helper()
	return s.control(nil)
}

// Await waits until a request has passed: "POST tools/call", "GET".
func (s *OAuthServer) Await(passed string) {
	s.t.Helper()
	s.control(url.Values{"await": {passed}})
}

// AwaitAsked waits until so many requests for tokens have come, answered or not.
func (s *OAuthServer) AwaitAsked(n int) {
	s.t.Helper()
	s.control(url.Values{"asked": {strconv.Itoa(n)}})
}

// SetFaults sets what the server does wrong from now on; no fault is none.
func (s *OAuthServer) SetFaults(faults ...Fault) {
	s.t.Helper()
	q := url.Values{"faults": {""}}
	for _, f := range faults {
		q.Add("faults", string(f))
	}
	s.control(q)
}

// Revoke makes the server forget all tokens that were given.
func (s *OAuthServer) Revoke() {
	s.t.Helper()
	s.control(url.Values{"revoke": {"all"}})
}

// SetLife sets how long the tokens to come are good, in whole seconds. Zero is for ever, and not told.
func (s *OAuthServer) SetLife(d time.Duration) {
	s.t.Helper()
	s.control(url.Values{"life": {strconv.Itoa(int(d.Seconds()))}})
}

func (s *OAuthServer) control(q url.Values) OAuthStats {
	s.t.Helper()
	r, err := http.Get(strings.TrimSuffix(s.URL, "/mcp") + "/control?" + q.Encode()) // a test's last look is after its context
	if err != nil {
		s.t.Fatalf("mcptest: %v", err)
	}
	defer r.Body.Close()
	var stats OAuthStats
	if err := json.NewDecoder(r.Body).Decode(&stats); err != nil {
		s.t.Fatalf("mcptest: %v", err)
	}
	return stats
}
