package jobs

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

var questions = []bridge.Question{
	{ID: "a/b", Mode: "form", Message: "Really?", Schema: json.RawMessage(`{}`)},
	{ID: "free", Mode: "url", Message: "Go there", URL: "https://example.com"},
}

// asks is a tool that asks and answers what it was told.
func asks(t *testing.T, q []bridge.Question) tool {
	return func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) {
		c.Running()
		replies, err := c.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(replies)
		if err != nil {
			t.Error(err)
		}
		return answers(t, string(b))
	}
}

// asked starts a job and waits until it has asked.
func asked(t *testing.T, m *Manager) *Job {
	t.Helper()
	j := m.Start(t.Context(), &bridge.Call{Caller: ann})
	for {
		rec, _, more := j.Changes(0)
		if rec.State == InputRequired {
			return j
		}
		<-more
	}
}

func TestAsk(t *testing.T) {
	m := manager(t, Options{}, asks(t, questions))
	j := asked(t, m)
	rec, events, _, err := m.Changes(t.Context(), ann, j.ID(), 0)
	if err != nil {
		t.Fatalf("a job that asks cannot be found: %v", err)
	}
	if diff := cmp.Diff(questions, rec.Asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	var in struct {
		Job   string            `json:"job"`
		Asked []bridge.Question `json:"requests"`
	}
	if err := json.Unmarshal(events[len(events)-1].Data, &in); err != nil || in.Job != j.ID() || len(in.Asked) != 2 {
		t.Errorf("event = %s, %v", events[len(events)-1].Data, err)
	}
	err = m.Reply(t.Context(), ann, j.ID(), map[string]bridge.Reply{
		"a/b":  {Action: bridge.Accept, Content: json.RawMessage(`{"n":"yes"}`)},
		"free": {Action: bridge.Decline, Content: json.RawMessage(`"is cut"`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rec := j.Record(); rec.State == InputRequired || rec.Asked != nil {
		t.Errorf("once it is told, the job still asks: %+v", rec)
	}
	a, err := j.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Result.Data()[0]), `{"a/b":{"action":"accept","content":{"n":"yes"}},"free":{"action":"decline"}}`; got != want {
		t.Errorf("the server was told %s, want %s", got, want)
	}
	if rec := j.Record(); rec.State != Done || rec.Asked != nil {
		t.Errorf("at the end: %+v", rec)
	}
	wantKind(t, m.Reply(t.Context(), ann, j.ID(), nil), bridge.JobConflict, "asks nothing")
}

func TestWrongReplies(t *testing.T) {
	m := manager(t, Options{}, asks(t, questions))
	j := asked(t, m)
	wantKind(t, m.Reply(t.Context(), bridge.Caller{User: "bob"}, j.ID(), nil), bridge.NotFound, "no such job")
	wantKind(t, m.Reply(t.Context(), ann, "none", nil), bridge.NotFound, "no such job")
	accept := func(content string) bridge.Reply {
		return bridge.Reply{Action: bridge.Accept, Content: json.RawMessage(content)}
	}
	fine := bridge.Reply{Action: bridge.Cancel}
	tests := []struct {
		name    string
		replies map[string]bridge.Reply
		want    []mistake
	}{
		{"none", nil, []mistake{{"/a~1b", "is missing: the question has this id", ""}, {"/free", "is missing: the question has this id", ""}}},
		{"no such action", map[string]bridge.Reply{"a/b": {Action: "ok"}, "free": fine}, []mistake{{"/a~1b/action", "must be accept, decline or cancel", ""}}},
		{"no content", map[string]bridge.Reply{"a/b": {Action: bridge.Accept}, "free": fine}, []mistake{{"/a~1b/content", "is missing: the question's schema says what it has to be", ""}}},
		{"wrong content", map[string]bridge.Reply{"a/b": accept(`{"n":"no"}`), "free": fine}, []mistake{{"/a~1b/content/n", "must be yes", "/properties/n"}}},
		{"a check that fails oddly", map[string]bridge.Reply{"a/b": accept(`"odd"`), "free": fine}, []mistake{{"/a~1b/content", "does not fit the schema that the server gave", ""}}},
		{"one reply for two", map[string]bridge.Reply{Alone: fine}, []mistake{{"/a~1b", "is missing: the question has this id", ""}, {"/free", "is missing: the question has this id", ""}}},
		{"another question", map[string]bridge.Reply{"a/b": accept(`"yes"`), "free": fine, "x": fine}, []mistake{{"/x", "is no question's id", ""}}},
	}
	for _, tt := range tests {
		err := m.Reply(t.Context(), ann, j.ID(), tt.replies)
		wantKind(t, err, bridge.InvalidArguments, "does not fit")
		if e, ok := err.(*bridge.Error); ok { //nolint:errorlint // it is this very type
			if diff := cmp.Diff([]mistake(e.Members["errors"].(mistakes)), tt.want); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	}
	if s := j.Record().State; s != InputRequired {
		t.Errorf("after wrong replies the job is %s", s)
	}

	// To one question a reply will do without its id.
	m = manager(t, Options{}, asks(t, questions[:1]))
	j = asked(t, m)
	err := m.Reply(t.Context(), ann, j.ID(), map[string]bridge.Reply{Alone: accept(`{"n":"no"}`)})
	wantKind(t, err, bridge.InvalidArguments, "/content/n: must be yes")
	if err := m.Reply(t.Context(), ann, j.ID(), map[string]bridge.Reply{Alone: fine}); err != nil {
		t.Error(err)
	}
}

func TestAskInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, Options{InputWait: time.Minute}, asks(t, questions))
		j := asked(t, m)
		start := time.Now()
		_, err := j.Outcome()
		wantKind(t, err, bridge.DeadlineExceeded, "within 1m0s")
		if d := time.Since(start); d != time.Minute {
			t.Errorf("it waited %v", d)
		}
		wantKind(t, m.Reply(t.Context(), ann, j.ID(), nil), bridge.JobConflict, "asks nothing")

		j = asked(t, m)
		if err := m.Cancel(t.Context(), ann, j.ID()); err != nil {
			t.Fatal(err)
		}
		<-j.Done()
		if s := j.Record().State; s != Cancelled {
			t.Errorf("state = %s, want cancelled", s)
		}
	})
}

// A server may ask again, also in the only job that its caller may have.
func TestAskTwice(t *testing.T) {
	m := manager(t, Options{PerCaller: 1}, func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) {
		if _, err := c.Ask(ctx, questions[1:]); err != nil {
			return nil, err
		}
		return asks(t, questions[1:])(ctx, c)
	})
	j := asked(t, m)
	for range 2 {
		rec, _, more := j.Changes(0)
		for rec.State != InputRequired {
			<-more
			rec, _, more = j.Changes(0)
		}
		if err := m.Reply(t.Context(), ann, j.ID(), map[string]bridge.Reply{"free": {Action: bridge.Decline}}); err != nil {
			t.Fatal(err)
		}
		<-more
	}
	if _, err := j.Outcome(); err != nil {
		t.Error(err)
	}
}

func TestAskRefused(t *testing.T) {
	m := manager(t, Options{PerCaller: 1}, func(ctx context.Context, c *bridge.Call) (*bridge.Answer, error) {
		if c.Tool == "busy" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return asks(t, []bridge.Question{{ID: "q", Schema: json.RawMessage(c.Tool)}})(ctx, c)
	})
	_, err := m.Start(t.Context(), &bridge.Call{Tool: `"bad"`, Caller: ann}).Outcome()
	wantKind(t, err, bridge.UpstreamError, "cannot be used")
	_, err = m.Start(t.Context(), &bridge.Call{Tool: `{`, Caller: ann}).Outcome()
	wantKind(t, err, bridge.UpstreamError, "not valid JSON")
	submit(t, m, &bridge.Call{Tool: "busy", Caller: ann})
	_, err = m.Start(t.Context(), &bridge.Call{Tool: `{}`, Caller: ann}).Outcome()
	wantKind(t, err, bridge.RateLimited, "1 jobs running")
}
