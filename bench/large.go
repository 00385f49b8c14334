package main

import (
	"context"
	"fmt"
	"time"
)

// largeResult measures one large text, each time on a process that has just started, so that
// nothing of an earlier one is in its memory.
func (b *bench) largeResult(ctx context.Context) error {
	l := load{tool: "text", args: fmt.Sprintf(`{"size":%d}`, b.large)}
	makers := []maker{b.bare(), b.sdk(), b.viaBridge(nameB, setup{bytes: 8 * b.large})}
	if b.redis != "" {
		makers = append(makers, b.viaBridge("bridge, Redis", setup{redis: true}))
	}
	makers = append(makers, b.viaBridge("bridge, HTTP", setup{http: true, bytes: 8 * b.large}))
	type result struct{ took, peak, own float64 }
	got := map[string][]result{}
	one := func(m maker) error {
		s, err := m.start(ctx)
		if err != nil {
			return err
		}
		defer s.stop()
		own, _ := s.pids()
		time.Sleep(300 * time.Millisecond) // for the garbage of the start to be seen as such
		idle, before := memory(own, "VmRSS"), cpu(own)
		forgetPeak(own)
		r := times(ctx, s.call(l.tool, l.args), 1, 1)
		if r.failed == nil && r.bytes < int64(b.large) {
			r.failed = fmt.Errorf("the answer has only %d bytes", r.bytes)
		}
		if r.failed != nil {
			return fmt.Errorf("%s: %w", m.name, r.failed)
		}
		got[m.name] = append(got[m.name], result{r.took.Seconds(), float64(memory(own, "VmHWM") - idle), (cpu(own) - before).Seconds()})
		return nil
	}
	for range b.few {
		for _, m := range makers {
			if err := one(m); err != nil {
				return err
			}
		}
	}
	if b.mcpo != "" && b.slowPeers {
		m := b.mcpoPeer()
		makers = append(makers, m)
		if err := one(m); err != nil {
			b.missing = append(b.missing, "mcpo with a large result: "+err.Error())
		}
	}
	sec := section{
		title: fmt.Sprintf("%s text result, end to end, on a process that has just started", sizeName(b.large)),
		head:  []string{"", "time", "lowest to highest", "CPU", "peak memory over idle", "x the payload"},
	}
	for _, m := range makers {
		if len(got[m.name]) == 0 {
			continue
		}
		took := spreadOf(got[m.name], func(r result) float64 { return r.took })
		peak := spreadOf(got[m.name], func(r result) float64 { return r.peak }).median
		sec.rows = append(sec.rows, []string{
			m.name, secondsText(took.median), secondsText(took.low) + " to " + secondsText(took.high),
			secondsText(spreadOf(got[m.name], func(r result) float64 { return r.own }).median), bytesText(int64(peak)), fmt.Sprintf("%.1f", peak/float64(b.large)),
		})
		if m.name == nameB {
			b.figures.large, b.figures.largePeak = took.median, peak/float64(b.large)
		}
		if m.name == nameM {
			b.figures.largeM = took.median
		}
	}
	b.sections = append(b.sections, sec)
	return nil
}

func secondsText(s float64) string { return durationText(time.Duration(s * float64(time.Second))) }
