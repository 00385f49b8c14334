package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// A fakeGranter gives the tokens t1, t2, … of a life, after a time.
type fakeGranter struct {
	life, takes time.Duration

	wg     sync.WaitGroup
	ctx    context.Context
	mu     sync.Mutex
	asked  int
	err    error // given in place of tokens
	refuse error // of spawn
	doors  []*door
	heard  []*challenge
}

func (g *fakeGranter) spawn(f func()) error {
	if g.refuse != nil {
		return g.refuse
	}
	g.wg.Go(f)
	return nil
}

func (g *fakeGranter) over() bool { return g.ctx.Err() != nil }

func (g *fakeGranter) obtain(_ *Tokens, d *door, ch *challenge) (*token, *door, error) {
	select {
	case <-time.After(g.takes):
	case <-g.ctx.Done():
		return nil, nil, errors.New("cut off")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	g.doors, g.heard = append(g.doors, d), append(g.heard, ch)
	if g.err != nil {
		return nil, nil, g.err
	}
	return newToken(fmt.Sprintf("t%d", g.asked), g.life), &door{issuer: "x"}, nil
}

func granted(t *testing.T, tokens *Tokens, g *fakeGranter, want string) *token {
	t.Helper()
	tok, err := tokens.get(t.Context(), g)
	if err != nil || tok.text != want {
		t.Fatalf("get = %+v, %v, want %s", tok, err, want)
	}
	return tok
}

func newFake(t *testing.T, life, takes time.Duration) (*Tokens, *fakeGranter) {
	t.Helper()
	return tokensOf(t, Credential{ClientID: "c", ClientSecret: "secret"}), &fakeGranter{life: life, takes: takes, ctx: t.Context()}
}

// 50 callers who find that the token has expired cause one request for another.
func TestExpiredUnderCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, time.Hour, time.Second)
		granted(t, tokens, g, "t1")
		time.Sleep(time.Hour)
		for range 50 {
			g.wg.Go(func() {
				if tok, err := tokens.get(t.Context(), g); err != nil || tok.text != "t2" {
					t.Errorf("get = %+v, %v, want t2", tok, err)
				}
			})
		}
		began := time.Now()
		g.wg.Wait()
		if d := time.Since(began); d != time.Second || g.asked != 2 {
			t.Errorf("%d requests in %s, want the second alone, of a second", g.asked, d)
		}
	})
}

// A token is renewed before it expires, and nobody waits for that.
func TestRenewedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, time.Hour, time.Second)
		granted(t, tokens, g, "t1")
		time.Sleep(time.Hour - renewAhead - 2*time.Second)
		granted(t, tokens, g, "t1")
		synctest.Wait()
		if g.asked != 1 {
			t.Errorf("%d requests a good while before the token expires, want no second one", g.asked)
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		granted(t, tokens, g, "t1")
		granted(t, tokens, g, "t1")
		if d := time.Since(began); d != 0 {
			t.Errorf("the renewal was waited for: %s", d)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		granted(t, tokens, g, "t2")
		if g.asked != 2 || g.doors[1] == nil {
			t.Errorf("%d requests, the second at %v; want one renewal, at the door that was known", g.asked, g.doors[1])
		}
		g.wg.Wait()
	})
}

// A renewal that fails is not repeated at once; when the token has expired, its error counts.
func TestRenewalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, time.Hour, 0)
		granted(t, tokens, g, "t1")
		g.err = &rpc.Failure{Reason: rpc.Start, Msg: "down"}
		time.Sleep(time.Hour - renewAhead)
		for range 10 * 50 { // for 50 s
			granted(t, tokens, g, "t1")
			time.Sleep(100 * time.Millisecond)
		}
		if g.asked != 6 {
			t.Errorf("%d requests within 50 s, want one in %s", g.asked, renewPause)
		}
		time.Sleep(time.Minute)
		if _, err := tokens.get(t.Context(), g); !errors.Is(err, g.err) {
			t.Errorf("get = %v, want %v", err, g.err)
		}
		g.wg.Wait()
		if g.doors[len(g.doors)-1] != nil {
			t.Error("the door that failed is used again without another look")
		}
	})
}

// A token that was refused is not used again, and what the server said is heard; a late
// refusal of an old one changes nothing.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, 0, 0)
		first := granted(t, tokens, g, "t1")
		time.Sleep(1000 * time.Hour)
		granted(t, tokens, g, "t1") // its life is not known
		said := &challenge{metadata: "x"}
		tokens.refused(first, said)
		if tokens.latest() != nil {
			t.Error("a token that was refused is there still")
		}
		granted(t, tokens, g, "t2")
		tokens.refused(first, said)
		granted(t, tokens, g, "t2")
		g.wg.Wait()
		if g.asked != 2 || g.heard[1] != said || g.doors[1] != nil {
			t.Errorf("%d requests, the second with %v at %v; want it with the challenge and a new look", g.asked, g.heard[1], g.doors[1])
		}
	})
}

// Whoever waits may go away, and the connection that asks may end: neither harms the others.
func TestGrantOutlivesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, time.Hour, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := tokens.get(ctx, g); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("get = %v, want the context's own", err)
		}
		granted(t, tokens, g, "t1")
		if g.asked != 1 {
			t.Errorf("%d requests, want the one that was begun", g.asked)
		}

		tokens, g = newFake(t, time.Hour, time.Second)
		var end context.CancelFunc
		g.ctx, end = context.WithCancel(t.Context())
		other := &fakeGranter{life: time.Hour, takes: time.Second, ctx: t.Context()}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := tokens.get(t.Context(), g); !errors.Is(err, errGrantOver) {
				t.Errorf("get = %v, want %v", err, errGrantOver)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if tok, err := tokens.get(t.Context(), other); err != nil || tok.text != "t1" {
				t.Errorf("get = %+v, %v, want t1", tok, err)
			}
		})
		synctest.Wait()
		end()
		all.Wait()
		if g.asked != 0 || other.asked != 1 {
			t.Errorf("%d and %d requests, want the other connection's", g.asked, other.asked)
		}
		g.wg.Wait()
		other.wg.Wait()

		g.refuse = errClosed
		tokens.refused(tokens.latest(), nil)
		if _, err := tokens.get(t.Context(), g); !errors.Is(err, errClosed) {
			t.Errorf("get = %v, want %v", err, errClosed)
		}
	})
}

// Only so many of the latest tokens are remembered, to be hidden.
func TestShownTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, g := newFake(t, 0, 0)
		r := redaction{tokens: tokens}
		for i := range 3 * shownTokens {
			tok := granted(t, tokens, g, fmt.Sprintf("t%d", i+1))
			tok.text += "-long enough"
			tokens.refused(tok, nil)
		}
		g.wg.Wait()
		if got := len(tokens.shown); got != shownTokens {
			t.Errorf("%d tokens are remembered, want %d", got, shownTokens)
		}
		if got := r.Text("secret of c"); got != "[secret] of c" {
			t.Errorf("shown as %q", got)
		}
	})
}
