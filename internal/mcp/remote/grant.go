package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
