package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"mcpbridge/internal/mcp/rpc"
)

// An errand is one way to the authorization server, for a token.
type errand struct {
	c      *Conn
	t      *Tokens
	client *http.Client // follows no redirects
}

var errGrantWait = errors.New("the time for getting a token was up")

// obtain implements granter. Its errors are a [*rpc.Failure]: Start when somebody
// cannot be reached, and Auth for everything that waiting does not mend.
func (c *Conn) obtain(t *Tokens, d *door, ch *challenge) (*token, *door, error) {
	ctx, stop := context.WithTimeoutCause(c.ctx, c.o.grantWait, errGrantWait)
	defer stop()
	out, err := c.outside()
	if err != nil {
		return nil, nil, &rpc.Failure{Reason: rpc.Start, Msg: err.Error()}
	}
	defer out.CloseIdleConnections()
	e := &errand{c: c, t: t, client: out}
	if d == nil {
		if d, err = e.find(ctx, ch); err != nil {
			return nil, nil, err
		}
	}
	tok, err := e.ask(ctx, d)
	return tok, d, err
}

// spawn implements granter.
func (c *Conn) spawn(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.endedLocked()
	}
	c.wg.Go(f)
	return nil
}

// over implements granter.
func (c *Conn) over() bool { return c.ctx.Err() != nil }

// ask asks for a token (RFC 6749 section 4.4.2, RFC 8707 section 2.2).
func (e *errand) ask(ctx context.Context, d *door) (*token, error) {
	cr := &e.t.credential
	conf := &clientcredentials.Config{
		ClientID: cr.ClientID, ClientSecret: cr.ClientSecret, TokenURL: d.endpoint, Scopes: d.scopes,
		EndpointParams: url.Values{"resource": {d.resource}}, AuthStyle: oauth2.AuthStyleInHeader,
	}
	if d.inBody {
		conf.AuthStyle = oauth2.AuthStyleInParams
	}
	if e.t.signer != nil {
		assertion, err := cr.assertion(e.t.signer, d.issuer)
		if err != nil {
			return nil, e.denied("the private key does not sign: %v", err)
		}
		conf.AuthStyle = oauth2.AuthStyleInParams
		conf.EndpointParams.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		conf.EndpointParams.Set("client_assertion", assertion)
	}
	got, err := conf.Token(context.WithValue(ctx, oauth2.HTTPClient, e.client))
	if err != nil {
		return nil, e.refused(ctx, d, err)
	}
	if !strings.EqualFold(got.Type(), "Bearer") {
		return nil, e.denied("the authorization server %s gives tokens of type %s, and only Bearer is known here", e.show(d.issuer), e.show(got.Type()))
	}
	if strings.ContainsFunc(got.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, e.denied("the authorization server %s gives a token that fits no header", e.show(d.issuer))
	}
	var life time.Duration
	if !got.Expiry.IsZero() {
		life = time.Until(got.Expiry)
	}
	return newToken(got.AccessToken, life), nil
}

// refused explains why no token was given.
func (e *errand) refused(ctx context.Context, d *door, err error) error {
	said, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		if _, sent := errors.AsType[*url.Error](err); sent || ctx.Err() != nil {
			return e.unreachable(ctx, "the authorization server "+e.show(d.issuer), err)
		}
		return e.denied("the authorization server %s answers something that is no token", e.show(d.issuer))
	}
	status := said.Response.StatusCode
	why := fmt.Sprintf("HTTP %d", status)
	if said.ErrorCode != "" {
		why = e.show(said.ErrorCode)
		if said.ErrorDescription != "" {
			why += ": " + e.show(said.ErrorDescription)
		}
	}
	switch {
	case said.ErrorCode == "temporarily_unavailable" || said.ErrorCode == "server_error" || status >= 500 || status == http.StatusTooManyRequests:
		return &rpc.Failure{Reason: rpc.Start, Status: status, Msg: fmt.Sprintf("the authorization server %s gives no token at the moment (%s)", e.show(d.issuer), why)}
	case status >= 300 && status < 400:
		return e.denied("the authorization server %s redirects the request for a token, which is not followed: our credential goes nowhere else", e.show(d.issuer))
	default:
		return e.denied("the authorization server %s refuses %s (%s)", e.show(d.issuer), e.t.credential.name(), why)
	}
}

func (e *errand) denied(format string, args ...any) error {
	return &rpc.Failure{Reason: rpc.Auth, Msg: fmt.Sprintf(format, args...)}
}

