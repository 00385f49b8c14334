package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A running is a catalogue that runs until the test ends.
type running struct {
	*Catalogue
	pool *Pool
	stop func() // ends Run and waits for that

	mu        sync.Mutex
	forgotten []string // labels of endpoints
}

func runCatalogue(t *testing.T, o CatalogueOptions) *running {
	t.Helper()
	pool := newTestPool(t, PoolOptions{})
	r := &running{pool: pool}
	o.Registry = NewRegistry(RegistryOptions{Pool: pool, Compiler: anySchema{}, Forget: func(e bridge.EndpointID) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.forgotten = append(r.forgotten, e.Label)
	}})
	c := NewCatalogue(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	r.Catalogue, r.stop = c, func() { cancel(); <-done }
	t.Cleanup(func() {
		r.stop()
		if len(o.Registry.connectors) != 0 || len(pool.slots) != 0 || len(c.views) != 0 {
			t.Errorf("left: %d connectors, %d slots, %d views", len(o.Registry.connectors), len(pool.slots), len(c.views))
		}
	})
	return r
}

func (s *fakeServer) config() ServerConfig {
	return ServerConfig{Handle: s.name, Endpoint: s, ReconnectDelay: 4 * time.Second}
}

// as returns the same server under another identity, as a changed command gives it.
func (s *fakeServer) as(handle string) ServerConfig {
	c := s.config()
	c.Handle = handle
	return c
}

func (r *running) apply(t *testing.T, servers ...ServerConfig) Changes {
	t.Helper()
	changes, err := r.Apply(t.Context(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func everybody(handles ...string) (names []ServerName) {
	for _, h := range handles {
		names = append(names, ServerName{Handle: h})
	}
	return names
}

func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		kept := &fakeServer{name: "kept", do: tools(`{"name":"one"}`)}
		old := &fakeServer{name: "old", do: tools(`{"name":"one"}`)}
		gone := &fakeServer{name: "gone", do: tools(`{"name":"one"}`)}
		slow := func(context.Context) error { <-gate; return nil }
		changed := &fakeServer{name: "changed", do: tools(`{"name":"two"}`), connect: slow}
		added := &fakeServer{name: "added", do: tools(`{"name":"one"}`), connect: slow}
		off := ServerConfig{Handle: "off", Disabled: true}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{kept.config(), old.as("changing"), gone.config(), off}})
		synctest.Wait()
		before := c.Snapshot(bridge.Caller{})

		applied := make(chan Changes)
		go func() {
			changes, err := c.Apply(t.Context(), []ServerConfig{changed.as("changing"), kept.config(), added.config(), off}, nil)
			if err != nil {
				t.Error(err)
			}
			applied <- changes
		}()
		time.Sleep(time.Second)
		if c.Snapshot(bridge.Caller{}) != before {
			t.Errorf("the catalogue is %v before the new servers have answered", states(c.Snapshot(bridge.Caller{})))
		}
		close(gate)
		want := Changes{Added: everybody("added"), Changed: everybody("changing"), Removed: everybody("gone"), Kept: everybody("kept", "off")}
		if diff := cmp.Diff(want, <-applied); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"kept": "ready one", "changing": "ready two", "added": "ready one", "off": "disabled"}, states(c.Snapshot(bridge.Caller{}))); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		synctest.Wait()
		old.wantClosed(t)
		gone.wantClosed(t)
		if kept.connects.Load() != 1 || kept.last().isClosed() {
			t.Error("a server that has not changed lost its connection")
		}
	})
}

