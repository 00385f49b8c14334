package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

var keyedCall = bridge.Call{Handle: "s", Tool: "t", Args: []byte(`{"a":1}`), Caller: ann}

// Many calls under one key on two bridges are one call, and all get its answer.
func TestOnceOnTwoBridges(t *testing.T) {
	eachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		var n atomic.Int64
		slow := func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
			c.Running()
			i := n.Add(1)
			time.Sleep(20 * time.Millisecond) // so that others come meanwhile
			return answers(t, fmt.Sprintf(`{"n":%d,"x":9007199254740993}`, i))
		}
		replicas := []*replica{newReplica(t, c, Options{}, slow), newReplica(t, c, Options{}, slow)}
		for round := range 10 {
			n.Store(0)
			var all sync.WaitGroup
			var first atomic.Int64
			for i := range 20 {
				all.Go(func() {
					call := keyedCall
					r := replicas[i%2]
					j, again, err := r.Once(t.Context(), &call, fmt.Sprint(round))
					if err != nil {
						t.Error(err)
						return
					}
					if !again {
						first.Add(1)
					}
					if a, err := j.Outcome(); err != nil || string(a.Result.Data()[0]) != `{"n":1,"x":9007199254740993}` {
						t.Errorf("outcome = %v, %v", a, err)
					}
				})
			}
			all.Wait()
			if n.Load() != 1 || first.Load() != 1 {
				t.Errorf("the tool ran %d times, and %d calls were the first", n.Load(), first.Load())
			}
		}
		wantTTLs(t, c)
	})
}

