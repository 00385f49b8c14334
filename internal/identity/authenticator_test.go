package identity

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// request has these headers, each "Name: value".
func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// wantRefused fails the test unless err is that of a wrong credential, and says nothing of it.
func wantRefused(t *testing.T, name string, err error, secret string) {
	t.Helper()
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok || e.Kind != Unauthenticated || errors.Is(err, ErrNoCredential) || e.Err == nil {
		t.Errorf("%s: %v, want that the credential is wrong, and why", name, err)
		return
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error has the credential in it: %v", name, err)
	}
}

func digest(s string) Digest { return sha256.Sum256([]byte(s)) }

func TestKeys(t *testing.T) {
	rule := &bridge.Rule{Allow: []string{"files/*"}}
	oldKey, newKey, odd := NewKey(), NewKey(), "a.key.with-two-dots-in-it"
	a := New(Options{Keys: []Key{
		{ID: "ci-old", Hash: digest(oldKey), User: "ci", Tenant: "acme", Grant: Grant{Scopes: bridge.ScopeCall, Rule: rule}},
		{ID: "ci-new", Hash: digest(newKey), User: "ci", Tenant: "acme", Grant: Grant{Scopes: bridge.AllScopes}},
		{ID: "odd", Hash: digest(odd), User: "odd"},
	}, Issuers: []Issuer{{URL: "https://id.example"}}}, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		name    string
		headers []string
		want    bridge.Caller // the zero one for a refusal
	}{
		{"bearer", []string{"Authorization: Bearer " + oldKey}, bridge.Caller{ID: "ci-old", User: "ci", Tenant: "acme", Scopes: bridge.ScopeCall, Rule: rule}},
		{"the new key of the same user", []string{"Authorization: Bearer " + newKey}, bridge.Caller{ID: "ci-new", User: "ci", Tenant: "acme", Scopes: bridge.AllScopes}},
		{"X-API-Key", []string{"X-API-Key: " + newKey}, bridge.Caller{ID: "ci-new", User: "ci", Tenant: "acme", Scopes: bridge.AllScopes}},
		{"a scheme in lower case, and more space", []string{"Authorization: bearer   " + odd}, bridge.Caller{ID: "odd", User: "odd"}},
		{"both, the same", []string{"Authorization: Bearer " + odd, "X-API-Key: " + odd}, bridge.Caller{ID: "odd", User: "odd"}},
		{"both, different", []string{"Authorization: Bearer " + oldKey, "X-API-Key: " + newKey}, bridge.Caller{}},
		{"one twice", []string{"X-API-Key: " + newKey, "X-API-Key: " + newKey}, bridge.Caller{}},
		{"another scheme", []string{"Authorization: Basic " + newKey}, bridge.Caller{}},
		{"another scheme beside a key", []string{"Authorization: Basic abc", "X-API-Key: " + newKey}, bridge.Caller{}},
		{"no scheme", []string{"Authorization: " + newKey}, bridge.Caller{}},
		{"nothing behind the scheme", []string{"Authorization: Bearer "}, bridge.Caller{}},
		{"an empty Authorization", []string{"Authorization: "}, bridge.Caller{}},
		{"an empty key", []string{"X-API-Key: "}, bridge.Caller{}},
		{"a key that is none", []string{"X-API-Key: " + NewKey()}, bridge.Caller{}},
		{"a key and more", []string{"X-API-Key: " + newKey + "a"}, bridge.Caller{}},
		{"the beginning of a key", []string{"X-API-Key: " + newKey[:len(newKey)-1]}, bridge.Caller{}},
		{"the digest of a key", []string{"X-API-Key: " + digest(newKey).String()}, bridge.Caller{}},
		{"a long key", []string{"X-API-Key: " + strings.Repeat("x", maxKey+1)}, bridge.Caller{}},
		{"a huge key", []string{"X-API-Key: " + strings.Repeat("x", 1<<20)}, bridge.Caller{}},
	} {
		got, err := a.Caller(request(tt.headers...))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if tt.want.ID == "" {
			wantRefused(t, tt.name, err, newKey)
		} else if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNoCredential(t *testing.T) {
	key := Key{ID: "ci", Hash: digest("k"), User: "ci"}
	guest := &Grant{Scopes: bridge.ScopeCall, Rule: &bridge.Rule{Allow: []string{"open/*"}}}
	log := slog.New(slog.DiscardHandler)
	wrong := request("Authorization: Bearer wrong")

	strict := New(Options{Keys: []Key{key}}, log)
	if _, err := strict.Caller(request()); bridge.KindOf(err) != Unauthenticated || !errors.Is(err, ErrNoCredential) {
		t.Errorf("with keys alone: %v, want %v", err, ErrNoCredential)
	}
	mixed := New(Options{Keys: []Key{key}, Anonymous: guest}, log)
	want := bridge.Caller{Scopes: guest.Scopes, Rule: guest.Rule}
	if got, err := mixed.Caller(request()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("beside keys: %+v %v, want %+v", got, err, want)
	}
	_, err := mixed.Caller(wrong)
	wantRefused(t, "a wrong key where there are anonymous callers", err, "")
	open := New(Options{Anonymous: guest}, log)
	for _, r := range []*http.Request{request(), wrong, request("Authorization: Basic abc")} {
		if got, err := open.Caller(r); err != nil || !cmp.Equal(got, want) {
			t.Errorf("where nobody has a key: %+v %v, want %+v", got, err, want)
		}
	}
	named := New(Options{Anonymous: guest, User: "local"}, log)
	want.User = "local"
	if got, err := named.Caller(request()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("where everybody is one user: %+v %v, want %+v", got, err, want)
	}
	if _, err := New(Options{}, log).Caller(request()); !errors.Is(err, ErrNoCredential) {
		t.Errorf("without options: %v, want %v", err, ErrNoCredential)
	}
	_, err = New(Options{}, log).Caller(wrong)
	wantRefused(t, "without options", err, "")
}

func TestReplaceKeys(t *testing.T) {
	first, second := NewKey(), NewKey()
	a := New(Options{Keys: []Key{{ID: "1", Hash: digest(first)}}}, slog.New(slog.DiscardHandler))
	a.Replace(Options{Keys: []Key{{ID: "2", Hash: digest(second)}}})
	_, err := a.Caller(request("X-API-Key: " + first))
	wantRefused(t, "the old key", err, first)
	if c, err := a.Caller(request("X-API-Key: " + second)); err != nil || c.ID != "2" {
		t.Errorf("the new key: %+v %v", c, err)
	}
}

// What later options lack goes at once; what they have anew or otherwise comes with them.
func TestRevoke(t *testing.T) {
	stays, goes, comes := NewKey(), NewKey(), NewKey()
	guest, other := &Grant{Scopes: bridge.ScopeCall}, &Grant{Scopes: bridge.AllScopes}
	before := Options{Keys: []Key{{ID: "stays", Hash: digest(stays)}, {ID: "goes", Hash: digest(goes)}}, Issuers: []Issuer{{URL: "https://a.example"}, {URL: "https://b.example"}}, Anonymous: guest}
	after := Options{Keys: []Key{{ID: "other", Hash: digest(stays)}, {ID: "comes", Hash: digest(comes)}}, Issuers: []Issuer{{URL: "https://b.example"}, {URL: "https://c.example"}}}
	a := New(before, slog.New(slog.DiscardHandler))
	kept := a.current.Load().issuers["https://b.example"]
	a.Revoke(after)
	if c, err := a.Caller(request("X-API-Key: " + stays)); err != nil || c.ID != "stays" {
		t.Errorf("the key that stays: %+v %v", c, err)
	}
	for name, key := range map[string]string{"the key that goes": goes, "the key that comes": comes} {
		_, err := a.Caller(request("X-API-Key: " + key))
		wantRefused(t, name, err, key)
	}
	if _, err := a.Caller(request()); !errors.Is(err, ErrNoCredential) {
		t.Errorf("a guest: %v, want %v", err, ErrNoCredential)
	}
	if now := a.current.Load().issuers; len(now) != 1 || now["https://b.example"] != kept {
		t.Errorf("issuers %v, want the one that stays as it was", now)
	}

	// Where the last key goes, a wrong one still makes no guest; where keys come, nobody has shown who they are.
	a.Replace(before)
	a.Revoke(Options{Anonymous: other})
	if c, err := a.Caller(request()); err != nil || c.Scopes != guest.Scopes {
		t.Errorf("a guest who stays: %+v %v", c, err)
	}
	_, err := a.Caller(request("X-API-Key: " + goes))
	wantRefused(t, "the last key", err, goes)
	open := New(Options{Anonymous: guest}, slog.New(slog.DiscardHandler))
	open.Revoke(after)
	if _, err := open.Caller(request()); !errors.Is(err, ErrNoCredential) {
		t.Errorf("where keys come: %v, want %v", err, ErrNoCredential)
	}
	_, err = open.Caller(request("X-API-Key: " + goes))
	wantRefused(t, "where keys come", err, goes)
}

func TestDigest(t *testing.T) {
	key := NewKey()
	if key == NewKey() || !strings.HasPrefix(key, "mcpb_") || len(key) != 5+52 || strings.ToLower(key) != key {
		t.Errorf("key %q", key)
	}
	d, err := DigestOf(key)
	if err != nil || d != digest(key) {
		t.Errorf("DigestOf(%s) = %v, %v", key, d, err)
	}
	if back, err := ParseDigest(d.String()); err != nil || back != d {
		t.Errorf("ParseDigest(%s) = %v, %v", d, back, err)
	}
	for _, bad := range []string{"", "tiny-key", strings.Repeat("x", 513), "a key with spaces in between", "a-key-with-a-newline\n", "schlüssel-schlüssel-schlüssel"} {
		if _, err := DigestOf(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("DigestOf(%.30q): %v", bad, err)
		}
	}
	hexed := d.String()[len("sha256:"):]
	for _, bad := range []string{"", hexed, "sha256:", "sha256:" + hexed[1:], "sha256:" + hexed + "00", "sha512:" + hexed, "sha256:z" + hexed[1:]} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("ParseDigest(%q) succeeds", bad)
		}
	}
}

func TestScopes(t *testing.T) {
	c := bridge.Caller{Scopes: ScopesOf([]string{"call", "openid", "metrics"})}
	if c.Scopes != bridge.ScopeCall|bridge.ScopeMetrics {
		t.Errorf("scopes %b", c.Scopes)
	}
	if err := Require(c, bridge.ScopeCall|bridge.ScopeMetrics); err != nil {
		t.Error(err)
	}
	for want, name := range map[bridge.Scopes]string{bridge.ScopeAdmin: "admin", bridge.AllScopes: "admin"} {
		err := Require(c, want)
		missing, ok := errors.AsType[*MissingScope](err)
		if bridge.KindOf(err) != bridge.Forbidden || !ok || missing.Scope != name {
			t.Errorf("Require(%b) = %v, want that %s is missing", want, err, name)
		}
	}
	if err := Require(bridge.Caller{}, bridge.AllScopes); !strings.Contains(err.Error(), `"call"`) {
		t.Errorf("the first missing scope is not named: %v", err)
	}
}
