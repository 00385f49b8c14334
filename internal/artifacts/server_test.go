package artifacts

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/redistest"
)

// running holds the servers that several tests share; TestMain stops them.
var running struct {
	sync.Mutex
	servers []*redistest.Server
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range running.servers {
		s.Stop()
	}
	os.Exit(code)
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
var sharedRedis = onceServers(func(t testing.TB) ([]*redistest.Server, string) {
	s := redistest.New(t)
	return []*redistest.Server{s}, s.URL()
})

// sharedCluster returns the URL of a cluster of three.
var sharedCluster = onceServers(func(t testing.TB) ([]*redistest.Server, string) {
	servers := redistest.NewCluster(t)
	return servers, redistest.ClusterURL(servers)
})

// onceServers starts servers at the first call and has TestMain stop them.
func onceServers(start func(testing.TB) ([]*redistest.Server, string)) func(testing.TB) string {
	url := ""
	return func(t testing.TB) string {
		t.Helper()
		running.Lock()
		defer running.Unlock()
		if url == "" {
			var servers []*redistest.Server
			servers, url = start(t)
			running.servers = append(running.servers, servers...)
		}
		return url
	}
}

// clientOf returns a client of the test's own.
func clientOf(t testing.TB, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
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
