package mcptest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// post asks for a token and returns the status.
func post(t *testing.T, at string, form url.Values, id, secret string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if id != "" {
		r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// The server gives tokens to its client alone, and lets nobody pass without one.
func TestOAuth(t *testing.T) {
	NoLeaks(t)
	s := StartOAuth(t)
	ask := func(resource, id, secret string) int {
		t.Helper()
		return post(t, s.Stats().Issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "resource": {resource}}, id, secret)
	}
	for _, tt := range []struct {
		name, resource, id, secret string
		want                       int
	}{
		{"good", s.URL, OAuthClient, OAuthSecret, 200},
		{"wrong secret", s.URL, OAuthClient, "x", 401},
		{"wrong client", s.URL, "x", OAuthSecret, 401},
		{"no client", s.URL, "", "", 401},
		{"other resource", "http://127.0.0.1/mcp", OAuthClient, OAuthSecret, 400},
		{"no resource", "", OAuthClient, OAuthSecret, 400},
	} {
		if got := ask(tt.resource, tt.id, tt.secret); got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
	status := func(token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(httpHello))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode == 401 && !strings.Contains(got, "/.well-known/oauth-protected-resource/mcp") {
			t.Errorf("the challenge is %q", got)
		}
		return resp.StatusCode
	}
	token := s.Stats().Token
	if got := []int{status(token), status("x")}; got[0] == 401 || got[1] != 401 {
		t.Errorf("status %d with a token and %d with another, want the second to be 401 alone", got[0], got[1])
	}
	s.Revoke()
	if got := status(token); got != 401 {
		t.Errorf("status %d with a token that was revoked, want 401", got)
	}
	s.SetFaults(Down)
	if got := ask(s.URL, OAuthClient, OAuthSecret); got != 503 {
		t.Errorf("status %d from an authorization server that is down, want 503", got)
	}
	if got := s.Stats(); got.Granted != 1 || got.Refused != 2 || len(got.Asked) != 6 {
		t.Errorf("stats are %+v", got)
	}
}
