package identity

import (
	"errors"
	"fmt"

	"mcpbridge/internal/bridge"
)

// Unauthenticated is the kind of the error of a request whose caller is not known.
const Unauthenticated bridge.Kind = "unauthenticated"

// ErrNoCredential is in the tree of the error of a request without any credential
// where one is needed; one that has a wrong credential fails without it.
var ErrNoCredential = errors.New("no credential")

// Require returns an error of kind Forbidden unless the caller has all of the wanted scopes.
func Require(c bridge.Caller, want bridge.Scopes) error {
	if c.Scopes.Has(want) {
		return nil
	}
	return &bridge.Error{
		Kind: bridge.Forbidden, Op: "identity.Require", Err: &MissingScope{Scope: scopeName(want &^ c.Scopes)},
		Msg: fmt.Sprintf("This needs the scope %q, which the credential of this request does not have.", scopeName(want&^c.Scopes)),
	}
}

// A MissingScope is in the tree of the error of a caller without a scope.
type MissingScope struct{ Scope string }

func (e *MissingScope) Error() string { return "the caller has not the scope " + e.Scope }

// scopes are the names of scopes, as configurations and tokens have them.
var scopes = map[string]bridge.Scopes{
	"call":    bridge.ScopeCall,
	"admin":   bridge.ScopeAdmin,
	"metrics": bridge.ScopeMetrics,
}

// ScopesOf returns the scopes with these names. Other names are other people's scopes.
func ScopesOf(names []string) bridge.Scopes {
	var s bridge.Scopes
	for _, n := range names {
		s |= scopes[n]
	}
	return s
}

// scopeName names the first of some scopes.
func scopeName(s bridge.Scopes) string {
	for _, name := range [...]string{"call", "admin", "metrics"} {
		if s&scopes[name] != 0 {
			return name
		}
	}
	return ""
}

func noCredential() error {
	return &bridge.Error{
		Kind: Unauthenticated, Op: "identity.Caller", Err: ErrNoCredential,
		Msg: "This needs a credential: send an API key or a token as Authorization: Bearer …, or an API key as X-API-Key.",
	}
}

// refused says no more to the caller than that its credential is wrong; why is for the log.
func refused(why error) error {
	return &bridge.Error{
		Kind: Unauthenticated, Op: "identity.Caller", Err: why,
		Msg: "The credential of this request is not valid here.",
	}
}
