package gate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

var (
	pool = bridge.Account{Kind: bridge.StdioSlots}
	one  = bridge.Account{Kind: bridge.EndpointSlots, Endpoint: bridge.EndpointID{Label: "mcp:one"}}
	two  = bridge.Account{Kind: bridge.EndpointSlots, Endpoint: bridge.EndpointID{Sum: [32]byte{1}, Label: "mcp:two"}}
)

func demand(a bridge.Account) bridge.Demand {
	return bridge.Demand{{Account: a, Amount: 1, Capacity: 1}, {Account: pool, Amount: 1, Capacity: 2}}
}

func inUse(a *Admission) map[string]int {
	m := map[string]int{}
	for _, s := range a.Stats().Accounts {
		m[s.Account.Label()] += s.InUse
	}
	return m
}

// wantEmpty demands that no slot, place in line or account's user is left.
func wantEmpty(t *testing.T, a *Admission) {
	t.Helper()
	s := a.Stats()
	for _, acc := range s.Accounts {
		if acc.Account.Kind != bridge.EndpointRate && acc.InUse != 0 || acc.Waiting != 0 {
			t.Errorf("%s: %d in use, %d waiting; want none", acc.Account.Label(), acc.InUse, acc.Waiting)
		}
		if n := a.accounts[acc.Account].users; n != 0 {
			t.Errorf("%s has %d users left", acc.Account.Label(), n)
		}
	}
	if s.Waiting != 0 || len(a.perCaller) != 0 || a.line.first != nil || a.line.last != nil || a.metered != 0 {
		t.Errorf("left in line: %+v, per caller %v", a.line, a.perCaller)
	}
}

func wantOverloaded(t *testing.T, err error, short ...string) {
	t.Helper()
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok || e.Kind != bridge.Overloaded {
		t.Fatalf("err = %v, want kind overloaded", err)
	}
	if diff := cmp.Diff(short, e.Members["short"]); diff != "" {
		t.Errorf("short (-want +got):\n%s", diff)
	}
}

func TestAdmitWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Minute})
		release, err := a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan func())
		go func() {
			r, err := a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
			if err != nil {
				t.Error(err)
			}
			granted <- r
		}()
		synctest.Wait()
		select {
		case <-granted:
			t.Fatal("a second call was admitted to an account of one slot")
		default:
		}
		release()
		release() // must be harmless
		second := <-granted
		if got := inUse(a)["mcp:stdio"]; got != 1 {
			t.Errorf("slots of the pool in use = %d, want 1", got)
		}
		second()
		wantEmpty(t, a)
	})
}

func TestAdmitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Minute})
		release, err := a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
		wantOverloaded(t, err, "mcp:one")
		if got := time.Since(start); got != time.Minute {
			t.Errorf("waited %v, want exactly 1m", got)
		}
		start = time.Now()
		_, err = a.Admit(t.Context(), bridge.Caller{}, demand(one), time.Hour)
		wantOverloaded(t, err, "mcp:one")
		if got := time.Since(start); got != time.Hour || !strings.Contains(err.Error(), "within 1h0m0s") {
			t.Errorf("waited %v, want exactly an hour: %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Admit(ctx, bridge.Caller{}, demand(one), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Admit with a deadline = %v, want the context's error", err)
		}
		release()
		wantEmpty(t, a)
	})
}

// A waiter that gives up may be all that those behind it waited for.
func TestLeavingTheHeadWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Hour})
		hold, err := a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer hold()
		ctx, cancel := context.WithCancel(t.Context())
		head := make(chan error)
		go func() {
			_, err := a.Admit(ctx, bridge.Caller{}, demand(one), 0)
			head <- err
		}()
		synctest.Wait()
		next := make(chan error)
		go func() {
			r, err := a.Admit(t.Context(), bridge.Caller{}, demand(two), 0)
			if err == nil {
				r()
			}
			next <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-head; !errors.Is(err, context.Canceled) {
			t.Errorf("the head left with %v, want context.Canceled", err)
		}
		if err := <-next; err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWaiting: 2, MaxWaitingPerCaller: 1})
		hold, err := a.Admit(t.Context(), bridge.Caller{}, demand(one), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer hold()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, user := range []string{"a", "b"} {
			go func() { _, _ = a.Admit(ctx, bridge.Caller{User: user}, demand(one), 0) }()
			synctest.Wait()
			if user == "a" { // its second call is over its own bound
				_, err := a.Admit(ctx, bridge.Caller{User: user}, demand(one), 0)
				wantOverloaded(t, err, "mcp:one", "mcp:stdio")
			}
		}
		_, err = a.Admit(ctx, bridge.Caller{User: "c"}, demand(two), 0)
		wantOverloaded(t, err, "mcp:stdio") // its last slot is set aside for the head
	})
}

func TestDemandOverCapacity(t *testing.T) {
	a := New(Options{})
	_, err := a.Admit(t.Context(), bridge.Caller{}, bridge.Demand{{Account: one, Amount: 2, Capacity: 1}}, 0)
	wantOverloaded(t, err, "mcp:one")
}
