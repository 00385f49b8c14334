package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// quiet silences the library's own log.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// clientOf returns a client like that of the store of results.
func clientOf(t testing.TB, s *redistest.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: 1, DialerRetries: 1, DialTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

// startCluster starts a cluster of three and returns a client of it.
func startCluster(t *testing.T) redis.UniversalClient {
	t.Helper()
	var addrs []string
	for _, s := range redistest.NewCluster(t) {
		t.Cleanup(s.Stop)
		addrs = append(addrs, s.Addr())
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
