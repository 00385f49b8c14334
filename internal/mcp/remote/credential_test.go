package remote

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mcpbridge/internal/mcp/rpc"
)

func asPEM(kind string, der []byte, err error) string {
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Keys come in many forms, and what is wrong with one is told without showing it.
func TestPrivateKeys(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curves := map[int]*ecdsa.PrivateKey{}
	for _, c := range []elliptic.Curve{elliptic.P224(), elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		if curves[c.Params().BitSize], err = ecdsa.GenerateKey(c, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8 := func(key any) string { b, err := x509.MarshalPKCS8PrivateKey(key); return asPEM("PRIVATE KEY", b, err) }
	sec1 := func(bits int) string {
		b, err := x509.MarshalECPrivateKey(curves[bits])
		return asPEM("EC PRIVATE KEY", b, err)
	}
	pkcs1 := asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil)
	for name, tt := range map[string]struct {
		c    Credential
		want string // the algorithm, or what the error says
	}{
		"RSA":                {Credential{PrivateKey: pkcs8(rsaKey)}, "RS256"},
		"RSA, PKCS #1":       {Credential{PrivateKey: pkcs1, Algorithm: "PS512"}, "PS512"},
		"P-256":              {Credential{PrivateKey: pkcs8(curves[256])}, "ES256"},
		"P-384, SEC 1":       {Credential{PrivateKey: sec1(384)}, "ES384"},
		"P-521":              {Credential{PrivateKey: pkcs8(curves[521])}, "ES512"},
		"Ed25519":            {Credential{PrivateKey: pkcs8(edKey)}, "EdDSA"},
		"behind a parameter": {Credential{PrivateKey: asPEM("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}, nil) + sec1(256)}, "ES256"},
		"no PEM":             {Credential{PrivateKey: "hunter2"}, "cannot be read"},
		"encrypted":          {Credential{PrivateKey: asPEM("ENCRYPTED PRIVATE KEY", []byte("hunter2"), nil)}, "cannot be read"},
		"P-224":              {Credential{PrivateKey: pkcs8(curves[224])}, "signs no assertions"},
		"wrong kind":         {Credential{PrivateKey: pkcs8(rsaKey), Algorithm: "ES256"}, "does not sign by ES256: it is one for RS256"},
		"wrong curve":        {Credential{PrivateKey: pkcs8(curves[256]), Algorithm: "ES384"}, "does not sign by ES384: it is one for ES256"},
		"unknown algorithm":  {Credential{PrivateKey: pkcs8(rsaKey), Algorithm: "none"}, "does not sign by none"},
		"symmetric":          {Credential{PrivateKey: pkcs8(rsaKey), Algorithm: "HS256"}, "does not sign by HS256"},
		"neither":            {Credential{}, "one of a secret and a private key"},
		"both":               {Credential{ClientSecret: "x", PrivateKey: pkcs1}, "one of a secret and a private key"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.c.ClientID, tt.c.KeyID = "me", "k1"
			tokens, err := NewTokens(tt.c)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter") {
					t.Errorf("err = %v, want it to say %q", err, tt.want)
				}
				return
			}
			text, err := tt.c.assertion(tokens.signer, "https://id.example")
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := privateKey(tt.c.PrivateKey)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(tt.want)})
			if err != nil {
				t.Fatal(err)
			}
			var c map[string]any
			if err := signed.Claims(key.Public(), &c); err != nil {
				t.Fatal(err)
			}
			exp, _ := c["exp"].(float64)
			if left := time.Until(time.Unix(int64(exp), 0)); left <= 0 || left > assertionLife || c["iss"] != "me" || c["sub"] != "me" || c["aud"] != "https://id.example" || c["jti"] == "" {
				t.Errorf("the claims are %v", c)
			}
			if h := signed.Headers[0]; h.KeyID != "k1" || h.ExtraHeaders["typ"] != "JWT" {
				t.Errorf("the header is %+v", h)
			}
		})
	}
	if _, err := NewTokens(Credential{ClientSecret: "x"}); err == nil {
		t.Error("a client without an id was taken")
	}
}

// What a credential cannot be used with is refused before anything is sent.
func TestCredentialRefusals(t *testing.T) {
	tokens := tokensOf(t, Credential{ClientID: "me", ClientSecret: "secret"})
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"SSE":           {Options{URL: "http://h", Protocol: SSE}, "over HTTP+SSE"},
		"Authorization": {Options{URL: "http://h", Headers: http.Header{"authorization": {"Bearer x"}}}, "beside an Authorization header"},
		"user":          {Options{URL: "http://me:pw@h"}, "beside an Authorization header"},
	} {
		tt.o.Tokens = tokens
		_, err := Dial(t.Context(), tt.o)
		if f := failed(t, err, rpc.Start); !strings.Contains(f.Msg, tt.want) {
			t.Errorf("%s: the failure is %q, want it to say %q", name, f.Msg, tt.want)
		}
	}
	// Nor is it tried there by ourselves.
	g := newGuarded(t, false)
	guard := g.on["/mcp"]
	g.on["/mcp"] = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			t.Error("HTTP+SSE was tried")
		case r.Header.Get("Authorization") == "":
			guard(w, r)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
	o := g.options(t)
	o.Protocol = Auto
	_, err := Dial(t.Context(), o)
	failed(t, err, rpc.Protocol)
}
