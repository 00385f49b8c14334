package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpbridge/internal/mcp/rpc"
)

const metadataBytes = 256 << 10

// A door is where tokens for a server are to be had, and what to ask for.
type door struct {
	issuer   string // of the authorization server
	endpoint string // where tokens are asked for
	resource string // what the token is to be for (RFC 8707)
	scopes   []string
	inBody   bool // the server takes the client's secret in the body alone
}

// A challenge is what a server says along with a 401 or 403 (RFC 6750 section 3).
type challenge struct {
	metadata    string // where it describes itself (RFC 9728 section 5.1)
	scopes      []string
	code        string // as insufficient_scope
	description string
}

// challengeOf reads what a response says of Bearer tokens.
func challengeOf(r *http.Response) *challenge {
	ch := new(challenge)
	for _, line := range r.Header.Values("WWW-Authenticate") {
		all, err := oauthex.ParseWWWAuthenticate([]string{line})
		if err != nil {
			continue // other schemes have forms of their own
		}
		for _, one := range all {
			if one.Scheme != "bearer" {
				continue
			}
			ch.metadata = cmp.Or(ch.metadata, one.Params["resource_metadata"])
			ch.code = cmp.Or(ch.code, one.Params["error"])
			ch.description = cmp.Or(ch.description, one.Params["error_description"])
			if len(ch.scopes) == 0 {
				ch.scopes = strings.Fields(one.Params["scope"])
			}
		}
	}
	return ch
}

// find finds out where tokens are to be had: the server says which authorization
// server it trusts (RFC 9728), and that one says the rest (RFC 8414, or OpenID Connect Discovery).
func (e *errand) find(ctx context.Context, ch *challenge) (*door, error) {
	if ch == nil {
		var err error
		if ch, err = e.knock(ctx); err != nil {
			return nil, err
		}
	}
	described, note, err := e.resource(ctx, ch)
	if err != nil {
		return nil, err
	}
	issuer, err := e.issuer(described)
	if err != nil {
		return nil, err
	}
	server, err := e.server(ctx, issuer)
	if errors.Is(err, errAbsent) {
		return nil, e.denied("no authorization server describes itself at %s%s", e.show(issuer), note)
	}
	if err != nil {
		return nil, err
	}
	d := &door{issuer: server.Issuer, endpoint: server.TokenEndpoint, resource: resourceOf(e.c.url), scopes: e.t.credential.Scopes}
	if d.scopes == nil {
		d.scopes = ch.scopes
	}
	if described != nil {
		d.resource = described.Resource
		if len(d.scopes) == 0 && e.t.credential.Scopes == nil {
			d.scopes = described.ScopesSupported
		}
	}
	ways := server.TokenEndpointAuthMethodsSupported
	d.inBody = slices.Contains(ways, "client_secret_post") && !slices.Contains(ways, "client_secret_basic")
	return d, nil
}

// knock sends the server a request without a token, for the sake of what it says when it refuses it.
func (e *errand) knock(ctx context.Context) (*challenge, error) {
	r, err := e.c.send(ctx, &request{
		method: http.MethodPost, url: e.c.url, bare: true, era: &era{},
		body: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), // which starts nothing on any server
	})
	if err != nil {
		return nil, e.unreachable(ctx, e.c.where, err)
	}
	defer r.drain()
	if r.StatusCode != http.StatusUnauthorized {
		return new(challenge), nil
	}
	return challengeOf(r.Response), nil
}

// errAbsent says that there is nothing where something might have been.
var errAbsent = errors.New("nothing is there")

// resource returns what the server says of itself, or nil if it says nothing;
// note is then why, if there is something to be said about it.
func (e *errand) resource(ctx context.Context, ch *challenge) (described *oauthex.ProtectedResourceMetadata, note string, err error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	u := e.c.url
	origin := u.Scheme + "://" + u.Host
	places := []string{origin + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), origin + wellKnown}
	if u.EscapedPath() != "/" && strings.HasSuffix(u.EscapedPath(), "/") {
		places = slices.Insert(places, 0, origin+wellKnown+u.EscapedPath())
	}
	if at, err := u.Parse(ch.metadata); ch.metadata != "" {
		// Elsewhere, a server could have us ask what only we can reach.
		if err == nil && sameOrigin(at, u) && at.User == nil {
			places = slices.Insert(places, 0, at.String())
		} else {
			note = "; what the server says of itself is at another origin, where it is not looked for"
		}
	}
	seen := map[string]bool{}
	for _, place := range places {
		if seen[place] {
			continue
		}
		seen[place] = true
		m := new(oauthex.ProtectedResourceMetadata)
		switch err := e.fetch(ctx, place, m); {
		case errors.Is(err, errRedirect):
			note = "; " + e.show(place) + " redirects, which is not followed"
			continue
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return nil, "", err
		case m.Resource == "": // an object, but no description
			continue
		}
		if !e.about(m.Resource, place == origin+wellKnown) {
			return nil, "", e.denied("what the server says of itself at %s is about %s and not about its own URL, so no token is asked for", e.show(place), e.show(m.Resource))
		}
		return m, "", nil
	}
	return nil, note, nil
}

