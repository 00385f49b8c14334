package jobs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

// counts is a tool that runs, says how often it has, and may fail.
func counts(t *testing.T, n *atomic.Int64, err error) tool {
	return func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		if c.Tool == "refused" {
			return nil, err
		}
		c.Running()
		i := n.Add(1)
		if err != nil {
			return nil, err
		}
		return answers(t, strconv.FormatInt(i, 10))
	}
}

func once(t *testing.T, m *Manager, c bridge.Call, key string) (*Job, bool) {
	t.Helper()
	j, again, err := m.Once(t.Context(), &c, key)
	if err != nil {
		t.Fatal(err)
	}
	return j, again
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		m := manager(t, Options{KeyTTL: time.Hour}, counts(t, &n, nil))
		call := bridge.Call{Handle: "s", Tool: "t", Args: []byte(`{"a":1}`), Caller: ann}
		if j, err := m.Recall(t.Context(), &call, "k"); j != nil || err != nil {
			t.Errorf("before the first call: %v, %v", j, err)
		}
		first, again := once(t, m, call, "k")
		if again {
			t.Error("the first call is a repetition")
		}
		first.Leave(errors.New("hung up")) // it may come back
		second, again := once(t, m, call, "k")
		if !again || second != first {
			t.Error("the second call is not the first")
		}
		if a, err := second.Outcome(); err != nil || string(a.Result.Data()[0]) != "1" {
			t.Errorf("outcome = %v, %v", a, err)
		}
		if j, err := m.Recall(t.Context(), &call, "k"); j != first || err != nil {
			t.Errorf("recalled %v, %v", j, err)
		}

		// Another key, another caller: another call. Something else under the key is refused.
		other := call
		other.Caller = bridge.Caller{User: "bob"}
		for i, c := range []bridge.Call{call, other} {
			j, again := once(t, m, c, []string{"k2", "k"}[i])
			if a, _ := j.Outcome(); again || a == nil || string(a.Result.Data()[0]) != strconv.Itoa(i+2) {
				t.Errorf("call %d: again %v, %v", i, again, a)
			}
		}
		for _, c := range []bridge.Call{
			{Handle: "s", Tool: "t", Args: []byte(`{"a":2}`), Caller: ann},
			{Handle: "s", Tool: "t2", Args: call.Args, Caller: ann},
			{Handle: "st", Tool: "", Args: call.Args, Caller: ann},
		} {
			_, _, err := m.Once(t.Context(), &c, "k")
			wantKind(t, err, bridge.IdempotencyConflict, "was used before")
			_, err = m.Recall(t.Context(), &c, "k")
			wantKind(t, err, bridge.IdempotencyConflict, "was used before")
		}

		time.Sleep(time.Hour)
		if _, again := once(t, m, call, "k"); again {
			t.Error("the key is kept beyond its time")
		}
		if len(m.keys) != 1 || len(m.order) != 1 {
			t.Errorf("%d keys, %d in order, want one", len(m.keys), len(m.order))
		}
	})
}

// Many at once are one call, and all get its answer.
func TestOnceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		m := manager(t, Options{}, counts(t, &n, nil))
		for range 50 {
			go func() {
				c := bridge.Call{Tool: "t", Caller: ann}
				j, _, err := m.Once(t.Context(), &c, "k")
				if err != nil {
					t.Error(err)
					return
				}
				if a, err := j.Outcome(); err != nil || string(a.Result.Data()[0]) != "1" {
					t.Errorf("outcome = %v, %v", a, err)
				}
			}()
		}
		synctest.Wait()
		if n.Load() != 1 {
			t.Errorf("the tool ran %d times", n.Load())
		}
	})
}

// A failure is kept if the tool may have run, and only then.
func TestOnceFails(t *testing.T) {
	tests := []struct {
		tool string
		kind bridge.Kind
		kept bool
	}{
		{"t", bridge.OutcomeUnknown, true},
		{"t", bridge.ToolError, true},
		{"t", bridge.DeadlineExceeded, true},
		{"t", bridge.Unavailable, false}, // nothing was sent
		{"refused", bridge.DeadlineExceeded, false},
		{"refused", bridge.Overloaded, false},
	}
	for _, tt := range tests {
		var n atomic.Int64
		m := manager(t, Options{}, counts(t, &n, &bridge.Error{Kind: tt.kind, Msg: "no"}))
		call := bridge.Call{Tool: tt.tool, Caller: ann}
		j, _ := once(t, m, call, "k")
		_, err := j.Outcome()
		wantKind(t, err, tt.kind, "no")
		if _, again := once(t, m, call, "k"); again != tt.kept {
			t.Errorf("%s of %q: kept %v, want %v", tt.kind, tt.tool, again, tt.kept)
		}
	}
}

// What is kept is bounded; what runs is never forgotten.
func TestOnceIsBounded(t *testing.T) {
	const bytes = 1 << 20
	big := `"` + strings.Repeat("x", bytes/4) + `"`
	end := make(chan struct{})
	m := manager(t, Options{KeyBytes: bytes}, func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		if c.Tool == "long" {
			<-end
		}
		return answers(t, big)
	})
	long, _ := once(t, m, bridge.Call{Tool: "long", Caller: ann}, "long")
	for i := range 10 {
		j, _ := once(t, m, bridge.Call{Caller: ann}, strconv.Itoa(i))
		<-j.Done()
	}
	if len(m.keys) != 4 || m.keyedBytes > bytes {
		t.Errorf("%d keys with %d bytes are kept, want 4", len(m.keys), m.keyedBytes)
	}
	if _, again := once(t, m, bridge.Call{Caller: ann}, "9"); !again {
		t.Error("the latest is forgotten")
	}
	if j, again := once(t, m, bridge.Call{Tool: "long", Caller: ann}, "long"); !again || j != long {
		t.Error("a call that runs is forgotten")
	}
	close(end)
	<-long.Done()
}
