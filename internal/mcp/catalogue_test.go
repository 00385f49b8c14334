package mcp

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// states returns the state of each server and the names of its tools.
func states(s *bridge.Snapshot) map[string]string {
	m := map[string]string{}
	for _, srv := range s.Servers {
		var line strings.Builder
		line.WriteString(string(srv.State))
		for _, t := range srv.Tools {
			line.WriteString(" " + t.Name)
		}
		m[srv.Handle] = line.String()
	}
	return m
}

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func refuse(msg string) func(context.Context) error {
	return func(context.Context) error { return &rpc.Failure{Reason: rpc.Start, Msg: msg} }
}

// Servers that are down or silent take nothing from the others.
func TestServersAreIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCatalogue(t,
			&fakeServer{name: "a", do: tools(`{"name":"one"},{"name":"two"}`)},
			&fakeServer{name: "b"},
			&fakeServer{name: "down", connect: refuse("no such command")},
			&fakeServer{name: "locked", connect: func(context.Context) error { return &rpc.Failure{Reason: rpc.Auth, Msg: "it answered 401"} }},
			&fakeServer{name: "silent", connect: hang},
		)
		synctest.Wait()
		s := c.Snapshot(bridge.Caller{})
		want := map[string]string{"a": "ready one two", "b": "ready", "down": "failed", "locked": "needs-auth", "silent": "connecting"}
		if diff := cmp.Diff(want, states(s)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if got := s.Server("down").LastError; !strings.Contains(got, "no such command") {
			t.Errorf("last error = %q, want the cause", got)
		}
		if s.Ready {
			t.Error("ready although one server has neither answered nor failed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Settle(ctx); err == nil {
			t.Error("settled although one server has neither answered nor failed")
		}
		if !c.Snapshot(bridge.Caller{}).Ready {
			t.Error("not ready after the grace")
		}
	})
}

// downUntil returns a server with one tool that cannot be connected until up is set.
func downUntil(up *atomic.Bool) *fakeServer {
	return &fakeServer{name: "s", do: tools(`{"name":"one"}`), connect: func(context.Context) error {
		if up.Load() {
			return nil
		}
		return &rpc.Failure{Reason: rpc.Start, Msg: "down"}
	}}
}

// A server that is down at the start appears without a restart, and is asked less and less often until then.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		s := downUntil(&up)
		c := startCatalogue(t, s)
		time.Sleep(4*time.Second + 8*time.Second + 16*time.Second + 8*time.Second) // delays and their jitter
		if got := s.connects.Load(); got != 4 {
			t.Errorf("connects = %d, want the first and three more", got)
		}
		up.Store(true)
		time.Sleep(time.Minute)
		if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != "ready one" {
			t.Errorf("state = %q, want ready", got)
		}
	})
}

// The entry of a server that could not be reached says when it is tried again, which is
// then done exactly at that time.
func TestNextAttemptIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		s := downUntil(&up)
		c := startCatalogue(t, s)
		entry := func() *bridge.Server {
			synctest.Wait()
			return c.Snapshot(bridge.Caller{}).Server("s")
		}
		for n := int32(1); n < 5; n++ {
			wait := time.Until(entry().Next)
			if wait <= 0 || s.connects.Load() != n {
				t.Fatalf("after %d attempts the next one is in %v", s.connects.Load(), wait)
			}
			time.Sleep(wait - 1)
			if synctest.Wait(); s.connects.Load() != n {
				t.Errorf("attempt %d came early", n+1)
			}
			up.Store(n == 4)
			time.Sleep(time.Nanosecond)
			if synctest.Wait(); s.connects.Load() != n+1 {
				t.Errorf("attempt %d is late", n+1)
			}
		}
		if e := entry(); e.State != bridge.Ready || !e.Next.IsZero() {
			t.Errorf("it is %s, and tried again at %v", e.State, e.Next)
		}
		time.Sleep(time.Second) // the news of its own connecting
		s.last().Close()
		if e := entry(); e.State != bridge.Idle || time.Until(e.Next) <= 0 {
			t.Errorf("lost, it is %s, and tried again at %v", e.State, e.Next)
		}
	})
}

