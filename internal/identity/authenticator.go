package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mcpbridge/internal/bridge"
)

// Options say who callers are. The zero Options refuse everybody.
type Options struct {
	Keys      []Key
	Issuers   []Issuer
	Anonymous *Grant // for requests without a credential; nil refuses them
	User      string // who all of those are; empty is nobody
}

// A Grant is what a caller may do.
type Grant struct {
	Scopes bridge.Scopes
	Rule   *bridge.Rule // nil allows everything
}

// A Key is an API key. Several may be of one user, who is changing its key.
type Key struct {
	ID     string // for logs, and for what is counted for each key
	Hash   Digest
	User   string
	Tenant string
	Grant
}

// An Issuer is an issuer of tokens (JWT) that are trusted. One may be there more than
// once, with other audiences: the first whose audience a token has decides.
type Issuer struct {
	URL      string   // exactly as the tokens have it; its discovery document is below it
	Audience []string // a token must be for one of them
	User     string   // name of the claim that names the user
	Tenant   string   // name of the claim that names the tenant; "" is no tenant
	Scopes   string   // name of the claim with the scopes; "" is the scope to call
	Rule     *bridge.Rule
}

const (
	maxKey   = 512      // bytes of an API key
	maxToken = 16 << 10 // bytes of a token
	maxKnown = 10_000   // tokens that are known to be right
)

// An Authenticator finds out who makes a request. It is safe for concurrent use.
type Authenticator struct {
	log    *slog.Logger
	client *http.Client
	known  *lru.Cache[Digest, known]

	replacing sync.Mutex // one Replace at a time
	current   atomic.Pointer[roster]
}

// A roster is all who may come, at one time. It never changes.
type roster struct {
	keys      map[Digest]bridge.Caller
	issuers   map[string]*issuer // :: URL -> issuer
	anonymous *Grant
	user      string // of anonymous
	open      bool   // nobody can show who they are, so what they show means nothing
}

// A known is a token that was found to be right.
type known struct {
	caller bridge.Caller
	issuer *issuer
	keys   *keySet // of the issuer, one of which has signed it
	until  time.Time
}

// New returns an authenticator. It connects to an issuer when the first of its tokens comes.
func New(o Options, log *slog.Logger) *Authenticator {
	cache, err := lru.New[Digest, known](maxKnown)
	if err != nil {
		panic(err) // the size is not positive
	}
	a := &Authenticator{log: log, client: newClient(), known: cache}
	a.current.Store(&roster{})
	a.Replace(o)
	return a
}

// Replace puts other options in place of the present ones, for every request that
// begins from now on. What is known of issuers that stay is kept.
func (a *Authenticator) Replace(o Options) {
	a.replacing.Lock()
	defer a.replacing.Unlock()
	old := a.current.Load()
	r := &roster{keys: make(map[Digest]bridge.Caller, len(o.Keys)), issuers: make(map[string]*issuer), anonymous: o.Anonymous, user: o.User, open: o.open()}
	for _, k := range o.Keys {
		r.keys[k.Hash] = bridge.Caller{ID: k.ID, User: k.User, Tenant: k.Tenant, Scopes: k.Scopes, Rule: k.Rule}
	}
	for _, i := range o.Issuers {
		if r.issuers[i.URL] == nil {
			r.issuers[i.URL] = &issuer{url: i.URL}
		}
		r.issuers[i.URL].accepts = append(r.issuers[i.URL].accepts, i)
	}
	for url, i := range r.issuers {
		was := old.issuers[url]
		switch {
		case was == nil:
			i.source = newSource(url, a.client, a.log)
		case reflect.DeepEqual(was.accepts, i.accepts):
			r.issuers[url] = was
		default:
			i.source = was.source
		}
	}
	a.current.Store(r)
}

// open reports whether everybody is the anonymous caller.
func (o *Options) open() bool { return len(o.Keys)+len(o.Issuers) == 0 && o.Anonymous != nil }

// Revoke takes away the keys, the issuers and the anonymous caller that other options do
// not have, for every request that begins from now on, and changes nothing else: for
// options that are to take the place of the present ones later.
func (a *Authenticator) Revoke(o Options) {
	a.replacing.Lock()
	defer a.replacing.Unlock()
	old := a.current.Load()
	r := &roster{keys: make(map[Digest]bridge.Caller, len(o.Keys)), issuers: make(map[string]*issuer), user: old.user, open: old.open && o.open()}
	if o.Anonymous != nil {
		r.anonymous = old.anonymous
	}
	for _, k := range o.Keys {
		if c, ok := old.keys[k.Hash]; ok {
			r.keys[k.Hash] = c
		}
	}
	for _, i := range o.Issuers {
		if was := old.issuers[i.URL]; was != nil {
			r.issuers[i.URL] = was
		}
	}
	a.current.Store(r)
}

// Caller returns who makes the request: by the key or token in Authorization or
// X-API-Key, or the anonymous caller if there is none. The error is of kind
// Unauthenticated, with [ErrNoCredential] in its tree if there was no credential
// to begin with; or Unavailable while the issuer of the token cannot be reached.
// A credential that is wrong never makes an anonymous caller.
func (a *Authenticator) Caller(r *http.Request) (bridge.Caller, error) {
	now := a.current.Load()
	if now.open {
		return now.nobody(), nil
	}
	credential, err := credentialOf(r.Header)
	switch {
	case err != nil:
		return bridge.Caller{}, err
	case credential == "" && now.anonymous != nil:
		return now.nobody(), nil
	case credential == "":
		return bridge.Caller{}, noCredential()
	}
	return a.find(r.Context(), now, credential)
}

// nobody is who comes without a credential.
func (r *roster) nobody() bridge.Caller {
	return bridge.Caller{User: r.user, Scopes: r.anonymous.Scopes, Rule: r.anonymous.Rule}
}

// find returns whose credential it is. It costs one digest and two look-ups by that,
// whatever is sent: their time tells something about digests at most, from
// which nobody finds a key. Only what looks like a token of an issuer costs more.
func (a *Authenticator) find(ctx context.Context, now *roster, credential string) (bridge.Caller, error) {
	token := len(now.issuers) > 0 && len(credential) <= maxToken && strings.Count(credential, ".") == 2
	if len(credential) > maxKey && !token {
		return bridge.Caller{}, refused(errors.New("the credential is too long"))
	}
	digest := Digest(sha256.Sum256([]byte(credential)))
	if c, ok := now.keys[digest]; ok {
		return c, nil
	}
	if !token {
		return bridge.Caller{}, refused(errors.New("no key is that"))
	}
	if k, ok := a.known.Get(digest); ok && k.holds(now) {
		return k.caller, nil
	}
	k, err := now.verify(ctx, credential)
	if err != nil {
		return bridge.Caller{}, err
	}
	a.known.Add(digest, k)
	return k.caller, nil
}

// holds reports whether what was found is still so: the issuer has the same
// settings and keys as then, and the token has not expired.
func (k known) holds(now *roster) bool {
	return now.issuers[k.issuer.url] == k.issuer && k.issuer.source.known() == k.keys && time.Now().Before(k.until)
}
