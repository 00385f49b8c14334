package config_test

import (
	"strings"
	"testing"

	"mcpbridge/internal/config"
)

func TestCheckExposure(t *testing.T) {
	for _, tc := range []struct {
		listen            string
		hasAuth, insecure bool
		want              string // in the error; empty for none
	}{
		{"127.0.0.1:8080", false, false, ""},
		{"127.9.9.9:0", false, false, ""},
		{"[::1]:8080", false, false, ""},
		{"[::ffff:127.0.0.1]:80", false, false, ""},
		{"localhost:8080", false, false, ""},
		{"LOCALHOST:8080", false, false, ""},
		{":8080", false, false, "--insecure-no-auth"},
		{"0.0.0.0:8080", false, false, "--insecure-no-auth"},
		{"[::]:8080", false, false, "--insecure-no-auth"},
		{"10.0.0.1:8080", false, false, `"10.0.0.1:8080" can be reached from other machines`},
		{"localhost.example.com:80", false, false, "--insecure-no-auth"},
		{"0.0.0.0:8080", true, false, ""},
		{"0.0.0.0:8080", false, true, ""},
		{"8080", true, true, "is not host:port"},
		{"127.0.0.1:http", true, false, "has a port that is not a number"},
		{"127.0.0.1:65536", true, false, "has a port that is not a number"},
	} {
		err := config.CheckExposure(tc.listen, tc.hasAuth, tc.insecure)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("CheckExposure(%q, %t, %t) = %v", tc.listen, tc.hasAuth, tc.insecure, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("CheckExposure(%q, %t, %t) = %v, want %q in it", tc.listen, tc.hasAuth, tc.insecure, err, tc.want)
		}
	}
	var a config.Auth
	if a.Enabled() {
		t.Error("no auth is enabled")
	}
	a.Anonymous = new(config.Policy)
	if a.Enabled() {
		t.Error("anonymous callers can show who they are")
	}
	if a.Keys = make([]config.Key, 1); !a.Enabled() {
		t.Error("keys are not enabled")
	}
}
