package remote

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/mcptest"
)

// withSecret is the client that the server of mcptest knows.
func withSecret() Credential {
	return Credential{ClientID: mcptest.OAuthClient, ClientSecret: mcptest.OAuthSecret}
}

func tokensOf(t *testing.T, c Credential) *Tokens {
	t.Helper()
	tokens, err := NewTokens(c)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// secretFree demands that no token and none of our secrets is in any text.
func secretFree(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, secret := range []string{"tok-", mcptest.OAuthSecret, url.QueryEscape(mcptest.OAuthSecret), "YnJpZGdl"} { // which is how Basic begins
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %q", secret, text)
			}
		}
	}
}

// Every request carries the token, and it is asked for once, as the standards have it.
func TestCredential(t *testing.T) {
	leakFree(t)
	var logs logged
	s := mcptest.StartOAuth(t)
	o := Options{URL: s.URL, Tokens: tokensOf(t, withSecret())}
	o.Log = logs.logger()
	c := dial(t, o)
	header := &rpc.Request{Method: "tools/call", Params: []byte(`"name":"header","arguments":`), Args: []byte(`{"message":"Authorization"}`)}
	got, err := c.Do(t.Context(), header)
	stats := s.Stats()
	if err != nil || !strings.Contains(string(got), `"Bearer `+stats.Token+`"`) {
		t.Errorf("the call came with %s, %v; want the token", got, err)
	}
	s.Await("GET")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stats = s.Stats()
	want := []url.Values{{"how": {"client_secret_basic"}, "grant_type": {"client_credentials"}, "resource": {s.URL}, "scope": {"tools more"}}}
	if d := cmp.Diff(want, stats.Asked); d != "" {
		t.Errorf("requests for tokens (-want +got):\n%s", d)
	}
	if stats.Bare != 1 || stats.Refused != 0 {
		t.Errorf("%d requests without a token and %d with another; want the first one alone", stats.Bare, stats.Refused)
	}
	for _, want := range []string{"POST server/discover", "POST initialize", "POST notifications/initialized", "GET", "POST tools/call", "DELETE"} {
		if n := strings.Count("|"+strings.Join(stats.Passed, "|")+"|", "|"+want+"|"); n != 1 {
			t.Errorf("%q passed %d times, want once: %q", want, n, stats.Passed)
		}
	}
	secretFree(t, logs.String())
}

// A connection that follows another one uses its token.
func TestTokenOutlivesConnection(t *testing.T) {
	s := mcptest.StartOAuth(t)
	o := Options{URL: s.URL, Tokens: tokensOf(t, withSecret())}
	for range 3 {
		if err := dial(t, o).Close(); err != nil {
			t.Error(err)
		}
	}
	if got := s.Stats(); got.Granted != 1 || got.Bare != 1 {
		t.Errorf("%d tokens and %d bare requests for three connections, want one of each", got.Granted, got.Bare)
	}
}

func echoOf(t *testing.T, c *Conn) error {
	t.Helper()
	got, err := call1(t, c, `{"message":"hi"}`)
	if err == nil && !strings.Contains(got, `"hi"`) {
		t.Errorf("echo = %s", got)
	}
	return err
}

// 50 callers whose token was revoked cause one request for another, and none of them notices.
func TestRevokedUnderCallers(t *testing.T) {
	leakFree(t)
	s := mcptest.StartOAuth(t)
	c := dial(t, Options{URL: s.URL, Tokens: tokensOf(t, withSecret())})
	s.Await("GET")
	for round := 1; round <= 3; round++ {
		s.Revoke()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := echoOf(t, c); err != nil {
					t.Errorf("a call failed: %v", err)
				}
			})
		}
		wg.Wait()
		if got := s.Stats(); got.Granted != 1+round || got.Refused == 0 {
			t.Errorf("%d tokens were given and %d refused; want %d, and some", got.Granted, got.Refused, 1+round)
		}
	}
}

