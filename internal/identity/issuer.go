package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/jwt"

	"mcpbridge/internal/bridge"
)

const (
	leeway   = time.Minute      // that clocks may differ
	keepFor  = 10 * time.Minute // after which a token's signature is checked again
	maxName  = 256              // bytes of a user's or tenant's name
	maxIssue = 2048             // bytes of an issuer's name in a token
)

// An issuer is what tokens with its name in them are held to.
type issuer struct {
	url     string
	accepts []Issuer
	source  *source
}

// verify finds out whose token it is.
func (r *roster) verify(ctx context.Context, token string) (known, error) {
	i := r.issuers[claimedIssuer(token)]
	if i == nil {
		return known{}, refused(errors.New("the token is of no issuer that is trusted here"))
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return known{}, refused(fmt.Errorf("the token cannot be read: %w", err))
	}
	var standard jwt.Claims
	var claims map[string]json.RawMessage
	keys, err := i.source.verify(ctx, parsed, &standard, &claims)
	if err != nil {
		return known{}, err
	}
	now := time.Now()
	if standard.Expiry == nil {
		return known{}, refused(errors.New("the token never expires"))
	}
	if err := standard.ValidateWithLeeway(jwt.Expected{Issuer: i.url, Time: now}, leeway); err != nil {
		return known{}, refusedToken(err)
	}
	for _, a := range i.accepts {
		if !slices.ContainsFunc(a.Audience, standard.Audience.Contains) {
			continue
		}
		c, err := a.caller(claims)
		if err != nil {
			return known{}, refused(err)
		}
		until := standard.Expiry.Time().Add(leeway)
		if again := now.Add(keepFor); again.Before(until) {
			until = again
		}
		return known{caller: c, issuer: i, keys: keys, until: until}, nil
	}
	return known{}, refused(fmt.Errorf("the token is for %.200q", []string(standard.Audience)))
}

// refusedToken tells the caller of a token that is right but for its time what to do.
func refusedToken(err error) error {
	if !errors.Is(err, jwt.ErrExpired) {
		return refused(err)
	}
	return &bridge.Error{Kind: Unauthenticated, Op: "identity.Caller", Err: err, Msg: "The token of this request has expired; get a new one."}
}

// claimedIssuer returns whose token it claims to be, which decides only whose keys to try.
func claimedIssuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(b, &claims) != nil || len(claims.Issuer) > maxIssue {
		return ""
	}
	return claims.Issuer
}

// caller maps the claims of a token to a caller.
func (i *Issuer) caller(claims map[string]json.RawMessage) (bridge.Caller, error) {
	c := bridge.Caller{ID: i.URL, Rule: i.Rule, Scopes: bridge.ScopeCall}
	var err error
	if c.User, err = nameIn(claims, i.User); err != nil {
		return bridge.Caller{}, err
	}
	if i.Tenant != "" {
		if c.Tenant, err = nameIn(claims, i.Tenant); err != nil {
			return bridge.Caller{}, err
		}
	}
	if i.Scopes != "" {
		c.Scopes = ScopesOf(namesIn(claims[i.Scopes]))
	}
	return c, nil
}

// nameIn returns the name of a user or tenant in a claim. A token without it is refused,
// rather than taken for one of somebody without a name.
func nameIn(claims map[string]json.RawMessage, claim string) (string, error) {
	var name *string
	if v, ok := claims[claim]; !ok || json.Unmarshal(v, &name) != nil || name == nil {
		return "", fmt.Errorf("the token has no text in its claim %q", claim)
	}
	// Decoding has put U+FFFD for whatever is not Unicode, which would make one name of several.
	if *name == "" || len(*name) > maxName || strings.ContainsRune(*name, utf8.RuneError) || strings.ContainsFunc(*name, unicode.IsControl) {
		return "", fmt.Errorf("the token's claim %q is empty, longer than %d bytes, or has characters that no name has", claim, maxName)
	}
	return *name, nil
}

// namesIn returns the words of a text, or the texts of a list.
func namesIn(v json.RawMessage) []string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return strings.Fields(text)
	}
	var list []string
	if json.Unmarshal(v, &list) == nil {
		return list
	}
	return nil
}
