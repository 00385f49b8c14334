package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
)

const issuerURL = "http://id.example"

// claims are those of a token that is right, with changes; nil takes a claim away.
func claims(changes map[string]any) map[string]any {
	c := map[string]any{"iss": issuerURL, "aud": "bridge", "sub": "ada", "org": "acme", "scope": "openid call", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// trust are the settings of most tests.
var trust = Issuer{URL: issuerURL, Audience: []string{"other", "bridge"}, User: "sub", Tenant: "org", Scopes: "scope", Rule: &bridge.Rule{Deny: []string{"x/*"}}}

// A lab is an authenticator that reaches an issuer without a network.
type lab struct {
	*mcptest.Issuer
	a   *Authenticator
	t   *testing.T
	log *bytes.Buffer
}

// direct hands requests to handlers by their hosts.
type direct map[string]http.Handler

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	h := d[r.URL.Host]
	if h == nil {
		return nil, errors.New("no such host")
	}
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func newLab(t *testing.T, issuers ...Issuer) *lab {
	l := &lab{Issuer: mcptest.NewIssuer(), t: t, log: new(bytes.Buffer)}
	l.a = New(Options{Issuers: issuers}, slog.New(slog.NewJSONHandler(&syncWriter{w: l.log}, nil)))
	l.a.client.Transport = small{direct{"id.example": l.Issuer}}
	return l
}

type syncWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

func (l *lab) token(changes map[string]any) string {
	l.t.Helper()
	token, err := l.Sign(claims(changes))
	if err != nil {
		l.t.Fatal(err)
	}
	return token
}

func (l *lab) caller(token string) (bridge.Caller, error) {
	return l.a.Caller(request("Authorization: Bearer " + token))
}

func (l *lab) wantUser(token, user string) {
	l.t.Helper()
	if c, err := l.caller(token); err != nil || c.User != user {
		l.t.Errorf("caller %+v, %v, want %s", c, err, user)
	}
}

func (l *lab) wantRefused(name, token string) {
	l.t.Helper()
	_, err := l.caller(token)
	wantRefused(l.t, name, err, token)
}

func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		got, err := l.caller(l.token(nil))
		want := bridge.Caller{ID: issuerURL, User: "ada", Tenant: "acme", Scopes: bridge.ScopeCall, Rule: trust.Rule}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("caller (-want +got):\n%s%v", diff, err)
		}
		for name, tt := range map[string]struct {
			changes map[string]any
			scopes  bridge.Scopes
		}{
			"scopes in a list":          {map[string]any{"scope": []string{"admin", "metrics", "x"}}, bridge.ScopeAdmin | bridge.ScopeMetrics},
			"no scopes":                 {map[string]any{"scope": nil}, 0},
			"scopes of no known form":   {map[string]any{"scope": 5}, 0},
			"several audiences":         {map[string]any{"aud": []string{"x", "bridge"}}, bridge.ScopeCall},
			"expired within the leeway": {map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()}, bridge.ScopeCall},
			"nbf within the leeway":     {map[string]any{"nbf": time.Now().Add(30 * time.Second).Unix()}, bridge.ScopeCall},
		} {
			if c, err := l.caller(l.token(tt.changes)); err != nil || c.Scopes != tt.scopes || c.User != "ada" {
				t.Errorf("%s: %+v %v", name, c, err)
			}
		}
		if n := l.Reads(); n != 1 {
			t.Errorf("the keys were read %d times, want once", n)
		}
	})
}

func TestBadTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		good := l.token(nil)
		head, rest, _ := strings.Cut(good, ".")
		payload, signature, _ := strings.Cut(rest, ".")
		header := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
		key, kid := l.Key()
		other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		signed := func(alg jose.SignatureAlgorithm, key any, o *jose.SignerOptions) string {
			t.Helper()
			s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, o)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.Signed(s).Claims(claims(nil)).Serialize()
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		for name, token := range map[string]string{
			"alg none":                     header(`{"alg":"none"}`) + "." + payload + ".",
			"alg none with a signature":    header(`{"alg":"none"}`) + "." + payload + "." + signature,
			"alg NoNe":                     header(`{"alg":"NoNe"}`) + "." + payload + ".",
			"without a signature":          head + "." + payload + ".",
			"without alg":                  header(`{"kid":"`+kid+`"}`) + "." + payload + "." + signature,
			"HS256 with the public key":    signed(jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil),
			"HS256 with the key's DER":     signed(jose.HS256, der, nil),
			"another's key":                signed(jose.ES256, other, nil),
			"another's key, embedded":      signed(jose.ES256, other, &jose.SignerOptions{EmbedJWK: true}),
			"a critical header":            signed(jose.ES256, key, (&jose.SignerOptions{}).WithHeader("crit", []string{"x"}).WithHeader("x", 1)),
			"signature of another token":   head + "." + header(`{"iss":"`+issuerURL+`","aud":"bridge","sub":"root","exp":9999999999}`) + "." + signature,
			"expired":                      l.token(map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}),
			"no exp":                       l.token(map[string]any{"exp": nil}),
			"exp that is text":             l.token(map[string]any{"exp": "tomorrow"}),
			"future nbf":                   l.token(map[string]any{"nbf": time.Now().Add(2 * time.Minute).Unix()}),
			"future iat":                   l.token(map[string]any{"iat": time.Now().Add(2 * time.Minute).Unix()}),
			"wrong audience":               l.token(map[string]any{"aud": "bridges"}),
			"no audience":                  l.token(map[string]any{"aud": nil}),
			"wrong issuer":                 l.token(map[string]any{"iss": issuerURL + "/"}),
			"no issuer":                    l.token(map[string]any{"iss": nil}),
			"issuer that is a list":        l.token(map[string]any{"iss": []string{issuerURL}}),
			"no user":                      l.token(map[string]any{"sub": nil}),
			"a user that is null":          strings.Clone(l.token(map[string]any{"sub": (*int)(nil)})),
			"an empty user":                l.token(map[string]any{"sub": ""}),
			"a user that is a number":      l.token(map[string]any{"sub": 5}),
			"a user with a newline":        l.token(map[string]any{"sub": "a\nb"}),
			"a user with NUL":              l.token(map[string]any{"sub": "a\x00"}),
			"a user with DEL":              l.token(map[string]any{"sub": "a\x7f"}),
			"a user with C1":               l.token(map[string]any{"sub": "a\u0085"}),
			"a user that is no Unicode":    l.token(map[string]any{"sub": "a\xff"}),
			"a long user":                  l.token(map[string]any{"sub": strings.Repeat("x", 257)}),
			"no tenant":                    l.token(map[string]any{"org": nil}),
			"a tenant that is an object":   l.token(map[string]any{"org": map[string]string{"id": "acme"}}),
			"a huge token":                 l.token(map[string]any{"x": strings.Repeat("x", maxToken)}),
			"a long issuer":                l.token(map[string]any{"iss": strings.Repeat("x", 3000)}),
			"no JSON":                      header("{}") + "." + header("not JSON") + "." + signature,
			"no base64":                    "a.!.c",
			"dots":                         "..",
			"five parts, like JWE":         good + "." + "a.b",
			"JSON in place of a signature": `{"payload":"` + payload + `","signatures":[..]}`,
		} {
			l.wantRefused(name, token)
		}
		l.wantUser(good, "ada")
		_, err = l.caller(l.token(map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}))
		if e, ok := errors.AsType[*bridge.Error](err); !ok || !strings.Contains(e.Msg, "expired") {
			t.Errorf("an expired token: %v, want that it says so", err)
		}
		if strings.Contains(l.log.String(), signature) {
			t.Error("a token was logged")
		}
	})
}

// Names of users are text, and lead nowhere.
func TestNamesOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := trust
		i.Tenant = ""
		l := newLab(t, i)
		keys := map[string]string{}
		for _, name := range []string{"a/b", "../..", "_service_", "1", "1_2", " ", "a ", "a", "é", "e\u0301", "\u202eadmin", "👩‍👩‍👧", "rate:*", "{}", "%00", `"`, "<b>", strings.Repeat("x", 256)} {
			c, err := l.caller(l.token(map[string]any{"sub": name}))
			if err != nil || c.User != name || c.Owner() != (bridge.Owner{User: name}) {
				t.Errorf("%q: %+v %v", name, c, err)
			}
			key := account{c.ID, c.Owner()}.key()
			if strings.Trim(key, ":ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" || keys[key] != "" {
				t.Errorf("%q has the key %q in a Redis, which is also that of %q", name, key, keys[key])
			}
			keys[key] = name
		}
		one, other := account{"a", bridge.Owner{User: "b", Tenant: "c"}}, account{"a", bridge.Owner{User: "c", Tenant: "b"}}
		moved := account{"ac", bridge.Owner{User: "b"}}
		if one.key() == other.key() || one.key() == moved.key() {
			t.Error("two accounts share a key in a Redis")
		}
	})
}

