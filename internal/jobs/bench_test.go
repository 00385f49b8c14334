package jobs

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

func benchTool(b *testing.B) tool {
	r, err := bridge.ParseResult([]byte(`{"structuredContent":{"n":1}}`))
	if err != nil {
		b.Fatal(err)
	}
	return func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		return &bridge.Answer{Result: r}, nil
	}
}

// What a key adds to a call that takes no time: in memory, and with a claim in Redis.
func BenchmarkOnce(b *testing.B) {
	run := func(b *testing.B, m *Manager) {
		var n atomic.Int64
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				c := bridge.Call{Tool: "t", Args: []byte(`{}`), Caller: ann}
				j, _, err := m.Once(b.Context(), &c, strconv.FormatInt(n.Add(1), 10))
				if err != nil {
					b.Error(err)
					return
				}
				<-j.Done()
			}
		})
	}
	b.Run("memory", func(b *testing.B) {
		m := New(Options{Invoke: benchTool(b), Compile: compile})
		b.Cleanup(func() { m.Close() })
		run(b, m)
	})
	b.Run("redis", func(b *testing.B) {
		run(b, newReplica(b, clientOf(b, redistest.Start(b)), Options{}, benchTool(b)).Manager)
	})
}

// From a job's progress to another bridge's knowing of it.
func BenchmarkFollow(b *testing.B) {
	c := clientOf(b, redistest.Start(b))
	step := make(chan struct{})
	here := newReplica(b, c, Options{}, func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) {
		for {
			select {
			case <-step:
				c.Progress(json.RawMessage(`{"progress":1}`))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	there := newReplica(b, c, Options{}, nil)
	j, err := here.Submit(b.Context(), &bridge.Call{Caller: ann})
	if err != nil {
		b.Fatal(err)
	}
	here.Show(b.Context(), j)
	var last uint64
	for b.Loop() {
		step <- struct{}{}
		for told := false; !told; {
			_, events, more, err := there.Changes(b.Context(), ann, j.ID(), last)
			if err != nil {
				b.Fatal(err)
			}
			if told = len(events) > 0; told {
				last = events[len(events)-1].ID
				break
			}
			<-more
		}
	}
}