func (c *fakeConn) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// A changed setting makes new targets and keeps the process.
func TestApplySettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", process: true, do: tools(`{"name":"one"},{"name":"two"}`)}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{s.config()}})
		synctest.Wait()
		changed := s.config()
		changed.Timeout, changed.Deny, changed.Idle = time.Second, []string{"two"}, time.Minute
		if got := c.apply(t, changed); len(got.Changed) != 1 {
			t.Errorf("changes = %+v, want one changed", got)
		}
		srv := c.Snapshot(bridge.Caller{}).Server("s")
		if len(srv.Tools) != 1 || srv.Tools[0].Target.Timeout != time.Second {
			t.Errorf("%d tools, timeout %v; want one, 1s", len(srv.Tools), srv.Tools[0].Target.Timeout)
		}
		if s.connects.Load() != 1 || s.last().isClosed() {
			t.Error("the process was started again for a time-out")
		}
		time.Sleep(2 * time.Minute)
		if !s.last().isClosed() {
			t.Error("the new idle time does not count")
		}
		if got := c.apply(t, changed); len(got.Kept) != 1 {
			t.Errorf("changes = %+v, want it kept", got)
		}
	})
}

// A call under way on what was replaced gets to its end, but no longer than a call may take.
func TestApplyDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := &fakeServer{name: "old", do: tools(`{"name":"one"}`)}, &fakeServer{name: "next", do: tools(`{"name":"one"}`)}
		first := old.as("s")
		first.MaxTimeout = time.Minute
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{first}})
		synctest.Wait()
		target := c.Snapshot(bridge.Caller{}).Server("s").Tool("one").Target
		_, done, err := c.pool.Client(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		c.apply(t, next.as("s"))
		time.Sleep(30 * time.Second)
		if old.last().isClosed() {
			t.Error("closed under a call")
		}
		_, _, err = c.pool.Client(t.Context(), target)
		if e, ok := errors.AsType[*bridge.Error](err); !ok || !e.Gone {
			t.Errorf("a late call: err = %v, want one that has it found again", err)
		}
		done()
		synctest.Wait()
		old.wantClosed(t)

		target = c.Snapshot(bridge.Caller{}).Server("s").Tool("one").Target
		if _, _, err := c.pool.Client(t.Context(), target); err != nil { // never given back
			t.Fatal(err)
		}
		c.apply(t, first)
		time.Sleep(9 * time.Minute) // of the ten that a call on next may take
		if next.last().isClosed() {
			t.Error("closed under a long call")
		}
		time.Sleep(2 * time.Minute)
		next.wantClosed(t)
	})
}

// What is being drained when the bridge stops gets no longer than everything else.
func TestStopCutsDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := &fakeServer{name: "old", do: tools(`{"name":"one"}`)}, &fakeServer{name: "next"}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{old.as("s")}})
		synctest.Wait()
		if _, _, err := c.pool.Client(t.Context(), c.Snapshot(bridge.Caller{}).Server("s").Tool("one").Target); err != nil {
			t.Fatal(err)
		}
		c.apply(t, next.as("s"))
		start := time.Now()
		c.stop()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("stopping took %v, want the pool's Drain of 5s", took)
		}
		old.wantClosed(t)
	})
}

// An Apply that is given up changes nothing and leaves nothing.
func TestApplyGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := &fakeServer{name: "old", do: tools(`{"name":"one"}`)}
		quick, hung := &fakeServer{name: "quick"}, &fakeServer{name: "hung", connect: hang}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{old.config()}})
		synctest.Wait()
		before := c.Snapshot(bridge.Caller{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err := c.Apply(ctx, []ServerConfig{quick.config(), hung.config()}, nil); err == nil || err.Error() != "enough" {
			t.Errorf("err = %v, want why ctx ended", err)
		}
		if c.Snapshot(bridge.Caller{}) != before || old.last().isClosed() {
			t.Error("something has changed")
		}
		quick.wantClosed(t)
		if _, err := c.Apply(ctx, nil, nil); err == nil {
			t.Error("applied with a context that has ended")
		}
	})
}

