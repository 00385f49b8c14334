package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// steps is a tool that reports progress each time that it may go on, and then answers.
func steps(t *testing.T, step <-chan string) tool {
	return func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		for {
			select {
			case s := <-step:
				if s == "" {
					return answers(t, `{"n":9007199254740993}`)
				}
				c.Progress(json.RawMessage(s))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// eachRedis runs a test with one server and with a cluster.
func eachRedis(t *testing.T, f func(t *testing.T, c redis.UniversalClient)) {
	t.Run("single", func(t *testing.T) { f(t, clientOf(t, redistest.Start(t))) })
	t.Run("cluster", func(t *testing.T) { f(t, startCluster(t)) })
}

// A job can be followed from another bridge like from its own.
func TestOtherBridgesJob(t *testing.T) {
	eachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		step := make(chan string)
		a, b := newReplica(t, c, Options{}, steps(t, step)), newReplica(t, c, Options{}, steps(t, nil))
		j := submit(t, a.Manager, &bridge.Call{Handle: "s", Tool: "t", Caller: ann})
		b.await(t, j.ID(), Running)
		for _, s := range []string{`{"progress":1.10}`, `{"progress":2}`} {
			rec, _, more, err := b.Changes(t.Context(), ann, j.ID(), 0)
			if err != nil {
				t.Fatal(err)
			}
			step <- s
			for string(rec.Progress) != s {
				<-more
				if rec, _, more, err = b.Changes(t.Context(), ann, j.ID(), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		step <- ""
		rec, events := b.await(t, j.ID(), Done)
		want, _, _ := j.Changes(0)
		want.Node = a.shared.node
		if diff := cmp.Diff(want, rec); diff != "" {
			t.Errorf("the record there (-here +there):\n%s", diff)
		}
		_, all, _ := j.Changes(0)
		if diff := cmp.Diff(types(all), types(events)); diff != "" {
			t.Errorf("the events there (-here +there):\n%s", diff)
		}
		if _, events, err := b.Read(t.Context(), ann, j.ID(), 2); err != nil || len(events) != 1 || events[0].Type != EventEnd {
			t.Errorf("events behind the second: %v, %v", types(events), err)
		}

		// Nobody else has it, on either bridge.
		bob := bridge.Caller{User: "bob"}
		for _, r := range []*replica{a, b} {
			_, _, err := r.Read(t.Context(), bob, j.ID(), 0)
			wantKind(t, err, bridge.NotFound, "no such job")
			wantKind(t, r.Cancel(t.Context(), bob, j.ID()), bridge.NotFound, "no such job")
			wantKind(t, r.Reply(t.Context(), bob, j.ID(), nil), bridge.NotFound, "no such job")
			if list, err := r.List(t.Context(), bob); err != nil || len(list) != 0 {
				t.Errorf("bob has %v, %v", list, err)
			}
			list, err := r.List(t.Context(), ann)
			if err != nil || len(list) != 1 || list[0].ID != j.ID() || list[0].State != Done || list[0].Data != nil {
				t.Errorf("ann has %v, %v", list, err)
			}
		}
		wantTTLs(t, c)
	})
}

// wantTTLs demands that every key expires, and that none shows a caller or a job.
func wantTTLs(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		for it := c.Scan(ctx, 0, "*", 1000).Iterator(); it.Next(ctx); {
			keys = append(keys, it.Val())
		}
		return nil
	}
	if cluster, ok := c.(*redis.ClusterClient); ok {
		_ = cluster.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		_ = scan(t.Context(), c.(*redis.Client))
	}
	if len(keys) < 4 {
		t.Errorf("there are no more keys than %q", keys)
	}
	for _, k := range keys {
		if ttl := c.PTTL(t.Context(), k).Val(); ttl <= 0 && c.Exists(t.Context(), k).Val() > 0 || ttl > 25*time.Hour {
			t.Errorf("%s expires in %v", k, ttl)
		}
		if strings.Contains(k, "ann") || !strings.HasPrefix(k, keyPrefix) {
			t.Errorf("a key is called %s", k)
		}
	}
}

func TestCancelFromAnotherBridge(t *testing.T) {
	eachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		a, b := newReplica(t, c, Options{}, steps(t, nil)), newReplica(t, c, Options{}, steps(t, nil))
		j := submit(t, a.Manager, &bridge.Call{Caller: ann})
		b.await(t, j.ID(), Running)
		if err := b.Cancel(t.Context(), ann, j.ID()); err != nil {
			t.Fatal(err)
		}
		<-j.Done()
		b.await(t, j.ID(), Cancelled)
		if err := b.Cancel(t.Context(), ann, j.ID()); err != nil {
			t.Errorf("once more: %v", err)
		}
		wantKind(t, b.Cancel(t.Context(), ann, newID()), bridge.NotFound, "no such job")
	})
}

func TestReplyFromAnotherBridge(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a, b := newReplica(t, c, Options{}, asks(t, questions)), newReplica(t, c, Options{}, nil)
	j := a.Start(t.Context(), &bridge.Call{Caller: ann})
	rec, events := b.await(t, j.ID(), InputRequired)
	if diff := cmp.Diff(questions, rec.Asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if e := events[len(events)-1]; e.Type != EventInput || !strings.Contains(string(e.Data), j.ID()) {
		t.Errorf("event = %s %s", e.Type, e.Data)
	}
	err := b.Reply(t.Context(), ann, j.ID(), map[string]bridge.Reply{"a/b": {Action: bridge.Accept, Content: json.RawMessage(`{"n":"no"}`)}})
	wantKind(t, err, bridge.InvalidArguments, "does not fit")
	members, _ := json.Marshal(err.(*bridge.Error).Members) //nolint:errorlint // it is one, or the test is to fail
	if want := `{"count":2,"errors":[{"pointer":"/a~1b/content/n","message":"must be yes","schema_pointer":"/properties/n"},{"pointer":"/free","message":"is missing: the question has this id","schema_pointer":""}]}`; string(members) != want {
		t.Errorf("members = %s", members)
	}
	good := map[string]bridge.Reply{"a/b": {Action: bridge.Accept, Content: json.RawMessage(`{"n":"yes"}`)}, "free": {Action: bridge.Decline}}
	if err := b.Reply(t.Context(), ann, j.ID(), good); err != nil {
		t.Fatal(err)
	}
	if rec, _ := b.await(t, j.ID(), Done); string(rec.Data) != `{"a/b":{"action":"accept","content":{"n":"yes"}},"free":{"action":"decline"}}` {
		t.Errorf("the tool was told %s", rec.Data)
	}
	wantKind(t, b.Reply(t.Context(), ann, j.ID(), good), bridge.JobConflict, "asks nothing")
}

// What a dead bridge ran has failed, and nobody knows how.
func TestBridgeDies(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	b := newReplica(t, c, Options{}, nil)
	a := newReplica(t, c, Options{}, steps(t, nil))
	one, two := submit(t, a.Manager, &bridge.Call{Caller: ann}), submit(t, a.Manager, &bridge.Call{Caller: ann})
	b.await(t, one.ID(), Running)
	b.await(t, two.ID(), Running)
	_, _, more, err := b.Changes(t.Context(), ann, one.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	a.kill()
	<-more // who waits for it is woken
	for _, j := range []*Job{one, two} {
		rec, events := b.await(t, j.ID(), Failed)
		if rec.Problem.Kind != bridge.OutcomeUnknown || rec.Expires.IsZero() || len(events) != 1 || events[0].Type != EventEnd {
			t.Errorf("the job is %+v, %+v, %v", rec, rec.Problem, types(events))
		}
	}
	list, err := b.List(t.Context(), ann)
	if err != nil || len(list) != 2 || list[0].State != Failed || list[1].State != Failed {
		t.Errorf("List = %v, %v", list, err)
	}
	if err := b.Cancel(t.Context(), ann, one.ID()); err != nil {
		t.Errorf("cancelling a job whose bridge is dead: %v", err)
	}
	wantKind(t, b.Reply(t.Context(), ann, one.ID(), nil), bridge.JobConflict, "asks nothing")
	wantTTLs(t, c)
}

// A list that is read when a bridge has died shows that.
func TestListOfTheDead(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	b := newReplica(t, c, Options{}, nil)
	a := newReplica(t, c, Options{}, steps(t, nil))
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	b.await(t, j.ID(), Running)
	a.kill()
	eventually(t, "the list says so", func() bool {
		list, err := b.List(t.Context(), ann)
		return err == nil && len(list) == 1 && list[0].State == Failed && list[0].Problem.Kind == bridge.OutcomeUnknown
	})
}

// A bridge that was only taken for dead says how it is.
func TestBridgeComesBack(t *testing.T) {
	server := redistest.Start(t)
	c := clientOf(t, server)
	step := make(chan string)
	a, b := newReplica(t, c, Options{}, steps(t, step)), newReplica(t, c, Options{}, nil)
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	b.await(t, j.ID(), Running)
	eventually(t, "it is taken for dead", func() bool { // a beat that was late may bring it back meanwhile
		stored, err := c.Get(t.Context(), recordKey(hashOf(ann.Owner(), j.ID()))).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		rec, err := decodeRecord(ann.Owner(), stored)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.shared.bury(t.Context(), j.mirrored.tag, stored, rec); err != nil {
			t.Fatal(err)
		}
		seen, _, err := b.Read(t.Context(), ann, j.ID(), 0)
		return err == nil && seen.State == Failed
	})
	if err := c.Del(t.Context(), nodeKey(a.shared.node)).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs again", func() bool {
		rec, _, err := b.Read(t.Context(), ann, j.ID(), 0)
		return err == nil && rec.State == Running
	})
	step <- ""
	b.await(t, j.ID(), Done)
}

// Redis goes away, loses everything, and comes back: jobs go on, and are there again.
func TestRedisRestarts(t *testing.T) {
	server := redistest.Start(t)
	c := clientOf(t, server)
	step := make(chan string)
	a, b := newReplica(t, c, Options{}, steps(t, step)), newReplica(t, c, Options{}, nil)
	ended := submit(t, a.Manager, &bridge.Call{Caller: ann})
	step <- ""
	b.await(t, ended.ID(), Done)
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	b.await(t, j.ID(), Running)

	for range 2 {
		server.Kill()
		step <- `{"progress":1}` // nobody waits for Redis
		if rec, _, err := a.Read(t.Context(), ann, j.ID(), 0); err != nil || rec.State != Running {
			t.Errorf("at its own bridge: %v, %v", rec, err)
		}
		_, _, err := b.Read(t.Context(), ann, j.ID(), 0)
		wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
		for _, r := range []*replica{a, b} {
			_, err = r.List(t.Context(), ann)
			wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
		}
		wantKind(t, b.Cancel(t.Context(), ann, j.ID()), bridge.StoreUnavailable, "cannot be reached")
		server.Restart(t)
		for _, id := range []string{ended.ID(), j.ID()} {
			eventually(t, "the job is there again", func() bool {
				_, _, err := b.Read(t.Context(), ann, id, 0)
				if err != nil && bridge.KindOf(err) != bridge.StoreUnavailable {
					t.Errorf("meanwhile: %v", err)
				}
				return err == nil
			})
		}
	}
	step <- ""
	rec, events := b.await(t, j.ID(), Done)
	if got := types(events); len(got) != 3 || rec.State != Done {
		t.Errorf("events: %v", got)
	}
	if list, err := b.List(t.Context(), ann); err != nil || len(list) != 2 {
		t.Errorf("List = %v, %v", list, err)
	}
	for _, r := range []*replica{a, b} {
		if n := strings.Count(r.log.String(), "cannot be reached"); n != 2 || strings.Count(r.log.String(), "reached again") != 2 {
			t.Errorf("of two outages the log has:\n%s", r.log)
		}
	}
}

// Many jobs of one caller are bounded, listed everywhere, and readable.
func TestManySharedJobs(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	quick := func(context.Context, *bridge.Call) (*bridge.Answer, error) { return answers(t, "1") }
	a, b := newReplica(t, c, Options{PerCaller: 50}, quick), newReplica(t, c, Options{PerCaller: 50}, quick)
	var ids []string
	for i := range 1000 {
		j := submit(t, []*replica{a, b}[i%2].Manager, &bridge.Call{Caller: ann})
		<-j.Done()
		ids = append(ids, j.ID())
	}
	eventually(t, "the list has as many as are kept", func() bool {
		list, err := a.List(t.Context(), ann)
		return err == nil && len(list) >= 500 && list[0].ID == ids[999]
	})
	for _, r := range []*replica{a, b} {
		r.await(t, ids[999], Done)
		r.await(t, ids[998], Done)
	}
	if n := c.ZCard(t.Context(), listKey(hashOf(ann.Owner(), ""))).Val(); n > 500 {
		t.Errorf("the list in Redis has %d entries, want 500 at the most", n)
	}
	if n := len(a.shared.all); n > 4 {
		t.Errorf("%d watches", n)
	}
}

// Watches go when nobody needs them any more.
func TestWatchesEnd(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a, b := newReplica(t, c, Options{}, steps(t, nil)), newReplica(t, c, Options{}, nil)
	var ids []string
	for range 20 {
		ids = append(ids, submit(t, a.Manager, &bridge.Call{Caller: ann}).ID())
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, id := range ids {
		b.await(t, id, Running)
		if _, _, _, err := b.Changes(ctx, ann, id, 0); err != nil {
			t.Fatal(err)
		}
	}
	channels := func() int {
		all := c.PubSubChannels(t.Context(), keyPrefix+"{*").Val()
		return len(all)
	}
	eventually(t, "each is subscribed to", func() bool { return channels() == 20 })
	if n := len(slices.DeleteFunc(strings.Split(c.ClientList(t.Context()).Val(), "\n"), func(l string) bool { return !strings.Contains(l, " sub=") || strings.Contains(l, " sub=0 ") })); n != 2 {
		t.Errorf("%d connections listen, want one of each bridge", n)
	}
	cancel()
	eventually(t, "none is", func() bool { return channels() == 0 })
	b.shared.watchMu.Lock()
	defer b.shared.watchMu.Unlock()
	if n := len(b.shared.all); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

// Whoever was told of a job finds it anywhere, as he was told of it, unless there is no Redis.
func TestShow(t *testing.T) {
	server := redistest.Start(t)
	c := clientOf(t, server)
	a, b := newReplica(t, c, Options{PerCaller: 1000}, asks(t, questions)), newReplica(t, c, Options{}, nil)
	for range 200 {
		j := submit(t, a.Manager, &bridge.Call{Caller: ann})
		a.Show(t.Context(), j)
		if _, _, err := b.Read(t.Context(), ann, j.ID(), 0); err != nil {
			t.Fatal(err)
		}
		a.await(t, j.ID(), InputRequired)
		a.Show(t.Context(), j)
		if rec, _, err := b.Read(t.Context(), ann, j.ID(), 0); err != nil || rec.State != InputRequired {
			t.Fatalf("%v, %v", rec, err)
		}
	}
	server.Kill()
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	a.Show(t.Context(), j)
	plain := a.Start(t.Context(), &bridge.Call{Caller: ann})
	a.Show(t.Context(), plain)
}

// What is told twice is done once, and answered twice.
func TestToldTwice(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a := newReplica(t, c, Options{}, asks(t, questions))
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	a.await(t, j.ID(), InputRequired)
	ps := c.Subscribe(t.Context(), nodeKey("me"))
	defer ps.Close()
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(message{Op: opReply, Exchange: "e", From: "me", Tag: j.mirrored.tag, Replies: map[string]bridge.Reply{"a/b": {Action: bridge.Decline}, "free": {Action: bridge.Decline}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it listens", func() bool {
		return c.PubSubNumSub(t.Context(), nodeKey(a.shared.node)).Val()[nodeKey(a.shared.node)] == 1
	})
	for _, bad := range []string{"", "{", `{"op":"answer","exchange":"none"}`} {
		if err := c.Publish(t.Context(), nodeKey(a.shared.node), bad).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := c.Publish(t.Context(), nodeKey(a.shared.node), text).Err(); err != nil {
			t.Fatal(err)
		}
		m, err := ps.ReceiveMessage(t.Context())
		if err != nil || m.Payload != `{"op":"answer","exchange":"e"}` {
			t.Errorf("the answer is %v, %v", m, err)
		}
	}
	a.await(t, j.ID(), Done)
	for _, other := range []message{{Op: opReply, Tag: j.mirrored.tag}, {Op: opCancel, Tag: "none"}, {Op: "dance", Tag: j.mirrored.tag}} {
		other.Exchange, other.From = "x"+string(other.Op), "me"
		text, _ := json.Marshal(other)
		if err := c.Publish(t.Context(), nodeKey(a.shared.node), text).Err(); err != nil {
			t.Fatal(err)
		}
		m, err := ps.ReceiveMessage(t.Context())
		if err != nil || !strings.Contains(m.Payload, `"problem":{"kind":`) {
			t.Errorf("the answer to %s is %v, %v", other.Op, m, err)
		}
	}
}

// What runs on one bridge counts on the other.
func TestBoundOnTwoBridges(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	o := Options{PerCaller: 10}
	a, b := newReplica(t, c, o, steps(t, nil)), newReplica(t, c, o, steps(t, nil))
	var last *Job
	for range 9 {
		last = submit(t, a.Manager, &bridge.Call{Caller: ann})
		a.Show(t.Context(), last)
	}
	// With its first job here, the other bridge hears of those.
	n := 0
	for {
		j, err := b.Submit(t.Context(), &bridge.Call{Caller: ann})
		if err != nil {
			wantKind(t, err, bridge.RateLimited, "jobs running")
			break
		}
		n++
		b.Show(t.Context(), j)
	}
	if n == 0 || n > 8 { // one, but for a machine so slow that what was heard is old
		t.Errorf("%d more jobs could be started", n)
	}
	if err := b.Cancel(t.Context(), ann, last.ID()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room again", func() bool {
		_, err := b.Submit(t.Context(), &bridge.Call{Caller: ann})
		return err == nil
	})
	submit(t, b.Manager, &bridge.Call{Caller: bridge.Caller{User: "bob"}})
}

func TestNobodyAnswers(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	a := newReplica(t, c, Options{}, nil)
	a.shared.patience = 10 * time.Millisecond
	wantKind(t, a.shared.tell(t.Context(), "nobody", message{Op: opCancel}), bridge.StoreUnavailable, "did not answer")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, a.shared.tell(ctx, "nobody", message{Op: opCancel}), bridge.Canceled, "")
	if n := len(a.shared.pending); n != 0 {
		t.Errorf("%d wait for an answer", n)
	}
}

// When all is closed, nothing is left running, whatever went on.
func TestNothingIsLeft(t *testing.T) {
	server := redistest.Start(t)
	before := runtime.NumGoroutine()
	t.Run("bridges", func(t *testing.T) {
		c := clientOf(t, server)
		a, b := newReplica(t, c, Options{}, steps(t, nil)), newReplica(t, c, Options{}, nil)
		for i := range 20 {
			j := submit(t, a.Manager, &bridge.Call{Caller: ann})
			b.await(t, j.ID(), Running)
			if _, _, _, err := b.Changes(t.Context(), ann, j.ID(), 0); err != nil {
				t.Fatal(err)
			}
			once(t, a.Manager, keyedCall, fmt.Sprint(i))
			once(t, b.Manager, keyedCall, fmt.Sprint(i)) // waits for the other
		}
		server.Kill()
		_, _, err := b.Read(t.Context(), ann, "x", 0)
		wantKind(t, err, bridge.StoreUnavailable, "cannot be reached")
		server.Restart(t)
	})
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// A bridge that stops says how its jobs ended before it goes.
func TestLastWords(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	b := newReplica(t, c, Options{}, nil)
	a := newReplica(t, c, Options{}, steps(t, nil))
	j := submit(t, a.Manager, &bridge.Call{Caller: ann})
	once(t, a.Manager, keyedCall, "k")
	there, _ := once(t, b.Manager, keyedCall, "k")
	b.await(t, j.ID(), Running)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	rec, _, err := b.Read(t.Context(), ann, j.ID(), 0)
	if err != nil || !rec.State.Final() || rec.Problem.Kind == bridge.OutcomeUnknown {
		t.Errorf("the job is %+v, %v", rec, err)
	}
	if _, err := there.Outcome(); err == nil {
		t.Error("the call with a key was answered")
	}
	if n := c.Exists(t.Context(), nodeKey(a.shared.node)).Val(); n != 0 {
		t.Error("the bridge is not gone")
	}
}
