package main

import (
	"context"
	"fmt"
	"time"
)

// growth measures what a small call costs when there is more of everything.
func (b *bench) growth(ctx context.Context) error {
	makers := []maker{
		b.viaBridge("1 server, few tools, few artifacts", setup{bytes: 1 << 20}),
		b.viaBridge(fmt.Sprintf("a server of %d tools", b.tools), setup{bytes: 1 << 20, tools: b.tools}),
		b.viaBridge("50 servers", setup{bytes: 1 << 20, servers: 50}),
		b.viaBridge(fmt.Sprintf("%d artifacts kept", b.stored), setup{bytes: 1 << 30}),
	}
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			s.stop()
		}
	}()
	l := smallLoad(32)
	for _, m := range makers {
		s, err := m.start(ctx)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
		if err := s.ready(ctx); err != nil {
			return err
		}
		if err := s.allReady(ctx); err != nil {
			return err
		}
	}
	if r := times(ctx, subjects[len(subjects)-1].call(l.tool, l.args), 32, b.stored/32); r.failed != nil {
		return r.failed
	}
	got := make([][]sample, len(subjects))
	for round := range b.rounds {
		for i := range subjects {
			n := (i + round) % len(subjects)
			m, err := measure(ctx, subjects[n], l, b.span)
			if err != nil {
				return err
			}
			got[n] = append(got[n], m)
		}
	}
	sec := section{title: "Growth: a small call, 32 connections", head: []string{"", "calls/s", "lowest to highest", "x the first", "p50", "CPU/call"}}
	for i, m := range makers {
		rate := spreadOf(got[i], func(m sample) float64 { return m.rate })
		sec.rows = append(sec.rows, []string{
			m.name, number(rate.median), number(rate.low) + " to " + number(rate.high),
			ratioOf(got[i], got[0], func(m sample) float64 { return m.rate }).String(), times50(got[i]), cpuText(got[i], func(m sample) time.Duration { return m.own }),
		})
	}
	b.sections = append(b.sections, sec)
	return nil
}
