package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redisurl"
)

const (
	sharedTimeout = 100 * time.Millisecond // that a call waits for the shared rates at most
	sharedRetry   = time.Second            // after which they are tried again
)

// sharedRates are rates in a Redis, by GCRA. While it cannot be reached nobody waits
// for it: one call a second tries, and every bridge counts for itself.
type sharedRates struct {
	client  redis.UniversalClient
	limiter *redis_rate.Limiter
	timeout time.Duration // of an exchange
	log     *slog.Logger

	mu    sync.Mutex
	down  bool      // guarded by mu
	retry time.Time // when to try again if it is down, guarded by mu
}

// NewSharedBudget returns a budget whose rates are shared by all bridges that have
// the same Redis, at a URL that [redisurl.Options] reads; the calls at a time are counted by each bridge.
// Nothing is connected yet. The error does not have the URL in it.
func NewSharedBudget(rawURL string, log *slog.Logger) (*Budget, error) {
	o, err := redisurl.Options(rawURL)
	if err != nil {
		return nil, err
	}
	o.DialTimeout, o.DialerRetries = sharedRetry, 1 // every exchange has sharedTimeout
	o.MaxRetries = 1                                // a connection may have died while it was idle
	client := redis.NewUniversalClient(o)
	b := NewBudget()
	b.rates = &sharedRates{client: client, limiter: redis_rate.NewLimiter(client), timeout: sharedTimeout, log: log}
	return b, nil
}

// Close ends the connections.
func (s *sharedRates) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

func (s *sharedRates) take(ctx context.Context, a account, l bridge.Limits) (left float64, taken, ok bool) {
	if !s.mayTry() {
		return 0, false, false
	}
	tctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	limit := redis_rate.Limit{Rate: 1, Period: max(time.Duration(float64(time.Second)/l.PerSecond), 1), Burst: max(l.Burst, 1)}
	r, err := s.limiter.Allow(tctx, a.key(), limit)
	if ctx.Err() != nil {
		return 0, false, false // the caller went away, which says nothing about the Redis
	}
	s.note(ctx, err)
	if err != nil {
		return 0, false, false
	}
	return float64(limit.Burst) - r.ResetAfter.Seconds()*l.PerSecond, r.Allowed > 0, true
}

// key names the account in the Redis. It says nothing about the caller, and no
// two accounts can share one, whatever is in their names.
func (a account) key() string {
	h := sha256.New()
	for _, s := range [...]string{a.id, a.owner.Tenant, a.owner.User} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	return "mcpbridge:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// mayTry reports whether the Redis is there, as far as is known, or it is this call's turn to find out.
func (s *sharedRates) mayTry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.down && now.Before(s.retry) {
		return false
	}
	s.retry = now.Add(sharedRetry)
	return true
}

// note keeps what an exchange says about the Redis, and logs when that changes.
func (s *sharedRates) note(ctx context.Context, err error) {
	s.mu.Lock()
	was := s.down
	s.down = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !was:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the Redis with the rates of callers cannot be used; each bridge counts for itself meanwhile", slog.String("error", err.Error()))
	case err == nil && was:
		s.log.LogAttrs(ctx, slog.LevelInfo, "the rates of callers are shared again")
	}
}
