package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// Alone is in place of the question's id in a reply to the only one there is.
const Alone = ""

// asking is what a server has asked and waits for.
type asking struct {
	questions []bridge.Question
	checks    map[string]bridge.Checker // :: question's ID -> check of its content; none if anything goes
	replies   chan map[string]bridge.Reply
}

// ask implements [bridge.Asker]: the job waits until its caller replies.
func (j *Job) ask(ctx context.Context, questions []bridge.Question) (map[string]bridge.Reply, error) {
	a := &asking{questions: questions, checks: make(map[string]bridge.Checker), replies: make(chan map[string]bridge.Reply, 1)}
	for _, q := range questions {
		if q.Schema == nil {
			continue
		}
		check, err := j.m.o.Compile(q.Schema)
		if err != nil {
			return nil, &bridge.Error{Kind: bridge.UpstreamError, Op: "jobs.ask", Err: err, Msg: fmt.Sprintf("The server asked a question whose schema cannot be used: %v", err)}
		}
		a.checks[q.ID] = check
	}
	// Whoever is to reply has to find the job.
	if err := j.m.Publish(j); err != nil {
		return nil, err
	}
	j.m.Show(ctx, j)
	data, err := json.Marshal(struct {
		Job      string            `json:"job"`
		Requests []bridge.Question `json:"requests"`
	}{j.ID(), questions})
	if err != nil {
		return nil, &bridge.Error{Kind: bridge.UpstreamError, Op: "jobs.ask", Err: err, Msg: "The server asked a question that is not valid JSON."}
	}
	j.setAsking(a)
	j.change([]Event{{Type: EventInput, Data: data}}, func(r *Record) { r.State, r.Asked = InputRequired, questions })
	defer j.answered()
	defer j.setAsking(nil)
	timer := time.NewTimer(j.m.o.InputWait)
	defer timer.Stop()
	select {
	case replies := <-a.replies:
		return replies, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, &bridge.Error{Kind: bridge.DeadlineExceeded, Op: "jobs.ask", Msg: fmt.Sprintf("The server asked for input, which did not come within %v.", j.m.o.InputWait)}
	}
}

// answered notes that the job asks nothing any more.
func (j *Job) answered() {
	if j.Record().State == InputRequired {
		j.change(nil, func(r *Record) { r.State, r.Asked = Running, nil })
	}
}

func (j *Job) setAsking(a *asking) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asking = a
}

// reply hands the replies to the call that waits for them.
func (j *Job) reply(replies map[string]bridge.Reply) error {
	j.mu.Lock()
	a := j.asking
	j.mu.Unlock()
	if a == nil {
		return nothingAsked()
	}
	checked, err := a.check(replies)
	if err != nil {
		return err
	}
	j.mu.Lock()
	late := j.asking != a // somebody was faster, or the time was up
	if !late {
		j.asking = nil
	}
	j.mu.Unlock()
	if late {
		return nothingAsked()
	}
	j.answered()         // before anybody looks, or the call asks again
	a.replies <- checked // there is room for the one
	return nil
}

func nothingAsked() error {
	return &bridge.Error{Kind: bridge.JobConflict, Op: "jobs.reply", Msg: "The job asks nothing, or no longer does; GET /jobs/{id} says what it waits for."}
}

// check returns the replies as they are to be sent, or all that is wrong with them.
func (a *asking) check(replies map[string]bridge.Reply) (map[string]bridge.Reply, error) {
	var wrong mistakes
	out := make(map[string]bridge.Reply, len(replies))
	known := make(map[string]bool, len(a.questions))
	for _, q := range a.questions {
		known[q.ID] = true
		at := raw.AppendToken("", q.ID)
		r, ok := replies[q.ID]
		if alone, only := replies[Alone]; only && len(replies) == 1 && len(a.questions) == 1 {
			known[Alone], r, ok, at = true, alone, true, ""
		}
		switch {
		case !ok:
			wrong.add(at, "is missing: the question has this id")
			continue
		case r.Action != bridge.Accept && r.Action != bridge.Decline && r.Action != bridge.Cancel:
			wrong.add(at+"/action", "must be accept, decline or cancel")
			continue
		case r.Action != bridge.Accept:
			r.Content = nil
		case a.checks[q.ID] != nil && r.Content == nil:
			wrong.add(at+"/content", "is missing: the question's schema says what it has to be")
			continue
		case a.checks[q.ID] != nil:
			content, err := a.checks[q.ID].Check(r.Content)
			if err != nil {
				wrong.join(at+"/content", err)
				continue
			}
			r.Content = content
		}
		out[q.ID] = r
	}
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		if !known[id] && id != Alone {
			wrong.add(raw.AppendToken("", id), "is no question's id")
		}
	}
	return out, wrong.err()
}

// mistakes are what is wrong with replies, in the form of [bridge.Checker]'s errors.
type mistakes []mistake

type mistake struct {
	Pointer       string `json:"pointer"`
	Message       string `json:"message"`
	SchemaPointer string `json:"schema_pointer"`
}

func (m *mistakes) add(pointer, message string) {
	*m = append(*m, mistake{Pointer: pointer, Message: message})
}

// join adds what a checker found in the content at a pointer.
func (m *mistakes) join(pointer string, err error) {
	var found []mistake
	if e, ok := errors.AsType[*bridge.Error](err); ok {
		if b, err := json.Marshal(e.Members["errors"]); err == nil && json.Unmarshal(b, &found) == nil && len(found) > 0 {
			for _, f := range found {
				*m = append(*m, mistake{pointer + f.Pointer, f.Message, f.SchemaPointer})
			}
			return
		}
		m.add(pointer, e.Msg)
		return
	}
	m.add(pointer, "does not fit the schema that the server gave")
}

func (m mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	texts := make([]string, 0, len(m))
	for _, e := range m[:min(len(m), 3)] {
		texts = append(texts, e.Pointer+": "+e.Message)
	}
	return &bridge.Error{
		Kind: bridge.InvalidArguments, Op: "jobs.reply",
		Msg:     "The input does not fit what was asked: " + bridge.FirstChars(strings.Join(texts, "; "), 1000) + `. A reply is {"action": "accept", "content": {…}}, or only the action decline or cancel.`,
		Members: map[string]any{"errors": m[:min(len(m), 20)], "count": len(m)},
	}
}
