package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
)

// asClient is the entry of an OAuth server, whose client shows who it is by these keys.
func asClient(s *mcptest.OAuthServer, keys map[string]any) server {
	keys["clientId"] = mcptest.OAuthClient
	return server{"url": s.URL, "credential": keys, "reconnectDelay": "50ms"}
}

func bySecret(s *mcptest.OAuthServer) server {
	return asClient(s, map[string]any{"clientSecret": mcptest.OAuthSecret})
}

// state waits until a server has the state, and returns what is said of its last failure.
func (p *process) state(handle, want string) string {
	p.t.Helper()
	for range 600 {
		var c catalogue
		decode(p.t, p.get("/tools"), &c)
		for _, s := range c.Servers {
			if s.Handle == handle && s.State == want {
				return s.LastError
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("%s does not become %s: %s", handle, want, p.get("/tools").body)
	return ""
}

// noSecret demands that nothing that is shown or logged has a token or the client's secret in it.
func (p *process) noSecret(more ...string) {
	p.t.Helper()
	texts := append(more, p.log())
	for _, path := range []string{"/tools", "/status", "/openapi.json"} {
		texts = append(texts, string(p.get(path).body))
	}
	for _, text := range texts {
		for _, secret := range []string{"tok-", mcptest.OAuthSecret, url.QueryEscape(mcptest.OAuthSecret), "PRIVATE KEY"} {
			if i := strings.Index(text, secret); i >= 0 {
				p.t.Errorf("%q is shown: …%.300s", secret, text[max(0, i-100):])
			}
		}
	}
}

// Servers that want a token get one, by a secret or by a signature; 50 callers whose
// token was revoked cause one request for another, and none of them notices.
func TestOAuthServers(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	secret := mcptest.StartOAuth(t)
	signed := mcptest.StartOAuth(t, "key="+string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
	p := start(t, map[string]server{
		"secret": bySecret(secret), "signed": asClient(signed, map[string]any{"privateKey": "${file:" + path + "}", "keyId": "k1"}),
	}, nil)
	p.ready()
	for handle, s := range map[string]*mcptest.OAuthServer{"secret": secret, "signed": signed} {
		p.state(handle, "ready")
		if res := p.call(handle, "header", `{"message":"Authorization"}`, 200); !strings.Contains(string(res.body), "Bearer "+s.Stats().Token) {
			t.Errorf("%s: a call came with %s", handle, res.body)
		}
		s.Await("GET")
		s.Revoke()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { p.call(handle, "echo", `{"message":"hi"}`, 200) })
		}
		wg.Wait()
		if got := s.Stats(); got.Granted != 2 || got.Bare != 1 {
			t.Errorf("%s: %d tokens were given, and %d requests came without one; want 2, and the first one", handle, got.Granted, got.Bare)
		}
	}
	p.noSecret()
	if !strings.Contains(p.log(), " #as:bridge%20at%20work") {
		t.Error("the log does not say whom the bridge connects as")
	}
}

// A server, or its authorization server, that refuses the bridge needs credentials; one that is
// down is unavailable. The others go on, and so does it once it is mended.
func TestOAuthFaults(t *testing.T) {
	refuses, deaf, down, later := mcptest.StartOAuth(t, string(mcptest.Refuse)), mcptest.StartOAuth(t, string(mcptest.Deaf)), mcptest.StartOAuth(t, string(mcptest.Down)), mcptest.StartOAuth(t)
	p := start(t, map[string]server{
		"refuses": bySecret(refuses), "deaf": bySecret(deaf), "down": bySecret(down), "later": bySecret(later), "fine": mode(t, mcptest.OK),
	}, nil)
	p.ready()
	for handle, tt := range map[string]struct {
		state, code, says string
		status            int
	}{
		"refuses": {"needs-auth", "upstream-auth", `refuses our client "bridge at work" (invalid_client`, 502},
		"deaf":    {"needs-auth", "upstream-auth", `refuses the new token that our client "bridge at work" was given`, 502},
		"down":    {"failed", "server-unavailable", `answers HTTP 503`, 503},
	} {
		if got := p.state(handle, tt.state); !strings.Contains(got, tt.says) {
			t.Errorf("the state of %s says %q, want %q", handle, got, tt.says)
		}
		res := p.call(handle, "echo", `{"message":"hi"}`, tt.status)
		wantProblem(t, res, tt.status, tt.code, tt.says)
		p.noSecret(string(res.body))
	}
	p.call("fine", "echo", `{"message":"hi"}`, 200)

	// It was fine, and refuses us now: its state tells, with the list of its tools as it was.
	p.call("later", "echo", `{"message":"hi"}`, 200)
	later.SetFaults(mcptest.Deaf)
	p.problem("later", "echo", `{"message":"hi"}`, 502, "upstream-auth", "refuses the new token")
	p.state("later", "needs-auth")

	for handle, s := range map[string]*mcptest.OAuthServer{"refuses": refuses, "deaf": deaf, "down": down, "later": later} {
		s.SetFaults()
		p.state(handle, "ready")
	}
	for _, handle := range []string{"refuses", "deaf", "down"} {
		p.call(handle, "echo", `{"message":"hi"}`, 200)
	}
	p.noSecret()
}

// A tool that needs a scope of its own is refused with words that help, and keeps nobody from the others.
func TestOAuthScope(t *testing.T) {
	s := mcptest.StartOAuth(t, string(mcptest.Scope))
	p := start(t, map[string]server{"a": bySecret(s)}, nil)
	p.ready()
	for range 10 {
		p.problem("a", "echo", `{"message":"hi"}`, 502, "upstream-auth", `wants the scope "tools:call", which our credentials do not have; have it granted to our client`)
	}
	s.SetFaults()
	p.call("a", "echo", `{"message":"hi"}`, 200)
	if got := s.Stats(); got.Granted != 1 {
		t.Errorf("%d tokens were given; another one would not have helped", got.Granted)
	}
}

// A key that cannot sign is a fault of the configuration, found before anything starts.
func TestOAuthBadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.json")
	write(t, path, `{"mcpServers": {"a": {"url": "https://example.com/mcp", "credential": {"clientId": "x", "privateKey": "-----BEGIN X-----\naHVudGVyMg==\n-----END X-----\n"}}}}`)
	out, err := exec.Command("bridge", "check", "--config", path).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
		t.Errorf("err = %v, want exit status 2", err)
	}
	if !strings.Contains(string(out), `the private key of the credential cannot be read`) || strings.Contains(string(out), "aHVu") {
		t.Errorf("it says %q", out)
	}
}
