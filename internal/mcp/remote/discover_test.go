package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// A guarded is an MCP server of 2026-07-28 that takes the token "good", and an
// authorization server too, as a test wants it: each answer is a handler by path.
type guarded struct {
	*httptest.Server
	on map[string]http.HandlerFunc // set before the first request

	mu   sync.Mutex
	seen []string // paths; guarded by mu
}

func newGuarded(t *testing.T, secure bool) *guarded {
	t.Helper()
	g := &guarded{on: map[string]http.HandlerFunc{}}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen = append(g.seen, r.URL.Path)
		g.mu.Unlock()
		if h := g.on[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	})
	if secure {
		g.Server = httptest.NewTLSServer(h)
	} else {
		g.Server = httptest.NewServer(h)
	}
	t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	g.on["/mcp"] = g.mcp("")
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/mcp", g.URL)
	g.on["/.well-known/oauth-authorization-server"] = jsonOf(map[string]any{"issuer": g.URL, "token_endpoint": g.URL + "/token"})
	g.on["/token"] = jsonOf(map[string]any{"access_token": "good", "token_type": "Bearer"})
	return g
}

func (g *guarded) describe(at, resource string, issuers ...string) {
	g.on[at] = jsonOf(map[string]any{"resource": resource, "authorization_servers": issuers})
}

// mcp is the MCP server, whose 401 says so.
func (g *guarded) mcp(challenge string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			challengeWith(w, 401, challenge)
			return
		}
		var m struct{ ID json.RawMessage }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(400)
			return
		}
		answerJSON(discovered)(w, r, &seen{id: string(m.ID)})
	}
}

func (g *guarded) paths() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

func jsonOf(v any) http.HandlerFunc { return jsonAs(200, v) }