// A server that stays silent does not keep a configuration from being applied, nor one that is down.
func TestApplySilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, down := &fakeServer{name: "hung", connect: hang}, &fakeServer{name: "down", connect: refuse("no such command")}
		c := runCatalogue(t, CatalogueOptions{})
		synctest.Wait()
		start := time.Now()
		c.apply(t, hung.config(), down.config())
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %v, want the bound of 1m", took)
		}
		if diff := cmp.Diff(map[string]string{"hung": "connecting", "down": "failed"}, states(c.Snapshot(bridge.Caller{}))); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

// Stopping ends an Apply under way, and there is none afterwards.
func TestApplyAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &fakeServer{name: "hung", connect: hang}
		c := runCatalogue(t, CatalogueOptions{})
		got := make(chan error)
		go func() { _, err := c.Apply(t.Context(), []ServerConfig{hung.config()}, nil); got <- err }()
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { c.stop(); close(stopped) }()
		if err := <-got; !errors.Is(err, errStopped) {
			t.Errorf("err = %v, want that the bridge is stopping", err)
		}
		<-stopped
		if _, err := c.Apply(t.Context(), nil, nil); !errors.Is(err, errStopped) {
			t.Errorf("after stopping: err = %v", err)
		}
	})
}

// Whatever is applied at once, in the end the catalogue is one of the configurations, whole, and nothing of the others is left.
func TestAppliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runCatalogue(t, CatalogueOptions{})
		var all []*fakeServer
		var wg sync.WaitGroup
		for i := range 20 {
			a := &fakeServer{name: fmt.Sprintf("a%d", i), do: tools(fmt.Sprintf(`{"name":"t%d"}`, i)), connect: func(context.Context) error { time.Sleep(time.Duration(i) * time.Millisecond); return nil }}
			b := &fakeServer{name: fmt.Sprintf("b%d", i), do: a.do}
			all = append(all, a, b)
			wg.Go(func() { c.apply(t, a.as("a"), b.as("b")) })
		}
		wg.Wait()
		synctest.Wait()
		s := states(c.Snapshot(bridge.Caller{}))
		if len(s) != 2 || s["a"] != s["b"] || !strings.HasPrefix(s["a"], "ready t") {
			t.Errorf("states %v, want a and b of one configuration", s)
		}
		open := 0
		for _, f := range all {
			if !f.last().isClosed() {
				open++
			}
		}
		if open != 2 {
			t.Errorf("%d connections are open, want 2", open)
		}
	})
}

// A configuration that comes back while its first connection is still drained gets another one,
// and nothing of it is forgotten when the drain ends.
func TestApplyBackAndForth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fakeServer{name: "a", do: tools(`{"name":"one"}`)}, &fakeServer{name: "b", do: tools(`{"name":"one"}`)}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{a.as("s")}})
		synctest.Wait()
		_, done, err := c.pool.Client(t.Context(), c.Snapshot(bridge.Caller{}).Server("s").Tool("one").Target)
		if err != nil {
			t.Fatal(err)
		}
		c.apply(t, b.as("s"))
		synctest.Wait()
		c.apply(t, a.as("s"))
		done()
		synctest.Wait()
		if got := a.connects.Load(); got != 2 || a.last().isClosed() || !a.conns[0].isClosed() {
			t.Errorf("%d connects to a, last closed %v; want two, of which the last lives", got, a.last().isClosed())
		}
		if strings.Join(c.forgotten, " ") != "mcp:b" {
			t.Errorf("forgotten: %v, want b alone", c.forgotten)
		}
	})
}

