package gate

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

// The head of the line is admitted at the very moment at which it would be if
// nobody had come after it.
func TestHeadIsNeverDelayed(t *testing.T) {
	waiting := 0
	for seed := range uint64(200) {
		alone := headWaits(t, seed, 0)
		crowded := headWaits(t, seed, 30)
		// A level that is filled in other steps is rounded otherwise.
		if (alone - crowded).Abs() > time.Microsecond {
			t.Fatalf("seed %d: the head waits %v alone, and %v with others behind it", seed, alone, crowded)
		}
		if alone > 0 {
			waiting++
		}
	}
	if waiting < 50 {
		t.Errorf("the head waited in %d of 200 rounds; the others prove nothing", waiting)
	}
}

// headWaits returns how long a random head waits behind random calls that run for
// random times, when so many random calls come after it.
func headWaits(t *testing.T, seed uint64, followers int) (waited time.Duration) {
	capacity := [6]int{2, 3, 5, 10, 1, 4}
	rate := [6]float64{0, 2, 0, 0.7, 0, 5}
	random := func(r *rand.Rand) bridge.Demand {
		var d bridge.Demand
		for _, i := range r.Perm(6)[:1+r.IntN(3)] {
			d = append(d, need(i, 1+r.IntN(capacity[i]), capacity[i], rate[i]))
		}
		return d
	}
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{MaxWait: time.Hour})
		run := func(d bridge.Demand, hold time.Duration) {
			release, err := a.Admit(t.Context(), bridge.Caller{}, d, 0)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(hold)
			release()
		}
		r := rand.New(rand.NewPCG(seed, 1))
		for range 4 { // those ahead: each takes what is free, or leaves the line to the head
			d, hold := random(r), time.Duration(r.Int64N(int64(5*time.Second)))
			a.mu.Lock()
			g := a.grantLocked(d)
			ok := fits(g, nil, time.Now())
			a.dropLocked(g)
			a.mu.Unlock()
			if ok {
				go run(d, hold)
				synctest.Wait()
			}
		}
		d := random(r)
		start := time.Now()
		admitted := make(chan struct{})
		go func() {
			release, err := a.Admit(t.Context(), bridge.Caller{}, d, 0)
			if err != nil {
				t.Error(err)
			} else {
				waited = time.Since(start)
				defer release()
			}
			close(admitted)
		}()
		synctest.Wait()
		for range followers {
			go run(random(r), time.Duration(r.Int64N(int64(time.Minute))))
			time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
		}
		<-admitted
		time.Sleep(2 * time.Hour) // everybody behind has had a turn
		wantEmpty(t, a)
	})
	return waited
}
