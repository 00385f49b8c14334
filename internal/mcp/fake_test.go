package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// A fakeServer is an endpoint and what answers behind it. Its zero value has no tools.
type fakeServer struct {
	name    string
	process bool
	peer    *rpc.Peer // nil has tools if do is set

	deadOnArrival bool

	connect func(ctx context.Context) error                           // nil succeeds at once
	do      func(ctx context.Context, r *rpc.Request) (string, error) // nil answers an empty list

	connects atomic.Int32
	mu       sync.Mutex
	options  rpc.Options // of the last connect
	conns    []*fakeConn
}

func (s *fakeServer) ID() bridge.EndpointID {
	return identity{Transport: "fake", Command: s.name}.id(s.name)
}
func (s *fakeServer) String() string        { return s.name }
func (s *fakeServer) Demand() bridge.Demand { return nil }
func (s *fakeServer) Process() bool         { return s.process }

func (s *fakeServer) Connect(ctx context.Context, o rpc.Options) (rpc.Conn, error) {
	s.connects.Add(1)
	if s.connect != nil {
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
	}
	c := &fakeConn{server: s, done: make(chan struct{})}
	if s.deadOnArrival {
		c.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options = o
	s.conns = append(s.conns, c)
	return c, nil
}

// last returns the newest connection.
func (s *fakeServer) last() *fakeConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

func (s *fakeServer) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.ListChanged("tools")
}

type fakeConn struct {
	server *fakeServer
	once   sync.Once
	done   chan struct{}
}

func (c *fakeConn) Peer() *rpc.Peer {
	if c.server.peer != nil {
		return c.server.peer
	}
	return &rpc.Peer{Name: "fake", Protocol: "2025-11-25", Capabilities: rpc.Capabilities{Tools: c.server.do != nil}}
}

func (c *fakeConn) Do(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	if r.LetGo != nil {
		defer r.LetGo()
	}
	s, err := c.server.do(ctx, r)
	return json.RawMessage(s), err
}
func (c *fakeConn) Done() <-chan struct{} { return c.done }
func (c *fakeConn) Err() error            { return errors.New("the process exited") }
func (c *fakeConn) Close() error          { c.once.Do(func() { close(c.done) }); return nil }

// anySchema compiles everything but schemas that are strings.
type anySchema struct{}

func (anySchema) Compile(t *bridge.Tool) error {
	if t.Input[0] == '"' {
		return errors.New("its schema is a string")
	}
	return nil
}

// noCircuit ignores how connecting went.
type noCircuit struct{}

func (noCircuit) Open(bridge.EndpointID) error           { return nil }
func (noCircuit) ConnectFailed(bridge.EndpointID, error) {}
func (noCircuit) Connected(bridge.EndpointID)            {}

// startCatalogue runs a catalogue of these servers until the test ends.
func startCatalogue(t *testing.T, servers ...*fakeServer) *Catalogue {
	t.Helper()
	pool := newTestPool(t, PoolOptions{})
	o := CatalogueOptions{Registry: NewRegistry(RegistryOptions{Pool: pool, Compiler: anySchema{}})}
	for _, s := range servers {
		o.Servers = append(o.Servers, ServerConfig{Handle: s.name, Endpoint: s, ReconnectDelay: 4 * time.Second, Heartbeat: 10 * time.Minute})
	}
	c := NewCatalogue(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, s := range servers {
			s.wantClosed(t)
		}
	})
	return c
}

// wantClosed demands that no connection of s is open.
func (s *fakeServer) wantClosed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		select {
		case <-c.done:
		default:
			t.Errorf("a connection to %s is still open", s.name)
		}
	}
}

// tools answers every list with these entries.
func tools(entries string) func(context.Context, *rpc.Request) (string, error) {
	return func(context.Context, *rpc.Request) (string, error) { return `{"tools":[` + entries + `]}`, nil }
}