// A call to a server whose connect failed has it tried again, unless its circuit is open.
func TestNudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := false
		s := &fakeServer{name: "s", do: tools(`{"name":"one"}`), connect: func(context.Context) error {
			if up {
				return nil
			}
			return &rpc.Failure{Reason: rpc.Start, Msg: "down"}
		}}
		config := s.config()
		config.NoReconnect = true
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{config}})
		synctest.Wait()
		up = true
		call := func(want string) {
			t.Helper()
			if settled, err := c.Attach(bridge.Caller{}, "s", true); settled != nil || err != nil {
				t.Errorf("Attach = %v, %v; a call does not wait for what everybody shares", settled, err)
			}
			synctest.Wait()
			if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != want {
				t.Errorf("state = %q, want %q", got, want)
			}
		}
		c.pool.opts.Circuit = openCircuit{}
		call("failed")
		c.pool.opts.Circuit = noCircuit{}
		call("ready one")
		call("ready one")
		if got := s.connects.Load(); got != 2 {
			t.Errorf("connects = %d, want 2", got)
		}
	})
}

type openCircuit struct{ noCircuit }

func (openCircuit) Open(bridge.EndpointID) error { return errors.New("open") }

// everything is the rest of a bridge: it lets all pass.
type everything struct{}

func (everything) Allows(bridge.Caller, string, string) bool { return true }
func (everything) Sees(bridge.Caller, string) bool           { return true }
func (everything) Spend(context.Context, bridge.Caller) (func(), error) {
	return func() {}, nil
}

func (everything) Admit(context.Context, bridge.Caller, bridge.Demand, time.Duration) (func(), error) {
	return func() {}, nil
}
func (everything) Open(bridge.EndpointID) error                 { return nil }
func (everything) Allow(bridge.EndpointID) (func(error), error) { return func(error) {}, nil }
func (everything) Keep(context.Context, bridge.Caller, *bridge.Tool, *bridge.Result, *bridge.Timing) *bridge.Artifact {
	return nil
}

// bridge returns a bridge over the catalogue, for calls all the way.
func (r *running) bridge() *bridge.Bridge {
	e := everything{}
	return &bridge.Bridge{Catalogue: r, Policy: e, Budget: e, Breaker: e, Clients: r.pool, Gate: e, Keeper: e, Nesting: 10}
}

// However fast everybody's servers and a user's own are replaced, no call fails.
func TestManySwaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, swaps = 32, 300
		// A swap takes as long as connecting what everybody shares, and a user's own is connected after it.
		connect := map[string]time.Duration{"s": 3 * time.Millisecond, "own": time.Millisecond}
		server := func(handle string, version int) ServerConfig {
			s := &fakeServer{name: fmt.Sprint(handle, version), process: true, connect: func(context.Context) error { time.Sleep(connect[handle]); return nil }}
			s.do = func(_ context.Context, r *rpc.Request) (string, error) {
				if r.Method == "tools/list" {
					return `{"tools":[{"name":"one"}]}`, nil
				}
				time.Sleep(5 * time.Millisecond) // longer than a swap takes
				return fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, version), nil
			}
			return s.as(handle)
		}
		users := func(n int) map[bridge.Owner][]ServerConfig {
			return map[bridge.Owner][]ServerConfig{alice.Owner(): {server("own", n)}}
		}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{server("s", 0)}, Users: users(0)})
		if err := c.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := c.bridge()
		done := make(chan struct{})
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := i; ; n++ {
					select {
					case <-done:
						return
					default:
					}
					if _, err := b.Invoke(t.Context(), &bridge.Call{Handle: []string{"s", "own"}[n%2], Tool: "one", Caller: alice}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for n := 1; n <= swaps && !t.Failed(); n++ {
			if _, err := c.Apply(t.Context(), []ServerConfig{server("s", n)}, users(n)); err != nil {
				t.Error(err)
			}
			if n%10 != 0 {
				continue
			}
			for _, handle := range []string{"s", "own"} {
				a, err := b.Invoke(t.Context(), &bridge.Call{Handle: handle, Tool: "one", Caller: alice})
				if err != nil || !strings.Contains(string(a.Result.Raw), fmt.Sprintf(`"%d"`, n)) {
					t.Errorf("%s after swap %d: %v", handle, n, err)
				}
			}
		}
		close(done)
		wg.Wait()
	})
}
