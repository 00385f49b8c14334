package remote

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// A Credential is the OAuth client that a server is connected to as, by the
// grant of client credentials (RFC 6749 section 4.4). Exactly one of
// ClientSecret and PrivateKey is set.
type Credential struct {
	ClientID     string
	HideID       bool     // the client's id is not to be shown either
	ClientSecret string   // for client_secret_basic
	PrivateKey   string   // PEM, for private_key_jwt (RFC 7523)
	KeyID        string   // the key's kid, or empty
	Algorithm    string   // as RS256; empty is the usual one for the kind of key
	Scopes       []string // to ask for; nil is what the server advertises
	Issuer       string   // the authorization server to insist on; empty is the one that the server names
}

// name is what errors call the client.
func (c *Credential) name() string {
	if c.HideID {
		return "our client"
	}
	return fmt.Sprintf("our client %q", clip(c.ClientID))
}

// assertionLife is how long an assertion is good for: each is for one request that is sent at once.
const assertionLife = 2 * time.Minute

// signer returns what signs our assertions, or nil for a client with a secret.
func (c *Credential) signer() (jose.Signer, error) {
	switch {
	case c.ClientID == "":
		return nil, errors.New("a credential needs the id of the client")
	case (c.ClientSecret == "") == (c.PrivateKey == ""):
		return nil, errors.New("a credential needs one of a secret and a private key")
	case c.PrivateKey == "":
		return nil, nil
	}
	key, usual, err := privateKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	algorithm := jose.SignatureAlgorithm(c.Algorithm)
	if algorithm == "" {
		algorithm = usual
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: c.KeyID}}, options)
	if err == nil {
		_, err = c.assertion(s, "https://example.com") // not every curve fits every algorithm, which only signing tells
	}
	if err != nil {
		return nil, fmt.Errorf("the private key of the credential does not sign by %s: it is one for %s", algorithm, usual)
	}
	return s, nil
}

// privateKey reads a key in any of the usual forms. Its errors show nothing of it.
func privateKey(text string) (crypto.Signer, jose.SignatureAlgorithm, error) {
	var parsed any
	for rest := []byte(text); parsed == nil; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, "", errors.New("the private key of the credential cannot be read: it must be an unencrypted PKCS #8, PKCS #1 or SEC 1 key in PEM form")
		}
		for _, parse := range []func([]byte) (any, error){
			x509.ParsePKCS8PrivateKey,
			func(b []byte) (any, error) { return x509.ParsePKCS1PrivateKey(b) },
			func(b []byte) (any, error) { return x509.ParseECPrivateKey(b) },
		} {
			// A file may hold a certificate or the parameters of a curve beside its key.
			if k, err := parse(block.Bytes); err == nil {
				parsed = k
				break
			}
		}
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		return k, jose.RS256, nil
	case ed25519.PrivateKey:
		return k, jose.EdDSA, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return k, jose.ES256, nil
		case 384:
			return k, jose.ES384, nil
		case 521:
			return k, jose.ES512, nil
		}
	}
	return nil, "", errors.New("the private key of the credential is of a kind that signs no assertions: it must be RSA, Ed25519, or of a curve of NIST with 256 bits at least")
}

// assertion says to an authorization server who we are (RFC 7523 section 3). Its
// audience is the issuer alone, in a string, since a server that could choose what else it
// is could pass our assertion on to another (draft-ietf-oauth-rfc7523bis).
func (c *Credential) assertion(s jose.Signer, issuer string) (string, error) {
	now := time.Now()
	return jwt.Signed(s).Claims(map[string]any{
		"iss": c.ClientID, "sub": c.ClientID, "aud": issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	}).Serialize()
}

// secrets are the parts of the credential that an authorization server sees, as it sees them.
func (c *Credential) secrets() []string {
	id, secret := url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret)
	all := []string{c.ClientSecret, secret}
	if c.ClientSecret != "" {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
	}
	if c.HideID {
		all = append(all, c.ClientID, id)
	}
	return all
}
