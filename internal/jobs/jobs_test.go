package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

var ann = bridge.Caller{ID: "k1", User: "ann"}

// A tool is what Invoke does.
type tool func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error)

func answers(t *testing.T, data string) (*bridge.Answer, error) {
	t.Helper()
	r, err := bridge.ParseResult([]byte(`{"structuredContent":` + data + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return &bridge.Answer{Result: r}, nil
}

// compile makes a check for which only what holds "yes" fits.
func compile(schema []byte) (bridge.Checker, error) {
	if string(schema) == `"bad"` {
		return nil, errors.New("it is a string")
	}
	return yes{}, nil
}

type yes struct{}

func (yes) Check(doc []byte) ([]byte, error) {
	if bytes.Contains(doc, []byte("yes")) {
		return doc, nil
	}
	if bytes.Contains(doc, []byte("odd")) {
		return nil, errors.New("out of order")
	}
	return nil, &bridge.Error{Kind: bridge.InvalidArguments, Members: map[string]any{"errors": []mistake{{"/n", "must be yes", "/properties/n"}}, "count": 1}}
}

// manager returns one whose jobs run f; it is closed with the test.
func manager(t *testing.T, o Options, f tool) *Manager {
	t.Helper()
	o.Invoke, o.Compile = f, compile
	m := New(o)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func submit(t *testing.T, m *Manager, c *bridge.Call) *Job {
	t.Helper()
	j, err := m.Submit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wantKind(t *testing.T, err error, kind bridge.Kind, text string) {
	t.Helper()
	if err == nil || bridge.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %s that says %q", err, kind, text)
	}
}

// types are the events' types and data, in order.
func types(events []Event) []string {
	var s []string
	for i, e := range events {
		if i > 0 && e.ID != events[i-1].ID+1 {
			s = append(s, "(a gap)")
		}
		s = append(s, fmt.Sprintf("%d %s %s", e.ID, e.Type, e.Data))
	}
	return s
}

func TestJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		m := manager(t, Options{TTL: time.Minute}, func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
			<-step
			c.Running()
			c.Progress(json.RawMessage(`{"progress":1.10}`))
			c.Log(json.RawMessage(`{"data":"hello"}`))
			<-step
			return answers(t, `{"n":9007199254740993}`)
		})
		j := submit(t, m, &bridge.Call{Handle: "s", Tool: "t", Caller: ann})
		rec, events, more, err := m.Changes(t.Context(), ann, j.ID(), 0)
		if err != nil || rec.State != Queued || rec.Handle != "s" || rec.Tool != "t" || len(events) != 0 || !rec.Expires.IsZero() {
			t.Fatalf("at first: %+v, %v, %v", rec, events, err)
		}
		step <- struct{}{}
		<-more
		synctest.Wait()
		rec, events, more, _ = m.Changes(t.Context(), ann, j.ID(), 0)
		if diff := cmp.Diff([]string{`1 progress {"progress":1.10}`, `2 log {"data":"hello"}`}, types(events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if rec.State != Running || string(rec.Progress) != `{"progress":1.10}` {
			t.Errorf("while it runs: %+v", rec)
		}
		step <- struct{}{}
		<-more
		<-j.Done()
		rec, events, _, _ = m.Changes(t.Context(), ann, j.ID(), 2)
		if rec.State != Done || string(rec.Data) != `{"n":9007199254740993}` || rec.Expires.Sub(rec.Changed) != time.Minute {
			t.Errorf("at its end: %+v", rec)
		}
		if diff := cmp.Diff([]string{"3 end "}, types(events)); diff != "" {
			t.Errorf("events behind the second (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute + time.Second)
		_, _, _, err = m.Changes(t.Context(), ann, j.ID(), 0)
		wantKind(t, err, bridge.NotFound, "no such job")
	})
}

func TestJobEnds(t *testing.T) {
	stored := func(*bridge.Call) (*bridge.Answer, error) {
		a, err := answers(t, `1`)
		a.Artifact = &bridge.Artifact{Ref: "mcp~x", Type: "mcp"}
		return a, err
	}
	tests := []struct {
		name  string
		end   func(c *bridge.Call) (*bridge.Answer, error)
		state State
		kind  bridge.Kind
		text  string
	}{
		{"with an artifact", stored, Done, "", ""},
		{"with too much to keep here", func(*bridge.Call) (*bridge.Answer, error) {
			return answers(t, `"`+strings.Repeat("x", maxInline)+`"`)
		}, Failed, bridge.StoreUnavailable, "1048578 bytes"},
		{"with an error", func(*bridge.Call) (*bridge.Answer, error) {
			return nil, &bridge.Error{Kind: bridge.ToolError, Msg: "disk full", Err: errors.New("secret")}
		}, Failed, bridge.ToolError, "disk full"},
		{"with a bug", func(*bridge.Call) (*bridge.Answer, error) { return nil, errors.New("secret") }, Failed, bridge.Internal, "the log has it"},
		{"out of time", func(*bridge.Call) (*bridge.Answer, error) { return nil, context.DeadlineExceeded }, Failed, bridge.DeadlineExceeded, "time was up"},
		{"cancelled", func(*bridge.Call) (*bridge.Answer, error) { return nil, context.Canceled }, Cancelled, bridge.Canceled, "cancelled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := manager(t, Options{}, func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) { return tt.end(c) })
			j := submit(t, m, &bridge.Call{Caller: ann})
			_, _ = j.Outcome()
			rec := j.Record()
			if rec.State != tt.state {
				t.Errorf("state = %s, want %s", rec.State, tt.state)
			}
			if tt.kind == "" {
				if rec.Artifact != "mcp~x" || rec.Type != "mcp" || rec.Problem != nil || rec.Data != nil {
					t.Errorf("record = %+v, want the artifact alone", rec)
				}
				return
			}
			wantKind(t, rec.Problem.Err(), tt.kind, tt.text)
			if b, _ := json.Marshal(rec); bytes.Contains(b, []byte("secret")) {
				t.Errorf("the record shows what is for the log: %s", b)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	m := manager(t, Options{}, func(ctx context.Context, _ *bridge.Call) (*bridge.Answer, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	j := submit(t, m, &bridge.Call{Caller: ann})
	bob := bridge.Caller{User: "bob"}
	wantKind(t, m.Cancel(t.Context(), bob, j.ID()), bridge.NotFound, "no such job")
	for range 2 { // again is harmless
		if err := m.Cancel(t.Context(), ann, j.ID()); err != nil {
			t.Fatal(err)
		}
	}
	<-j.Done()
	if s := j.Record().State; s != Cancelled {
		t.Errorf("state = %s, want cancelled", s)
	}
}

// Another key of the same user, which may not call the tool, does not find its jobs.
func TestAllows(t *testing.T) {
	m := manager(t, Options{Allows: func(c bridge.Caller, handle, tool string) bool { return c.ID == "wide" || handle+"/"+tool == "s/open" }},
		func(context.Context, *bridge.Call) (*bridge.Answer, error) { return answers(t, "1") })
	wide, narrow := bridge.Caller{ID: "wide", User: "ann"}, bridge.Caller{ID: "narrow", User: "ann"}
	open := submit(t, m, &bridge.Call{Handle: "s", Tool: "open", Caller: wide})
	secret := submit(t, m, &bridge.Call{Handle: "s", Tool: "secret", Caller: wide})
	<-open.Done()
	<-secret.Done()
	if list, err := m.List(t.Context(), narrow); err != nil || len(list) != 1 || list[0].ID != open.ID() {
		t.Errorf("the narrow key lists %v, %v", list, err)
	}
	if list, err := m.List(t.Context(), wide); err != nil || len(list) != 2 {
		t.Errorf("the wide key lists %v, %v", list, err)
	}
	_, _, err := m.Read(t.Context(), narrow, secret.ID(), 0)
	wantKind(t, err, bridge.NotFound, "no such job")
	_, _, _, err = m.Changes(t.Context(), narrow, secret.ID(), 0)
	wantKind(t, err, bridge.NotFound, "no such job")
	wantKind(t, m.Cancel(t.Context(), narrow, secret.ID()), bridge.NotFound, "no such job")
	wantKind(t, m.Reply(t.Context(), narrow, secret.ID(), nil), bridge.NotFound, "no such job")
	if _, _, err := m.Read(t.Context(), narrow, open.ID(), 0); err != nil {
		t.Error(err)
	}
}

// A call that only its request knows ends with it; one that can be found goes on.
func TestLeave(t *testing.T) {
	gone := errors.New("the caller hung up")
	end := make(chan struct{})
	m := manager(t, Options{}, func(ctx context.Context, _ *bridge.Call) (*bridge.Answer, error) {
		select {
		case <-end:
			return answers(t, "1")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	j := m.Start(t.Context(), &bridge.Call{Caller: ann})
	if list, _ := m.List(t.Context(), ann); len(list) != 0 || j.Published() {
		t.Error("a job that was not published is listed")
	}
	j.Leave(gone)
	if _, err := j.Outcome(); !errors.Is(err, gone) {
		t.Errorf("err = %v, want %v", err, gone)
	}
	late := m.Start(t.Context(), &bridge.Call{Caller: ann})
	if err := m.Publish(late); err != nil {
		t.Fatal(err)
	}
	stays := m.Start(t.Context(), &bridge.Call{Caller: ann})
	late.Leave(gone)
	close(end)
	if a, err := late.Outcome(); a != nil || err != nil || late.Record().State != Done {
		t.Errorf("outcome = %v, %v; want none, from a job that went on and is done", a, err)
	}
	if a, err := stays.Outcome(); a == nil || err != nil {
		t.Errorf("outcome = %v, %v; want the answer", a, err)
	}
	stays.Leave(gone) // too late to matter, but it lets go of the answer
	if a, _ := stays.Outcome(); a != nil {
		t.Error("the answer is held for nobody")
	}
}

// Who wants to know hears of the jobs that could be found, and of no other.
func TestEnded(t *testing.T) {
	var ended []string
	m := manager(t, Options{Ended: func(j *Job) { ended = append(ended, j.Call().Tool) }}, func(context.Context, *bridge.Call) (*bridge.Answer, error) { return answers(t, "1") })
	m.Start(t.Context(), &bridge.Call{Tool: "unknown"})
	submit(t, m, &bridge.Call{Tool: "known"})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"known"}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func TestClose(t *testing.T) {
	m := manager(t, Options{}, func(ctx context.Context, _ *bridge.Call) (*bridge.Answer, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	j := submit(t, m, &bridge.Call{Caller: ann})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Outcome(); !errors.Is(err, bridge.ErrStopping) {
		t.Errorf("err = %v, want %v", err, bridge.ErrStopping)
	}
}

func TestDrain(t *testing.T) {
	end := make(chan struct{})
	m := manager(t, Options{}, func(context.Context, *bridge.Call) (*bridge.Answer, error) {
		<-end
		return answers(t, "1")
	})
	j := submit(t, m, &bridge.Call{Caller: ann})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Drain(ctx)
	if j.Record().State.Final() {
		t.Error("the job ended with the patience of who waited")
	}
	close(end)
	m.Drain(t.Context())
	if !j.Record().State.Final() {
		t.Error("the job was not waited for")
	}
}

// A thousand jobs of one caller: as many as may run do, the others are refused;
// those that have ended are kept within bounds, and no other caller notices.
func TestBounds(t *testing.T) {
	end := make(chan struct{})
	m := manager(t, Options{PerCaller: 10}, func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		if c.Tool == "long" {
			<-end
		}
		return answers(t, "1")
	})
	refused := 0
	var jobs []*Job
	for range 1000 {
		j, err := m.Submit(t.Context(), &bridge.Call{Tool: "long", Caller: ann})
		if err != nil {
			wantKind(t, err, bridge.RateLimited, "10 jobs running")
			refused++
			continue
		}
		jobs = append(jobs, j)
	}
	if refused != 990 {
		t.Errorf("%d of 1000 were refused, want 990", refused)
	}
	submit(t, m, &bridge.Call{Tool: "long", Caller: bridge.Caller{User: "bob"}})
	close(end)
	for _, j := range jobs {
		<-j.Done()
	}
	for range 200 {
		<-submit(t, m, &bridge.Call{Caller: ann}).Done()
	}
	if list, _ := m.List(t.Context(), ann); len(list) != 100 || list[0].Created.Before(list[99].Created) {
		t.Errorf("%d jobs are kept, want 100, newest first", len(list))
	}
}

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, Options{TTL: time.Minute}, func(context.Context, *bridge.Call) (*bridge.Answer, error) { return answers(t, "1") })
		<-submit(t, m, &bridge.Call{Caller: ann}).Done()
		time.Sleep(time.Hour)
		<-submit(t, m, &bridge.Call{Caller: bridge.Caller{User: "bob"}}).Done()
		if len(m.jobs) != 1 {
			t.Errorf("jobs of %d callers are kept, want those of bob alone", len(m.jobs))
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	big := json.RawMessage(`"` + strings.Repeat("x", maxEventBytes/4) + `"`)
	m := manager(t, Options{Events: 5}, func(_ context.Context, c *bridge.Call) (*bridge.Answer, error) {
		for range 9 {
			c.Progress(json.RawMessage(`{}`))
		}
		if c.Tool == "big" {
			for range 6 {
				c.Progress(big)
			}
		}
		return answers(t, "1")
	})
	j := m.Start(t.Context(), &bridge.Call{Caller: ann})
	<-j.Done()
	_, events, _ := j.Changes(0)
	if len(events) != 5 || events[0].ID != 6 || events[4].Type != EventEnd {
		t.Errorf("kept: %v, want the last five", types(events))
	}
	j = m.Start(t.Context(), &bridge.Call{Tool: "big", Caller: ann})
	<-j.Done()
	if _, events, _ = j.Changes(0); len(events) != 4 {
		t.Errorf("%d events are kept, want three large ones and the last", len(events))
	}
	if _, events, _ = j.Changes(1000); len(events) != 0 {
		t.Error("there are events behind the last")
	}
}