// The first settings of an issuer whose audience a token has decide.
func TestAudiencesOfOneIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		people := Issuer{URL: issuerURL, Audience: []string{"people"}, User: "sub"}
		robots := Issuer{URL: issuerURL, Audience: []string{"robots"}, User: "org", Scopes: "scope"}
		l := newLab(t, people, robots)
		l.wantUser(l.token(map[string]any{"aud": "people"}), "ada")
		l.wantUser(l.token(map[string]any{"aud": "robots"}), "acme")
		l.wantRefused("neither", l.token(nil))
		if c, err := l.caller(l.token(map[string]any{"aud": "people", "scope": nil})); err != nil || c.Scopes != bridge.ScopeCall {
			t.Errorf("without a claim for scopes: %+v %v, want the scope to call", c, err)
		}
	})
}

// A token's signature is checked once, until the token expires or something is changed.
func TestKnownTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		token := l.token(map[string]any{"exp": time.Now().Add(5 * time.Minute).Unix()})
		l.wantUser(token, "ada")
		if l.a.known.Len() != 1 {
			t.Fatalf("%d tokens are known", l.a.known.Len())
		}
		l.Down(true) // nobody needs to ask it
		l.wantUser(token, "ada")
		time.Sleep(5*time.Minute + 50*time.Second)
		l.wantUser(token, "ada")
		time.Sleep(20 * time.Second)
		l.wantRefused("expired", token)
	})
}

func TestReplaceIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		token := l.token(nil)
		l.wantUser(token, "ada")
		before := l.a.current.Load().issuers[issuerURL]
		same := trust
		same.Rule = &bridge.Rule{Deny: []string{"x/*"}}
		l.a.Replace(Options{Issuers: []Issuer{{URL: "https://new.example", Audience: []string{"x"}}, same}})
		if l.a.current.Load().issuers[issuerURL] != before {
			t.Error("an issuer that was not changed is another one")
		}
		l.Down(true)
		l.wantUser(token, "ada")

		changed := trust
		changed.User = "org"
		l.a.Replace(Options{Issuers: []Issuer{changed}})
		l.wantUser(token, "acme") // by the keys that are known, with the issuer still down

		l.a.Replace(Options{})
		l.wantRefused("the issuer is not trusted any more", token)
	})
}

// A token of a key that is not known makes the bridge read the keys, but not at each request.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		old := l.token(nil)
		l.wantUser(old, "ada")
		time.Sleep(readAgain)
		l.Rotate()
		fresh := l.token(map[string]any{"sub": "bob"})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { l.wantUser(fresh, "bob") })
		}
		wg.Wait()
		if n := l.Reads(); n != 2 {
			t.Errorf("the keys were read %d times, want twice", n)
		}
		l.wantRefused("a token whose key is gone", old)

		stranger := mcptest.NewIssuer()
		for range 500 { // no key of the issuer has signed these
			token, err := stranger.Sign(claims(map[string]any{"jti": rand.Text()}))
			if err != nil {
				t.Fatal(err)
			}
			l.wantRefused("an unknown key", token)
			time.Sleep(100 * time.Millisecond)
		}
		if n := l.Reads(); n < 6 || n > 8 {
			t.Errorf("the keys were read %d times within 50 s of unknown keys, want once in 10 s", n)
		}
	})
}

// Keys that the issuer withdraws are forgotten within the hour, with the tokens that they have signed.
func TestWithdrawnKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		token := l.token(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
		l.wantUser(token, "ada")
		l.Rotate()
		time.Sleep(59 * time.Minute)
		l.wantUser(token, "ada")
		time.Sleep(2 * time.Minute)
		_, _ = l.caller(token) // has the keys read, and does not wait for that
		synctest.Wait()
		l.wantRefused("its key was withdrawn", token)
	})
}

func TestIssuerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		l.Down(true)
		token := l.token(nil)
		wantUnreachable := func(retry time.Duration) {
			t.Helper()
			_, err := l.caller(token)
			if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.Unavailable || e.RetryAfter != retry {
				t.Errorf("%v, want unavailable for %v", err, retry)
			}
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { wantUnreachable(time.Second) })
		}
		wg.Wait()
		wantUnreachable(time.Second)
		time.Sleep(time.Second)
		wantUnreachable(2 * time.Second)
		time.Sleep(time.Second)
		wantUnreachable(time.Second)
		if n := strings.Count(l.log.String(), "cannot be read"); n != 2 {
			t.Errorf("%d lines in the log about two attempts:\n%s", n, l.log)
		}
		l.wantRefused("nothing can be wrong with the issuer of this one", "a.b.c")
		l.Down(false)
		time.Sleep(time.Second)
		l.wantUser(token, "ada")

		// What is known is trusted for a day without the issuer.
		l.Down(true)
		fresh := func() string { return l.token(map[string]any{"exp": time.Now().Add(time.Hour).Unix()}) }
		for range 23 {
			time.Sleep(time.Hour)
			l.wantUser(fresh(), "ada")
			synctest.Wait()
		}
		time.Sleep(2 * time.Hour)
		if _, err := l.caller(fresh()); bridge.KindOf(err) != bridge.Unavailable {
			t.Errorf("after a day: %v, want unavailable", err)
		}
	})
}