// What came of a call is the same on another bridge, whatever it is.
func TestOnceElsewhere(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	result := func(s string) *bridge.Result {
		r, err := bridge.ParseResult([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	parsed := result(`{"content":[{"type":"text","text":"{\"a\":1.10}"}]}`)
	parsed.SetData([]byte(`{"a":1.10}`))
	random := make([]byte, 64<<10)
	for i := range random {
		random[i] = 'a' + byte(rand.N(26))
	}
	outcomes := map[string]func() (*bridge.Answer, error){
		"plain": func() (*bridge.Answer, error) { return answers(t, `{"n":1.10}`) },
		"data":  func() (*bridge.Answer, error) { return &bridge.Answer{Result: parsed}, nil },
		"long": func() (*bridge.Answer, error) {
			return &bridge.Answer{Result: result(fmt.Sprintf(`{"structuredContent":"%s"}`, random)), Breach: "odd", Artifact: &bridge.Artifact{Ref: "mcp~x", Type: "mcp", Expires: time.Unix(9e9, 0).UTC()}}, nil
		},
		"tool error": func() (*bridge.Answer, error) {
			return nil, &bridge.Error{Kind: bridge.ToolError, Msg: "disk full", Result: result(`{"content":[],"isError":true}`), Members: map[string]any{"n": json.RawMessage(`9007199254740993`)}}
		},
		"deadline": func() (*bridge.Answer, error) { return nil, context.DeadlineExceeded },
		"unknown": func() (*bridge.Answer, error) {
			return nil, &bridge.Error{Kind: bridge.OutcomeUnknown, Msg: "lost", RetryAfter: time.Second, Err: errors.New("secret")}
		},
	}
	run := func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		return outcomes[c.Tool]()
	}
	never := func(context.Context, *bridge.Call) (*bridge.Answer, error) {
		t.Error("it is called twice")
		return nil, io.EOF
	}
	a, b := newReplica(t, c, Options{}, run), newReplica(t, c, Options{}, never)
	for name := range outcomes {
		call := bridge.Call{Tool: name, Caller: ann}
		here, _ := once(t, a.Manager, call, name)
		ha, herr := here.Outcome()
		if j, err := b.Recall(t.Context(), &call, name); err != nil || j == nil {
			t.Errorf("%s: recalled %v, %v", name, j, err)
		}
		there, again := once(t, b.Manager, call, name)
		ta, terr := there.Outcome()
		if !again || there.ID() != here.ID() {
			t.Errorf("%s: again %v, jobs %s and %s", name, again, here.ID(), there.ID())
		}
		if herr != nil {
			he, te := problemOf(herr), problemOf(terr)
			h, _ := json.Marshal(he)
			th, _ := json.Marshal(te)
			if string(h) != string(th) || strings.Contains(fmt.Sprint(terr), "secret") {
				t.Errorf("%s: here %s, there %s", name, h, th)
			}
			if e, ok := errors.AsType[*bridge.Error](herr); ok && e.Result != nil {
				if te, ok := errors.AsType[*bridge.Error](terr); !ok || te.Result == nil || !te.Result.IsError {
					t.Errorf("%s: %+v", name, terr)
				}
			}
			continue
		}
		if terr != nil {
			t.Errorf("%s: %v", name, terr)
			continue
		}
		if !bytes.Equal(ha.Result.Raw, ta.Result.Raw) || !bytes.Equal(bytes.Join(ha.Result.Data(), nil), bytes.Join(ta.Result.Data(), nil)) || ha.Breach != ta.Breach {
			t.Errorf("%s: here %+v, there %+v", name, ha, ta)
		}
		if (ha.Artifact == nil) != (ta.Artifact == nil) || ha.Artifact != nil && *ha.Artifact != *ta.Artifact {
			t.Errorf("%s: artifact here %+v, there %+v", name, ha.Artifact, ta.Artifact)
		}
	}
	// Something else under a key that only the other bridge knows.
	d := newReplica(t, c, Options{}, never)
	other := bridge.Call{Tool: "other", Caller: ann}
	_, _, err := d.Once(t.Context(), &other, "plain")
	wantKind(t, err, bridge.IdempotencyConflict, "was used before")
	_, err = d.Recall(t.Context(), &other, "plain")
	wantKind(t, err, bridge.IdempotencyConflict, "was used before")
	if _, again := once(t, d.Manager, bridge.Call{Tool: "plain", Caller: ann}, "plain"); !again {
		t.Error("after the conflict the key is not known any more")
	}
	if j, err := d.Recall(t.Context(), &other, "new"); j != nil || err != nil {
		t.Errorf("a new key: %v, %v", j, err)
	}
}

func TestOnceTooLarge(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	var n atomic.Int64
	big := func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		n.Add(1)
		return answers(t, `"`+strings.Repeat("x", maxKept)+`"`)
	}
	a, b := newReplica(t, c, Options{}, big), newReplica(t, c, Options{}, big)
	here, _ := once(t, a.Manager, keyedCall, "k")
	if _, err := here.Outcome(); err != nil {
		t.Error(err)
	}
	there, again := once(t, b.Manager, keyedCall, "k")
	_, err := there.Outcome()
	wantKind(t, err, bridge.OutcomeUnknown, "too large to be kept")
	if !again || n.Load() != 1 {
		t.Errorf("again %v, the tool ran %d times", again, n.Load())
	}
}

// A call that never reached the tool can be made again, anywhere.
func TestOnceNeverRan(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	end := make(chan error)
	tool := func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		if err := <-end; err != nil {
			return nil, err
		}
		c.Running()
		return answers(t, "1")
	}
	a, b := newReplica(t, c, Options{}, tool), newReplica(t, c, Options{}, tool)
	here, _ := once(t, a.Manager, keyedCall, "k")
	there, again := once(t, b.Manager, keyedCall, "k")
	if !again {
		t.Error("the second is the first")
	}
	end <- &bridge.Error{Kind: bridge.Unavailable, Msg: "The circuit is open."}
	_, err := here.Outcome()
	wantKind(t, err, bridge.Unavailable, "circuit")
	_, err = there.Outcome()
	wantKind(t, err, bridge.Unavailable, "make it again")
	there, again = once(t, b.Manager, keyedCall, "k")
	end <- nil
	if a, err := there.Outcome(); again || err != nil {
		t.Errorf("once more: again %v, %v, %v", again, a, err)
	}
}

// What the dead had under a key is unknown, and stays so.
func TestOnceBridgeDies(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	d := newReplica(t, c, Options{}, nil)
	b := newReplica(t, c, Options{}, nil)
	a := newReplica(t, c, Options{}, steps(t, nil))
	once(t, a.Manager, keyedCall, "k")
	there, _ := once(t, b.Manager, keyedCall, "k")
	a.kill()
	_, err := there.Outcome()
	wantKind(t, err, bridge.OutcomeUnknown, "is gone")
	there, again := once(t, d.Manager, keyedCall, "k")
	_, err = there.Outcome()
	wantKind(t, err, bridge.OutcomeUnknown, "is gone")
	if !again {
		t.Error("it is not kept")
	}
}

