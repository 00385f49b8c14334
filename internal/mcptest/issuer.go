package mcptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// OIDC is an [Issuer] as a process. Its URL is the issuer's name.
const OIDC = "oidc"

func oidcIssuer([]string) (http.Handler, error) { return NewIssuer(), nil }

// An Issuer is an issuer of tokens (JWT), with discovery as in OpenID Connect. It
// signs whatever it is asked to. Its name is the URL that it is reached at.
//
//	GET  /.well-known/openid-configuration, /keys
//	POST /token   the body is the claims; the answer is a token
//	POST /rotate  forgets its key and makes a new one
type Issuer struct {
	mu    sync.Mutex
	key   *ecdsa.PrivateKey // guarded by mu
	made  int               // keys so far, guarded by mu
	reads int               // of the keys, guarded by mu
	down  bool              // guarded by mu
}

// NewIssuer returns an issuer with one key.
func NewIssuer() *Issuer {
	i := new(Issuer)
	i.Rotate()
	return i
}

// Rotate forgets the key and makes a new one.
func (i *Issuer) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no source of random numbers
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = key
	i.made++
}

// Key returns the present key and its id.
func (i *Issuer) Key() (key *ecdsa.PrivateKey, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key, fmt.Sprintf("key-%d", i.made)
}

// Reads returns how often the keys were asked for.
func (i *Issuer) Reads() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reads
}

// Down makes the issuer answer 503 to everything, or takes that back.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Sign returns a token with these claims.
func (i *Issuer) Sign(claims any) (string, error) {
	key, id := i.Key()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		return "", err
	}
	return jwt.Signed(s).Claims(claims).Serialize()
}

func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	down := i.down
	i.mu.Unlock()
	if down {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	self := "http://" + r.Host
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/openid-configuration":
		writeJSON(w, map[string]any{
			"issuer": self, "jwks_uri": self + "/keys", "authorization_endpoint": self + "/authorize", "token_endpoint": self + "/token",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "GET /keys":
		key, id := i.Key()
		i.mu.Lock()
		i.reads++
		i.mu.Unlock()
		writeJSON(w, map[string]any{"keys": []any{
			jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: string(jose.ES256), Use: "sig"},
			map[string]string{"kty": "future", "kid": "of-a-kind-that-nobody-knows"},
		}})
	case "POST /token":
		body, err := io.ReadAll(r.Body)
		var claims map[string]any
		if err == nil {
			err = json.Unmarshal(body, &claims)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		token, err := i.Sign(claims)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, token)
	case "POST /rotate":
		i.Rotate()
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the asker went away
}
