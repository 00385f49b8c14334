package mcp

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A family makes a server for each caller, as a template does, and knows them all.
type family struct {
	name string

	mu      sync.Mutex
	members map[string]*fakeServer // :: what it was made for -> it
}

// member returns the server that is made for these values.
func (f *family) member(values ...string) *fakeServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members == nil {
		f.members = make(map[string]*fakeServer)
	}
	name := fmt.Sprintf("%s%q", f.name, values)
	if f.members[name] == nil {
		f.members[name] = &fakeServer{name: name, do: func(context.Context, *rpc.Request) (string, error) {
			return fmt.Sprintf(`{"tools":[{"name":"of %s"}]}`, strings.Join(values, " ")), nil
		}}
	}
	return f.members[name]
}

// connects returns how often each member was connected.
func (f *family) connects() map[string]int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int32{}
	for name, s := range f.members {
		if c := s.connects.Load(); c > 0 {
			n[strings.TrimPrefix(name, f.name)] = c
		}
	}
	return n
}

// byUser is a server whose endpoint has the user in it.
func (f *family) byUser() ServerConfig {
	return ServerConfig{Handle: f.name, Own: &Own{For: func(c bridge.Caller) (Endpoint, error) { return f.member(c.User), nil }}}
}

// byTenant is a server that each tenant has, with nothing of it in the endpoint.
func (f *family) byTenant() ServerConfig {
	return ServerConfig{Handle: f.name, Own: &Own{ByTenant: true, For: func(bridge.Caller) (Endpoint, error) { return f.member("t"), nil }}}
}

// byHeader is a server whose endpoint has a header in it.
func (f *family) byHeader() ServerConfig {
	return ServerConfig{Handle: f.name, Own: &Own{Headers: []string{"X-Key"}, For: func(c bridge.Caller) (Endpoint, error) {
		if len(c.Headers["X-Key"]) != 1 {
			return nil, forbidden("The header X-Key is missing.")
		}
		return f.member(c.Headers["X-Key"]...), nil
	}}}
}

var (
	alice = bridge.Caller{User: "alice", Tenant: "acme"}
	bob   = bridge.Caller{User: "bob", Tenant: "acme"}
	carol = bridge.Caller{User: "carol", Tenant: "other"}
)

func withKey(c bridge.Caller, key string) bridge.Caller {
	c.Headers = map[string][]string{"X-Key": {key}, "X-Other": {"secret"}}
	return c
}

// use attaches a server for a caller, waits, and returns the state of the caller's catalogue.
func (r *running) use(t *testing.T, c bridge.Caller, handle string) map[string]string {
	t.Helper()
	settled, err := r.Attach(c, handle, true)
	if err != nil {
		t.Fatal(err)
	}
	if settled != nil {
		<-settled
	}
	return states(r.Snapshot(c))
}

// Each user has a connection of its own, at the first call, and sees nothing of the others'.
func TestUsersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, shared := &family{name: "own"}, &fakeServer{name: "shared", do: tools(`{"name":"one"}`)}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{f.byUser(), shared.config()}})
		synctest.Wait()
		if got := states(c.Snapshot(alice)); got["own"] != "idle" || len(f.connects()) != 0 {
			t.Errorf("%v before the first call, connects %v", got, f.connects())
		}
		if diff := cmp.Diff(map[string]string{"own": "ready of alice", "shared": "ready one"}, c.use(t, alice, "own")); diff != "" {
			t.Errorf("alice (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"own": "ready of bob", "shared": "ready one"}, c.use(t, bob, "own")); diff != "" {
			t.Errorf("bob (-want +got):\n%s", diff)
		}
		if got := c.use(t, alice, "own")["own"]; got != "ready of alice" {
			t.Errorf("alice has %q now", got)
		}
		if diff := cmp.Diff(map[string]int32{`["alice"]`: 1, `["bob"]`: 1}, f.connects()); diff != "" {
			t.Errorf("connects (-want +got):\n%s", diff)
		}
		of := func(who bridge.Caller) *bridge.Target { return c.Snapshot(who).Server("own").Tools[0].Target }
		if of(alice).Endpoint == of(bob).Endpoint {
			t.Error("two users have one endpoint, and so one circuit")
		}
		if got := c.Snapshot(carol).Server("own"); got.State != bridge.Idle || len(got.Tools) != 0 {
			t.Errorf("carol sees %v", states(c.Snapshot(carol)))
		}
		if got := c.Snapshot(bridge.Caller{}).Server("own"); got.State != bridge.NeedsCaller || !strings.Contains(got.LastError, "user") {
			t.Errorf("nobody sees %s, %q; want that a user is needed", got.State, got.LastError)
		}
		if _, err := c.Attach(bridge.Caller{Tenant: "acme"}, "own", true); bridge.KindOf(err) != bridge.Forbidden {
			t.Errorf("a caller without a user: err = %v, want forbidden", err)
		}
	})
}

