package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wants makes the client answer what each round wants, and then plainly; it notes what resumed each.
func (w *world) wants(rounds ...string) *[]string {
	w.snapshot.Server("s").Tool("t").Target.Asks = true
	var resumed []string
	w.clients[0].call = func(_ context.Context, r Request, letGo func()) (*Result, error) {
		letGo()
		resumed = append(resumed, string(r.Resume))
		if n := len(resumed); n <= len(rounds) {
			return &Result{Wanted: ParseWanted([]byte(rounds[n-1]))}, nil
		}
		return ParseResult([]byte(plain))
	}
	return &resumed
}

const twoQuestions = `{"resultType":"input_required","requestState":"op\u0061que",
	"inputRequests":{"b":{"method":"elicitation/create","params":{"message":"B?","requestedSchema":{"type":"object"}}},
	"a":{"method":"elicitation/create","params":{"mode":"url","message":"A?","url":"https://example.com"}}}}`

func TestRounds(t *testing.T) {
	w := newWorld()
	resumed := w.wants(twoQuestions, `{"resultType":"input_required","requestState":{"n":
 1.10},"inputRequests":{"c":{"method":"elicitation/create","params":{}}}}`)
	var asked []Question
	ask := func(_ context.Context, q []Question) (map[string]Reply, error) {
		if w.held != 0 {
			t.Error("slots are held while somebody is asked")
		}
		asked = append(asked, q...)
		replies := map[string]Reply{}
		for _, q := range q {
			replies[q.ID] = Reply{Action: Accept, Content: json.RawMessage("{\n\"x\":1.10}")}
			if q.Mode == "url" {
				replies[q.ID] = Reply{Action: Decline}
			}
		}
		return replies, nil
	}
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Ask: ask})
	if err != nil || string(a.Result.Raw) != plain {
		t.Fatalf("answer %v, %v", a, err)
	}
	want := []Question{
		{ID: "b", Mode: "form", Message: "B?", Schema: json.RawMessage(`{"type":"object"}`)},
		{ID: "a", Mode: "url", Message: "A?", URL: "https://example.com"},
		{ID: "c", Mode: "form"},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"",
		`"inputResponses":{"a":{"action":"decline"},"b":{"action":"accept","content":{ "x":1.10}}},"requestState":"op\u0061que"`,
		`"inputResponses":{"c":{"action":"accept","content":{ "x":1.10}}},"requestState":{"n":  1.10}`,
	}, *resumed); diff != "" {
		t.Errorf("went on with (-want +got):\n%s", diff)
	}
	if w.held != 0 || w.released != 3 {
		t.Errorf("%d slots held, %d released; want a slot for each round", w.held, w.released)
	}
}

// A relayed call ends with what the server wants, in its bytes, and goes on with what the caller says then.
func TestRelay(t *testing.T) {
	w := newWorld()
	resumed := w.wants(twoQuestions, `{"resultType":"input_required","inputRequests":{},"requestState":7}`)
	a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Relay: true})
	if err != nil || a.Result.Wanted == nil || a.Artifact != nil || len(a.Result.Wanted.Requests) == 0 {
		t.Fatalf("answer %+v, %v", a, err)
	}
	// Being put off is nothing that a caller could answer.
	a, err = w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Relay: true, Resume: []byte(`"inputResponses":{"b":1}`)})
	if err != nil || string(a.Result.Raw) != plain {
		t.Fatalf("answer %+v, %v", a, err)
	}
	if diff := cmp.Diff([]string{"", `"inputResponses":{"b":1}`, `"requestState":7`}, *resumed); diff != "" {
		t.Errorf("went on with (-want +got):\n%s", diff)
	}
	if w.held != 0 || w.released != 3 {
		t.Errorf("%d slots held, %d released", w.held, w.released)
	}
	for wants, says := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"}}}`: `wants "sampling/createMessage"`,
		`{"resultType":"input_required","inputRequests":["a","b"]}`:                                 "no object",
	} {
		w.wants(wants)
		if a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Relay: true}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v; want an error that says %q", wants, a, err, says)
		}
	}
	w.wants(twoQuestions)
	w.snapshot.Server("s").Tool("t").Target.Asks = false
	if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Relay: true}); err == nil || !strings.Contains(err.Error(), "elicitation: true") {
		t.Errorf("err = %v, want one that names the setting", err)
	}
}

// Without requests the server only wants to be asked later.
func TestLoadShedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		later := `{"resultType":"input_required","inputRequests":{},"requestState":7}`
		resumed := w.wants(later, later, `{"resultType":"input_required"}`)
		start := time.Now()
		if _, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"", `"requestState":7`, `"requestState":7`, ""}, *resumed); diff != "" {
			t.Errorf("went on with (-want +got):\n%s", diff)
		}
		if d := time.Since(start); d < 700*time.Millisecond || d > 1750*time.Millisecond/2+time.Millisecond {
			t.Errorf("it took %v, want 700 ms and a quarter at most", d)
		}

		w = newWorld()
		w.wants(strings.Split(strings.Repeat(later+"\n", 1000), "\n")...)
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
		if KindOf(err) != Unavailable || !strings.Contains(err.Error(), "putting the call off") {
			t.Errorf("err = %v, want server-unavailable after the most that a call may take", err)
		}

		w = newWorld()
		w.wants(later)
		_, err = w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Timeout: time.Millisecond})
		if KindOf(err) != DeadlineExceeded {
			t.Errorf("err = %v, want deadline-exceeded", err)
		}
	})
}

func TestRoundsFail(t *testing.T) {
	refuses := errors.New("nobody is there")
	ask := func(context.Context, []Question) (map[string]Reply, error) { return nil, refuses }
	tests := []struct {
		name, wants string
		ask         Asker
		off         bool
		want        string
	}{
		{"nobody to ask", twoQuestions, nil, false, "does not offer to be asked"},
		{"not configured", twoQuestions, ask, true, "elicitation: true"},
		{"something else", `{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"}}}`, ask, false, `wants "sampling/createMessage"`},
		{"no object", `{"resultType":"input_required","inputRequests":["a","b"]}`, ask, false, "no object"},
		{"refused", twoQuestions, ask, false, "nobody is there"},
	}
	for _, tt := range tests {
		w := newWorld()
		w.wants(tt.wants)
		w.snapshot.Server("s").Tool("t").Target.Asks = !tt.off
		_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Ask: tt.ask})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want one that says %q", tt.name, err, tt.want)
		}
		if w.held != 0 {
			t.Errorf("%s: %d slots are left held", tt.name, w.held)
		}
	}

	w := newWorld()
	n := 0
	w.wants(strings.Split(strings.Repeat(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`+"\n", 200), "\n")...)
	_, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t", Ask: func(context.Context, []Question) (map[string]Reply, error) {
		n++
		return map[string]Reply{"a": {Action: Cancel}}, nil
	}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d times", maxRounds)) || n != maxRounds {
		t.Errorf("asked %d times, err = %v", n, err)
	}
}

func TestParseWanted(t *testing.T) {
	for _, s := range []string{`{}`, `{"resultType":"complete"}`, `{"resultType":5}`, `[]`} {
		if w := ParseWanted([]byte(s)); w != nil {
			t.Errorf("%s wants %v", s, w)
		}
	}
}
