package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"mcpbridge/internal/bridge"
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
	log     *slog.Logger

	mu    sync.Mutex
	down  bool      // guarded by mu
	retry time.Time // when to try again if it is down, guarded by mu
}

// NewSharedBudget returns a budget whose rates are shared by all bridges that have
// the same Redis; the calls at a time are counted by each bridge. The URL has one of the forms
//
//	redis://user:password@host:port/db        one server; rediss:// with TLS
//	…?master_name=name&addr=host:port         sentinels
//	…?addr=host:port&addr=host:port           the nodes of a cluster
//
// Nothing is connected yet. The error does not have the URL in it.
func NewSharedBudget(rawURL string, log *slog.Logger) (*Budget, error) {
	o, err := redisOptions(rawURL)
	if err != nil {
		return nil, errors.New("not the URL of a Redis")
	}
	client := redis.NewUniversalClient(o)
	b := NewBudget()
	b.rates = &sharedRates{client: client, limiter: redis_rate.NewLimiter(client), log: log}
	return b, nil
}

// redisOptions reads a URL, whatever form it has.
func redisOptions(rawURL string) (*redis.UniversalOptions, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	o := &redis.UniversalOptions{}
	switch q := u.Query(); {
	case q.Has("master_name"):
		f, err := redis.ParseFailoverURL(rawURL)
		if err != nil {
			return nil, err
		}
		o.MasterName, o.Addrs, o.DB, o.TLSConfig = f.MasterName, f.SentinelAddrs, f.DB, f.TLSConfig
		o.Username, o.Password, o.SentinelUsername, o.SentinelPassword = f.Username, f.Password, f.SentinelUsername, f.SentinelPassword
	case q.Has("addr"):
		c, err := redis.ParseClusterURL(rawURL)
		if err != nil {
			return nil, err
		}
		o.IsClusterMode, o.Addrs, o.TLSConfig, o.Username, o.Password = true, c.Addrs, c.TLSConfig, c.Username, c.Password
	default:
		s, err := redis.ParseURL(rawURL)
		if err != nil {
			return nil, err
		}
		o.Addrs, o.DB, o.TLSConfig, o.Username, o.Password = []string{s.Addr}, s.DB, s.TLSConfig, s.Username, s.Password
	}
	o.ContextTimeoutEnabled = true // every exchange has sharedTimeout
	o.DialTimeout, o.DialerRetries = sharedRetry, 1
	o.MaxRetries = 1 // a connection may have died while it was idle
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
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
	tctx, cancel := context.WithTimeout(ctx, sharedTimeout)
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