// A caller that goes away does not take the reading of the keys with it.
func TestCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, trust)
		l.a.client.Transport = direct{"id.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			l.ServeHTTP(w, r)
		})}
		token := l.token(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := l.a.Caller(request("Authorization: Bearer " + token).WithContext(ctx))
		if bridge.KindOf(err) != bridge.DeadlineExceeded {
			t.Errorf("%v, want the caller's own deadline", err)
		}
		time.Sleep(2 * time.Second)
		l.wantUser(token, "ada")
		if n := l.Reads(); n != 1 {
			t.Errorf("the keys were read %d times", n)
		}
	})
}

func TestBadIssuers(t *testing.T) {
	page := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	discovery := func(keys string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuerURL, keys) }
	both := func(keys http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/.well-known/openid-configuration", page(200, discovery(issuerURL+"/keys")))
		mux.Handle("/keys", keys)
		return mux
	}
	secret, err := jose.JSONWebKey{Key: []byte("a secret for HS256, at least 32 bytes"), KeyID: "key-1"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{
		"another issuer":        page(200, `{"issuer":"http://elsewhere.example","jwks_uri":"http://id.example/keys"}`),
		"a redirect":            page(302, ""),
		"no JSON":               page(200, "<html>"),
		"endless":               page(200, strings.Repeat(" ", 2<<20)+discovery(issuerURL+"/keys")),
		"no keys":               page(200, discovery("")),
		"keys in a file":        page(200, discovery("file:///etc/passwd")),
		"keys that redirect":    both(page(302, "")),
		"keys that are missing": both(page(404, "{}")),
		"keys that are no JSON": both(page(200, "[")),
		"no key among the keys": both(page(200, `{"keys":[{"kty":"future"},{"kty":"RSA"},5]}`)),
		"a secret key":          both(page(200, `{"keys":[`+string(secret)+`]}`)),
		"a host that is not":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, trust)
				l.a.client.Transport = small{direct{"id.example": h}}
				if _, err := l.caller(l.token(nil)); bridge.KindOf(err) != bridge.Unavailable {
					t.Errorf("%v, want unavailable", err)
				}
				if !strings.Contains(l.log.String(), `"issuer":"`+issuerURL) {
					t.Errorf("the log does not name the issuer: %s", l.log)
				}
			})
		})
	}
	// Over TLS the keys must come over TLS too.
	s := newSource("https://id.example", &http.Client{Transport: direct{"id.example": page(200, `{"issuer":"https://id.example","jwks_uri":"http://id.example/keys"}`)}}, slog.New(slog.DiscardHandler))
	if _, err := s.load(); bridge.KindOf(err) != bridge.Unavailable {
		t.Errorf("keys without TLS: %v", err)
	}
}

// What holds for a key of one algorithm does not hold for the same key with another.
func TestKeySet(t *testing.T) {
	i := mcptest.NewIssuer()
	key, _ := i.Key()
	token, err := i.Sign(claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		t.Fatal(err)
	}
	public := key.Public()
	for name, tt := range map[string]struct {
		key  jose.JSONWebKey
		want bool
	}{
		"plain":             {jose.JSONWebKey{Key: public}, true},
		"with its id":       {jose.JSONWebKey{Key: public, KeyID: "key-1", Algorithm: "ES256"}, true},
		"another id":        {jose.JSONWebKey{Key: public, KeyID: "key-2"}, false},
		"another algorithm": {jose.JSONWebKey{Key: public, Algorithm: "ES384"}, false},
	} {
		var c jwt.Claims
		if got := (&keySet{keys: []jose.JSONWebKey{tt.key}}).verify(parsed, &c); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	enc, err := jose.JSONWebKey{Key: public, Use: "enc"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseKeys([]byte(`{"keys":[` + string(enc) + `]}`)); err == nil {
		t.Error("a key for encryption verifies")
	}
}
