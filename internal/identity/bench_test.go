package identity

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
)

// What it costs to find out who makes a request.
func BenchmarkCaller(b *testing.B) {
	i := mcptest.NewIssuer()
	keys := make([]Key, 1000)
	right := NewKey()
	for n := range keys {
		keys[n] = Key{ID: "other", Hash: digest(NewKey())}
	}
	keys[500].Hash = digest(right)
	a := New(Options{Keys: keys, Issuers: []Issuer{trust}}, slog.New(slog.DiscardHandler))
	a.client.Transport = direct{"id.example": i}
	sign := func(changes map[string]any) string {
		token, err := i.Sign(claims(changes))
		if err != nil {
			b.Fatal(err)
		}
		return token
	}
	token := sign(nil)
	forged := token[:strings.LastIndexByte(token, '.')+1] + strings.Repeat("A", 86)
	if _, err := a.Caller(request("Authorization: Bearer " + token)); err != nil {
		b.Fatal(err)
	}
	for _, bm := range []struct {
		name, credential string
		ok               bool
	}{
		{"right key", right, true},
		{"wrong key", NewKey(), false},
		{"wrong key of 512 bytes", strings.Repeat("x", maxKey), false},
		{"wrong key of 100 kB", strings.Repeat("x", 100_000), false},
		{"known token", token, true},
		{"forged token", forged, false},
		{"expired token", sign(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), false},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + bm.credential}}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Caller(r); (err == nil) != bm.ok {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("new token", func(b *testing.B) {
		r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
		b.ReportAllocs()
		for b.Loop() {
			a.known.Purge()
			if _, err := a.Caller(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
