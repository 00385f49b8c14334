package main

import "fmt"

// figures are what the targets are about.
type figures struct {
	small32, small1, result100K bool // were measured
	n32, s32, m32               ratio
	s1                          spread // of p50
	s100K                       ratio
	large, largePeak, largeM    float64 // seconds, times the payload
	fieldBytes, fieldP50        float64
	render, served              float64
	listens, idle               float64
	aborted                     []state
}

func (f *figures) calls(g grid, loads []load) {
	rate := func(m sample) float64 { return m.rate }
	p50 := func(m sample) float64 { return float64(m.p50) }
	for _, l := range loads {
		of, s := g.of(l, nameB), g.of(l, nameS)
		switch {
		case l.small && l.conns == 32:
			f.small32 = true
			f.n32, f.s32, f.m32 = ratioOf(of, g.of(l, nameN), rate), ratioOf(of, s, rate), ratioOf(of, g.of(l, nameM), rate)
		case l.small && l.conns == 1:
			f.small1 = true
			f.s1 = ratiosOf(of, s, p50)
		case l.args == `{"size":102400}`:
			f.result100K = true
			f.s100K = ratioOf(of, s, rate)
		}
	}
}

// A goal is one line of the table of targets: what is to be had at least, and what at best.
type goal struct {
	work, floor, best string
	measured          string
	floorMet, bestMet bool
	less              bool // it was measured with less than it is about
}

func (g goal) verdict() string {
	switch {
	case g.less:
		return "measured with less"
	case g.bestMet:
		return "goal met"
	case g.floorMet:
		return "floor met"
	default:
		return "missed"
	}
}

// goals compares what was measured with what was to be reached.
func (f *figures) goals(p *plan) []goal {
	var all []goal
	if f.small32 {
		g := goal{
			work: "small call, 32 connections, calls per second", floor: "0.35 x N, 2 x S", best: "0.5 x N, 3 x S",
			measured: fmt.Sprintf("%v x N, %v x S", f.n32, f.s32), floorMet: f.n32 >= .35 && f.s32 >= 2, bestMet: f.n32 >= .5 && f.s32 >= 3,
		}
		if f.m32 > 0 {
			g.measured += fmt.Sprintf(", %v x M", f.m32)
			g.floor, g.best = g.floor+", 12 x M", g.best+", 20 x M"
			g.floorMet, g.bestMet = g.floorMet && f.m32 >= 12, g.bestMet && f.m32 >= 20
		}
		all = append(all, g)
	}
	if f.small1 {
		all = append(all, goal{work: "small call, 1 connection, p50", floor: "1.0 x S", best: "0.8 x S", measured: fmt.Sprintf("%v x S (%v to %v)", ratio(f.s1.median), ratio(f.s1.low), ratio(f.s1.high)), floorMet: f.s1.median <= 1, bestMet: f.s1.median <= .8})
	}
	if f.result100K {
		all = append(all, goal{work: "100 KB result, 32 connections, calls per second", floor: "1.2 x S", best: "1.5 x S", measured: f.s100K.String() + " x S", floorMet: f.s100K >= 1.2, bestMet: f.s100K >= 1.5})
	}
	if f.large > 0 {
		g := goal{work: "50 MB text result, end to end", floor: "2 s", best: "1 s", measured: secondsText(f.large), floorMet: f.large <= 2, bestMet: f.large <= 1, less: p.large < 50<<20}
		if f.largeM > 0 {
			g.measured += " (M: " + secondsText(f.largeM) + ")"
		}
		all = append(all, g, goal{
			work: "the same, peak memory of the bridge over idle", floor: "5 x the payload", best: "3 x",
			measured: fmt.Sprintf("%.1f x", f.largePeak), floorMet: f.largePeak <= 5, bestMet: f.largePeak <= 3, less: g.less,
		})
	}
	if f.fieldBytes > 0 {
		all = append(all, goal{
			work: "a short field of a stored 50 MB artifact, from Redis", floor: "256 KB moved, p50 5 ms", best: "64 KB, 2 ms",
			measured: bytesText(int64(f.fieldBytes)) + ", " + secondsText(f.fieldP50),
			floorMet: f.fieldBytes <= 256<<10 && f.fieldP50 <= .005, bestMet: f.fieldBytes <= 64<<10 && f.fieldP50 <= .002, less: p.large < 50<<20,
		})
	}
	if f.render > 0 {
		all = append(all, goal{
			work: "document for 2,000 tools, rebuilt off the request path", floor: "1 s", best: "300 ms; served like a static file",
			measured: fmt.Sprintf("%s; %.2f x a bare handler with the same bytes", secondsText(f.render), f.served),
			floorMet: f.render <= 1, bestMet: f.render <= .3 && f.served > .8, less: p.tools < 2000,
		})
	}
	if f.idle > 0 {
		all = append(all, goal{
			work: "idle, 20 servers in the catalogue", floor: "60 MB RSS of the bridge alone, listening after 200 ms", best: "40 MB, 100 ms",
			measured: bytesText(int64(f.idle)) + ", " + secondsText(f.listens),
			floorMet: f.idle <= 60<<20 && f.listens <= .2, bestMet: f.idle <= 40<<20 && f.listens <= .1, less: p.servers < 20,
		})
	}
	if f.aborted != nil {
		g := goal{work: "10,000 aborted calls", floor: "no goroutine, slot, waiter or process left", best: "the same", measured: "nothing is left", floorMet: true, bestMet: true, less: p.waiters < 10000}
		for _, s := range f.aborted {
			if !s.none() {
				g.measured, g.floorMet, g.bestMet = s.String(), false, false
			}
		}
		all = append(all, g)
	}
	return all
}