// The users of a tenant share its connection, even where nothing of it is in the endpoint; another tenant has another one.
func TestTenantsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &family{name: "own"}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{f.byTenant()}})
		synctest.Wait()
		for _, who := range []bridge.Caller{alice, bob, carol} {
			if got := c.use(t, who, "own")["own"]; got != "ready of t" {
				t.Errorf("%s has %q", who.User, got)
			}
		}
		if diff := cmp.Diff(map[string]int32{`["t"]`: 2}, f.connects()); diff != "" {
			t.Errorf("connects (-want +got):\n%s", diff)
		}
		if _, err := c.Attach(bridge.Caller{User: "dave"}, "own", true); bridge.KindOf(err) != bridge.Forbidden || !strings.Contains(err.Error(), "tenant") {
			t.Errorf("a caller without a tenant: err = %v, want forbidden that says so", err)
		}
	})
}

// A server that takes a header is connected by calls only, once for each value.
func TestHeadersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &family{name: "own"}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{f.byHeader()}})
		synctest.Wait()
		one, two := withKey(alice, "1"), withKey(alice, "1_2")
		if settled, err := c.Attach(one, "own", false); settled != nil || err != nil || len(f.connects()) != 0 {
			t.Errorf("a document began to connect: %v, %v", settled, err)
		}
		if got := states(c.Snapshot(one))["own"]; got != "idle" {
			t.Errorf("state %q, want idle", got)
		}
		if _, err := c.Attach(alice, "own", true); bridge.KindOf(err) != bridge.Forbidden || !strings.Contains(err.Error(), "X-Key") {
			t.Errorf("without the header: err = %v, want forbidden that names it", err)
		}
		for _, who := range []bridge.Caller{one, two, withKey(bob, "1")} {
			if got, want := c.use(t, who, "own")["own"], "ready of "+who.Headers["X-Key"][0]; got != want {
				t.Errorf("%s has %q, want %q", who.User, got, want)
			}
		}
		if diff := cmp.Diff(map[string]int32{`["1"]`: 2, `["1_2"]`: 1}, f.connects()); diff != "" {
			t.Errorf("connects (-want +got):\n%s", diff)
		}
		if got := states(c.Snapshot(alice))["own"]; got != "needs-caller" {
			t.Errorf("without the header: state %q", got)
		}
		for _, v := range c.views {
			if v.caller.Headers["X-Other"] != nil {
				t.Error("a header is kept that no server takes")
			}
		}
	})
}

// Callers for whom nothing is connected apart get the one snapshot, and the others theirs until something changes.
func TestSnapshotsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := &family{name: "own"}, &fakeServer{name: "s", do: tools(`{"name":"one"}`)}
		own := (&fakeServer{name: "mine"}).config()
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{s.config()}, Users: map[bridge.Owner][]ServerConfig{alice.Owner(): {own}}})
		synctest.Wait()
		if c.Snapshot(bob) != c.Snapshot(carol) || len(c.views) != 0 {
			t.Error("callers without a server of their own have snapshots of their own")
		}
		before := c.Snapshot(alice)
		if before == c.Snapshot(bob) || c.Snapshot(alice) != before {
			t.Error("alice's snapshot is not hers, or is made anew each time")
		}
		c.use(t, alice, "mine")
		after := c.Snapshot(alice)
		if after == before || after.Version == before.Version || c.Snapshot(alice) != after {
			t.Error("her snapshot did not change once")
		}
		s.changed()
		time.Sleep(time.Second)
		if c.Snapshot(alice) == after {
			t.Error("a change of what is shared does not reach her snapshot")
		}
		if _, err := c.Apply(t.Context(), []ServerConfig{f.byUser()}, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"own": "idle"}, states(c.Snapshot(alice))); diff != "" {
			t.Errorf("after another configuration (-want +got):\n%s", diff)
		}
	})
}

