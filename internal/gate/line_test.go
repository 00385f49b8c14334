package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

// account i of the tests: even ones are slots, odd ones rates.
func testAccount(i int) bridge.Account {
	k := bridge.EndpointSlots
	if i%2 == 1 {
		k = bridge.EndpointRate
	}
	return bridge.Account{Kind: k, Endpoint: bridge.EndpointID{Sum: [32]byte{byte(i)}, Label: string(rune('a' + i))}}
}

func need(i, amount, capacity int, rate float64) bridge.Need {
	return bridge.Need{Account: testAccount(i), Amount: amount, Capacity: capacity, Rate: rate}
}

// in runs Admit in the background and returns where its release, or nil for a refusal, arrives.
func in(ctx context.Context, a *Admission, c bridge.Caller, d bridge.Demand) <-chan func() {
	ch := make(chan func(), 1)
	go func() {
		release, err := a.Admit(ctx, c, d, 0)
		if err != nil {
			release = nil
		}
		ch <- release
	}()
	synctest.Wait()
	return ch
}

func granted(ch <-chan func()) func() {
	select {
	case f := <-ch:
		return f
	default:
		return nil
	}
}

// Behind a head that waits for one account, calls pass that do not need what it waits for.
func TestBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Hour})
		hold := granted(in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(0, 1, 2, 0)}))
		head := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(0, 2, 2, 0), need(2, 1, 2, 0)})
		small := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(0, 1, 2, 0)})     // would fit, and delay the head
		other := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(2, 1, 2, 0)})     // fits beside the head's amount
		third := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(2, 1, 2, 0)})     // would take the head's
		elsewhere := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(4, 1, 1, 0)}) // nothing to do with it
		if granted(head) != nil || granted(small) != nil || granted(third) != nil {
			t.Error("somebody was admitted who had to wait")
		}
		o, e := granted(other), granted(elsewhere)
		if o == nil || e == nil {
			t.Fatal("a call was held up by a head that does not need its account")
		}
		hold()
		synctest.Wait()
		h := granted(head)
		if h == nil {
			t.Fatal("the head was not admitted when its slots were free")
		}
		if granted(small) != nil || granted(third) != nil {
			t.Error("admitted although nothing was left")
		}
		h()
		o()
		e()
		synctest.Wait()
		for _, ch := range []<-chan func(){small, third} {
			if f := granted(ch); f == nil {
				t.Error("forgotten in line")
			} else {
				f()
			}
		}
		wantEmpty(t, a)
	})
}

// While the head is short of a rate, nobody behind takes from that, and the head
// goes at the very moment at which its tokens are there.
func TestRateIsClosedBehindShortHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Hour})
		rate := func(n int) bridge.Demand { return bridge.Demand{need(1, n, 4, 1)} } // one a second
		granted(in(t.Context(), a, bridge.Caller{}, rate(3)))()                      // spent for good
		start := time.Now()
		head := in(t.Context(), a, bridge.Caller{}, rate(4))
		behind := in(t.Context(), a, bridge.Caller{}, rate(1))
		time.Sleep(3*time.Second - time.Nanosecond)
		synctest.Wait()
		if granted(head) != nil || granted(behind) != nil {
			t.Fatal("admitted before its tokens were there")
		}
		h := <-head
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("the head waited %v, want exactly 3s", got)
		}
		b := <-behind
		if got := time.Since(start); got != 4*time.Second {
			t.Errorf("the one behind waited %v, want exactly 4s", got)
		}
		h()
		b()
		wantEmpty(t, a)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Hour})
		hold := granted(in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(0, 1, 1, 0)}))
		waiting := in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(0, 1, 1, 0)})
		a.Close()
		if f := <-waiting; f != nil {
			t.Error("admitted by a closed gate")
		}
		if f := <-in(t.Context(), a, bridge.Caller{}, bridge.Demand{need(2, 1, 1, 0)}); f != nil {
			t.Error("a closed gate admits")
		}
		hold()
		wantEmpty(t, a)
	})
}

func TestForget(t *testing.T) {
	a := New(Options{})
	release, err := a.Admit(t.Context(), bridge.Caller{}, bridge.Demand{need(0, 1, 1, 0), need(2, 1, 1, 0)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := testAccount(0).Endpoint
	a.Forget(e)
	if len(a.Stats().Accounts) != 2 {
		t.Error("an account in use was forgotten")
	}
	release()
	a.Forget(e)
	if s := a.Stats(); len(s.Accounts) != 1 || s.Accounts[0].Account != testAccount(2) {
		t.Errorf("accounts = %+v, want the other one alone", s.Accounts)
	}
}

// Random demands, releases, cancellations and clocks. In every state: no account
// is over its capacity; nobody in line could go without delaying the head; and in
// the end everything is back.
func TestAdmissionProperties(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { randomAdmission(t, seed) })
	}
}

