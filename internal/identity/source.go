package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"

	"mcpbridge/internal/bridge"
)

// algorithms are those that a token may be signed with. With none that is symmetric
// among them, nobody can pass off a public key as a shared secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

const (
	readTimeout = 10 * time.Second // to read an issuer's documents, in all
	maxDocument = 1 << 20          // bytes of one of them

	readAgain = 10 * time.Second // after which an unknown key is looked for again at the earliest
	maxWait   = time.Minute      // the most time between attempts that fail
	freshFor  = time.Hour        // after which keys are read again, behind the requests
	trustFor  = 24 * time.Hour   // after which keys that could not be read again are not trusted any more
)

// A source has the keys of one issuer. They are read when the first token comes,
// again when one comes that none of them has signed, and when they are old;
// however many ask, one reads.
type source struct {
	url    string
	client *http.Client
	log    *slog.Logger

	flight singleflight.Group

	mu     sync.Mutex
	keys   *keySet   // nil before they were read, guarded by mu
	read   time.Time // when that was, guarded by mu
	next   time.Time // when they may be read again, guarded by mu
	failed int       // attempts in a row, guarded by mu
}

// A keySet is an issuer's keys at one time. It never changes.
type keySet struct {
	text []byte // as the issuer sent it
	keys []jose.JSONWebKey
}

func newSource(url string, client *http.Client, log *slog.Logger) *source {
	return &source{url: url, client: client, log: log}
}

// known returns the keys if they can be trusted, and has them read anew if they are old.
func (s *source) known() *keySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.keys == nil || now.Sub(s.read) > trustFor {
		return nil
	}
	if now.Sub(s.read) > freshFor && !now.Before(s.next) {
		s.flight.DoChan("", s.load) // ends within readTimeout; nobody waits for it
	}
	return s.keys
}

// verify decodes the claims of a token that one of the issuer's keys has signed, and returns those keys.
func (s *source) verify(ctx context.Context, token *jwt.JSONWebToken, claims ...any) (*keySet, error) {
	keys := s.known()
	if keys.verify(token, claims...) {
		return keys, nil
	}
	// The issuer may have changed its keys.
	newer, err := s.newer(ctx, keys)
	if err != nil {
		return nil, err
	}
	if newer == keys || !newer.verify(token, claims...) {
		return nil, refused(errors.New("the token is signed by no key of its issuer"))
	}
	return newer, nil
}

// newer returns the issuer's keys, read anew unless somebody did that a moment ago.
func (s *source) newer(ctx context.Context, than *keySet) (*keySet, error) {
	select {
	case r := <-s.flight.DoChan("", func() (any, error) { // ends within readTimeout, also if nobody waits for it any more
		if keys, err, ok := s.recent(than); ok {
			return keys, err
		}
		return s.load()
	}):
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*keySet), nil
	case <-ctx.Done():
		return nil, &bridge.Error{Kind: bridge.KindOf(ctx.Err()), Op: "identity.Caller", Msg: "The caller went away.", Err: ctx.Err()}
	}
}

// recent returns the present state if it is other than what the asker knows, or if it is too early to ask the issuer again.
func (s *source) recent(than *keySet) (*keySet, error, bool) { //nolint:revive // the error is the state, not of the look-up
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := time.Until(s.next)
	switch {
	case s.keys != than && s.keys != nil && time.Since(s.read) <= trustFor:
		return s.keys, nil, true
	case wait <= 0:
		return nil, nil, false
	case s.failed > 0:
		return nil, unreachable(wait), true
	default:
		return s.keys, nil, true
	}
}

func unreachable(retry time.Duration) error {
	return &bridge.Error{
		Kind: bridge.Unavailable, Op: "identity.Caller", RetryAfter: retry, Err: errors.New("the issuer's keys could not be read a moment ago"),
		Msg: "The issuer of the token cannot be reached, so the bridge cannot tell whether the token is right; try again.",
	}
}

// load reads the issuer's keys.
func (s *source) load() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	keys, err := s.fetch(oidc.ClientContext(ctx, s.client))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err != nil {
		wait := min(time.Second<<min(s.failed, 10), maxWait)
		s.failed++
		s.next = now.Add(wait)
		s.log.LogAttrs(ctx, slog.LevelWarn, "the keys of an issuer of tokens cannot be read",
			slog.String("issuer", s.url), slog.String("error", fmt.Sprintf("%.500v", err)), slog.Duration("retry", wait))
		return nil, unreachable(wait)
	}
	s.failed, s.read, s.next = 0, now, now.Add(readAgain)
	if s.keys == nil || !bytes.Equal(s.keys.text, keys.text) {
		s.keys = keys // the same set stays the same one, and so does what was verified with it
		s.log.LogAttrs(ctx, slog.LevelInfo, "the keys of an issuer of tokens were read", slog.String("issuer", s.url), slog.Int("keys", len(keys.keys)))
	}
	return s.keys, nil
}

// fetch discovers where the keys are, and gets them.
func (s *source) fetch(ctx context.Context) (*keySet, error) {
	provider, err := oidc.NewProvider(ctx, s.url)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	if u, err := url.Parse(document.Keys); err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isHTTP(s.url)) {
		return nil, fmt.Errorf("jwks_uri %.200q is not the URL of a place that can be trusted", document.Keys)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, document.Keys, nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the issuer's keys: %s", res.Status)
	}
	return parseKeys(body)
}

// isHTTP reports whether an issuer has no TLS, which the configuration allows on loopback only.
func isHTTP(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && u.Scheme == "http"
}

// parseKeys reads a key set and leaves out what cannot verify a signature: keys
// of unknown kinds, secret ones, and those for encryption (RFC 7517 section 5).
func parseKeys(text []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("the issuer's keys: %w", err)
	}
	set := &keySet{text: text}
	for _, one := range document.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(one, &k) == nil && k.Valid() && k.IsPublic() && k.Use != "enc" {
			set.keys = append(set.keys, k)
		}
	}
	if len(set.keys) == 0 {
		return nil, errors.New("the issuer has no key that verifies tokens")
	}
	return set, nil
}

// verify decodes the claims if one of the keys has signed the token.
func (k *keySet) verify(token *jwt.JSONWebToken, claims ...any) bool {
	if k == nil {
		return false
	}
	h := token.Headers[0] // of a compact token, which has one
	for _, key := range k.keys {
		if h.KeyID != "" && key.KeyID != "" && h.KeyID != key.KeyID || key.Algorithm != "" && key.Algorithm != h.Algorithm {
			continue
		}
		if token.Claims(key.Key, claims...) == nil {
			return true
		}
	}
	return false
}

// newClient returns a client that reads small documents, follows nobody elsewhere,
// and keeps no connection for the next time, an hour later.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return &http.Client{
		Transport:     small{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// small cuts the bodies of answers off.
type small struct{ base http.RoundTripper }

func (b small) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxDocument), body}
	return res, nil
}