func TestConnectionEnds(t *testing.T) {
	for _, process := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeServer{name: "s", process: process, do: tools(`{"name":"one"}`)}
			c := startCatalogue(t, s)
			time.Sleep(time.Second)
			s.last().Close()
			synctest.Wait()
			if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != "idle one" {
				t.Errorf("process %v: state = %q, want idle with its tools", process, got)
			}
			time.Sleep(time.Minute)
			want, state := int32(1), "idle one" // a process waits for the next call
			if !process {
				want, state = 2, "ready one"
			}
			if got := s.connects.Load(); got != want {
				t.Errorf("process %v: connects = %d, want %d", process, got, want)
			}
			if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != state {
				t.Errorf("process %v: state = %q, want %q", process, got, state)
			}
		})
	}
}

// A call that connects an idle server makes its entry ready again.
func TestCallWakesIdleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", process: true, do: tools(`{"name":"one"}`)}
		c := startCatalogue(t, s)
		time.Sleep(time.Second)
		s.last().Close()
		synctest.Wait()
		target := c.Snapshot(bridge.Caller{}).Server("s").Tool("one").Target
		_, done, err := c.opts.Registry.opts.Pool.Client(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		time.Sleep(time.Second)
		if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != "ready one" {
			t.Errorf("state = %q, want ready", got)
		}
	})
}

func TestListChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int32
		s := &fakeServer{name: "s"}
		s.do = func(context.Context, *rpc.Request) (string, error) {
			if lists.Add(1) == 1 {
				return `{"tools":[{"name":"one"}]}`, nil
			}
			return `{"tools":[{"name":"one"},{"name":"two"}]}`, nil
		}
		c := startCatalogue(t, s)
		synctest.Wait()
		before := c.Snapshot(bridge.Caller{})
		for range 50 {
			s.changed()
		}
		time.Sleep(time.Second)
		if got := states(c.Snapshot(bridge.Caller{}))["s"]; got != "ready one two" {
			t.Errorf("state = %q, want both tools", got)
		}
		if got := lists.Load(); got > 3 {
			t.Errorf("a burst of 50 changes made %d lists", got-1)
		}
		if got := states(before)["s"]; got != "ready one" {
			t.Errorf("the old snapshot changed to %q", got)
		}
	})
}

// A refresh that fails keeps the last good list.
func TestFailedRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s"}
		var broken atomic.Bool
		s.do = func(context.Context, *rpc.Request) (string, error) {
			if broken.Load() {
				return "", &rpc.Error{Code: -32603, Message: "out of cheese"}
			}
			return `{"tools":[{"name":"one"}]}`, nil
		}
		c := startCatalogue(t, s)
		synctest.Wait()
		broken.Store(true)
		s.changed()
		time.Sleep(time.Second)
		srv := c.Snapshot(bridge.Caller{}).Server("s")
		if srv.State != bridge.Degraded || len(srv.Tools) != 1 || !strings.Contains(srv.LastError, "out of cheese") {
			t.Errorf("state %q, %d tools, last error %q; want degraded, the old tool, the cause", srv.State, len(srv.Tools), srv.LastError)
		}
		broken.Store(false)
		time.Sleep(time.Minute)
		if srv := c.Snapshot(bridge.Caller{}).Server("s"); srv.State != bridge.Ready || srv.LastError != "" {
			t.Errorf("state %q, last error %q; want ready again", srv.State, srv.LastError)
		}
	})
}

func TestDisabledServers(t *testing.T) {
	c := NewCatalogue(CatalogueOptions{
		Registry: NewRegistry(RegistryOptions{Pool: newTestPool(t, PoolOptions{}), Compiler: anySchema{}}),
		Servers:  []ServerConfig{{Handle: "off", Disabled: true}},
	})
	s := c.Snapshot(bridge.Caller{})
	if !s.Ready || s.Server("off").State != bridge.Disabled {
		t.Errorf("ready %v, states %v; want ready at once, off disabled", s.Ready, states(s))
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Run(ctx) // has nothing to wait for
	if s := c.Snapshot(bridge.Caller{}); !s.Ready || s.Server("off").State != bridge.Disabled {
		t.Errorf("after running: ready %v, states %v", s.Ready, states(s))
	}
}

// A remote server that does not answer a ping is connected again; one that does
// not know what a ping is, is alive.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value
		answer.Store("{}")
		var pings atomic.Int32
		s := &fakeServer{name: "s", do: func(_ context.Context, r *rpc.Request) (string, error) {
			if r.Method != "ping" {
				return `{"tools":[]}`, nil
			}
			pings.Add(1)
			switch answer.Load() {
			case "unknown":
				return "", &rpc.Error{Code: -32601, Message: "Method not found"}
			case "silent":
				return "", &rpc.Failure{Reason: rpc.Deadline, Msg: "no answer"}
			}
			return "{}", nil
		}}
		modern := &fakeServer{name: "modern", do: s.do, peer: &rpc.Peer{Protocol: "2026-07-28"}}
		process := &fakeServer{name: "process", do: s.do, process: true}
		startCatalogue(t, s, modern, process)
		time.Sleep(11 * time.Minute)
		answer.Store("unknown")
		time.Sleep(10 * time.Minute)
		if p, c := pings.Load(), s.connects.Load(); p != 2 || c != 1 {
			t.Errorf("%d pings, %d connects in 21 minutes; want 2, and 1", p, c)
		}
		answer.Store("silent")
		time.Sleep(10 * time.Minute)
		if c := s.connects.Load(); c != 2 {
			t.Errorf("%d connects after a ping that was not answered, want 2", c)
		}
	})
}