func randomAdmission(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	a := New(Options{MaxWait: 20 * time.Second, MaxWaiting: 40, MaxWaitingPerCaller: 20})
	capacity := [6]int{2, 3, 5, 10, 1, 4}
	rate := [6]float64{0, 2, 0, 0.7, 0, 5}
	type running struct {
		release func()
		demand  bridge.Demand
	}
	results := make(chan running, 10000)
	var active []running
	var cancels []context.CancelFunc
	used := map[bridge.Account]int{}
	collect := func() {
		synctest.Wait()
		for {
			select {
			case g := <-results:
				active = append(active, g)
				for _, n := range g.demand {
					used[n.Account] += n.Amount
					if n.Account.Kind == bridge.EndpointSlots && used[n.Account] > n.Capacity {
						t.Fatalf("seed %d: %s has %d of %d in use", seed, n.Account.Label(), used[n.Account], n.Capacity)
					}
				}
			default:
				return
			}
		}
	}
	for range 300 {
		switch r.IntN(6) {
		case 0, 1, 2:
			var d bridge.Demand
			for _, i := range r.Perm(6)[:1+r.IntN(3)] {
				d = append(d, need(i, 1+r.IntN(capacity[i]), capacity[i], rate[i]))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			caller := bridge.Caller{User: string(rune('a' + r.IntN(3)))}
			go func() {
				release, err := a.Admit(ctx, caller, d, 0)
				switch {
				case err == nil:
					results <- running{release, d}
				case !errors.Is(err, context.Canceled) && bridge.KindOf(err) != bridge.Overloaded:
					t.Errorf("seed %d: %v", seed, err)
				}
			}()
		case 3:
			if len(active) > 0 {
				i := r.IntN(len(active))
				g := active[i]
				active = append(active[:i], active[i+1:]...)
				for _, n := range g.demand {
					used[n.Account] -= n.Amount
				}
				g.release()
				if r.IntN(2) == 0 {
					g.release()
				}
			}
		case 4:
			if len(cancels) > 0 {
				cancels[r.IntN(len(cancels))]()
			}
		case 5:
			time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		}
		collect()
		checkLine(t, seed, a)
	}
	for len(active) > 0 {
		for _, g := range active {
			g.release()
		}
		active, used = nil, map[bridge.Account]int{}
		collect()
	}
	time.Sleep(time.Minute) // whoever still waits for a rate gets it, or gives up
	collect()
	for _, g := range active {
		g.release()
	}
	for _, c := range cancels {
		c()
	}
	synctest.Wait()
	wantEmpty(t, a)
}

// checkLine demands that the head cannot go now (no wake-up was lost), and that
// nobody behind could go without delaying it.
func checkLine(t *testing.T, seed uint64, a *Admission) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for w := range a.line.all() {
		if fits(w.grant, a.line.ahead(w), now) {
			t.Fatalf("seed %d: somebody waits who could go", seed)
		}
	}
	for k, acc := range a.accounts {
		if left := acc.left(now); left < 0 {
			t.Fatalf("seed %d: %s is overdrawn by %d", seed, k.Label(), -left)
		}
	}
}

// Uncontended, a grant is all that admission costs.
// A capacity that a reload has raised lets those go who waited for it, though the call that brings the news needs something else too.
func TestRaisedCapacityWakesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		admit := func(d bridge.Demand) func() {
			release, err := a.Admit(t.Context(), bridge.Caller{}, d, 0)
			if err != nil {
				t.Error(err)
			}
			return release
		}
		// The head waits for account 4; behind it somebody waits for account 0.
		first, second := admit(bridge.Demand{need(0, 1, 1, 0)}), admit(bridge.Demand{need(4, 1, 1, 0)})
		var wg sync.WaitGroup
		went := make(chan int, 2)
		for _, n := range []int{4, 0} {
			wg.Go(func() {
				admit(bridge.Demand{need(n, 1, 1, 0)})()
				went <- n
			})
			synctest.Wait()
		}
		admit(bridge.Demand{need(0, 1, 3, 0)})()
		synctest.Wait()
		select {
		case n := <-went:
			if n != 0 {
				t.Errorf("who waits for account %d went first", n)
			}
		default:
			t.Error("nobody went when the capacity was raised")
		}
		first()
		second()
		wg.Wait()
	})
}

func BenchmarkAdmit(b *testing.B) {
	a := New(Options{})
	d := bridge.Demand{need(0, 1, 10, 0), {Account: bridge.Account{Kind: bridge.StdioSlots}, Amount: 1, Capacity: 20}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		release, err := a.Admit(ctx, bridge.Caller{}, d, 0)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// A release with 10,000 calls in line, none of which can go.
func BenchmarkReleaseWithLine(b *testing.B) {
	const n = 10000
	a := New(Options{MaxWait: time.Hour, MaxWaiting: n + 1, MaxWaitingPerCaller: n + 1})
	hold, err := a.Admit(b.Context(), bridge.Caller{}, bridge.Demand{need(0, 1, 1, 0)}, 0)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{}, n)
	for range n {
		go func() {
			_, _ = a.Admit(ctx, bridge.Caller{}, bridge.Demand{need(0, 1, 1, 0), need(2, 1, 20, 0)}, 0)
			done <- struct{}{}
		}()
	}
	for a.Stats().Waiting < n {
		time.Sleep(time.Millisecond)
	}
	other := bridge.Demand{need(4, 1, 10, 0)}
	for b.Loop() {
		release, err := a.Admit(ctx, bridge.Caller{}, other, 0)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
	cancel()
	hold()
	for range n {
		<-done
	}
}
