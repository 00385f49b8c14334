package main

import (
	"cmp"
	"fmt"
	"log/slog"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/openapi"
)

// localUser is who everybody is where nothing is said about callers: servers and results of
// one's own are then that one user's.
const localUser = "local"

// operator is whom the commands run for, and whose documents are made ahead. Who
// can read the configuration of keys may see all; where there are none, everybody is
// the anonymous caller.
func operator(a config.Auth) bridge.Caller {
	if a.Enabled() {
		return bridge.Caller{Scopes: bridge.AllScopes}
	}
	if a.Anonymous == nil {
		return bridge.Caller{User: localUser, Scopes: bridge.AllScopes}
	}
	return bridge.Caller{Scopes: bridge.AllScopes, Rule: rule(*a.Anonymous)}
}

// replaceCallers puts another configuration of callers in place of the present one,
// for every request from now on.
func (a *app) replaceCallers(auth config.Auth, loopback bool) {
	a.callers.Replace(callers(auth, loopback))
	a.credentials.Store(int32(credentialsOf(auth)))
}

// credentialsOf returns what callers send.
func credentialsOf(a config.Auth) openapi.Credentials {
	switch {
	case !a.Enabled():
		return openapi.NoCredentials
	case a.Anonymous != nil:
		return openapi.OptionalCredentials
	default:
		return openapi.NeededCredentials
	}
}

// callers turns what the configuration says about callers into options. Where
// nothing is said, whoever is on this machine may do everything, and
// others, if they are let in at all, no more than call tools.
func callers(a config.Auth, loopback bool) identity.Options {
	var o identity.Options
	for _, k := range a.Keys {
		digest, err := identity.ParseDigest(k.Hash)
		if err != nil {
			panic(err) // the configuration was checked
		}
		names := make([]string, 0, len(k.Scopes))
		for _, s := range k.Scopes {
			names = append(names, string(s))
		}
		o.Keys = append(o.Keys, identity.Key{
			ID: k.ID, Hash: digest, User: k.User, Tenant: k.Tenant,
			Grant: identity.Grant{Scopes: identity.ScopesOf(names), Rule: rule(k.Policy)},
		})
	}
	for _, j := range a.JWT {
		o.Issuers = append(o.Issuers, identity.Issuer{
			URL: j.Issuer, Audience: j.Audience, User: j.User, Tenant: j.Tenant, Scopes: j.Scopes, Rule: rule(j.Policy),
		})
	}
	if a.Anonymous != nil {
		o.Anonymous = &identity.Grant{Scopes: bridge.ScopeCall, Rule: rule(*a.Anonymous)}
	}
	if !a.Enabled() {
		if a.Anonymous == nil {
			o.User = localUser
			o.Anonymous = &identity.Grant{Scopes: bridge.ScopeCall}
			if loopback {
				o.Anonymous.Scopes = bridge.AllScopes
			}
		}
	}
	return o
}

// rule is what a policy lets its caller see and call. The burst is what one period of the rate allows, unless given.
func rule(p config.Policy) *bridge.Rule {
	r := rate(p.Rate)
	return &bridge.Rule{
		Allow: p.Allow, Deny: p.Deny, Timeout: p.Timeout,
		Limits: bridge.Limits{PerSecond: r.PerSecond, Burst: cmp.Or(p.Burst, r.Burst), Concurrent: p.Concurrent},
	}
}

// newBudget makes the budget of callers: where results are kept in a Redis, the rates are shared there too.
func newBudget(a config.Artifacts, log *slog.Logger) (*identity.Budget, error) {
	url := a.Store.Text()
	if url == "memory" {
		return identity.NewBudget(), nil
	}
	b, err := identity.NewSharedBudget(url, log)
	if err != nil {
		return nil, fmt.Errorf("bridge.artifacts.store: %w%w", err, errConfig)
	}
	return b, nil
}
