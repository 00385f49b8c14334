package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// idleWaiters measures what calls cost that wait: for their server, and in line. Then their callers hang up.
func (b *bench) idleWaiters(ctx context.Context) error {
	sec := section{
		title: fmt.Sprintf("%d calls that wait, and then are given up", b.waiters),
		head:  []string{"", "small calls/s beside them", "p50", "CPU/call", "memory of each", "left of them, after"},
		foot:  "Left of them are goroutines, slots, calls in line and processes of the bridge, compared with before, once their callers have hung up; fewer than 20 goroutines more are those of idle connections. cancelGrace is 500 ms here.",
	}
	for _, w := range []struct{ name, server string }{
		{"calls that run", "echo"},
		{"calls in line for another server", "single"},
	} {
		s, err := b.startBridge(ctx, nameB, setup{single: true})
		if err != nil {
			return err
		}
		if err := b.waitersOf(ctx, s, w.name, w.server, &sec); err != nil {
			s.stop()
			return err
		}
		s.stop()
	}
	b.sections = append(b.sections, sec)
	return nil
}

func (b *bench) waitersOf(ctx context.Context, s *subject, name, server string, sec *section) error {
	l := smallLoad(32)
	beside := func(what string) error {
		var ms []sample
		for range b.few {
			m, err := measure(ctx, s, l, b.span)
			if err != nil {
				return err
			}
			ms = append(ms, m)
		}
		sec.rows = append(sec.rows, []string{
			what, number(spreadOf(ms, func(m sample) float64 { return m.rate }).median), times50(ms),
			cpuText(ms, func(m sample) time.Duration { return m.own }), "", "",
		})
		return nil
	}
	if err := beside("none"); err != nil {
		return err
	}
	own, _ := s.pids()
	before, err := s.state(ctx)
	if err != nil {
		return err
	}
	rss := memory(own, "VmRSS")
	held := make([]*client, 0, b.waiters)
	hangUp := func() {
		for _, c := range held {
			c.close()
		}
		held = nil
	}
	defer hangUp()
	req := post(s.addr, "/tools/"+server+"/"+silent, s.header, "{}")
	for range b.waiters {
		c, err := dial(ctx, s.addr)
		if err != nil {
			return err
		}
		held = append(held, c)
		if _, err := c.conn.Write(req.data); err != nil {
			return err
		}
	}
	if err := s.until(ctx, func(st state) bool { return st.inUse+st.waiting >= b.waiters }); err != nil {
		return fmt.Errorf("the calls do not wait: %w", err)
	}
	each := (memory(own, "VmRSS") - rss) / int64(b.waiters)
	if err := beside(fmt.Sprintf("%d %s", b.waiters, name)); err != nil {
		return err
	}
	sec.rows[len(sec.rows)-1][4] = bytesText(each)
	hangUp()
	began := time.Now()
	var left state
	err = s.until(ctx, func(st state) bool {
		left = state{st.inUse - before.inUse, st.waiting - before.waiting, st.goroutines - before.goroutines, st.processes - before.processes}
		return left.none()
	})
	if err != nil && !errors.Is(err, errStays) {
		return err
	}
	took := time.Since(began)
	if err := beside("after they are gone"); err != nil {
		return err
	}
	sec.rows[len(sec.rows)-1][5] = fmt.Sprintf("%v, %.1f s", left, took.Seconds())
	b.figures.aborted = append(b.figures.aborted, left)
	return nil
}

// A state is what a bridge holds at a moment.
type state struct{ inUse, waiting, goroutines, processes int }

// none reports whether nothing of the calls is left. Some goroutines more or less are those of connections that are idle.
func (s state) none() bool {
	return s.inUse <= 0 && s.waiting <= 0 && s.processes <= 0 && s.goroutines < 20
}

func (s state) String() string {
	if s.none() {
		return "nothing"
	}
	return fmt.Sprintf("%d slots, %d waiting, %d goroutines, %d processes", s.inUse, s.waiting, s.goroutines, s.processes)
}

var errStays = errors.New("it does not come to that")

// until waits until the bridge's state is as wanted, for half a minute at most.
func (s *subject) until(ctx context.Context, wanted func(state) bool) error {
	for end := time.Now().Add(30 * time.Second); ; {
		st, err := s.state(ctx)
		if err != nil {
			return err
		}
		if wanted(st) {
			return nil
		}
		if time.Now().After(end) {
			return errStays
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// state asks the bridge for its state.
func (s *subject) state(ctx context.Context) (st state, err error) {
	_, body, err := once(ctx, get(s.addr, "/status", s.header))
	if err != nil {
		return st, err
	}
	var status struct {
		Waiting, Processes int
		Gates              []struct {
			Name  string `json:"name"`
			InUse int    `json:"in_use"`
		}
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return st, err
	}
	st.waiting, st.processes = status.Waiting, status.Processes
	for _, g := range status.Gates {
		if g.Name == "mcp:stdio" {
			st.inUse = g.InUse
		}
	}
	_, body, err = once(ctx, get(s.addr, "/metrics", s.header))
	if err != nil {
		return st, err
	}
	_, rest, _ := strings.Cut(string(body), "\ngo_goroutines ")
	n, _, _ := strings.Cut(rest, "\n")
	st.goroutines, err = strconv.Atoi(n)
	return st, err
}