// Built-in, then the user's, then written in Go, then everybody's.
func TestResolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := func(h string) *bridge.Server {
			return &bridge.Server{Handle: h, State: bridge.Ready, Tools: []*bridge.Tool{{Handle: h, Name: "in Go"}}}
		}
		global, mine := &family{name: "global"}, &family{name: "mine"}
		server := func(f *family, h string) ServerConfig {
			return ServerConfig{Handle: h, Endpoint: f.member(h)}
		}
		apart := global.byUser()
		apart.Handle = "clock"
		c := runCatalogue(t, CatalogueOptions{
			Local:   []*bridge.Server{local("bridge"), local("both"), local("clock")},
			Servers: []ServerConfig{server(global, "both"), server(global, "files"), server(global, "bridge"), server(global, "rest"), apart},
			Users:   map[bridge.Owner][]ServerConfig{alice.Owner(): {server(mine, "both"), server(mine, "bridge"), server(mine, "files"), {Handle: "off", Disabled: true}}},
		})
		synctest.Wait()
		want := map[string]string{"bridge": "ready in Go", "both": "ready in Go", "clock": "ready in Go", "files": "ready of files", "rest": "ready of rest"}
		if diff := cmp.Diff(want, states(c.Snapshot(bob))); diff != "" {
			t.Errorf("bob (-want +got):\n%s", diff)
		}
		maps.Copy(want, map[string]string{"both": "idle", "files": "idle", "off": "disabled"})
		if diff := cmp.Diff(want, states(c.Snapshot(alice))); diff != "" {
			t.Errorf("alice at first, when nobody else's may be in the place of hers (-want +got):\n%s", diff)
		}
		for h := range want {
			c.use(t, alice, h)
		}
		maps.Copy(want, map[string]string{"both": "ready of both", "files": "ready of files"})
		if diff := cmp.Diff(want, states(c.Snapshot(alice))); diff != "" {
			t.Errorf("alice (-want +got):\n%s", diff)
		}
		if c.Snapshot(alice).Server("files").Endpoint == c.Snapshot(bob).Server("files").Endpoint {
			t.Error("a user's own server has the endpoint of everybody's")
		}
		if got := slices.Sorted(maps.Keys(mine.connects())); len(got) != 2 {
			t.Errorf("of her own were connected: %v", got)
		}
		if got := slices.Sorted(maps.Keys(global.connects())); len(got) != 2 { // files and rest
			t.Errorf("of everybody's were connected: %v; nobody can call the others", got)
		}
	})
}

// A user's server that changes is connected again by the next call, and the call under way ends.
func TestApplyUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, kept := &fakeServer{name: "one", do: tools(`{"name":"one"}`)}, &fakeServer{name: "two", do: tools(`{"name":"two"}`)}, &fakeServer{name: "kept"}
		users := func(s ...ServerConfig) map[bridge.Owner][]ServerConfig {
			return map[bridge.Owner][]ServerConfig{alice.Owner(): s, bob.Owner(): {kept.config()}}
		}
		c := runCatalogue(t, CatalogueOptions{Users: users(one.as("s"), kept.config())})
		synctest.Wait()
		c.use(t, alice, "kept")
		c.use(t, bob, "kept")
		c.use(t, alice, "s")
		_, done, err := c.pool.Client(t.Context(), c.Snapshot(alice).Server("s").Tool("one").Target)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := c.Apply(t.Context(), nil, users(two.as("s"), kept.config()))
		if err != nil {
			t.Fatal(err)
		}
		want := Changes{
			Changed: []ServerName{{alice.Owner(), "s"}},
			Kept:    []ServerName{{alice.Owner(), "kept"}, {bob.Owner(), "kept"}},
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute)
		if one.last().isClosed() {
			t.Error("closed under a call")
		}
		done()
		synctest.Wait()
		one.wantClosed(t)
		if got := c.use(t, alice, "s")["s"]; got != "ready two" {
			t.Errorf("state %q, want the new one", got)
		}
		if kept.connects.Load() != 2 || kept.last().isClosed() || kept.conns[0].isClosed() {
			t.Error("what has not changed lost its connections")
		}
		if changes, err = c.Apply(t.Context(), nil, nil); err != nil || len(changes.Removed) != 3 {
			t.Errorf("changes %+v, %v; want three removed", changes, err)
		}
		synctest.Wait()
		two.wantClosed(t)
		kept.wantClosed(t)
		if srv := c.Snapshot(alice).Server("s"); srv != nil {
			t.Errorf("a removed server is still there: %+v", srv)
		}
	})
}

// Connections of those who neither look nor call are closed, and made again.
func TestIdleViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &family{name: "own"}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{f.byUser()}})
		synctest.Wait()
		c.use(t, alice, "own")
		c.use(t, bob, "own")
		for range 10 {
			time.Sleep(time.Minute)
			c.Snapshot(alice)
		}
		if !f.member("bob").last().isClosed() || f.member("alice").last().isClosed() {
			t.Error("want bob's connection closed, and alice's not")
		}
		if len(c.views) != 1 {
			t.Errorf("%d views are kept, want alice's", len(c.views))
		}
		if got := c.use(t, bob, "own")["own"]; got != "ready of bob" {
			t.Errorf("bob has %q after a pause", got)
		}
	})
}

