package main

import (
	"context"
	"fmt"
	"time"
)

// coldStart measures a bridge with many servers: when it listens, when it is ready, and what it takes.
func (b *bench) coldStart(ctx context.Context) error {
	var listens, ready, rss, peak []float64
	for range b.rounds {
		began := time.Now()
		s, err := b.startBridge(ctx, nameB, setup{servers: b.servers})
		if err != nil {
			return err
		}
		err = func() error {
			if err := s.own.listening(ctx); err != nil {
				return err
			}
			listens = append(listens, time.Since(began).Seconds())
			if err := s.allReady(ctx); err != nil {
				return err
			}
			ready = append(ready, time.Since(began).Seconds())
			time.Sleep(2 * b.span)
			own, _ := s.pids()
			rss, peak = append(rss, float64(memory(own, "VmRSS"))), append(peak, float64(memory(own, "VmHWM")))
			return nil
		}()
		s.stop()
		if err != nil {
			return err
		}
	}
	size := func(n float64) string { return bytesText(int64(n)) }
	b.figures.listens, b.figures.idle = spreadAll(listens).median, spreadAll(rss).median
	b.sections = append(b.sections, section{
		title: fmt.Sprintf("Start, %d servers in the catalogue", b.servers), head: []string{"", "", "lowest to highest"},
		rows: [][]string{
			{"listens after", secondsText(spreadAll(listens).median), between(listens, secondsText)},
			{"all servers connected and listed after", secondsText(spreadAll(ready).median), between(ready, secondsText)},
			{"memory (RSS) of the bridge alone, idle", size(spreadAll(rss).median), between(rss, size)},
			{"its peak by then", size(spreadAll(peak).median), between(peak, size)},
		},
	})
	return nil
}

// allReady waits until the bridge says that it is ready.
func (s *subject) allReady(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); ; {
		a, _, err := once(ctx, get(s.addr, "/readyz", ""))
		if err == nil && a.status == 200 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the bridge does not get ready: HTTP %d, %w", a.status, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}