// What is wrong decides how it is told; nothing of it is followed, and no secret gets out.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		fault  mcptest.Fault
		reason rpc.Reason
		says   string
	}{
		{mcptest.WrongIssuer, rpc.Auth, `calls itself https://bank.example`},
		{mcptest.WrongResource, rpc.Auth, `is about https://bank.example/mcp and not about its own URL`},
		{mcptest.RedirectMetadata, rpc.Auth, `redirects, which is not followed`},
		{mcptest.RedirectToken, rpc.Auth, `redirects the request for a token, which is not followed`},
		{mcptest.Refuse, rpc.Auth, `refuses our client "bridge at work" (invalid_client: not known: Basic [secret])`},
		{mcptest.Down, rpc.Start, `answers HTTP 503`},
		{mcptest.Garbage, rpc.Auth, `answers something that is no token`},
		{mcptest.MAC, rpc.Auth, `of type MAC`},
		{mcptest.Deaf, rpc.Auth, `refuses the new token that our client "bridge at work" was given, with HTTP 401: the token [secret] is not known`},
		{mcptest.NoDescription, rpc.Auth, `no authorization server describes itself at http://127.0.0.1`},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			leakFree(t)
			var logs logged
			s := mcptest.StartOAuth(t, string(tt.fault))
			o := Options{URL: s.URL, Tokens: tokensOf(t, withSecret())}
			o.Log = logs.logger()
			_, err := Dial(t.Context(), o)
			f := failed(t, err, tt.reason)
			if !strings.Contains(f.Error(), tt.says) {
				t.Errorf("the error is %q, want it to say %q", f.Error(), tt.says)
			}
			secretFree(t, f.Error(), logs.String())
			stats := s.Stats()
			if stats.Elsewhere > 0 || len(stats.Passed) > 0 {
				t.Errorf("%d redirects were followed, and %q passed; want neither", stats.Elsewhere, stats.Passed)
			}
			// All is well once the fault is gone.
			s.SetFaults()
			if err := echoOf(t, dial(t, o)); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is not as usual, but allowed.
func TestVariants(t *testing.T) {
	for _, tt := range []struct {
		fault  mcptest.Fault
		change func(*Credential)
		issuer bool // insist on the right one
		how    string
		scope  string
	}{
		{fault: mcptest.NoPointer, how: "client_secret_basic", scope: "tools more"},
		{fault: mcptest.OpenID, how: "client_secret_basic", scope: "tools more"},
		{fault: mcptest.InBody, how: "client_secret_post", scope: "tools more"},
		{fault: mcptest.NoDescription, issuer: true, how: "client_secret_basic"},
		{issuer: true, how: "client_secret_basic", scope: "tools more"},
		{change: func(c *Credential) { c.Scopes = []string{"mine", "too"} }, how: "client_secret_basic", scope: "mine too"},
		{change: func(c *Credential) { c.Scopes = []string{} }, how: "client_secret_basic"},
	} {
		s := mcptest.StartOAuth(t, string(tt.fault))
		cr := withSecret()
		if tt.change != nil {
			tt.change(&cr)
		}
		if tt.issuer {
			cr.Issuer = s.Stats().Issuer + "/" // on the slash hardly anybody agrees
		}
		if err := echoOf(t, dial(t, Options{URL: s.URL, Tokens: tokensOf(t, cr)})); err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		asked := s.Stats().Asked[0]
		if asked.Get("how") != tt.how || asked.Get("scope") != tt.scope || asked.Get("resource") != s.URL {
			t.Errorf("%s: a token was asked for with %v, want %s with scope %q", tt.fault, asked, tt.how, tt.scope)
		}
	}
}

func TestOtherIssuer(t *testing.T) {
	s := mcptest.StartOAuth(t)
	cr := withSecret()
	cr.Issuer = "https://id.example"
	_, err := Dial(t.Context(), Options{URL: s.URL, Tokens: tokensOf(t, cr)})
	f := failed(t, err, rpc.Auth)
	if want := "trusts the authorization server " + s.Stats().Issuer + " and not https://id.example"; !strings.Contains(f.Msg, want) {
		t.Errorf("the error is %q, want it to say %q", f.Msg, want)
	}
	if got := s.Stats(); len(got.Asked) > 0 {
		t.Errorf("a token was asked for: %v", got.Asked)
	}
}

// keyPEM returns a private key, and its public half as an argument of the server.
func keyPEM(t *testing.T, key crypto.Signer) (private, public string) {
	t.Helper()
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})),
		"key=" + string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}))
}