// A remote server of somebody's own is closed when nobody calls it, and stays so until the next call.
func TestIdleRemoteServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{name: "s", do: tools(`{"name":"one"}`)}
		config := s.config()
		config.Idle = time.Minute
		c := runCatalogue(t, CatalogueOptions{Users: map[bridge.Owner][]ServerConfig{alice.Owner(): {config}}})
		synctest.Wait()
		c.use(t, alice, "s")
		for range 10 {
			time.Sleep(time.Minute)
			c.Snapshot(alice)
		}
		if got := states(c.Snapshot(alice))["s"]; got != "idle one" || s.connects.Load() != 1 {
			t.Errorf("state %q after %d connects, want idle after one", got, s.connects.Load())
		}
		_, done, err := c.pool.Client(t.Context(), c.Snapshot(alice).Server("s").Tool("one").Target)
		if err != nil {
			t.Fatal(err)
		}
		done()
		time.Sleep(time.Second)
		if got := states(c.Snapshot(alice))["s"]; got != "ready one" {
			t.Errorf("state %q after a call, want ready", got)
		}
	})
}

// However many callers come, no more than so many are kept, and nobody's
// headers drive out somebody else's connection.
func TestViewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, h := &family{name: "own"}, &family{name: "header"}
		c := runCatalogue(t, CatalogueOptions{Servers: []ServerConfig{f.byUser(), h.byHeader()}, Views: 8})
		synctest.Wait()
		c.use(t, bob, "own")
		for i := range 100 {
			time.Sleep(time.Millisecond)
			who := withKey(alice, fmt.Sprint(i))
			c.Snapshot(who)
			if i%2 == 0 {
				c.use(t, who, "header")
			}
		}
		synctest.Wait()
		open := 0
		for _, s := range h.members {
			if s.connects.Load() > 0 && !s.last().isClosed() {
				open++
			}
		}
		if len(c.views) > 8 || open > 4 {
			t.Errorf("%d views, %d connections by header; want 8 and 4 at most", len(c.views), open)
		}
		if f.member("bob").last().isClosed() {
			t.Error("one caller's headers have driven out another's connection")
		}
		for i := range 100 {
			time.Sleep(time.Millisecond)
			c.use(t, bridge.Caller{User: fmt.Sprint(i)}, "own")
		}
		synctest.Wait()
		if len(c.views) > 8 || !f.member("bob").last().isClosed() {
			t.Errorf("%d views, bob's among them: %v", len(c.views), !f.member("bob").last().isClosed())
		}
	})
}

// A view is ready when all that is attached for it has answered or failed, or was waited for long enough.
func TestViewReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &fakeServer{name: "hung", connect: hang}
		c := runCatalogue(t, CatalogueOptions{Users: map[bridge.Owner][]ServerConfig{alice.Owner(): {hung.config()}}})
		synctest.Wait()
		if !c.Snapshot(alice).Ready {
			t.Error("not ready although nothing is attached")
		}
		settled, err := c.Attach(alice, "hung", false)
		if err != nil || settled == nil {
			t.Fatalf("Attach = %v, %v", settled, err)
		}
		if c.Snapshot(alice).Ready || !c.Snapshot(bob).Ready {
			t.Error("ready although a server is being connected, or somebody else is not")
		}
		time.Sleep(11 * time.Second)
		if !c.Snapshot(alice).Ready {
			t.Error("not ready after the grace")
		}
	})
}

