package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

func (s *redisServer) client() *redis.Client { return redis.NewClient(&redis.Options{Addr: s.addr}) }

// sent returns how many bytes the server has sent so far.
func (s *redisServer) sent(ctx context.Context) (int64, error) {
	c := s.client()
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
	n, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseInt(n, 10, 64)
}

// empty forgets everything, so that no load finds what another has left.
func (s *redisServer) empty(ctx context.Context) error {
	c := s.client()
	defer func() { _ = c.Close() }()
	return c.FlushAll(ctx).Err()
}