func jsonAs(status int, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

func page(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Welcome</html>") }

func redirectTo(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

// options are those of a client with a secret.
func (g *guarded) options(t *testing.T) Options {
	return Options{URL: g.URL + "/mcp", Protocol: v20260728, Tokens: tokensOf(t, Credential{ClientID: "c", ClientSecret: "secret"})}
}

// Where tokens are to be had is found out however a server says it.
func TestDiscovery(t *testing.T) {
	const own, whole = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for name, tt := range map[string]struct {
		change func(*guarded)
		want   string // the failure; empty for none
		reason rpc.Reason
	}{
		"at its path": {change: func(*guarded) {}},
		"as the challenge": {change: func(g *guarded) {
			g.on["/mcp"] = g.mcp(`Bearer resource_metadata="/said"`)
			g.on["/said"] = g.on[own]
			g.on[own] = page
		}},
		"as the challenge, for the whole": {change: func(g *guarded) {
			g.on["/mcp"] = g.mcp(`Bearer resource_metadata="` + g.URL + whole + `"`)
			g.describe(whole, g.URL+"/", g.URL)
			g.on[own] = nil
		}},
		"the whole origin":         {change: func(g *guarded) { g.on[own] = page; g.describe(whole, g.URL, g.URL) }},
		"with a slash":             {change: func(g *guarded) { g.describe(own, g.URL+"/mcp/", g.URL+"/") }},
		"in capitals":              {change: func(g *guarded) { g.describe(own, strings.Replace(g.URL, "http", "HTTP", 1)+"/mcp", g.URL) }},
		"a login page in its way":  {change: func(g *guarded) { g.on[own] = redirectTo("/login"); g.describe(whole, g.URL, g.URL) }},
		"another object":           {change: func(g *guarded) { g.on[own] = jsonOf(map[string]int{"error": 5}); g.describe(whole, g.URL, g.URL) }},
		"as 2025-03-26":            {change: func(g *guarded) { g.on[own] = nil }},
		"OpenID":                   {change: func(g *guarded) { g.on[openID] = g.on[oauth]; g.on[oauth] = nil }},
		"OpenID behind a fault":    {change: func(g *guarded) { g.on[openID] = g.on[oauth]; g.on[oauth] = jsonAs(500, nil) }},
		"OpenID behind a login":    {change: func(g *guarded) { g.on[openID] = g.on[oauth]; g.on[oauth] = redirectTo("/login") }},
		"OpenID behind a list":     {change: func(g *guarded) { g.on[openID] = g.on[oauth]; g.on[oauth] = jsonOf([]int{1}) }},
		"OpenID behind an object":  {change: func(g *guarded) { g.on[openID] = g.on[oauth]; g.on[oauth] = jsonOf(map[string]int{}) }},
		"issuer with a path":       {change: func(g *guarded) { g.tenant(oauth + "/a/b") }},
		"OpenID in the path":       {change: func(g *guarded) { g.tenant(openID + "/a/b") }},
		"OpenID behind the path":   {change: func(g *guarded) { g.tenant("/a/b" + openID) }},
		"redirects":                {func(g *guarded) { g.on[oauth] = redirectTo("/login") }, "redirects, which is not followed", rpc.Auth},
		"down":                     {func(g *guarded) { g.on[oauth] = jsonAs(502, nil) }, "answers HTTP 502", rpc.Start},
		"too busy":                 {func(g *guarded) { g.on[oauth] = jsonAs(429, nil) }, "answers HTTP 429", rpc.Start},
		"the server's is down":     {func(g *guarded) { g.on[own] = jsonAs(503, nil) }, "answers HTTP 503", rpc.Start},
		"drops the description":    {func(g *guarded) { g.on[own] = abort }, "cannot be reached", rpc.Start},
		"breaks off":               {func(g *guarded) { g.on[own] = half }, "cannot be reached: unexpected EOF", rpc.Start},
		"nothing anywhere":         {func(g *guarded) { g.on[own], g.on[oauth] = nil, nil }, "no authorization server describes itself at", rpc.Auth},
		"login pages everywhere":   {func(g *guarded) { g.on[own], g.on[oauth] = redirectTo("/login"), nil }, "redirects, which is not followed", rpc.Auth},
		"nobody named":             {func(g *guarded) { g.describe(own, g.URL+"/mcp") }, "names no authorization server", rpc.Auth},
		"of another path":          {func(g *guarded) { g.describe(own, g.URL+"/mcp/other", g.URL) }, "and not about its own URL", rpc.Auth},
		"of the whole, at its own": {func(g *guarded) { g.describe(own, g.URL, g.URL) }, "and not about its own URL", rpc.Auth},
		"of another port":          {func(g *guarded) { g.describe(own, "http://127.0.0.1:1/mcp", g.URL) }, "and not about its own URL", rpc.Auth},
		"of nothing":               {func(g *guarded) { g.describe(own, "%zz", g.URL) }, "and not about its own URL", rpc.Auth},
		"without https":            {func(g *guarded) { g.describe(own, g.URL+"/mcp", "http://id.example") }, "has no URL of https", rpc.Auth},
		"no URL":                   {func(g *guarded) { g.describe(own, g.URL+"/mcp", "::") }, "has no URL of https", rpc.Auth},
		"tokens without https": {func(g *guarded) {
			g.on[oauth] = jsonOf(map[string]string{"issuer": g.URL, "token_endpoint": "http://id.example/token"})
		}, "which is no URL of https", rpc.Auth},
		"no tokens":      {func(g *guarded) { g.on[oauth] = jsonOf(map[string]string{"issuer": g.URL}) }, "gives no tokens", rpc.Auth},
		"another issuer": {func(g *guarded) { g.on[oauth] = jsonOf(map[string]string{"issuer": g.URL + "/x"}) }, "calls itself", rpc.Auth},
		"elsewhere": {func(g *guarded) {
			g.on["/mcp"] = g.mcp(`Bearer resource_metadata="http://127.0.0.1:1/x"`)
			g.on[own], g.on[oauth] = nil, nil
		}, "is at another origin, where it is not looked for", rpc.Auth},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			g := newGuarded(t, false)
			tt.change(g)
			c, err := Dial(t.Context(), g.options(t))
			if err == nil {
				_ = c.Close()
			}
			if paths := g.paths(); slices.Contains(paths, "/login") {
				t.Error("a redirect was followed")
			} else if tt.want != "" && slices.Contains(paths, "/token") {
				t.Errorf("a token was asked for: %q", paths)
			}
			if tt.want == "" {
				if err != nil {
					t.Errorf("%v; it asked for %q", err, g.paths())
				}
				return
			}
			if f := failed(t, err, tt.reason); !strings.Contains(f.Error(), tt.want) {
				t.Errorf("the failure is %q, want it to say %q", f.Error(), tt.want)
			}
		})
	}
}

// tenant makes the authorization server one with a path.
func (g *guarded) tenant(at string) {
	const oauth = "/.well-known/oauth-authorization-server"
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/mcp", g.URL+"/a/b")
	g.on[at] = jsonOf(map[string]string{"issuer": g.URL + "/a/b", "token_endpoint": g.URL + "/token"})
	if at != oauth {
		g.on[oauth] = nil
	}
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func half(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"resource":`)
}

// What an authorization server answers instead of a token.
func TestNoToken(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
		reason rpc.Reason
	}{
		"unknown client":   {jsonAs(401, map[string]string{"error": "invalid_client"}), `refuses our client "c" (invalid_client)`, rpc.Auth},
		"scope":            {jsonAs(400, map[string]string{"error": "invalid_scope", "error_description": "x\n" + strings.Repeat("y", 300)}), `(invalid_scope: x\ny`, rpc.Auth},
		"refused with 200": {jsonAs(200, map[string]string{"error": "access_denied"}), `(access_denied)`, rpc.Auth},
		"a page":           {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403); page(w, r) }, `(HTTP 403)`, rpc.Auth},
		"echo": {func(w http.ResponseWriter, r *http.Request) {
			jsonAs(400, map[string]string{"error": r.Header.Get("Authorization")})(w, r)
		}, `(Basic [secret])`, rpc.Auth},
		"no token":    {jsonOf(map[string]string{"token_type": "Bearer"}), "something that is no token", rpc.Auth},
		"odd token":   {jsonOf(map[string]string{"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}), "a token that fits no header", rpc.Auth},
		"bound token": {jsonOf(map[string]string{"access_token": "good", "token_type": "DPoP"}), "tokens of type DPoP", rpc.Auth},
		"not now":     {jsonAs(400, map[string]string{"error": "temporarily_unavailable"}), "gives no token at the moment (temporarily_unavailable)", rpc.Start},
		"broken":      {jsonAs(500, nil), "gives no token at the moment (HTTP 500)", rpc.Start},
		"busy":        {jsonAs(429, nil), "gives no token at the moment (HTTP 429)", rpc.Start},
		"cut off":     {abort, "cannot be reached: EOF", rpc.Start},
		"silent":      {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, "did not answer within 200ms", rpc.Start},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			g := newGuarded(t, false)
			g.on["/token"] = tt.answer
			o := g.options(t)
			o.grantWait = 10 * time.Second
			if name == "silent" {
				o.grantWait = 200 * time.Millisecond
			}
			_, err := Dial(t.Context(), o)
			if f := failed(t, err, tt.reason); !strings.Contains(f.Error(), tt.want) || len(f.Error()) > 500 {
				t.Errorf("the failure is %q, want it to say %q", f.Error(), tt.want)
			}
		})
	}
}

// A server that is gone is told of as such, and nobody else is asked.
func TestNobodyThere(t *testing.T) {
	g := newGuarded(t, false)
	o := g.options(t)
	g.Close()
	_, err := Dial(t.Context(), o)
	if f := failed(t, err, rpc.Start); !strings.Contains(f.Msg, "/mcp cannot be reached: ") {
		t.Errorf("the failure is %q", f.Msg)
	}

	g = newGuarded(t, false)
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/mcp", "http://127.0.0.1:1")
	_, err = Dial(t.Context(), g.options(t))
	if f := failed(t, err, rpc.Start); !strings.Contains(f.Msg, "http://127.0.0.1:1/.well-known/oauth-authorization-server cannot be reached: ") {
		t.Errorf("the failure is %q", f.Msg)
	}

	// The name of a server whose URL is a secret is one too.
	o = g.options(t)
	o.Display = "its URL"
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/other", g.URL)
	_, err = Dial(t.Context(), o)
	if f := failed(t, err, rpc.Auth); strings.Contains(f.Msg, "127.0.0.1") {
		t.Errorf("the failure is %q, which shows where the server is", f.Msg)
	}
}

// After a server has refused a token unread, a failure is no lost answer: the call did not run.
func TestNotRunAfterRefusal(t *testing.T) {
	leakFree(t)
	g := newGuarded(t, false)
	good := g.on["/mcp"]
	var calls int
	var mu sync.Mutex
	g.on["/mcp"] = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			good(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			challengeWith(w, 401, "Bearer")
			g.Listener.Close()
			w.Header().Set("Connection", "close")
			return
		}
		t.Errorf("call %d came", calls)
	}
	o := g.options(t)
	o.Transport = &http.Transport{DisableKeepAlives: true}
	c := dial(t, o)
	_, err := call1(t, c, `{}`)
	failed(t, err, rpc.Start)
}

// A connection that is closed while it waits for a token closes at once.
func TestCloseDuringGrant(t *testing.T) {
	leakFree(t)
	g := newGuarded(t, false)
	asked := make(chan bool)
	first := g.on["/token"]
	var n int
	g.on["/token"] = func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 { // one after the other: there is one grant at a time
			first(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- true
		<-r.Context().Done()
	}
	o := g.options(t)
	c := dial(t, o)
	o.Tokens.refused(o.Tokens.latest(), nil)
	errs := make(chan error)
	let := make(chan bool)
	go func() {
		r := request1(`{}`)
		r.LetGo = func() { close(let) }
		_, err := c.Do(t.Context(), r)
		errs <- err
	}()
	<-asked
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d >= grantWait {
		t.Errorf("closing took %s", d)
	}
	failed(t, <-errs, rpc.NotSent)
	<-let
	if _, err := call1(t, c, `{}`); err == nil {
		t.Error("a closed connection made a call")
	}
}

// Whoever waits for a token may go away meanwhile.
func TestGivenUpDuringGrant(t *testing.T) {
	leakFree(t)
	g := newGuarded(t, false)
	o := g.options(t)
	c := dial(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	g.on["/token"] = func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}
	o.Tokens.refused(o.Tokens.latest(), nil)
	before := len(g.paths())
	if _, err := c.Do(ctx, request1(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the caller's own", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := g.paths()[before:]; slices.Contains(got[1:], "/mcp") { // the first asks what the server wants
		t.Errorf("a call that was given up was sent: %q", got)
	}
}

// The private CA of a server is good for its authorization server too; the server's own requests are not redirected.
func TestCredentialOverTLS(t *testing.T) {
	leakFree(t)
	g := newGuarded(t, true)
	o := g.options(t)
	_, err := Dial(t.Context(), o)
	failed(t, err, rpc.Start)
	o.TLS.CA = writeCA(t, g.Certificate())
	id := newGuarded(t, true) // of the same CA, on another port
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/mcp", id.URL)
	if err := dial(t, o).Close(); err != nil {
		t.Error(err)
	}
	if got := id.paths(); !slices.Contains(got, "/token") || slices.Contains(g.paths(), "/token") {
		t.Errorf("the authorization server was asked for %q", got)
	}
	g.on["/mcp"] = redirectTo("/elsewhere")
	_, err = Dial(t.Context(), o)
	failed(t, err, rpc.Protocol)
	if slices.Contains(g.paths(), "/elsewhere") {
		t.Error("a redirect was followed with a token")
	}
}

func TestChallengeOf(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  challenge
	}{
		{nil, challenge{}},
		{[]string{"Bearer"}, challenge{}},
		{[]string{`Basic realm="x, Bearer error=y"`}, challenge{}},
		{[]string{`Negotiate abc==`, `bearer ERROR="invalid_token", error_description="a, \"b\"", scope="r w"`}, challenge{code: "invalid_token", description: `a, "b"`, scopes: []string{"r", "w"}}},
		{[]string{`Basic realm="x", Bearer resource_metadata="https://h/x?a=b,c"`}, challenge{metadata: "https://h/x?a=b,c"}},
		{[]string{`Bearer realm="unterminated`, `Bearer error=one`, `Bearer error=two`}, challenge{code: "one"}},
	} {
		got := challengeOf(&http.Response{Header: http.Header{"Www-Authenticate": tt.lines}})
		if fmt.Sprint(*got) != fmt.Sprint(tt.want) {
			t.Errorf("challengeOf(%q) = %+v, want %+v", tt.lines, *got, tt.want)
		}
	}
}

func TestSecure(t *testing.T) {
	for _, tt := range []struct {
		server, to string
		want       bool
	}{
		{"https://a.example/", "https://b.example/x", true},
		{"http://a.example/", "https://b.example/x", true},
		{"https://a.example/", "http://b.example/x", false},
		{"https://a.example/", "http://127.0.0.1/x", false},
		{"http://localhost/", "http://127.0.0.1:5/x", true},
		{"http://[::1]/", "http://id.localhost/x", true},
		{"http://localhost/", "http://localhost.example/x", false},
		{"http://localhost/", "ftp://localhost/x", false},
		{"https://a.example/", "https://me@b.example/x", false},
		{"https://a.example/", "https://b.example/#x", false},
		{"https://a.example/", "/x", false},
		{"https://a.example/", "https://b.example:x/", false},
	} {
		u, err := url.Parse(tt.server)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&errand{c: &Conn{url: u}}).secure(tt.to); got != tt.want {
			t.Errorf("secure(%q) for %s = %t, want %t", tt.to, tt.server, got, tt.want)
		}
	}
}

func writeCA(t *testing.T, c *x509.Certificate) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Our certificate for a server is for nobody else, but all that is asked of the server itself has it.
func TestCredentialWithCertificate(t *testing.T) {
	leakFree(t)
	cert, key := selfSigned(t)
	ask := func(need tls.ClientAuthType) *guarded {
		g := newGuarded(t, false)
		g.Close()
		g.Server = httptest.NewUnstartedServer(g.Config.Handler)
		g.TLS = &tls.Config{ClientAuth: need}
		g.StartTLS()
		return g
	}
	g, id := ask(tls.RequireAnyClientCert), ask(tls.RequestClientCert)
	guard := id.Config.Handler
	id.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Errorf("our certificate was shown to %s", r.URL.Path)
		}
		if got := r.UserAgent(); got != "mcp-bridge/dev" || r.Header.Get("X-Key") != "" {
			t.Errorf("%s was asked by %q with %v", r.URL.Path, got, r.Header)
		}
		guard.ServeHTTP(w, r)
	})
	g.describe("/.well-known/oauth-protected-resource/mcp", g.URL+"/mcp", id.URL)
	id.on["/.well-known/oauth-authorization-server"] = jsonOf(map[string]any{"issuer": id.URL, "token_endpoint": id.URL + "/token"})
	o := g.options(t)
	o.TLS = TLS{CA: writeCA(t, g.Certificate()), Cert: cert, Key: key}
	o.Headers = http.Header{"X-Key": {"for the server"}, "User-Agent": {"for the server"}}
	if err := dial(t, o).Close(); err != nil {
		t.Error(err)
	}
	if !slices.Contains(id.paths(), "/token") {
		t.Errorf("the authorization server was asked for %q", id.paths())
	}
}

// selfSigned returns the files of a certificate that is its own authority, and of its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	keyDER, err := x509.MarshalECPrivateKey(k)
	for path, text := range map[string]string{cert: asPEM("CERTIFICATE", der, nil), key: asPEM("EC PRIVATE KEY", keyDER, err)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Whatever a server sends as a challenge, reading it ends, and what is shown of it is short and on one line.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer error="insufficient_scope", scope="a b", error_description="x\"y", resource_metadata="https://h/x"`)
	f.Add(`Basic realm="x", Bearer`)
	f.Add(`Negotiate abc==,Bearer error=`)
	f.Fuzz(func(t *testing.T, line string) {
		c := &Conn{where: "it"}
		r := &reply{Response: &http.Response{StatusCode: 403, Header: http.Header{"Www-Authenticate": {line}}}}
		if got := c.refusedToken(r, ""); len(got) > 10*excerptChars || strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("%q becomes %q", line, got)
		}
	})
}
