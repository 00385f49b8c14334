package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/redistest"
)

func newShared(t *testing.T, url string) (*Budget, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	b, err := NewSharedBudget(url, slog.New(slog.NewJSONHandler(&syncWriter{w: log}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := b.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	})
	return b, log
}

func limitedFor(err error) time.Duration {
	if e, ok := errors.AsType[*bridge.Error](err); ok && e.Kind == bridge.RateLimited {
		return e.RetryAfter
	}
	return 0
}

func TestSharedBudget(t *testing.T) {
	mcptest.NoLeaks(t)
	s := redistest.Start(t)
	one, _ := newShared(t, s.URL())
	two, _ := newShared(t, s.URL())
	for _, b := range []*Budget{one, two} {
		b.rates.(*sharedRates).timeout = time.Minute // a busy machine is no Redis that is away
	}
	rule := &bridge.Rule{Limits: bridge.Limits{PerSecond: 0.01, Burst: 10, Concurrent: 20}}
	eve := bridge.Caller{ID: "key", User: "eve\n*{x}", Tenant: "/../", Rule: rule}
	spent := 0
	for i := range 30 {
		b := one
		if i%2 == 1 {
			b = two
		}
		release, err := b.Spend(t.Context(), eve)
		switch wait := limitedFor(err); {
		case err == nil:
			spent++
			release()
		case wait <= 90*time.Second || wait > 100*time.Second:
			t.Errorf("refused with %v, for %v; want nearly the 100 s that a call takes to be free again", err, wait)
		}
	}
	if spent != 10 {
		t.Errorf("two bridges let %d calls pass, want 10 in all", spent)
	}
	for name, b := range map[string]*Budget{"one": one, "two": two} {
		if a, ok := b.Allowance(eve); !ok || a.Left != 0 || a.Burst != 10 || a.Full != 1000*time.Second || a.Reset < 90*time.Second || a.Reset > 100*time.Second {
			t.Errorf("%s: allowance %+v, %t", name, a, ok)
		}
		if p := b.purses[account{eve.ID, eve.Owner()}]; p.running != 0 {
			t.Errorf("%s: %d calls are counted, and none runs", name, p.running)
		}
	}
	other := eve
	other.User = "bob"
	if _, err := two.Spend(t.Context(), other); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	if a, _ := two.Allowance(other); a.Left != 9 {
		t.Errorf("somebody else has %d left, want 9", a.Left)
	}
	// Only the rate is in the Redis, under names that say nothing.
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer c.Close()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 2 || strings.ContainsAny(strings.Join(keys, ""), "\n*{}/") || strings.Contains(strings.Join(keys, ""), "eve") {
		t.Errorf("keys %q, %v", keys, err)
	}
	// No concurrency is shared, and none is asked for there.
	slow := bridge.Caller{ID: "slow", Rule: &bridge.Rule{Limits: bridge.Limits{Concurrent: 1}}}
	for _, b := range []*Budget{one, two} {
		if _, err := b.Spend(t.Context(), slow); err != nil {
			t.Error(err)
		}
		if _, err := b.Spend(t.Context(), slow); limitedFor(err) != time.Second {
			t.Errorf("a second call at a time: %v", err)
		}
	}
}

// A bridge whose own purse is empty does not ask; one that learns that others have
// spent what is shared does not ask again either.
func TestSharedBudgetIsNotAskedInVain(t *testing.T) {
	asked := 0
	b := NewBudget()
	b.rates = fakeRates(func() (float64, bool, bool) {
		asked++
		return -4, false, true
	})
	c := bridge.Caller{ID: "key", Rule: &bridge.Rule{Limits: bridge.Limits{PerSecond: 0.1, Burst: 5}}}
	for range 10 {
		if _, err := b.Spend(t.Context(), c); limitedFor(err) < 49*time.Second {
			t.Errorf("%v, want a refusal for 50 s", err)
		}
	}
	if asked != 1 {
		t.Errorf("the shared rates were asked %d times", asked)
	}
}

type fakeRates func() (float64, bool, bool)

func (f fakeRates) take(context.Context, account, bridge.Limits) (float64, bool, bool) {
	return f()
}
func (fakeRates) Close() error { return nil }

// While the Redis is gone each bridge counts for itself, says so once, and nobody waits for long.
func TestSharedBudgetWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	b, log := newShared(t, s.URL())
	messages := func() (all []string) {
		for line := range strings.Lines(log.String()) {
			var l struct{ Msg, Level string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			all = append(all, l.Level+" "+l.Msg)
		}
		return all
	}
	spend := func(user string, n int) (passed int) {
		c := bridge.Caller{ID: "key", User: user, Rule: &bridge.Rule{Limits: bridge.Limits{PerSecond: 0.001, Burst: 10}}}
		for range n {
			if _, err := b.Spend(t.Context(), c); err == nil {
				passed++
			}
		}
		return passed
	}
	if n := spend("a", 4); n != 4 {
		t.Fatalf("%d calls passed, want 4", n)
	}
	s.Kill()
	if n := spend("a", 20); n != 6 {
		t.Errorf("%d calls passed without the Redis, want the 6 that were left", n)
	}
	if got := messages(); len(got) != 1 || !strings.HasPrefix(got[0], "WARN the Redis") {
		t.Errorf("log %q, want one warning", got)
	}
	s.Restart(t)
	for end := time.Now().Add(30 * time.Second); len(messages()) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		spend(fmt.Sprint(time.Now().UnixNano()), 1)
	}
	if got := messages(); len(got) != 2 || !strings.HasPrefix(got[1], "INFO the rates of callers are shared again") {
		t.Errorf("log %q", got)
	}
}

// A Redis that takes connections and never answers costs one call a second a tenth of a second.
func TestSharedBudgetWithSilentRedis(t *testing.T) {
	mcptest.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, log := newShared(t, "redis://:hunter2@"+l.Addr().String())
	c := bridge.Caller{ID: "key", Rule: &bridge.Rule{Limits: bridge.Limits{PerSecond: 1000, Burst: 1000}}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Spend(gone, c); err != nil || log.Len() != 0 {
		t.Errorf("a caller that went away: %v, and the log has %q", err, log)
	}
	for range 1000 {
		if _, err := b.Spend(t.Context(), c); err != nil && limitedFor(err) == 0 {
			t.Fatal(err)
		}
	}
	if strings.Count(log.String(), "\n") != 1 || strings.Contains(log.String(), "hunter2") {
		t.Errorf("log %s", log)
	}
}

func TestSharedBudgetURL(t *testing.T) {
	for _, bad := range []string{"", "memory", "http://x", "redis://:hunter2@h:port", "redis://h?master_name=m&db=hunter2", "redis://h?addr=h:1&db=x"} {
		if b, err := NewSharedBudget(bad, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, %v", bad, b, err)
		}
	}
	for url, want := range map[string]string{
		"redis://u:p@h:1/2": "*redis.Client", "rediss://h:1": "*redis.Client", "redis://h:1?addr=h:2": "*redis.ClusterClient",
		"redis://h:1?master_name=m&addr=h:2": "*redis.Client",
	} {
		b, err := NewSharedBudget(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := fmt.Sprintf("%T", b.rates.(*sharedRates).client); got != want {
			t.Errorf("%s makes a %s, want a %s", url, got, want)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := NewBudget().Close(); err != nil {
		t.Error(err)
	}
}