// On the modern HTTP transport a tool whose header cannot be sent is left out; a process has no headers.
func TestParamHeaders(t *testing.T) {
	for _, process := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeServer{
				name: "s", process: process, peer: &rpc.Peer{Protocol: "2026-07-28", Capabilities: rpc.Capabilities{Tools: true}},
				do: tools(`{"name":"good"},{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no good"}}}}`),
			}
			c := startCatalogue(t, s)
			synctest.Wait()
			srv := c.Snapshot(bridge.Caller{}).Server("s")
			if want := map[bool]int{false: 1, true: 2}[process]; len(srv.Tools) != want || len(srv.Skipped) != 2-want {
				t.Errorf("process %v: %d tools, skipped %+v; want %d tools", process, len(srv.Tools), srv.Skipped, want)
			}
		})
	}
}

// One handle can be attached to several endpoints, one endpoint under several
// handles, and what was attached once more stays until it is detached once more.
func TestAttachAndDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forgotten []string
		pool := newTestPool(t, PoolOptions{})
		r := NewRegistry(RegistryOptions{Pool: pool, Compiler: anySchema{}, Forget: func(e bridge.EndpointID) { forgotten = append(forgotten, e.Label) }})
		a, b := &fakeServer{name: "a", do: tools(`{"name":"one"}`)}, &fakeServer{name: "b", do: tools(`{"name":"two"}`)}
		changes := 0
		changed := func() { changes++ }
		first := r.Attach(ServerConfig{Handle: "h", Endpoint: a}, changed)
		again := r.Attach(ServerConfig{Handle: "h", Endpoint: a}, func() {})
		other := r.Attach(ServerConfig{Handle: "other", Endpoint: a}, func() {})
		second := r.Attach(ServerConfig{Handle: "h", Endpoint: b}, func() {})
		synctest.Wait()
		if first.Connector != again.Connector || first.Connector == other.Connector || first.Connector == second.Connector {
			t.Error("connectors are not kept by handle and endpoint")
		}
		if a.connects.Load() != 1 || b.connects.Load() != 1 || changes == 0 {
			t.Errorf("connects %d and %d, changes %d; want one client per endpoint, and news of it", a.connects.Load(), b.connects.Load(), changes)
		}
		first.Detach()
		first.Detach() // must be harmless
		again.Detach()
		if pool.current(a.ID()) == nil {
			t.Error("the client was closed although another connector uses its endpoint")
		}
		other.Detach()
		a.wantClosed(t)
		if pool.current(b.ID()) == nil {
			t.Error("the other endpoint of the handle was closed too")
		}
		second.Detach()
		b.wantClosed(t)
		if len(r.connectors) != 0 || len(pool.slots) != 0 {
			t.Errorf("left: %d connectors, %d slots", len(r.connectors), len(pool.slots))
		}
		if got := strings.Join(forgotten, " "); got != "mcp:a mcp:b" {
			t.Errorf("forgotten: %q, want each endpoint once", got)
		}
	})
}

// A server written in Go is there at once, and wins over one of the same name.
func TestCatalogueLocal(t *testing.T) {
	local := &bridge.Server{Handle: "clock", State: bridge.Ready, Tools: []*bridge.Tool{{Handle: "clock", Name: "now"}}}
	c := NewCatalogue(CatalogueOptions{Servers: []ServerConfig{{Handle: "clock", Disabled: true}, {Handle: "off", Disabled: true}}, Local: []*bridge.Server{local}})
	snap := c.Snapshot(bridge.Caller{})
	if srv := snap.Server("clock"); srv == nil || srv.Tool("now") == nil {
		t.Errorf("clock = %+v, want the one written in Go", srv)
	}
	if len(snap.Servers) != 2 {
		t.Errorf("%d servers, want clock and off", len(snap.Servers))
	}
}
