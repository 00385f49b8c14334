package mcptest

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// OAuth is HTTPOK for requests with a token, and on another port the
// authorization server that gives tokens to one client. Arguments: "key=" and a
// public key in PEM, by which the client signs in place of its secret, and any [Fault].
// Run it with [StartOAuth].
const OAuth = "oauth"

// The one client that an [OAuth] server gives tokens to.
const (
	OAuthClient = "bridge at work"
	OAuthSecret = "s3cret/of+the%client"
)

// A Fault is what an [OAuth] server does wrong. Several can be at once.
type Fault string

// The faults.
const (
	WrongIssuer      Fault = "wrong-issuer"      // the authorization server calls itself another one
	WrongResource    Fault = "wrong-resource"    // the server describes another one
	RedirectMetadata Fault = "redirect-metadata" // the authorization server's description is said to be elsewhere
	RedirectToken    Fault = "redirect-token"    // and so is the place for tokens
	Refuse           Fault = "refuse"            // the client is unknown
	Down             Fault = "down"              // the authorization server answers 503
	Hang             Fault = "hang"              // requests for tokens are not answered
	Garbage          Fault = "garbage"           // what is answered is no token
	MAC              Fault = "mac"               // tokens are of another type than Bearer
	Deaf             Fault = "deaf"              // the server takes no token
	Scope            Fault = "scope"             // the server wants another scope for calls
	NoPointer        Fault = "no-pointer"        // a 401 does not say where the description is
	NoDescription    Fault = "no-description"    // the server does not describe itself
	OpenID           Fault = "openid"            // the authorization server describes itself for OpenID alone
	InBody           Fault = "in-body"           // the client's secret is taken in the body alone
)

// OAuthStats are what an [OAuth] server has seen.
type OAuthStats struct {
	Issuer    string       // of the authorization server
	Token     string       // the latest
	Granted   int          // requests for tokens that were answered with one
	Asked     []url.Values // all requests for tokens, without what is secret; "how" is the way the client showed who it is
	Elsewhere int          // requests that followed a redirect
	Bare      int          // requests to the MCP server without a token
	Refused   int          // with one that is no good
	Passed    []string     // with a good one: "POST tools/call", "GET"
}

type oauth struct {
	mcp http.Handler
	key any // the client's; nil for one with a secret

	mu        sync.Mutex
	changed   *sync.Cond // on mu, with each request that passes or asks for a token
	faults    map[Fault]bool
	life      time.Duration        // of new tokens; zero is not told
	good      map[string]time.Time // :: token -> when it expires; zero is never
	stats     OAuthStats
	mcpOrigin string
}

func oauthServer(args []string) (http.Handler, error) {
	handler, err := httpOK(nil)
	if err != nil {
		return nil, err
	}
	s := &oauth{mcp: handler, faults: map[Fault]bool{}, good: map[string]time.Time{}, life: time.Hour}
	s.changed = sync.NewCond(&s.mu)
	for _, a := range args {
		text, isKey := strings.CutPrefix(a, "key=")
		if !isKey {
			s.faults[Fault(a)] = true
			continue
		}
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("the key is not in PEM form")
		}
		if s.key, err = x509.ParsePKIXPublicKey(block.Bytes); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.stats.Issuer = "http://" + l.Addr().String() + "/tenant"
	// Both end with the process.
	go func() {
		_ = (&http.Server{Handler: http.HandlerFunc(s.authorization), ReadHeaderTimeout: time.Minute}).Serve(l)
	}()
	return http.HandlerFunc(s.resource), nil
}

func (s *oauth) has(f Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults[f]
}

// resource is the MCP server, and the way in for tests.
func (s *oauth) resource(w http.ResponseWriter, r *http.Request) {
	origin := "http://" + r.Host
	const described = "/.well-known/oauth-protected-resource"
	switch {
	case r.URL.Path == "/control":
		s.control(w, r)
	case strings.HasPrefix(r.URL.Path, described):
		if s.has(NoDescription) || r.URL.Path != described+"/mcp" {
			http.NotFound(w, r)
			return
		}
		resource := origin + "/mcp"
		if s.has(WrongResource) {
			resource = "https://bank.example/mcp"
		}
		answerAs(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{s.stats.Issuer}, "scopes_supported": []string{"tools", "more"}})
	case r.URL.Path != "/mcp":
		http.NotFound(w, r)
	default:
		s.guard(w, r, origin+described+"/mcp")
	}
}

