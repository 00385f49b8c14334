package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// circuitLog writes down what a pool tells its circuit.
type circuitLog struct {
	mu  sync.Mutex
	log []string
}

func (c *circuitLog) ConnectFailed(e bridge.EndpointID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%s failed %s", e.Label, bridge.KindOf(err)))
}

func (c *circuitLog) Connected(e bridge.EndpointID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, e.Label+" connected")
}

func newTestPool(t *testing.T, o PoolOptions, servers ...*fakeServer) *Pool {
	t.Helper()
	if o.Circuit == nil {
		o.Circuit = noCircuit{}
	}
	p := NewPool(o)
	for _, s := range servers {
		p.Attach(s, rpc.Options{}, func(*Client) {})
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// 20 callers who find a dead client cause one reconnect, and all 20 succeed.
func TestOneConnectForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", connect: func(context.Context) error { time.Sleep(time.Second); return nil }}
		p := newTestPool(t, PoolOptions{}, s)
		round := func() {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := p.client(t.Context(), s.ID()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		round()
		s.last().Close()
		round()
		if got := s.connects.Load(); got != 2 {
			t.Errorf("connects = %d, want 2", got)
		}
	})
}

// The caller that began an attempt may go away; those who wait for it do not suffer.
func TestAttemptOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", connect: func(context.Context) error { time.Sleep(10 * time.Second); return nil }}
		p := newTestPool(t, PoolOptions{}, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error, 1)
		go func() { _, err := p.client(ctx, s.ID()); first <- err }()
		synctest.Wait()
		if _, err := p.client(t.Context(), s.ID()); err != nil {
			t.Error(err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first caller got %v, want its own deadline", err)
		}
		if got := s.connects.Load(); got != 1 {
			t.Errorf("connects = %d, want 1", got)
		}
	})
}

// Servers that hang give up their turns, so that others are connected meanwhile.
func TestHangingConnectsGiveUpTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hanging []*fakeServer
		for i := range 3 {
			hanging = append(hanging, &fakeServer{name: fmt.Sprintf("h%d", i), connect: hang})
		}
		good := &fakeServer{name: "good"}
		p := newTestPool(t, PoolOptions{Connects: 2}, append(hanging, good)...)
		for _, h := range hanging {
			go func() { _, _ = p.client(t.Context(), h.ID()) }()
		}
		synctest.Wait()
		start := time.Now()
		if _, err := p.client(t.Context(), good.ID()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got > 2*connectSilence {
			t.Errorf("waited %v behind servers that hang", got)
		}
	})
}

func TestPoolTellsTheCircuit(t *testing.T) {
	log := &circuitLog{}
	up, down := &fakeServer{name: "up"}, &fakeServer{name: "down", connect: refuse("no such command")}
	p := newTestPool(t, PoolOptions{Circuit: log}, up, down)
	if _, err := p.client(t.Context(), up.ID()); err != nil {
		t.Error(err)
	}
	_, err := p.client(t.Context(), down.ID())
	if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.Unavailable || !e.Fault {
		t.Errorf("err = %v, want server-unavailable that counts", err)
	}
	want := []string{"mcp:up connected", "mcp:down failed server-unavailable"}
	if fmt.Sprint(log.log) != fmt.Sprint(want) {
		t.Errorf("circuit was told %q, want %q", log.log, want)
	}
	if _, err := p.client(t.Context(), (&fakeServer{name: "unknown"}).ID()); bridge.KindOf(err) != bridge.Unavailable {
		t.Errorf("an endpoint that is not attached: err = %v", err)
	}
}

func TestCloseEndsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &circuitLog{}
		s, live := &fakeServer{name: "s", connect: hang}, &fakeServer{name: "live"}
		p := newTestPool(t, PoolOptions{Circuit: log}, s, live)
		if _, err := p.client(t.Context(), live.ID()); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { _, err := p.client(t.Context(), s.ID()); got <- err }()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; bridge.KindOf(err) != bridge.Unavailable {
			t.Errorf("the waiting caller got %v, want server-unavailable", err)
		}
		if len(log.log) != 1 {
			t.Errorf("stopping was taken for a failure of the server: %q", log.log)
		}
		select {
		case <-live.last().Done():
		default:
			t.Error("a client is still open")
		}
		if _, err := p.client(t.Context(), live.ID()); bridge.KindOf(err) != bridge.Unavailable {
			t.Errorf("a closed pool gave a client: %v", err)
		}
	})
}