// Without Redis nobody knows who was first, so that nothing is run; what is known is known.
func TestOnceWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	var n atomic.Int64
	a := newReplica(t, clientOf(t, server), Options{}, counts(t, &n, nil))
	first, _ := once(t, a.Manager, keyedCall, "k")
	<-first.Done()
	server.Kill()
	for range 3 {
		call := keyedCall
		_, _, err := a.Once(t.Context(), &call, "k2")
		wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
		_, err = a.Recall(t.Context(), &call, "k2")
		wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
	}
	if j, again := once(t, a.Manager, keyedCall, "k"); !again || j != first {
		t.Error("what is known is not known")
	}
	if n.Load() != 1 {
		t.Errorf("the tool ran %d times", n.Load())
	}
	server.Restart(t)
	eventually(t, "it can be called again", func() bool {
		call := keyedCall
		j, again, err := a.Once(t.Context(), &call, "k2")
		if err != nil {
			return false
		}
		<-j.Done()
		return !again
	})
	// What Redis has lost is there again, too.
	b := newReplica(t, clientOf(t, server), Options{}, nil)
	eventually(t, "the first answer is there", func() bool {
		call := keyedCall
		j, err := b.Recall(t.Context(), &call, "k")
		return err == nil && j != nil
	})
}

// losing loses the answer to the first claim.
type losing struct{ lost atomic.Bool }

func (*losing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[0].Name() == "set" && len(cmds) == 2 && cmds[1].Name() == "get" && !l.lost.Swap(true) {
			cmds[0].SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		return err
	}
}

