package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	tests := []struct {
		name        string
		idle, total time.Duration
		progress    time.Duration // between two reports of it, for an hour; zero is none
		want        time.Duration // zero is never
	}{
		{"idle", 10 * time.Second, time.Minute, 0, 10 * time.Second},
		{"progress resets idle, never total", 10 * time.Second, time.Minute, 6 * time.Second, time.Minute},
		{"progress too late", 10 * time.Second, time.Minute, 11 * time.Second, 10 * time.Second},
		{"no total", 10 * time.Second, 0, 6 * time.Second, time.Hour + 10*time.Second},
		{"no idle", 0, time.Minute, 0, time.Minute},
		{"idle over total", time.Hour, time.Minute, 0, time.Minute},
		{"unbounded", 0, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, c := NewClock(t.Context(), tt.idle, tt.total)
				defer c.Stop()
				if tt.progress > 0 {
					go func() {
						for time.Since(start) < time.Hour {
							select {
							case <-ctx.Done():
								return
							case <-time.After(min(tt.progress, time.Hour-time.Since(start))):
								c.Progress()
							}
						}
					}()
				}
				select {
				case <-ctx.Done():
					if !errors.Is(context.Cause(ctx), ErrDeadline) {
						t.Errorf("cause = %v, want ErrDeadline", context.Cause(ctx))
					}
					if got := time.Since(start); got != tt.want {
						t.Errorf("up after %v, want exactly %v", got, tt.want)
					}
				case <-time.After(24 * time.Hour):
					if tt.want != 0 {
						t.Errorf("never up, want after %v", tt.want)
					}
				}
			})
		})
	}
}

func TestClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c := NewClock(t.Context(), time.Second, time.Minute)
		c.Stop()
		c.Stop() // must be harmless
		c.Progress()
		time.Sleep(time.Hour)
		if errors.Is(context.Cause(ctx), ErrDeadline) {
			t.Error("a stopped clock was up")
		}
	})
}

// While the idle time is held only the total counts; it starts anew with the last release.
func TestClockHold(t *testing.T) {
	tests := []struct {
		name        string
		idle, total time.Duration
		holds       []time.Duration // from the third second on, each so long
		want        time.Duration
	}{
		{"once", 10 * time.Second, time.Hour, []time.Duration{time.Minute}, 73 * time.Second},
		{"twice", 10 * time.Second, time.Hour, []time.Duration{time.Minute, 2 * time.Minute}, 133 * time.Second},
		{"never longer than the total", 10 * time.Second, time.Minute, []time.Duration{time.Hour}, time.Minute},
		{"no idle time", 0, time.Minute, []time.Duration{time.Second}, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, c := NewClock(t.Context(), tt.idle, tt.total)
				defer c.Stop()
				time.Sleep(3 * time.Second)
				for _, d := range tt.holds {
					release := c.Hold()
					time.AfterFunc(d, release)
					time.AfterFunc(d+time.Second, release) // harmless
				}
				c.Progress() // starts nothing
				<-ctx.Done()
				if got := time.Since(start); got != tt.want {
					t.Errorf("up after %v, want exactly %v", got, tt.want)
				}
			})
		})
	}
}

// A clock that is up, or was stopped, is not started by a release.
func TestClockHoldAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c := NewClock(t.Context(), time.Second, time.Hour)
		<-ctx.Done()
		c.Hold()()
		c.Stop()

		ctx, c = NewClock(t.Context(), time.Second, time.Hour)
		release := c.Hold()
		c.Stop()
		release()
		time.Sleep(time.Minute)
		if errors.Is(context.Cause(ctx), ErrDeadline) {
			t.Error("a stopped clock was up")
		}
	})
}
