package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// A load is a call that is made again and again.
type load struct {
	name  string
	tool  string
	args  string
	conns int
	small bool
}

// turns is how often the load has its turn in a round. Where one connection has processes wake each
// other, what the machine makes of that differs most from turn to turn.
func (l load) turns() int {
	if l.conns == 1 {
		return 2
	}
	return 1
}

// smallText is what small calls bring and get.
const smallText = 100

func (p *plan) loads() []load {
	var all []load
	for _, n := range p.conns {
		all = append(all, smallLoad(n))
	}
	for _, size := range p.sizes {
		all = append(all, load{name: fmt.Sprintf("%s result, 32 connections", sizeName(size)), tool: "text", args: fmt.Sprintf(`{"size":%d}`, size), conns: 32})
	}
	return all
}

func smallLoad(conns int) load {
	text := quotedText(smallText)
	return load{
		name: fmt.Sprintf("small call (%d B), %s", smallText, plural(conns, "connection")),
		tool: "echo", args: fmt.Sprintf(`{"text":%s}`, text), conns: conns, small: true,
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return fmt.Sprintf("%d B", n)
	}
}

// A sample is one measurement of a load on a subject.
type sample struct {
	rate     float64       // calls per second
	p50, p99 time.Duration // of a call
	own      time.Duration // CPU time per call, of the subject's own process
	all      time.Duration // of that and of those that work for it: the MCP server, Redis
	load     time.Duration // of the load generator
	peak     int64         // memory of the subject's own process
}

// measure runs a load for a time, after a short one that does not count.
func measure(ctx context.Context, s *subject, l load, span time.Duration) (sample, error) {
	if s.own != nil {
		s.own.forgetLog()
	}
	req := s.call(l.tool, l.args)
	if r := repeat(ctx, req, l.conns, span/4); r.failed != nil {
		return sample{}, fmt.Errorf("%s: %s: %w", s.name, l.name, r.failed)
	}
	own, others := s.pids()
	forgetPeak(own)
	ownCPU, othersCPU, loadCPU := cpu(own), sumCPU(others), usage()
	r := repeat(ctx, req, l.conns, span)
	for ; r.calls == 0 && r.failed == nil; span *= 2 { // a machine that is busy with something else
		r = repeat(ctx, req, l.conns, span)
	}
	if r.failed != nil {
		return sample{}, fmt.Errorf("%s: %s: %w", s.name, l.name, r.failed)
	}
	n := time.Duration(r.calls)
	ownCPU, othersCPU, loadCPU = cpu(own)-ownCPU, sumCPU(others)-othersCPU, usage()-loadCPU
	return sample{
		rate: r.rate(), p50: r.at(.5), p99: r.at(.99),
		own: ownCPU / n, all: (ownCPU + othersCPU) / n, load: loadCPU / n, peak: memory(own, "VmHWM"),
	}, nil
}

func sumCPU(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		sum += cpu(pid)
	}
	return sum
}

// usage is the CPU time of this process.
func usage() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A grid holds the samples of all rounds, by load and subject.
type grid map[[2]string][]sample

func (g grid) add(l load, s string, m sample) {
	g[[2]string{l.name, s}] = append(g[[2]string{l.name, s}], m)
}

func (g grid) of(l load, s string) []sample { return g[[2]string{l.name, s}] }

// callSubjects are those that get all calls.
func (b *bench) callSubjects() []maker {
	all := []maker{
		b.bare(), b.sdk(),
		b.viaBridge(nameB, setup{about: "the bridge, with limits that do not bind: over stdio, results kept in memory"}),
		b.viaBridge("bridge, HTTP", setup{about: "the same in front of the MCP server by Streamable HTTP", http: true}),
		b.viaBridge("bridge, API key", setup{about: "the same with callers that have a key", key: true}),
		b.viaBridge("bridge, once", setup{about: "the same with an Idempotency-Key on each call", once: true}),
	}
	if b.redis != "" {
		all = append(all,
			b.viaBridge("bridge, Redis", setup{about: "the same with results kept in a Redis", redis: true}),
			b.viaBridge("bridge, HTTP, Redis, API key", setup{about: "all of that together", http: true, redis: true, key: true}))
	}
	if b.mcpo != "" {
		all = append(all, b.mcpoPeer())
	}
	for name, at := range b.peers {
		all = append(all, b.urlPeer(name, at))
	}
	return all
}