// Nothing is attached before Run, which a call waits for, or after it.
func TestAttachOutsideOfRun(t *testing.T) {
	s := &fakeServer{name: "s"}
	c := NewCatalogue(CatalogueOptions{
		Users:    map[bridge.Owner][]ServerConfig{alice.Owner(): {s.config()}},
		Registry: NewRegistry(RegistryOptions{Pool: newTestPool(t, PoolOptions{}), Compiler: anySchema{}}),
	})
	started, err := c.Attach(alice, "s", true)
	if err != nil || started == nil {
		t.Fatalf("before: Attach = %v, %v", started, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Run(ctx)
	<-started
	if _, err := c.Attach(alice, "s", true); bridge.KindOf(err) != bridge.NotReady || s.connects.Load() != 0 {
		t.Errorf("after: err = %v, connects %d; want not-ready, and none", err, s.connects.Load())
	}
}

// Endpoints of owners are equal only if the endpoint and the owner are, to the last byte.
func TestIdentities(t *testing.T) {
	pieces := []string{"", "1", "1_2", "_", "2", "a", "\xff", "\xfe", "\ufffd", `"`, "\n", " ", "tenant", "é"}
	text := func(r *rand.Rand) string {
		var b strings.Builder
		for range r.IntN(3) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	type parts struct{ command, arg, dir, key, value, user, tenant string }
	id := func(p parts) bridge.EndpointID {
		e := NewStdio(StdioConfig{Name: "s", Command: Arg{Text: p.command}, Args: []Arg{{Text: p.arg}}, Dir: p.dir, Env: map[string]string{p.key: p.value}})
		return owned{e, bridge.Owner{User: p.user, Tenant: p.tenant}}.ID()
	}
	key := func(p parts) viewKey {
		plan := &plan{headers: []string{"X-A", "X-B"}}
		return plan.key(&bridge.Caller{User: p.user, Tenant: p.tenant, Headers: map[string][]string{"X-A": {p.key, p.value}, "X-B": {p.arg}}})
	}
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 0))
		a := parts{text(r), text(r), text(r), text(r), text(r), text(r), text(r)}
		b := a
		for _, f := range []*string{&b.command, &b.arg, &b.dir, &b.key, &b.value, &b.user, &b.tenant} {
			if r.IntN(4) == 0 {
				*f = text(r)
			}
		}
		if (id(a) == id(b)) != (a == b) {
			t.Logf("%q and %q", a, b)
			return false
		}
		b.command, b.dir = a.command, a.dir // are nothing of a caller's
		return (key(a) == key(b)) == (a == b)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// What is printed of an endpoint says that it is somebody's, and not whose.
func TestOwnedEndpoint(t *testing.T) {
	inner := NewStdio(StdioConfig{Name: "s", Command: Arg{Text: "x"}, Env: map[string]string{"TOKEN": "correct-horse"}, Start: time.Minute})
	e := owned{inner, bridge.Owner{User: "alice"}}
	if s := e.String(); !strings.HasPrefix(s, "x #env:") || !strings.Contains(s, " #for:") || strings.Contains(s, "alice") || strings.Contains(s, "correct") {
		t.Errorf("printed as %q", s)
	}
	if e.start() != time.Minute || !e.Process() {
		t.Error("it is not started like the other one")
	}
	for i, n := range e.Demand() {
		if was := inner.Demand()[i]; was.Account.Endpoint != (bridge.EndpointID{}) && n.Account.Endpoint != e.ID() {
			t.Errorf("its account is %+v", n.Account)
		}
	}
}

// Of a caller's headers, those on the list go along with its call, and nothing else.
func TestForwardedHeaders(t *testing.T) {
	var got map[string][]string
	s := &fakeServer{do: func(_ context.Context, r *rpc.Request) (string, error) {
		got = r.Header
		return `{"content":[]}`, nil
	}}
	c := &Client{conn: &fakeConn{server: s}, name: "s"}
	for _, tt := range []struct {
		forward []string
		want    map[string][]string
	}{
		{nil, nil},
		{[]string{"X-User-Id"}, map[string][]string{"X-User-Id": {"7"}}},
		{[]string{"X-Absent"}, nil},
		{[]string{"X-Absent", "X-Two"}, map[string][]string{"X-Two": {"a", "b"}}},
	} {
		_, err := c.Call(t.Context(), bridge.Request{
			Tool:   &bridge.Tool{Target: &bridge.Target{Forward: tt.forward}},
			Caller: bridge.Caller{Headers: map[string][]string{"X-User-Id": {"7"}, "X-Two": {"a", "b"}, "X-Key": {"secret"}}},
		}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("forward %v (-want +got):\n%s", tt.forward, diff)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	f := &family{name: "own"}
	var servers []ServerConfig
	for i := range 20 {
		servers = append(servers, ServerConfig{Handle: fmt.Sprint("off", i), Disabled: true})
	}
	for _, bb := range []struct {
		name string
		o    CatalogueOptions
	}{
		{"shared only", CatalogueOptions{Servers: servers}},
		{"others have their own", CatalogueOptions{Servers: servers, Users: map[bridge.Owner][]ServerConfig{bob.Owner(): {f.byUser()}}}},
		{"own", CatalogueOptions{Servers: slices.Concat(servers, []ServerConfig{f.byUser()})}},
		{"own by header", CatalogueOptions{Servers: slices.Concat(servers, []ServerConfig{f.byHeader()})}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c, who := NewCatalogue(bb.o), withKey(alice, "key")
			b.ReportAllocs()
			for b.Loop() {
				c.Snapshot(who)
			}
		})
	}
}