// unreachable says that no answer came from somebody. The error itself is not kept: it may hold what must not get into a log.
func (e *errand) unreachable(ctx context.Context, who string, err error) error {
	if errors.Is(context.Cause(ctx), errGrantWait) {
		return &rpc.Failure{Reason: rpc.Start, Msg: fmt.Sprintf("no token is to be had, since %s did not answer within %s", who, rpc.Duration(e.c.o.grantWait))}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest of it repeats the URL
	}
	return &rpc.Failure{Reason: rpc.Start, Msg: fmt.Sprintf("no token is to be had, since %s cannot be reached: %s", who, e.show(err.Error()))}
}

// show makes a word of somebody else fit for errors and logs.
func (e *errand) show(s string) string { return clip(e.c.secrets.Text(s)) }

// outside returns the way to wherever tokens are to be had. Requests to the server's own
// origin go as all others do; our certificate for the server is for nobody else.
func (c *Conn) outside() (*http.Client, error) {
	w := &ways{c: c, out: c.o.Transport}
	if w.out == nil {
		out, err := newTransport(TLS{}, c.o.Proxy)
		if err != nil {
			return nil, err
		}
		if out.TLSClientConfig, err = trusting(c.o.TLS.CA); err != nil {
			return nil, err
		}
		w.out, w.close = out, out.CloseIdleConnections
	}
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// trusting trusts what the system does, and the certificates of a file besides.
func trusting(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // the system has none
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(pem) // that there are some was seen when the connection was made
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// ways is the transport of an errand.
type ways struct {
	c     *Conn
	out   http.RoundTripper
	close func() // nil for one that is not ours
}

// RoundTrip implements [http.RoundTripper].
func (w *ways) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", w.c.headers.Get("User-Agent"))
	if sameOrigin(r.URL, w.c.url) {
		return w.c.rt.RoundTrip(r)
	}
	return w.out.RoundTrip(r)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] calls.
func (w *ways) CloseIdleConnections() {
	if w.close != nil {
		w.close()
	}
}

// ready gets a token before the handshake, so that whatever is in its way is not mistaken for the server's era.
func (c *Conn) ready(ctx context.Context) error {
	if c.tokens == nil {
		return nil
	}
	_, err := c.tokens.get(ctx, c)
	return err
}

// unwelcome has the list of tools read again when a call failed for want of a token that the
// server takes: how that ends is what the server's state shows, until it ends well.
func (c *Conn) unwelcome(k *call, err error) {
	f, ok := asFailure(err)
	if ok && f.Reason == rpc.Auth && f.Status != http.StatusForbidden && c.tokens != nil && c.o.ListChanged != nil && k.req.Method == "tools/call" {
		c.o.ListChanged("tools")
	}
}

// A tokenError says that a request was not sent, or not run, for want of a token.
type tokenError struct{ *rpc.Failure }

// authorize gets the token that a request is to carry; nil if there is no credential.
func (c *Conn) authorize(ctx context.Context, q *request) (*token, error) {
	if c.tokens == nil || q.bare {
		return nil, nil
	}
	if q.parting { // what was good will do, and is not waited for
		return c.tokens.latest(), nil
	}
	tok, err := c.tokens.get(ctx, c)
	if f, ok := asFailure(err); ok {
		return nil, &tokenError{f}
	}
	return tok, err
}

// refusedToken explains why a server takes no token of ours, or not for this.
func (c *Conn) refusedToken(r *reply, said string) string {
	ch := challengeOf(r.Response)
	show := func(s string) string { return clip(c.secrets.Text(r.forward.text(s))) }
	why := colon(cmp.Or(show(ch.description), said))
	if r.StatusCode == http.StatusForbidden && ch.code == "insufficient_scope" {
		needs := "a scope that our credentials do not have"
		if len(ch.scopes) > 0 {
			needs = fmt.Sprintf("the scope %q, which our credentials do not have", show(strings.Join(ch.scopes, " ")))
		}
		if c.tokens != nil {
			needs += "; have it granted to " + c.tokens.credential.name() + ", and add it to the credential's scopes if they are set"
		}
		return fmt.Sprintf("%s wants %s (HTTP 403)%s", c.where, needs, why)
	}
	if c.tokens != nil && r.StatusCode == http.StatusUnauthorized {
		return fmt.Sprintf("%s refuses the new token that %s was given, with HTTP 401%s", c.where, c.tokens.credential.name(), why)
	}
	return fmt.Sprintf("%s refused our credentials with HTTP %d%s", c.where, r.StatusCode, why)
}
