package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// shortField measures reading short fields of a large result that is kept in a Redis.
func (b *bench) shortField(ctx context.Context) error {
	if b.redis == "" {
		return nil
	}
	s, err := b.startBridge(ctx, "bridge, Redis", setup{redis: true})
	if err != nil {
		return err
	}
	defer s.stop()
	made, _, err := once(ctx, s.call("records", fmt.Sprintf(`{"size":%d}`, b.large)))
	if err == nil {
		err = made.success()
	}
	if err == nil && made.ref == "" {
		err = fmt.Errorf("the result was not kept")
	}
	if err != nil {
		return err
	}
	c, err := dial(ctx, s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	read := func(pointer, want string) (time.Duration, error) {
		var body bytes.Buffer
		sent := time.Now()
		a, err := c.exchange(get(s.addr, "/artifacts/"+made.ref+"?pointer="+url.QueryEscape(pointer), s.header).data, &body)
		took := time.Since(sent)
		if err == nil {
			err = a.success()
		}
		if err == nil && strings.TrimSpace(body.String()) != want {
			err = fmt.Errorf("%s is %.100q, not %s", pointer, body.String(), want)
		}
		return took, err
	}
	sec := section{title: fmt.Sprintf("A short field of a %s artifact, from Redis", sizeName(b.large)), head: []string{"", "bytes moved", "p50", "p99"}}
	items := b.large / 500 // there are some more
	for _, f := range []struct {
		name string
		at   func(i int) (pointer, want string)
	}{
		{"the last member of the object", func(int) (string, string) { return "/last", `"a short field at the end"` }},
		{"a member of any item of its list", func(i int) (string, string) {
			n := i * 7919 % items
			return fmt.Sprintf("/items/%d/name", n), fmt.Sprintf(`"item %d"`, n)
		}},
	} {
		before, err := s.redis.sent(ctx)
		if err != nil {
			return err
		}
		r := run{}
		for i := range b.reads {
			took, err := read(f.at(i))
			if err != nil {
				return err
			}
			r.latencies = append(r.latencies, took)
		}
		after, err := s.redis.sent(ctx)
		if err != nil {
			return err
		}
		r.sort()
		moved := (after - before) / int64(b.reads)
		sec.rows = append(sec.rows, []string{f.name, bytesText(moved), durationText(r.at(.5)), durationText(r.at(.99))})
		b.figures.fieldBytes = max(b.figures.fieldBytes, float64(moved))
		b.figures.fieldP50 = max(b.figures.fieldP50, r.at(.5).Seconds())
	}
	b.sections = append(b.sections, sec)
	return nil
}