// guard lets requests with a good token through to the MCP server.
func (s *oauth) guard(w http.ResponseWriter, r *http.Request, described string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone away
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct{ Method string }
	_ = json.Unmarshal(body, &m) // a GET has none
	token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	expiry, good := s.good[token]
	good = good && !s.faults[Deaf] && (expiry.IsZero() || time.Now().Before(expiry))
	switch {
	case good:
		s.stats.Passed = append(s.stats.Passed, strings.TrimSpace(r.Method+" "+m.Method))
		s.changed.Broadcast()
	case has:
		s.stats.Refused++
	default:
		s.stats.Bare++
	}
	scope, pointer := s.faults[Scope] && m.Method == "tools/call", !s.faults[NoPointer] && !s.faults[NoDescription]
	s.mu.Unlock()
	challenge := `Bearer realm="mcptest"`
	if pointer {
		challenge += fmt.Sprintf(`, resource_metadata=%q`, described)
	}
	switch {
	case good && scope:
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="tools:call"`)
		http.Error(w, "forbidden", http.StatusForbidden)
	case good:
		s.mcp.ServeHTTP(w, r)
	default:
		if has {
			// A server that repeats what it does not like is not to be trusted with a place in a log.
			challenge += fmt.Sprintf(`, error="invalid_token", error_description="the token %s is not known"`, token)
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "who are you? "+token, http.StatusUnauthorized)
	}
}

// authorization is the authorization server.
func (s *oauth) authorization(w http.ResponseWriter, r *http.Request) {
	issuer := s.stats.Issuer
	origin := strings.TrimSuffix(issuer, "/tenant")
	describes := "/.well-known/oauth-authorization-server/tenant"
	if s.has(OpenID) {
		describes = "/tenant/.well-known/openid-configuration"
	}
	switch {
	case s.has(Down):
		http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
	case r.URL.Path == "/elsewhere":
		s.mu.Lock()
		s.stats.Elsewhere++
		s.mu.Unlock()
		http.NotFound(w, r)
	case r.URL.Path == describes && s.has(RedirectMetadata), r.URL.Path == "/tenant/token" && s.has(RedirectToken):
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	case r.URL.Path == describes:
		if s.has(WrongIssuer) {
			issuer = "https://bank.example"
		}
		methods := []string{"client_secret_basic", "private_key_jwt"}
		if s.has(InBody) {
			methods = []string{"client_secret_post"}
		}
		answerAs(w, 200, map[string]any{"issuer": issuer, "token_endpoint": origin + "/tenant/token", "token_endpoint_auth_methods_supported": methods})
	case r.URL.Path == "/tenant/token" && r.Method == http.MethodPost:
		s.grant(w, r)
	default:
		http.NotFound(w, r)
	}
}

// grant gives a token, or says why not.
func (s *oauth) grant(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		answerAs(w, 400, map[string]string{"error": "invalid_request"})
		return
	}
	f := r.PostForm
	how, known := s.client(r)
	f.Del("client_secret")
	f.Del("client_assertion")
	f.Set("how", how)
	s.mu.Lock()
	s.stats.Asked = append(s.stats.Asked, f)
	s.changed.Broadcast()
	origin := s.mcpOrigin
	s.mu.Unlock()
	switch {
	case s.has(Hang):
		<-r.Context().Done()
	case s.has(Garbage):
		fmt.Fprint(w, "<html>Welcome</html>")
	case !known || s.has(Refuse):
		// What the client has sent is in what it is told, as some servers have it.
		answerAs(w, 401, map[string]string{"error": "invalid_client", "error_description": "not known: " + r.Header.Get("Authorization")})
	case f.Get("grant_type") != "client_credentials":
		answerAs(w, 400, map[string]string{"error": "unsupported_grant_type"})
	case !strings.HasSuffix(f.Get("resource"), "/mcp") || origin != "" && f.Get("resource") != origin+"/mcp":
		answerAs(w, 400, map[string]string{"error": "invalid_target"})
	default:
		s.give(w)
	}
}

func (s *oauth) give(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := "tok-" + rand.Text()
	kind := "bearer" // in which case does not count
	if s.faults[MAC] {
		kind = "mac"
	}
	a := map[string]any{"access_token": token, "token_type": kind}
	var expiry time.Time
	if s.life > 0 {
		a["expires_in"] = int(s.life.Seconds())
		expiry = time.Now().Add(s.life)
	}
	s.good[token] = expiry
	s.stats.Granted++
	s.stats.Token = token
	answerAs(w, 200, a)
}

// client says how a client shows who it is, and whether it is the one that is known.
func (s *oauth) client(r *http.Request) (how string, known bool) {
	f := r.PostForm
	if assertion := f.Get("client_assertion"); assertion != "" {
		return "private_key_jwt", s.key != nil && f.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" && s.signed(assertion)
	}
	if id, secret, ok := r.BasicAuth(); ok {
		return "client_secret_basic", s.key == nil && id == url.QueryEscape(OAuthClient) && secret == url.QueryEscape(OAuthSecret) && !s.has(InBody)
	}
	return "client_secret_post", s.key == nil && f.Get("client_id") == OAuthClient && f.Get("client_secret") == OAuthSecret
}

// signed checks an assertion as RFC 7523 section 3 has it.
func (s *oauth) signed(assertion string) bool {
	t, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA})
	if err != nil {
		return false
	}
	var c jwt.Claims
	if t.Claims(s.key, &c) != nil || c.ID == "" || c.Expiry == nil {
		return false
	}
	return c.Validate(jwt.Expected{Issuer: OAuthClient, Subject: OAuthClient, AnyAudience: jwt.Audience{s.stats.Issuer}, Time: time.Now()}) == nil
}

// control does what a test asks for, and answers what has been seen.
func (s *oauth) control(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if q.Has("faults") {
		clear(s.faults)
		for _, f := range q["faults"] {
			s.faults[Fault(f)] = true
		}
	}
	if q.Has("revoke") {
		clear(s.good)
	}
	if life := q.Get("life"); life != "" {
		n, err := strconv.Atoi(life)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.life = time.Duration(n) * time.Second
	}
	asked, _ := strconv.Atoi(q.Get("asked"))
	for passed := q.Get("await"); passed != "" && !slices.Contains(s.stats.Passed, passed) || len(s.stats.Asked) < asked; {
		s.changed.Wait() // a test that waits in vain ends the process
	}
	s.mcpOrigin = "http://" + r.Host
	stats := s.stats
	stats.Passed = slices.Clone(stats.Passed)
	answerAs(w, 200, stats)
}

func answerAs(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone away needs no answer
}
