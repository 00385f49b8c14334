package mcptest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func TestIssuer(t *testing.T) {
	NoLeaks(t)
	s := Start(t, OIDC)
	do := func(method, path, body string, status int) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status {
			t.Fatalf("%s %s: %d %s, %v", method, path, res.StatusCode, b, err)
		}
		return string(b)
	}
	verified := func(token string) bool {
		var set struct{ Keys []json.RawMessage }
		if err := json.Unmarshal([]byte(do("GET", "/keys", "", 200)), &set); err != nil || len(set.Keys) != 2 {
			t.Fatalf("%d keys, %v", len(set.Keys), err)
		}
		var key jose.JSONWebKey
		if err := json.Unmarshal(set.Keys[0], &key); err != nil {
			t.Fatal(err)
		}
		parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var c jwt.Claims
		return parsed.Claims(key, &c) == nil && c.Subject == "ada"
	}
	var discovery struct{ Issuer string }
	if err := json.Unmarshal([]byte(do("GET", "/.well-known/openid-configuration", "", 200)), &discovery); err != nil || discovery.Issuer != s.URL {
		t.Errorf("issuer %q, want %q: %v", discovery.Issuer, s.URL, err)
	}
	token := do("POST", "/token", `{"sub":"ada"}`, 200)
	if !verified(token) {
		t.Error("the issuer's key has not signed its token")
	}
	do("POST", "/rotate", "", 200)
	if verified(token) {
		t.Error("the key is still there")
	}
	do("POST", "/token", `{`, 400)
	do("GET", "/nothing", "", 404)

	i := NewIssuer()
	if i.Down(true); i.Reads() != 0 {
		t.Error("nobody has asked for keys")
	}
}
