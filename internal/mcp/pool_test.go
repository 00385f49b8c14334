package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// circuitLog writes down what a pool tells its circuit.
type circuitLog struct {
	mu  sync.Mutex
	log []string
}

func (c *circuitLog) Open(bridge.EndpointID) error {
	return &bridge.Error{Kind: bridge.Unavailable, RetryAfter: time.Minute}
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

// deaf listens to nothing.
type deaf struct{}

func (deaf) handle() string { return "deaf" }
func (deaf) connected()     {}
func (deaf) listChanged()   {}

// client takes a client and gives it back at once.
func (p *Pool) client(ctx context.Context, id bridge.EndpointID) (*Client, error) {
	c, s, err := p.take(ctx, id)
	if err == nil {
		p.put(s, true)
	}
	return c, err
}

func newTestPool(t *testing.T, o PoolOptions, servers ...*fakeServer) *Pool {
	t.Helper()
	if o.Circuit == nil {
		o.Circuit = noCircuit{}
	}
	p := NewPool(o)
	for _, s := range servers {
		p.attach(s, rpc.Options{}, 0, deaf{})
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
	if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.Unavailable || !e.Fault || e.RetryAfter != time.Minute {
		t.Errorf("err = %v, want server-unavailable that counts, for the rest of the cool-down", err)
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

// A client that is idle is closed; one that was taken is not, however long it takes.
func TestReaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", process: true}
		p := newTestPool(t, PoolOptions{})
		p.attach(s, rpc.Options{}, 5*time.Minute, deaf{})
		_, slot, err := p.take(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		p.put(slot, true)
		time.Sleep(4 * time.Minute)
		if _, err := p.client(t.Context(), s.ID()); err != nil { // a call: it is used again
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if p.current(s.ID()) == nil || s.connects.Load() != 1 {
			t.Fatal("closed before it was idle for 5 minutes")
		}
		time.Sleep(7 * time.Minute)
		if p.current(s.ID()) != nil {
			t.Error("still open after 11 minutes without a call")
		}
		s.wantClosed(t)
		if p.processes != 0 {
			t.Errorf("%d processes are counted, want 0", p.processes)
		}
		if _, err := p.client(t.Context(), s.ID()); err != nil || s.connects.Load() != 2 {
			t.Errorf("err %v, connects %d; want a second process", err, s.connects.Load())
		}
	})
}

// Over the cap the process that has been idle for longest goes; with none idle, the call does.
func TestMaxProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &circuitLog{}
		var all []*fakeServer
		for i := range 4 {
			all = append(all, &fakeServer{name: fmt.Sprintf("s%d", i), process: true})
		}
		remote := &fakeServer{name: "remote"}
		p := newTestPool(t, PoolOptions{MaxProcesses: 2, Circuit: log}, append(all, remote)...)
		for _, s := range []*fakeServer{remote, all[0], all[1]} {
			if _, err := p.client(t.Context(), s.ID()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		_, zero, err := p.take(t.Context(), all[0].ID())
		if err != nil {
			t.Fatal(err)
		}
		_, two, err := p.take(t.Context(), all[2].ID()) // in the place of 1, which is idle
		if err != nil {
			t.Fatal(err)
		}
		all[1].wantClosed(t)
		_, err = p.client(t.Context(), all[3].ID())
		if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.Overloaded || fmt.Sprint(e.Members["short"]) != "[mcp:processes]" {
			t.Errorf("err = %v, want overloaded that names mcp:processes", err)
		}
		if p.processes != 2 || p.current(remote.ID()) == nil {
			t.Errorf("%d processes, remote client %v; want 2, and untouched", p.processes, p.current(remote.ID()))
		}
		want := PoolStats{Processes: 2, MaxProcesses: 2}
		for i, s := range append([]*fakeServer{remote}, all...) {
			e := EndpointStats{ID: s.ID(), Handles: []string{"deaf"}, Printed: s.name, Process: i > 0, Connected: i == 0 || i == 1 || i == 3}
			if i == 1 || i == 3 {
				e.Users = 1
			}
			want.Endpoints = append(want.Endpoints, e)
		}
		got := p.Stats()
		for i := range got.Endpoints {
			got.Endpoints[i].Used = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		p.put(zero, true)
		p.put(two, true)
		for _, entry := range log.log {
			if strings.Contains(entry, "failed") {
				t.Errorf("our own limit was taken for a failure of the server: %q", log.log)
			}
		}
	})
}

// Calls under way are waited for when their endpoint goes, but not for ever.
func TestDetachDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s"}
		p := newTestPool(t, PoolOptions{}, s)
		c, slot, err := p.take(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			p.detach(ctx, s.ID(), deaf{})
			close(gone)
		}()
		time.Sleep(5 * time.Second)
		if !c.Connected() {
			t.Error("closed under a call")
		}
		_, err = p.client(t.Context(), s.ID())
		if e, ok := errors.AsType[*bridge.Error](err); !ok || e.Kind != bridge.Unavailable || !e.Gone {
			t.Errorf("a new call of an endpoint that is going: err = %v, want one that has it found again", err)
		}
		p.put(slot, true)
		<-gone
		s.wantClosed(t)

		hung := &fakeServer{name: "hung"}
		p.attach(hung, rpc.Options{}, 0, deaf{})
		if _, _, err := p.take(t.Context(), hung.ID()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p.detach(ctx, hung.ID(), deaf{})
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("waited %v for a call that does not end, want exactly 10s", got)
		}
		hung.wantClosed(t)
	})
}

