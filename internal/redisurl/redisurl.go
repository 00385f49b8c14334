// Package redisurl reads the URL of a Redis, which says whether it is one server,
// sentinels or a cluster. It is a leaf, for all who keep something there.
package redisurl

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var errForm = errors.New("not the URL of a Redis: redis://host:port/db or rediss://…, with ?master_name= for sentinels or ?addr= for a cluster")

// quiet silences the library's own log, which has no levels; who uses it logs what matters.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var quietOnce sync.Once

// Options reads a URL. The forms are
//
//	redis://user:password@host:port/db        one server; rediss:// with TLS
//	…?master_name=name&addr=host:port         sentinels; the master's password as ?password=
//	…?addr=host:port&addr=host:port           the nodes of a cluster
//
// The contexts of commands have their deadlines kept. The error does not contain the
// URL, which may hold a password.
func Options(rawURL string) (*redis.UniversalOptions, error) {
	quietOnce.Do(func() { redis.SetLogger(quiet{}) })
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errForm
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errForm
	}
	o := &redis.UniversalOptions{
		ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case q.Has("master_name"):
		f, err := redis.ParseFailoverURL(rawURL)
		if err != nil {
			return nil, errForm
		}
		o.MasterName, o.Addrs, o.DB, o.TLSConfig = f.MasterName, f.SentinelAddrs, f.DB, f.TLSConfig
		o.Username, o.Password, o.SentinelUsername, o.SentinelPassword = f.Username, f.Password, f.SentinelUsername, f.SentinelPassword
		o.PoolSize, o.Protocol = f.PoolSize, f.Protocol
	case q.Has("addr"):
		c, err := redis.ParseClusterURL(rawURL)
		if err != nil {
			return nil, errForm
		}
		o.IsClusterMode, o.Addrs, o.TLSConfig, o.Username, o.Password = true, c.Addrs, c.TLSConfig, c.Username, c.Password
		o.PoolSize, o.Protocol = c.PoolSize, c.Protocol
	default:
		s, err := redis.ParseURL(rawURL)
		if err != nil {
			return nil, errForm
		}
		o.Addrs, o.DB, o.TLSConfig, o.Username, o.Password = []string{s.Addr}, s.DB, s.TLSConfig, s.Username, s.Password
		o.PoolSize, o.Protocol = s.PoolSize, s.Protocol
	}
	return o, nil
}
