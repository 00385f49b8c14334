package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// running holds the servers that several tests share; TestMain stops them.
var running struct {
	sync.Mutex
	servers []*redisServer
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range running.servers {
		s.stop()
	}
	os.Exit(code)
}

// A redisServer is a redis-server process on a port of loopback that was free.
type redisServer struct {
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
	hold io.Closer // what keeps the server alive
	out  *bytes.Buffer

	sentinel bool // args begins with its file
}

// startRedis starts a server that keeps nothing on disk. It is stopped when the test ends.
func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	s := newRedis(t, args...)
	t.Cleanup(s.stop)
	return s
}

// startSentinel starts a sentinel with a configuration of its own.
func startSentinel(t testing.TB, conf string) *redisServer {
	t.Helper()
	s := &redisServer{port: freePort(t), dir: t.TempDir(), args: []string{conf, "--sentinel"}, sentinel: true}
	if !s.start(t) {
		t.Fatalf("the sentinel does not start: %s", s.out)
	}
	t.Cleanup(s.stop)
	return s
}

func newRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis-test-") //nolint:usetesting // a shared server outlives the test that starts it
	if err != nil {
		t.Fatal(err)
	}
	for range 10 { // another process may take the port first
		s := &redisServer{port: freePort(t), dir: dir, args: args}
		if s.start(t) {
			return s
		}
	}
	t.Fatal("redis-server did not start ten times over")
	return nil
}

// start starts the server on its port and reports whether it answers there.
func (s *redisServer) start(t testing.TB) bool {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("there is no redis-server; make deps installs it")
	}
	s.out = new(bytes.Buffer)
	args := s.args
	if !s.sentinel {
		args = append([]string{"--save", "", "--appendonly", "no"}, args...)
	}
	args = append(args, "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir)
	// The shell's input ends with this process, also if that panics: no server is left behind.
	const script = `"$@" </dev/null & read -r _; kill -9 $!; wait`
	s.cmd = exec.Command("sh", append([]string{"-c", script, "sh", path}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if s.hold, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if waitFor(5*time.Second, func() bool { return s.answers() }) {
		return true
	}
	s.kill()
	return false
}

func (s *redisServer) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *redisServer) url() string { return "redis://" + s.addr() + "/0" }

// client returns a client of the test's own.
func (s *redisServer) client(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *redisServer) answers() bool {
	c, err := net.DialTimeout("tcp", s.addr(), time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	b := make([]byte, 64)
	n, _ := c.Read(b)
	// One that asks for a password, or is still loading, is there too.
	return n > 0 && (b[0] == '+' || b[0] == '-')
}

func (s *redisServer) kill() {
	if s.cmd != nil {
		_ = s.hold.Close()
		_ = s.cmd.Wait() // which says that it was killed
		s.cmd = nil
	}
}

func (s *redisServer) stop() {
	s.kill()
	os.RemoveAll(s.dir)
}

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

func waitFor(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return true
		}
	}
	return false
}

// sharedRedis returns the URL of a server for all tests that do not harm it.
var sharedRedis = onceServers(func(t testing.TB) ([]*redisServer, string) {
	s := newRedis(t)
	return []*redisServer{s}, s.url()
})

// sharedCluster returns the URL of a cluster of three.
var sharedCluster = onceServers(func(t testing.TB) ([]*redisServer, string) {
	const nodes, slots = 3, 16384
	var servers []*redisServer
	for range nodes {
		servers = append(servers, newRedis(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"))
	}
	ctx := context.Background()
	do := func(s *redisServer, args ...any) string {
		c := redis.NewClient(&redis.Options{Addr: s.addr()})
		defer c.Close()
		v, err := c.Do(ctx, args...).Text()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}
	var addrs []string
	for i, s := range servers {
		do(s, "CLUSTER", "ADDSLOTSRANGE", i*slots/nodes, (i+1)*slots/nodes-1)
		do(s, "CLUSTER", "MEET", "127.0.0.1", servers[0].port)
		addrs = append(addrs, "addr="+s.addr())
	}
	for _, s := range servers {
		if !waitFor(20*time.Second, func() bool {
			info := do(s, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}) {
			t.Fatalf("the cluster did not come up: %s", do(s, "CLUSTER", "INFO"))
		}
	}
	return servers, "redis://" + servers[0].addr() + "?" + strings.Join(addrs[1:], "&")
})

// onceServers starts servers at the first call and has TestMain stop them.
func onceServers(start func(testing.TB) ([]*redisServer, string)) func(testing.TB) string {
	url := ""
	return func(t testing.TB) string {
		t.Helper()
		running.Lock()
		defer running.Unlock()
		if url == "" {
			var servers []*redisServer
			servers, url = start(t)
			running.servers = append(running.servers, servers...)
		}
		return url
	}
}

func openRedis(t testing.TB, url string) *Redis {
	t.Helper()
	s, err := OpenRedis(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// eachStore runs a test on every kind of store.
func eachStore(t *testing.T, f func(t *testing.T, store Store)) {
	t.Run("memory", func(t *testing.T) { f(t, NewMemory(1<<30)) })
	t.Run("pieces", func(t *testing.T) { f(t, pieces{NewMemory(1 << 30)}) })
	t.Run("redis", func(t *testing.T) { f(t, openRedis(t, sharedRedis(t))) })
	t.Run("cluster", func(t *testing.T) { f(t, openRedis(t, sharedCluster(t))) })
}