// An endpoint that goes while it is being connected leaves no client.
func TestDetachWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", connect: func(context.Context) error { time.Sleep(time.Second); return nil }}
		p := newTestPool(t, PoolOptions{}, s)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.client(ctx, s.ID()) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		p.detach(t.Context(), s.ID(), deaf{})
		time.Sleep(time.Minute)
		s.wantClosed(t)
	})
}

// An attempt that nobody wants any more ends, with the process that it has started;
// who waits for it learns that the server is gone, and looks for another.
func TestDetachEndsAttempts(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	s := &fakeServer{name: "silent", process: true, connect: func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}}
	p := NewPool(PoolOptions{Circuit: failsIfTold{t}})
	defer func() { _ = p.Close() }()
	l := deaf{}
	id := p.attach(s, rpc.Options{}, 0, l)
	waits := make(chan error, 1)
	go func() {
		_, _, err := p.Client(t.Context(), &bridge.Target{Endpoint: id})
		waits <- err
	}()
	<-began
	p.detach(t.Context(), id, l)
	if err := <-ended; err == nil {
		t.Error("the attempt goes on")
	}
	if e, ok := errors.AsType[*bridge.Error](<-waits); !ok || !e.Gone {
		t.Errorf("who waited got %v, want to be told that the server is gone", e)
	}
}

// failsIfTold is a circuit that is to learn nothing.
type failsIfTold struct{ t *testing.T }

func (failsIfTold) Open(bridge.EndpointID) error { return nil }
func (f failsIfTold) ConnectFailed(_ bridge.EndpointID, err error) {
	f.t.Errorf("the circuit was told %v", err)
}
func (failsIfTold) Connected(bridge.EndpointID) {}

// 1000 connects that fail leave as many goroutines as there were before.
func TestFailedConnectsLeaveNothing(t *testing.T) {
	s := &fakeServer{name: "s", process: true, connect: refuse("no such command")}
	p := newTestPool(t, PoolOptions{}, s)
	before := runtime.NumGoroutine()
	for range 1000 {
		if _, err := p.client(t.Context(), s.ID()); err == nil {
			t.Fatal("connected")
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before || p.processes != 0 {
		t.Errorf("%d goroutines before, %d after; %d processes counted", before, after, p.processes)
	}
}

// A server that ends right after it was connected is a failure, not a loop.
func TestDeadOnArrival(t *testing.T) {
	s := &fakeServer{name: "s", deadOnArrival: true}
	p := newTestPool(t, PoolOptions{}, s)
	if _, err := p.client(t.Context(), s.ID()); bridge.KindOf(err) != bridge.Unavailable {
		t.Errorf("err = %v, want server-unavailable", err)
	}
	if got := s.connects.Load(); got != 1 {
		t.Errorf("connects = %d, want 1", got)
	}
}

// The name of an endpoint is no part of its identity: two handles of one command share its process.
func TestHandlesShareAnEndpoint(t *testing.T) {
	one := NewStdio(StdioConfig{Name: "one", Command: Arg{Text: "x"}})
	two := NewStdio(StdioConfig{Name: "two", Command: Arg{Text: "x"}})
	p := newTestPool(t, PoolOptions{})
	r := NewRegistry(RegistryOptions{Pool: p, Compiler: anySchema{}})
	a := r.Attach(ServerConfig{Handle: "one", Endpoint: one, NoReconnect: true}, func() {})
	b := r.Attach(ServerConfig{Handle: "two", Endpoint: two, NoReconnect: true}, func() {})
	if got := p.Stats().Endpoints; len(got) != 1 || fmt.Sprint(got[0].Handles) != "[one two]" {
		t.Errorf("endpoints = %+v, want one for both handles", got)
	}
	if a.target.Endpoint != b.target.Endpoint || a.target.Demand[0].Account != b.target.Demand[0].Account {
		t.Errorf("targets %+v and %+v have accounts of their own", a.target, b.target)
	}
	a.Detach()
	b.Detach()
}
