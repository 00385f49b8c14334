package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// elicits is a call in whose middle the server asks something.
func elicits(ask func(context.Context, json.RawMessage) ([]byte, error)) *rpc.Request {
	r := request("ask", map[string]any{"text": "elicitation/create"})
	r.Ask = ask
	return r
}

func exclusive(t *testing.T) Options {
	o := fakeOptions(t, "plain")
	o.Elicitation, o.Exclusive = true, true
	return o
}

func TestAsk(t *testing.T) {
	c := dialFake(t, exclusive(t))
	got := do(t, c, elicits(func(_ context.Context, params json.RawMessage) ([]byte, error) {
		if string(params) != "{}" {
			t.Errorf("params = %s", params)
		}
		return []byte(`{"action":"accept","content":{"n":1.10}}`), nil
	}))
	if want := `{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"n":1.10}}}`; got != want {
		t.Errorf("the server was told %s, want %s", got, want)
	}
	got = do(t, c, elicits(func(context.Context, json.RawMessage) ([]byte, error) { return nil, errors.New("no") }))
	if !strings.Contains(got, `"id":"q","error":{"code":-32603`) {
		t.Errorf("a question that could not be answered was answered %s", got)
	}
}

// The time that a person takes is not the server's silence.
func TestAskStopsTheIdleClock(t *testing.T) {
	c := dialFake(t, exclusive(t))
	r := elicits(func(context.Context, json.RawMessage) ([]byte, error) {
		time.Sleep(600 * time.Millisecond)
		return []byte(`{"action":"decline"}`), nil
	})
	r.Idle, r.Total = 300*time.Millisecond, time.Minute
	if got := do(t, c, r); !strings.Contains(got, "decline") {
		t.Errorf("answer = %s", got)
	}
}

// A call that ends takes its question along.
func TestAskEndsWithTheCall(t *testing.T) {
	c := dialFake(t, exclusive(t))
	ctx, cancel := context.WithCancel(t.Context())
	asked, ended := make(chan struct{}), make(chan struct{})
	call := background(t, ctx, c, elicits(func(ctx context.Context, _ json.RawMessage) ([]byte, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	<-asked
	cancel()
	if a := <-call; !errors.Is(a.err, context.Canceled) {
		t.Errorf("err = %v", a.err)
	}
	<-ended
}

// Whose question it is must be beyond doubt: B must not answer A's.
func TestAskInDoubt(t *testing.T) {
	nobody := func(context.Context, json.RawMessage) ([]byte, error) {
		t.Error("somebody was asked")
		return []byte(`{}`), nil
	}
	refused := func(t *testing.T, got string) {
		t.Helper()
		if !strings.Contains(got, `"id":"q","error":{"code":`) {
			t.Errorf("the question was answered %s", got)
		}
	}
	t.Run("two calls", func(t *testing.T) {
		c := dialFake(t, exclusive(t))
		ctx, cancel := context.WithCancel(t.Context())
		other := request("never", nil)
		other.Ask = nobody
		call := background(t, ctx, c, other)
		waitFrames(t, c, 1)
		refused(t, do(t, c, elicits(nobody)))
		cancel()
		<-call
	})
	t.Run("not one at a time", func(t *testing.T) {
		o := exclusive(t)
		o.Exclusive = false
		refused(t, do(t, dialFake(t, o), elicits(nobody)))
	})
	t.Run("not offered", func(t *testing.T) {
		refused(t, do(t, dialFake(t, fakeOptions(t, "plain")), elicits(nobody)))
	})
	t.Run("a call that cannot be asked", func(t *testing.T) {
		refused(t, do(t, dialFake(t, exclusive(t)), elicits(nil)))
	})
}

// Elicitation is offered where a question can be tied to its call.
func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		elicitation, exclusive bool
		version                string
		want                   bool
	}{
		{true, true, sessionVersion, true},
		{true, false, sessionVersion, false},
		{true, false, statelessVersion, true},
		{false, true, statelessVersion, false},
	} {
		if got := offered(rpc.Options{Elicitation: tt.elicitation, Exclusive: tt.exclusive}, tt.version).Elicitation; got != tt.want {
			t.Errorf("%+v: offered %v", tt, got)
		}
	}
}