func TestPrivateKeyJWT(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key       crypto.Signer
		algorithm string
	}{"RSA": {rsaKey, ""}, "RSA by PSS": {rsaKey, "PS256"}, "P-384": {ecKey, ""}, "Ed25519": {edKey, ""}} {
		t.Run(name, func(t *testing.T) {
			private, public := keyPEM(t, tt.key)
			s := mcptest.StartOAuth(t, public)
			c := dial(t, Options{URL: s.URL, Tokens: tokensOf(t, Credential{ClientID: mcptest.OAuthClient, PrivateKey: private, KeyID: "k1", Algorithm: tt.algorithm})})
			if err := echoOf(t, c); err != nil {
				t.Error(err)
			}
			s.Revoke() // the next assertion is another one
			if err := echoOf(t, c); err != nil {
				t.Error(err)
			}
			for _, asked := range s.Stats().Asked {
				if asked.Get("how") != "private_key_jwt" || asked.Get("resource") != s.URL {
					t.Errorf("a token was asked for with %v", asked)
				}
			}
		})
	}
}

// A server that refuses every token is told of as one that needs credentials, also in the middle of its life.
func TestRefusedLater(t *testing.T) {
	var told sync.Map
	s := mcptest.StartOAuth(t)
	o := Options{URL: s.URL, Tokens: tokensOf(t, withSecret())}
	o.ListChanged = func(list string) { told.Store(list, true) }
	c := dial(t, o)
	s.Await("GET") // the stream of notifications asks for no token later
	s.SetFaults(mcptest.Deaf)
	f := failed(t, echoOf(t, c), rpc.Auth)
	if f.Status != http.StatusUnauthorized || !strings.Contains(f.Msg, "refuses the new token") {
		t.Errorf("the failure is %+v", f)
	}
	if _, ok := told.Load("tools"); !ok {
		t.Error("nothing has the list of tools read again")
	}
	secretFree(t, f.Error())
	if got := s.Stats(); got.Granted != 2 || got.Refused != 2 {
		t.Errorf("%d tokens were given and %d refused, want one retry", got.Granted, got.Refused)
	}
	s.SetFaults(mcptest.Refuse)
	f = failed(t, echoOf(t, c), rpc.Auth)
	if !strings.Contains(f.Msg, "invalid_client") {
		t.Errorf("the failure is %+v", f)
	}
	s.SetFaults(mcptest.Down)
	failed(t, echoOf(t, c), rpc.Start)
	s.SetFaults()
	if err := echoOf(t, c); err != nil {
		t.Error(err)
	}
}

func TestInsufficientScope(t *testing.T) {
	s := mcptest.StartOAuth(t, string(mcptest.Scope))
	c := dial(t, Options{URL: s.URL, Tokens: tokensOf(t, withSecret())})
	f := failed(t, echoOf(t, c), rpc.Auth)
	if want := `wants the scope "tools:call", which our credentials do not have; have it granted to our client "bridge at work"`; f.Status != 403 || !strings.Contains(f.Msg, want) {
		t.Errorf("the failure is %+v, want it to say %q", f, want)
	}
	if got := s.Stats(); got.Granted != 1 {
		t.Errorf("%d tokens were given; another one would not help", got.Granted)
	}
}

// A call whose token was refused has not run: given up while another token is fetched, it
// is over at once, since the server has nothing to cancel.
func TestGivenUpAfterRefusal(t *testing.T) {
	leakFree(t)
	s := mcptest.StartOAuth(t)
	o := Options{URL: s.URL, Tokens: tokensOf(t, withSecret()), grantWait: time.Hour}
	o.CancelGrace = time.Hour
	c := dial(t, o)
	s.Await("GET")
	s.SetFaults(mcptest.Hang)
	s.Revoke()
	ctx, cancel := context.WithCancel(t.Context())
	let := make(chan struct{})
	r := request1(`{}`)
	r.LetGo = func() { close(let) }
	go func() {
		s.AwaitAsked(2)
		cancel()
	}()
	if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the caller's own", err)
	}
	<-let
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := s.Stats(); strings.Contains(strings.Join(got.Passed, " "), "cancelled") || got.Refused != 1 {
		t.Errorf("%q passed and %d were refused, want no cancellation", got.Passed, got.Refused)
	}
}
