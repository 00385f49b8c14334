package remote

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"mcpbridge/internal/mcp/rpc"
)

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
