package artifacts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// A closedStore takes nothing while it is down.
type closedStore struct {
	Store
	down bool
}

func (s *closedStore) put(ctx context.Context, r *record, parts []*record) (*record, error) {
	if s.down {
		return nil, unavailable(errors.New("nobody there"))
	}
	return s.Store.put(ctx, r, parts)
}

// An outage is one line when it begins, one from time to time, and one when it ends; each tells how many results it is about.
func TestOutageInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "error" || a.Key == "bytes" {
				return slog.Attr{}
			}
			return a
		}
		store := &closedStore{Store: NewMemory(4 << 10)}
		k := New(Options{Store: store, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: drop}))})
		calls := func(down bool, n int, pause time.Duration) {
			store.down = down
			for range n {
				if a := k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); (a == nil) != down {
					t.Errorf("down %v: %+v", down, a)
				}
				time.Sleep(pause)
			}
		}
		calls(false, 3, time.Second)
		calls(true, 25, time.Second) // 1 at once, 10 after 10 s, 10 after 20 s, 4 to come
		calls(false, 2, 0)
		calls(true, 3, 0) // within 10 s of the last line
		calls(false, 2, 0)
		time.Sleep(logEvery)
		calls(true, 1, 0)
		calls(false, 1, 0)
		for range 2 {
			k.Keep(t.Context(), ann, tool, structured(t, `"`+words(9000)+`"`), &bridge.Timing{})
		}
		lost := func(n string) string {
			return `msg="results are not kept as artifacts" lost=` + n + ` handle=demo tool=echo`
		}
		again := func(n string) string { return `msg="results are kept as artifacts again" lost=` + n }
		want := []string{lost("1"), lost("10"), lost("10"), again("4"), lost("4"), again("0"), lost("1"), lost("1")}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(log.String()), "\n")); diff != "" {
			t.Errorf("the log (-want +got):\n%s", diff)
		}
		if s := k.Stats(); s.Failed != 29 || s.TooBig != 2 {
			t.Errorf("Stats = %+v", s)
		}
	})
}
