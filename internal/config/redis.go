package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/redisurl"
)

const (
	redisKey     = "mcpbridge:servers" // a hash, so that all is in one place of a cluster: field -> version, space, entry
	redisChannel = "mcpbridge:servers" // gets a message after each write
	// redisMark is a field that stays when the last entry goes, so that a hash which
	// is not there says that Redis lost its data.
	redisMark = "."

	redisTimeout = 2 * time.Second
	redisPoll    = 30 * time.Second // between readings that nothing gave cause to
	redisRetry   = time.Second      // before the first try after a failure; then twice as long each time, up to redisPoll
)

// A Redis is a [Store] that several bridges share: a write through one of them is
// pushed to the others. When Redis cannot be reached, Load and Write fail after a bounded
// time, and Watch goes on trying. When it has lost its data, Load puts back what it last read.
type Redis struct {
	client redis.UniversalClient
	log    *slog.Logger

	mu    sync.Mutex
	known map[string]string // field -> value, as last loaded; guarded by mu
	last  map[string]string // the same, as last read or written; guarded by mu
	down  bool              // guarded by mu
}

var _ Store = (*Redis)(nil)

// OpenRedis returns the store at a URL, in the forms that [redisurl.Options] reads. It does
// not connect yet. The error does not contain the URL.
func OpenRedis(rawURL string, log *slog.Logger) (*Redis, error) {
	o, err := redisurl.Options(rawURL)
	if err != nil {
		return nil, err
	}
	// Nothing is tried twice: a write whose answer was lost may have been done.
	o.DialTimeout, o.DialerRetries, o.MaxRetries = redisTimeout/2, 1, -1
	return &Redis{client: redis.NewUniversalClient(o), log: cmp.Or(log, slog.New(slog.DiscardHandler))}, nil
}

// Name implements [Store].
func (s *Redis) Name() string { return "redis" }

// Close implements [Store].
func (s *Redis) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// Load implements [Store].
func (s *Redis) Load(ctx context.Context) ([]Entry, error) {
	fields, err := s.fields(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.known = fields
	s.mu.Unlock()
	entries := make([]Entry, 0, len(fields))
	for field, value := range fields {
		if field != redisMark {
			entries = append(entries, redisEntry(field, value))
		}
	}
	return entries, nil
}

func redisEntry(field, value string) Entry {
	var k [3]string
	if err := json.Unmarshal([]byte(field), &k); err != nil {
		return Entry{Err: errors.New("its field in Redis names no server")}
	}
	version, data, _ := strings.Cut(value, " ")
	return newRecord(EntryKey{Handle: k[0], User: k[1], Tenant: k[2]}, version, json.RawMessage(data)).entry()
}

func redisField(k EntryKey) string {
	b, err := json.Marshal([3]string{k.Handle, k.User, k.Tenant})
	if err != nil {
		panic(err) // three texts
	}
	return string(b)
}

// fields reads all there is. What Redis has lost it gets back.
func (s *Redis) fields(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	fields, err := s.client.HGetAll(ctx, redisKey).Result()
	if err == nil && len(fields) == 0 {
		s.mu.Lock()
		last := maps.Clone(s.last)
		s.mu.Unlock()
		if len(last) > 0 {
			fields, err = s.restore(ctx, last)
		}
	}
	s.note(ctx, err)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	s.mu.Lock()
	s.last = maps.Clone(fields)
	s.mu.Unlock()
	return fields, nil
}

// restoreScript gives a hash that is not there its fields, and returns the fields there are.
var restoreScript = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then
	for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return redis.call('HGETALL', KEYS[1])`)

func (s *Redis) restore(ctx context.Context, last map[string]string) (map[string]string, error) {
	var args []any
	for field, value := range last {
		args = append(args, field, value)
	}
	list, err := restoreScript.Run(ctx, s.client, []string{redisKey}, args...).StringSlice()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[list[i]] = list[i+1]
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "redis has lost the servers that it held; they are put back", slog.Int("servers", len(fields)-1))
	return fields, nil
}

// note logs when Redis goes, and when it is back.
func (s *Redis) note(ctx context.Context, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	was := s.down
	s.down = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !was:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the servers in redis cannot be read; those that are known stay", slog.Any("error", err))
	case err == nil && was:
		s.log.LogAttrs(ctx, slog.LevelInfo, "redis is there again")
	}
}

// Watch implements [Store].
func (s *Redis) Watch(ctx context.Context, changed func()) {
	sub := s.client.Subscribe(ctx, redisChannel)
	defer sub.Close()
	// The library connects again when the connection breaks, and tells of that too:
	// what was published meanwhile is lost.
	news := sub.ChannelWithSubscriptions()
	wait := redisRetry
	timer := time.NewTimer(0) // something may have happened before the watch began
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			drain(news)
		case <-timer.C:
		}
		differs, err := s.differs(ctx)
		if err != nil {
			timer.Reset(wait)
			wait = min(2*wait, redisPoll)
			continue
		}
		wait = redisRetry
		timer.Reset(redisPoll)
		if differs {
			changed()
		}
	}
}

// drain takes what there is: many messages are one piece of news.
func drain(news <-chan any) {
	for {
		select {
		case <-news:
		default:
			return
		}
	}
}

// differs reports whether there is something else than was loaded.
func (s *Redis) differs(ctx context.Context) (bool, error) {
	fields, err := s.fields(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !maps.Equal(fields, s.known), nil
}

// writeScript writes one field if its version is as wanted, and tells everybody. Its
// arguments are the field, the new value or nothing, the channel, how to compare, and versions.
var writeScript = redis.NewScript(`
local have = redis.call('HGET', KEYS[1], ARGV[1])
local version = ''
if have then version = string.match(have, '^[^ ]*') end
if ARGV[4] == 'new' and have then return {'refused', version} end
if ARGV[4] == 'match' then
	local good = false
	for i = 5, #ARGV do
		if have and (ARGV[i] == '*' or ARGV[i] == version) then good = true end
	end
	if not good then return {'refused', version} end
end
if ARGV[2] ~= '' then
	redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], '` + redisMark + `', '1')
elseif have then
	redis.call('HDEL', KEYS[1], ARGV[1])
else
	return {'absent', ''}
end
redis.call('PUBLISH', ARGV[3], 'changed')
return {'written', version}`)

// Write implements [Store].
func (s *Redis) Write(ctx context.Context, key EntryKey, data json.RawMessage, c Condition) (Entry, bool, error) {
	e := Entry{Key: key}
	value := ""
	if data != nil {
		e.Version, e.Data = newVersion(), data
		value = e.Version + " " + string(data)
	}
	args := []any{redisField(key), value, redisChannel}
	switch {
	case c.New:
		args = append(args, "new")
	case c.Versions != nil:
		args = append(args, "match")
		for _, v := range c.Versions {
			args = append(args, v)
		}
	default:
		args = append(args, "any")
	}
	// What Redis has lost must be back before somebody else's entry makes it look whole.
	if _, err := s.fields(ctx); err != nil {
		return Entry{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	answer, err := writeScript.Run(ctx, s.client, []string{redisKey}, args...).StringSlice()
	s.note(ctx, err)
	if err != nil {
		return Entry{}, false, fmt.Errorf("redis: %w", err)
	}
	switch answer[0] {
	case "refused":
		return Entry{}, false, &VersionError{Current: answer[1]}
	case "absent":
		return Entry{}, false, ErrNoEntry
	}
	s.mu.Lock()
	if delete(s.last, redisField(key)); value != "" {
		s.last[redisField(key)], s.last[redisMark] = value, "1"
	}
	s.mu.Unlock()
	return e, answer[1] != "", nil
}