// A claim of which nobody knows whether it was made is taken back.
func TestOnceClaimLost(t *testing.T) {
	server := redistest.Start(t)
	c := clientOf(t, server)
	l := &losing{}
	c.AddHook(l)
	var n atomic.Int64
	a := newReplica(t, c, Options{}, counts(t, &n, nil))
	call := keyedCall
	_, _, err := a.Once(t.Context(), &call, "k")
	wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
	if !l.lost.Load() {
		t.Fatal("no claim was seen")
	}
	b := newReplica(t, clientOf(t, server), Options{}, counts(t, &n, nil))
	eventually(t, "it can be called", func() bool {
		j, again, err := b.Once(t.Context(), &call, "k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.Outcome()
		return err == nil && !again
	})
	if n.Load() != 1 {
		t.Errorf("the tool ran %d times", n.Load())
	}
}

// A repetition at another bridge is asked what the first call is, and both find the job.
func TestOnceAsksElsewhere(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a, b := newReplica(t, c, Options{}, asks(t, questions)), newReplica(t, c, Options{}, nil)
	here, _ := once(t, a.Manager, keyedCall, "k")
	there, _ := once(t, b.Manager, keyedCall, "k")
	for {
		rec, _, more := there.Changes(0)
		if rec.State == InputRequired {
			break
		}
		<-more
	}
	if err := b.Publish(there); err != nil {
		t.Errorf("it is published already: %v", err)
	}
	replies := map[string]bridge.Reply{"a/b": {Action: bridge.Decline}, "free": {Action: bridge.Decline}}
	if err := b.Reply(t.Context(), ann, there.ID(), replies); err != nil {
		t.Fatal(err)
	}
	b.await(t, here.ID(), Done)
	if a, err := there.Outcome(); err != nil || !strings.Contains(string(a.Result.Data()[0]), "decline") {
		t.Errorf("outcome = %v, %v", a, err)
	}
}

// A repetition that is to be a job is the first call's job.
func TestOncePublishedElsewhere(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	step := make(chan string)
	a, b := newReplica(t, c, Options{}, steps(t, step)), newReplica(t, c, Options{}, nil)
	for _, early := range []bool{true, false} {
		key := fmt.Sprint(early)
		here, _ := once(t, a.Manager, keyedCall, key)
		there, _ := once(t, b.Manager, keyedCall, key)
		_, _, err := b.Read(t.Context(), ann, there.ID(), 0)
		wantKind(t, err, bridge.NotFound, "no such job") // a plain call's
		if !early {
			step <- ""
			<-there.Done()
		}
		if err := b.Publish(there); err != nil {
			t.Fatal(err)
		}
		if early {
			if !here.Published() {
				t.Error("the job is not published where it runs")
			}
			b.await(t, here.ID(), Running)
			step <- ""
		}
		for _, r := range []*replica{a, b} {
			if rec, _ := r.await(t, here.ID(), Done); string(rec.Data) != `{"n":9007199254740993}` {
				t.Errorf("early %v: the result is %s", early, rec.Data)
			}
		}
	}
}

// What is kept wrongly is an error, not a panic and not an answer.
func TestBadClaims(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a := newReplica(t, c, Options{}, nil)
	call := printOf(&keyedCall)
	good := claim{Print: call[:], Node: "x", Job: "y", Done: true, Raw: 5}
	head := func(change func(*claim)) string {
		c := good
		change(&c)
		b, _ := json.Marshal(c)
		return string(b) + "\n"
	}
	for i, text := range []string{
		"", "{", "null", head(func(*claim) {}), head(func(c *claim) { c.Raw = 0 }), head(func(c *claim) { c.Raw = -1; c.Data = 6 }) + "12345",
		head(func(*claim) {}) + "[1,2]", head(func(c *claim) { c.Flate = true }) + "12345", head(func(c *claim) { c.Raw = maxKept + 1 }) + "12345",
	} {
		key := fmt.Sprint("k", i)
		if err := c.Set(t.Context(), claimKey(hashOf(ann.Owner(), key)), text, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		call := keyedCall
		j, _, err := a.Once(t.Context(), &call, key)
		if err == nil {
			_, err = j.Outcome()
		}
		if k := bridge.KindOf(err); k != bridge.StoreUnavailable && !(text == "null" && k == bridge.IdempotencyConflict) {
			t.Errorf("%q: %v", text, err)
		}
	}
	id := newID()
	if err := c.Set(t.Context(), recordKey(hashOf(ann.Owner(), id)), "{", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	_, _, err := a.Read(t.Context(), ann, id, 0)
	wantKind(t, err, bridge.StoreUnavailable, "cannot be read")
}

// What waits to be stored is bounded.
func TestBacklogIsBounded(t *testing.T) {
	var n atomic.Int64
	a := newReplica(t, clientOf(t, redistest.Start(t)), Options{}, counts(t, &n, nil))
	a.shared.flushing.Lock() // Redis is slow
	var held []*Job
	for i := 0; a.shared.backlog.Load() <= 64<<20; i++ {
		j, _ := once(t, a.Manager, keyedCall, fmt.Sprint(i))
		<-j.Done()
		held = append(held, j)
		if i == 20 {
			a.shared.backlog.Add(64 << 20) // as if they were large
		}
	}
	call := keyedCall
	_, _, err := a.Once(t.Context(), &call, "more")
	wantKind(t, err, bridge.StoreUnavailable, "too many answers")
	a.shared.backlog.Add(-64 << 20)
	a.shared.flushing.Unlock()
	eventually(t, "all is stored", func() bool { return a.shared.backlog.Load() == 0 })
	if _, again := once(t, a.Manager, call, "more"); again || len(held) != 21 {
		t.Errorf("again %v, %d calls", again, len(held))
	}
}

// What cannot be written does not keep the rest from being written.
func TestOddMembers(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	odd := func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		return nil, &bridge.Error{Kind: bridge.UpstreamError, Msg: "it broke", Members: map[string]any{"f": func() {}}}
	}
	a, b := newReplica(t, c, Options{}, odd), newReplica(t, c, Options{}, odd)
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	if rec, _ := b.await(t, j.ID(), Failed); rec.Problem.Msg != "it broke" {
		t.Errorf("the problem is %+v", rec.Problem)
	}
	<-func() <-chan struct{} { j, _ := once(t, a.Manager, keyedCall, "k"); return j.Done() }()
	there, _ := once(t, b.Manager, keyedCall, "k")
	_, err := there.Outcome()
	wantKind(t, err, bridge.OutcomeUnknown, "could not be kept")
}

// A Redis that takes no more is one that does not serve, and then serves again.
func TestRedisIsFull(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a, b := newReplica(t, c, Options{}, steps(t, nil)), newReplica(t, c, Options{}, nil)
	first := submit(t, a.Manager, &bridge.Call{Caller: ann})
	b.await(t, first.ID(), Running)
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	eventually(t, "it is known", func() bool {
		_, err := a.List(t.Context(), ann)
		return bridge.KindOf(err) == bridge.StoreUnavailable && strings.Contains(a.log.String(), "OOM")
	})
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is there", func() bool {
		rec, _, err := b.Read(t.Context(), ann, j.ID(), 0)
		return err == nil && rec.State == Running
	})
}