// about reports whether an identifier is that of the server (RFC 9728 section
// 3.3). What the origin as a whole says of itself counts for all of it.
func (e *errand) about(resource string, whole bool) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || !sameOrigin(u, e.c.url) || u.RawQuery != "" && u.RawQuery != e.c.url.RawQuery {
		return false
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	return path == strings.TrimSuffix(e.c.url.EscapedPath(), "/") || whole && path == ""
}

// resourceOf is the identifier of a server that does not name its own: its URL without what may be secret in it.
func resourceOf(u *url.URL) string { return display(u) }

// issuer decides which authorization server to ask: the one that is configured if the server
// trusts it, else the first that it names, else, as in 2025-03-26, the server's own origin.
func (e *errand) issuer(described *oauthex.ProtectedResourceMetadata) (string, error) {
	ours := e.t.credential.Issuer
	issuer := cmp.Or(ours, e.c.url.Scheme+"://"+e.c.url.Host)
	if described != nil && len(described.AuthorizationServers) > 0 {
		theirs := described.AuthorizationServers
		if issuer = theirs[0]; ours != "" {
			i := slices.IndexFunc(theirs, func(s string) bool { return sameIssuer(s, ours) })
			if i < 0 {
				return "", e.denied("the server trusts the authorization server %s and not %s, which the credential is for", e.show(strings.Join(theirs, ", ")), e.show(ours))
			}
			issuer = theirs[i]
		}
	} else if described != nil && ours == "" {
		return "", e.denied("the server names no authorization server: set the credential's issuer")
	}
	if !e.secure(issuer) {
		return "", e.denied("the authorization server %s has no URL of https", e.show(issuer))
	}
	return issuer, nil
}

// sameIssuer compares identifiers as they are, but for a slash at the end, on which hardly anybody agrees with himself.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// secure reports whether secrets may go to a URL. On loopback, where developers work, https is not asked for.
func (e *errand) secure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u) && loopback(e.c.url)
}

func loopback(u *url.URL) bool {
	host := u.Hostname()
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// server returns what an authorization server says of itself.
func (e *errand) server(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{origin + oauth + path, origin + openID + path}
	if path != "" {
		places = append(places, origin+path+openID)
	}
	worst := errAbsent
	for _, place := range places {
		m := new(oauthex.AuthServerMeta)
		err := e.fetch(ctx, place, m)
		switch f, down := asFailure(err); {
		case errors.Is(err, errAbsent):
			continue
		case errors.Is(err, errRedirect):
			worst = e.denied("%s redirects, which is not followed", e.show(place))
			continue
		case down && f.Status != 0: // it knows this form perhaps not, and another one
			worst = err
			continue
		case err != nil:
			return nil, err
		case m.Issuer == "": // an object, but no description
			continue
		}
		switch {
		case !sameIssuer(m.Issuer, issuer): // RFC 8414 section 3.3
			return nil, e.denied("the authorization server %s calls itself %s, so it is not trusted with our credential", e.show(issuer), e.show(m.Issuer))
		case m.TokenEndpoint == "":
			return nil, e.denied("the authorization server %s gives no tokens", e.show(issuer))
		case !e.secure(m.TokenEndpoint):
			return nil, e.denied("the authorization server %s gives its tokens at %s, which is no URL of https", e.show(issuer), e.show(m.TokenEndpoint))
		}
		return m, nil
	}
	return nil, worst
}

var errRedirect = errors.New("it redirects")

// fetch reads a description. It is absent where the answer is anything but an object with status 200.
func (e *errand) fetch(ctx context.Context, place string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return errAbsent // no URL at all
	}
	req.Header.Set("Accept", typeJSON)
	r, err := e.client.Do(req)
	if err != nil {
		return e.unreachable(ctx, e.show(place), err)
	}
	defer r.Body.Close()
	switch {
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests:
		return &rpc.Failure{Reason: rpc.Start, Status: r.StatusCode, Msg: fmt.Sprintf("no token is to be had, since %s answers HTTP %d", e.show(place), r.StatusCode)}
	case r.StatusCode >= 300 && r.StatusCode < 400:
		return errRedirect
	case r.StatusCode != http.StatusOK:
		return errAbsent
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, metadataBytes))
	if err != nil {
		return e.unreachable(ctx, e.show(place), err)
	}
	if json.Unmarshal(body, into) != nil {
		return errAbsent // many servers answer everything with a page
	}
	return nil
}