// calls measures calls of all sizes over few and many connections. In each round each subject has each
// load once, so that whatever else the machine does meanwhile meets them all alike.
func (b *bench) calls(ctx context.Context) error {
	loads, g := b.loads(), grid{}
	var started []maker
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			s.stop()
		}
	}()
	for _, m := range b.callSubjects() {
		s, err := m.start(ctx)
		if err != nil && m.foreign && ctx.Err() == nil {
			b.missing = append(b.missing, m.name+", which does not start")
			fmt.Fprintf(b.out, "%s does not start: %v\n", m.name, err)
			continue
		}
		if err != nil {
			return err
		}
		subjects, started = append(subjects, s), append(started, m)
	}
	for round := range b.rounds {
		for _, l := range loads {
			for i := range subjects {
				s := subjects[(i+round)%len(subjects)]
				if s.redis != nil {
					if err := s.redis.empty(ctx); err != nil {
						return err
					}
				}
				for range l.turns() {
					m, err := measure(ctx, s, l, b.span)
					if err != nil {
						return err
					}
					g.add(l, s.name, m)
				}
			}
		}
	}
	b.reportCalls(g, loads, started)
	return nil
}

func (b *bench) reportCalls(g grid, loads []load, makers []maker) {
	about := section{title: "What is measured", head: []string{"", ""}}
	for _, m := range makers {
		about.rows = append(about.rows, []string{m.name, m.about})
	}
	b.sections = append(b.sections, about)
	for _, l := range loads {
		sec := section{title: upper(l.name), head: []string{"", "calls/s", "lowest to highest", "x N", "x S", "x M", "p50", "p99", "CPU/call", "with its servers", "peak memory"}}
		p := panel{title: upper(l.name), unit: "calls per second"}
		for _, m := range makers {
			ms := g.of(l, m.name)
			rate := spreadOf(ms, func(m sample) float64 { return m.rate })
			row := []string{m.name, number(rate.median), number(rate.low) + " to " + number(rate.high)}
			for _, base := range []string{nameN, nameS, nameM} {
				row = append(row, ratioOf(ms, g.of(l, base), func(m sample) float64 { return m.rate }).String())
			}
			row = append(row, times50(ms), times99(ms), cpuText(ms, func(m sample) time.Duration { return m.own }), cpuText(ms, func(m sample) time.Duration { return m.all }),
				bytesText(int64(spreadOf(ms, func(m sample) float64 { return float64(m.peak) }).median)))
			sec.rows = append(sec.rows, row)
			p.bars = append(p.bars, bar{m.name, rate})
		}
		b.sections = append(b.sections, sec)
		if l.conns == 32 {
			b.chart = append(b.chart, p)
		}
	}
	gen := make([]sample, 0, len(makers))
	for _, m := range makers {
		for _, l := range loads {
			if l.small && l.conns > 1 {
				gen = append(gen, g.of(l, m.name)...)
			}
		}
	}
	b.sections[len(b.sections)-1].foot = "The load generator, a process beside all of them on the same cores, took " + cpuText(gen, func(m sample) time.Duration { return m.load }) + " of CPU for a small call. " +
		"Most of the bridge's peak memory is its store of results, which holds 256 MiB, and what the garbage collector lets pile up beside it."
	b.figures.calls(g, loads)
}

func times50(ms []sample) string {
	return durationText(time.Duration(spreadOf(ms, func(m sample) float64 { return float64(m.p50) }).median))
}

func times99(ms []sample) string {
	return durationText(time.Duration(spreadOf(ms, func(m sample) float64 { return float64(m.p99) }).median))
}

func cpuText(ms []sample, of func(sample) time.Duration) string {
	return durationText(time.Duration(spreadOf(ms, func(m sample) float64 { return float64(of(m)) }).median))
}

// A spread is a median, and what it is the median of.
type spread struct{ low, median, high float64 }

func spreadOf[T any](all []T, of func(T) float64) spread {
	vs := make([]float64, 0, len(all))
	for _, v := range all {
		vs = append(vs, of(v))
	}
	return spreadAll(vs)
}

func spreadAll(vs []float64) spread {
	if len(vs) == 0 {
		return spread{}
	}
	vs = slices.Sorted(slices.Values(vs))
	median := vs[len(vs)/2]
	if len(vs)%2 == 0 {
		median = (median + vs[len(vs)/2-1]) / 2
	}
	return spread{vs[0], median, vs[len(vs)-1]}
}

// ratioOf is the median of the ratios of each round: what disturbed a round disturbed both.
func ratioOf(ms, base []sample, of func(sample) float64) ratio {
	return ratio(ratiosOf(ms, base, of).median)
}

func ratiosOf(ms, base []sample, of func(sample) float64) spread {
	var rs []float64
	for i := range min(len(ms), len(base)) {
		if d := of(base[i]); d > 0 {
			rs = append(rs, of(ms[i])/d)
		}
	}
	return spreadAll(rs)
}

// A ratio of 0 is none.
type ratio float64

func (r ratio) String() string {
	switch {
	case r == 0:
		return ""
	case r < 10:
		return fmt.Sprintf("%.2f", float64(r))
	default:
		return fmt.Sprintf("%.0f", float64(r))
	}
}
