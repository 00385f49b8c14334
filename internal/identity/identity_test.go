package identity

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

func TestEveryone(t *testing.T) {
	tests := []struct {
		name         string
		rule         Rule
		handle, tool string
		want         bool
	}{
		{"no rule", Rule{}, "files", "read", true},
		{"an empty allow list", Rule{Allow: []string{}}, "files", "read", false},
		{"allowed", Rule{Allow: []string{"files/*"}}, "files", "a/b", true},
		{"another server", Rule{Allow: []string{"files/*"}}, "search", "read", false},
		{"denied", Rule{Allow: []string{"*"}, Deny: []string{"*/delete_*"}}, "files", "delete_all", false},
	}
	for _, tt := range tests {
		if got := (Everyone{tt.rule}).Allows(bridge.Caller{}, tt.handle, tt.tool); got != tt.want {
			t.Errorf("%s: Allows(%s/%s) = %v, want %v", tt.name, tt.handle, tt.tool, got, tt.want)
		}
	}
}

func TestSees(t *testing.T) {
	tests := []struct {
		rule   Rule
		handle string
		want   bool
	}{
		{Rule{}, "files", true},
		{Rule{Allow: []string{}}, "files", false},
		{Rule{Allow: []string{"files/read"}}, "files", true},
		{Rule{Allow: []string{"files/read"}}, "file", false},
		{Rule{Allow: []string{"*/read"}}, "files", true},
		{Rule{Allow: []string{"f*d"}}, "files", true},
		{Rule{Allow: []string{"x*"}}, "files", false},
		{Rule{Allow: []string{"a/b/*"}}, "a/b", true},
		{Rule{Deny: []string{"files/*"}}, "files", false},
		{Rule{Deny: []string{"*"}}, "files", false},
		{Rule{Deny: []string{"*/delete_*"}}, "files", true},
	}
	for _, tt := range tests {
		if got := (Everyone{tt.rule}).Sees(bridge.Caller{}, tt.handle); got != tt.want {
			t.Errorf("%+v sees %q: %v, want %v", tt.rule, tt.handle, got, tt.want)
		}
	}
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, other := bridge.Caller{User: "a"}, bridge.Caller{User: "b"}
		b := NewBudget(func(bridge.Caller) Limits { return Limits{PerSecond: 2, Burst: 3, Concurrent: 2} })
		spend := func(c bridge.Caller) func() {
			t.Helper()
			release, err := b.Spend(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		refused := func(c bridge.Caller, retry time.Duration) {
			t.Helper()
			_, err := b.Spend(t.Context(), c)
			if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.RateLimited || e.RetryAfter != retry {
				t.Errorf("err = %v, want rate-limited for %v", err, retry)
			}
		}
		first, second := spend(a), spend(a)
		refused(a, time.Second) // two run already; that costs no token
		spend(other)()          // which is no one else's business
		first()
		first() // must be harmless
		spend(a)()
		refused(a, 500*time.Millisecond) // three were spent
		time.Sleep(500 * time.Millisecond)
		spend(a)()
		second()
		time.Sleep(time.Hour)
		for range 3 {
			spend(a)()
		}
		refused(a, 500*time.Millisecond)
		time.Sleep(time.Hour)
		spend(other)()
		if len(b.purses) != 1 {
			t.Errorf("%d purses are kept, want that of the last caller alone", len(b.purses))
		}
	})
}

func TestNoBudget(t *testing.T) {
	b := NewBudget(func(bridge.Caller) Limits { return Limits{} })
	for range 1000 {
		if _, err := b.Spend(t.Context(), bridge.Caller{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.purses) != 0 {
		t.Error("callers without bounds are kept")
	}
}
