package routes

import (
	"errors"
	"fmt"
	"net/http"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/identity"
)

// identify finds out who makes the request, which must be somebody who may see and call tools.
func (x *exchange) identify(r *http.Request) (bridge.Caller, error) {
	return x.requires(r, bridge.ScopeCall)
}

// requires finds out who makes the request, and refuses who lacks one of the scopes.
// The error is of kind Unauthenticated or Forbidden, or says why the caller cannot be
// known just now. Where only this machine can connect, metrics need no credential.
func (x *exchange) requires(r *http.Request, want bridge.Scopes) (bridge.Caller, error) {
	c, err := x.s.Caller(r)
	open := want == bridge.ScopeMetrics && x.s.Loopback
	switch {
	case err != nil && open && errors.Is(err, identity.ErrNoCredential):
		return c, nil
	case err != nil:
		x.unknown = true
		return c, err
	}
	x.caller = c
	if open {
		return c, nil
	}
	return c, identity.Require(c, want)
}

// challenge is the WWW-Authenticate of a refusal (RFC 6750 section 3), or empty.
// It tells a program what to do about it, not what is wrong with a token.
func challenge(kind bridge.Kind, err error) string {
	const realm = `Bearer realm="MCP Bridge"`
	missing, lacks := errors.AsType[*identity.MissingScope](err)
	switch {
	case kind == Unauthenticated && errors.Is(err, identity.ErrNoCredential):
		return realm // no error code for who has not tried
	case kind == Unauthenticated:
		return realm + `, error="invalid_token", error_description="The credential is not valid here."`
	case kind == bridge.Forbidden && lacks:
		return realm + fmt.Sprintf(`, error="insufficient_scope", scope=%q`, missing.Scope)
	default:
		return ""
	}
}
