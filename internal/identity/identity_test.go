package identity

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

func TestRules(t *testing.T) {
	tests := []struct {
		name         string
		rule         bridge.Rule
		handle, tool string
		want         bool
	}{
		{"no rule", bridge.Rule{}, "files", "read", true},
		{"an empty allow list", bridge.Rule{Allow: []string{}}, "files", "read", false},
		{"allowed", bridge.Rule{Allow: []string{"files/*"}}, "files", "a/b", true},
		{"another server", bridge.Rule{Allow: []string{"files/*"}}, "search", "read", false},
		{"the built-in server", bridge.Rule{}, "bridge", "x", false},
		{"the built-in server is not in a star", bridge.Rule{Allow: []string{"*", "*/x", "b*"}}, "bridge", "x", false},
		{"the built-in server by its name", bridge.Rule{Allow: []string{"bridge/*"}}, "bridge", "x", true},
		{"denied", bridge.Rule{Allow: []string{"*"}, Deny: []string{"*/delete_*"}}, "files", "delete_all", false},
	}
	for _, tt := range tests {
		if got := (Rules{}).Allows(bridge.Caller{Rule: &tt.rule}, tt.handle, tt.tool); got != tt.want {
			t.Errorf("%s: Allows(%s/%s) = %v, want %v", tt.name, tt.handle, tt.tool, got, tt.want)
		}
	}
}

func TestSees(t *testing.T) {
	tests := []struct {
		rule   bridge.Rule
		handle string
		want   bool
	}{
		{bridge.Rule{}, "files", true},
		{bridge.Rule{}, "bridge", false},
		{bridge.Rule{Allow: []string{"*"}}, "bridge", false},
		{bridge.Rule{Allow: []string{"bridge/*"}}, "bridge", true},
		{bridge.Rule{Allow: []string{}}, "files", false},
		{bridge.Rule{Allow: []string{"files/read"}}, "files", true},
		{bridge.Rule{Allow: []string{"files/read"}}, "file", false},
		{bridge.Rule{Allow: []string{"*/read"}}, "files", true},
		{bridge.Rule{Allow: []string{"f*d"}}, "files", true},
		{bridge.Rule{Allow: []string{"x*"}}, "files", false},
		{bridge.Rule{Allow: []string{"a/b/*"}}, "a/b", true},
		{bridge.Rule{Deny: []string{"files/*"}}, "files", false},
		{bridge.Rule{Deny: []string{"*"}}, "files", false},
		{bridge.Rule{Deny: []string{"*/delete_*"}}, "files", true},
	}
	for _, tt := range tests {
		if got := (Rules{}).Sees(bridge.Caller{Rule: &tt.rule}, tt.handle); got != tt.want {
			t.Errorf("%+v sees %q: %v, want %v", tt.rule, tt.handle, got, tt.want)
		}
	}
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := &bridge.Rule{Limits: bridge.Limits{PerSecond: 2, Burst: 3, Concurrent: 2}}
		a, other := bridge.Caller{User: "a", Rule: rule}, bridge.Caller{User: "b", Rule: rule}
		b := NewBudget()
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
	b := NewBudget()
	for range 1000 {
		if _, err := b.Spend(t.Context(), bridge.Caller{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.purses) != 0 {
		t.Error("callers without bounds are kept")
	}
}

func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		c := bridge.Caller{Rule: &bridge.Rule{Limits: bridge.Limits{PerSecond: 2, Burst: 4}}}
		want := func(left int, reset time.Duration) {
			t.Helper()
			if got, ok := b.Allowance(c); !ok || got != (Allowance{Burst: 4, Full: 2 * time.Second, Left: left, Reset: reset}) {
				t.Errorf("allowance %+v %t, want %d left, reset in %v", got, ok, left, reset)
			}
		}
		want(4, 0)
		for range 3 {
			if _, err := b.Spend(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		want(1, 1500*time.Millisecond)
		if _, err := b.Spend(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		want(0, 500*time.Millisecond)
		time.Sleep(time.Second)
		want(2, time.Second)
		for _, none := range []*bridge.Rule{nil, {}, {Limits: bridge.Limits{Concurrent: 1}}} {
			if a, ok := b.Allowance(bridge.Caller{Rule: none}); ok {
				t.Errorf("%+v has the allowance %+v", none, a)
			}
		}
	})
}
