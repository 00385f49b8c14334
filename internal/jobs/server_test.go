package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
)

// A redisServer is a redis-server process on a port of loopback that was free.
type redisServer struct {
	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
	hold io.Closer // what keeps the server alive
}

// startRedis starts a server that keeps nothing on disk. It is stopped when the test ends.
func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	for range 10 { // another process may take the port first
		s := &redisServer{t: t, port: freePort(t), args: args}
		if s.start() {
			t.Cleanup(s.kill)
			return s
		}
	}
	t.Fatal("redis-server did not start ten times over")
	return nil
}

// start starts the server on its port, and reports whether it answers there.
func (s *redisServer) start() bool {
	s.t.Helper()
	// The shell's input ends with this process, also if that panics: no server is left behind.
	const script = `redis-server "$@" </dev/null & read -r _; kill -9 $!; wait`
	args := append([]string{"-c", script, "sh", "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port", fmt.Sprint(s.port), "--dir", s.t.TempDir()}, s.args...)
	s.cmd = exec.Command("sh", args...)
	var err error
	if s.hold, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: s.addr()})
	defer c.Close()
	for range 500 {
		if c.Ping(context.Background()).Err() == nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.kill()
	return false
}

func (s *redisServer) kill() {
	if s.cmd != nil {
		_ = s.hold.Close()
		_ = s.cmd.Wait() // which says that it was killed
		s.cmd = nil
	}
}

func (s *redisServer) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// freePort returns a port that is free, and so is the one that a cluster would use for its bus.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port+10000 > 65535 {
			continue
		}
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("there is no free port")
	return 0
}

// quiet silences the library's own log.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// client returns a client like that of the store of results.
func (s *redisServer) client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr(), ContextTimeoutEnabled: true, MaxRetries: 1, DialerRetries: 1, DialTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

// startCluster starts a cluster of three and returns a client of it.
func startCluster(t *testing.T) redis.UniversalClient {
	t.Helper()
	const nodes, slots = 3, 16384
	var servers []*redisServer
	var addrs []string
	for range nodes {
		s := startRedis(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
		servers, addrs = append(servers, s), append(addrs, s.addr())
	}
	for i, s := range servers {
		c := s.client(t)
		for _, args := range [][]any{{"CLUSTER", "ADDSLOTSRANGE", i * slots / nodes, (i+1)*slots/nodes - 1}, {"CLUSTER", "MEET", "127.0.0.1", servers[0].port}} {
			if err := c.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers {
		c := s.client(t)
		eventually(t, "the cluster comes up", func() bool {
			info := c.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return c
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for range 3000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: that does not happen", what)
}

// A replica is one manager among several.
type replica struct {
	*Manager
	log  *logBuffer
	kill func() // ends its sharing, as if the process had died
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const testLease = time.Second

// newReplica returns a manager that shares its jobs.
func newReplica(t testing.TB, c redis.UniversalClient, o Options, f tool) *replica {
	t.Helper()
	r := &replica{log: &logBuffer{}}
	o.Invoke, o.Compile, o.Redis = f, compile, NewRedis(c)
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	if o.Lease == 0 {
		o.Lease = testLease
	}
	r.Manager = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	r.kill = func() {
		cancel()
		<-ended
		r.shared.down.Store(true) // it writes no more, whatever happens
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
	})
	return r
}

// await waits until a job is in a state, as its caller sees it here, and returns it.
func (r *replica) await(t testing.TB, id string, want State) (Record, []Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		rec, events, more, err := r.Changes(ctx, ann, id, 0)
		switch {
		case err != nil && bridge.KindOf(err) != bridge.NotFound: // it may not be written yet
			t.Fatalf("waiting for %s: %v", want, err)
		case err == nil && rec.State == want:
			return rec, events
		case err == nil && rec.State.Final():
			t.Fatalf("the job is %s, want %s: %+v", rec.State, want, rec.Problem)
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("the job does not become %s, it is %+v", want, rec)
		}
	}
}
