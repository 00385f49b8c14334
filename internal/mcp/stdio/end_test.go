package stdio

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

func ended(c *Conn) bool {
	select {
	case <-c.Done():
		return c.Err() != nil
	default:
		return false
	}
}

// Whoever learns of the end, in whatever way, sees it in Done and Err.
func TestEndIsSeenFirst(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"exit":   func(c *Conn) { _, _ = c.Do(t.Context(), request("die", map[string]any{"n": 1})) },
		"kill":   func(c *Conn) { _ = syscall.Kill(c.Pid(), syscall.SIGKILL) },
		"output": func(c *Conn) { _, _ = c.Do(t.Context(), request("closeoutput", nil)) },
		"close":  func(c *Conn) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			o := fakeOptions(t, "plain")
			o.CancelGrace = time.Hour
			c := dialFake(t, o)
			var wg sync.WaitGroup
			var let atomic.Int32
			call := func(ctx context.Context) {
				r := request("never", nil)
				r.LetGo = func() {
					let.Add(1)
					if !ended(c) {
						t.Error("let go before the end is seen")
					}
				}
				_, err := c.Do(ctx, r)
				if ctx.Err() == nil && !ended(c) {
					t.Errorf("Do = %v before the end is seen", err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 4 {
				wg.Go(func() { call(t.Context()) })
				wg.Go(func() { call(ctx) })
			}
			waitFrames(t, c, 8)
			cancel()
			waitFrames(t, c, 12) // with the cancellations
			end(c)
			wg.Wait()
			<-c.gone
			call(t.Context()) // which is not sent
			if got := let.Load(); got != 9 {
				t.Errorf("let go %d times, want 9", got)
			}
		})
	}
}

// The end is seen when it is noticed, and not only when all is known of it.
func TestEndIsSeenAtOnce(t *testing.T) {
	notSent := func(t *testing.T, c *Conn, msg string) {
		t.Helper()
		_, err := c.Do(t.Context(), request("echo", nil))
		if f := failure(t, err); f.Reason != rpc.NotSent || !strings.HasPrefix(f.Msg, msg) {
			t.Errorf("Do = %s: %q, want %q", f.Reason, f.Msg, msg)
		}
	}
	for msg, why := range map[string]cause{
		"it closed its output":                  {},
		"it closed its input (file exists)":     {write: syscall.EEXIST},
		"the server did not read its input for": {write: errStuck},
		"the connection was closed":             {closed: true},
	} {
		t.Run(msg, func(t *testing.T) {
			c := dialFake(t, fakeOptions(t, "plain"))
			ch := background(t, t.Context(), c, request("never", nil))
			waitFrames(t, c, 1)
			c.end(why)
			if !ended(c) {
				t.Error("the end is not seen")
			}
			notSent(t, c, msg)
			if f := failure(t, (<-ch).err); f.Reason != rpc.Lost || !strings.HasPrefix(f.Msg, msg) {
				t.Errorf("the call under way = %s: %q, want %q", f.Reason, f.Msg, msg)
			}
		})
	}
	t.Run("the process exits and another holds its pipes", func(t *testing.T) {
		c := dialFake(t, fakeOptions(t, "plain"))
		tag := tag()
		do(t, c, request("escape", map[string]any{"path": sh(t), "text": tag}))
		t.Cleanup(func() {
			for _, pid := range tagged(t, tag) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		_ = syscall.Kill(c.Pid(), syscall.SIGKILL)
		<-c.Done()
		select {
		case <-c.heard:
			t.Error("the end was seen only when all was read")
		default:
		}
		notSent(t, c, "the process was ended by a signal (killed)")
	})
}

// Callers who look for another connection when Done is closed, and try again at
// once, find a live one.
func TestRetryUnderLoad(t *testing.T) {
	const callers, rounds = 60, 5
	var mu sync.Mutex
	cur := dialFake(t, fakeOptions(t, "plain"))
	connect := func() (*Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if !ended(cur) {
			return cur, nil
		}
		c, err := Dial(t.Context(), fakeOptions(t, "plain"))
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = c.Close() })
		cur = c
		return c, nil
	}
	var answered, refused atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			var before *Conn // the one that said NotSent
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := connect()
				if err != nil {
					t.Error(err)
					return
				}
				_, err = c.Do(t.Context(), request("echo", nil))
				f, _ := errors.AsType[*rpc.Failure](err)
				switch {
				case err == nil:
					answered.Add(1)
					before = nil
				case f == nil:
					t.Errorf("Do = %v", err)
					return
				case !ended(c):
					t.Errorf("%s before the end is seen", f.Reason)
					return
				case f.Reason == rpc.NotSent && before == c:
					t.Error("one connection said twice in a row that nothing was sent")
					return
				case f.Reason == rpc.NotSent:
					refused.Add(1)
					before = c
				}
			}
		})
	}
	for round := range rounds {
		want := answered.Load() + 2*callers
		eventually(t, "calls are answered", func() bool { return answered.Load() >= want || t.Failed() })
		mu.Lock()
		pid := cur.Pid()
		mu.Unlock()
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Logf("round %d: %d answered, %d refused", round, answered.Load(), refused.Load())
		eventually(t, "the connection is another", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return cur.Pid() != pid || t.Failed()
		})
	}
	close(stop)
	wg.Wait()
}
