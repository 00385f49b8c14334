package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpbridge/internal/bridge"
)

// A State says how far a job is.
type State string

// The states of a job. The last three are final.
const (
	Queued        State = "queued"         // on its way to the server
	Running       State = "running"        // the server has it
	InputRequired State = "input_required" // the server has asked something
	Done          State = "done"           // there is a result
	Failed        State = "failed"         // there is a problem
	Cancelled     State = "cancelled"      // by its caller
)

// Final reports whether the job has ended.
func (s State) Final() bool { return s == Done || s == Failed || s == Cancelled }

// A Record is what is known of a job at one moment. It is the form in which a job
// is kept where others read it.
type Record struct {
	ID      string            `json:"id"`
	Owner   bridge.Owner      `json:"-"`    // who reads it knows
	Node    string            `json:"node"` // of the bridge that runs it
	Handle  string            `json:"handle"`
	Method  bridge.Method     `json:"method,omitempty"`
	Tool    string            `json:"tool"` // or what the method reads or gets
	State   State             `json:"state"`
	Version uint64            `json:"version"` // grows with each change
	Created time.Time         `json:"created"`
	Changed time.Time         `json:"changed"`
	Expires time.Time         `json:"expires"` // when it is forgotten; zero while it has not ended
	Asked   []bridge.Question `json:"asked,omitempty"`

	Progress json.RawMessage `json:"progress,omitempty"` // params of the latest notification
	Artifact string          `json:"artifact,omitempty"` // reference of the result
	Type     string          `json:"type,omitempty"`     // of the artifact
	Data     json.RawMessage `json:"data,omitempty"`     // the result itself, where no store has it
	Problem  *Problem        `json:"problem,omitempty"`  // why it failed or was cancelled
}

// A Problem is a [bridge.Error] as far as its caller may know, in a form that can be kept.
type Problem struct {
	Kind       bridge.Kind    `json:"kind"`
	Msg        string         `json:"msg"`
	RetryAfter time.Duration  `json:"retry_after,omitempty"`
	Members    map[string]any `json:"members,omitempty"`
}

// UnmarshalJSON keeps the bytes of the members, so that numbers keep their digits.
func (p *Problem) UnmarshalJSON(b []byte) error {
	type plain Problem
	in := struct {
		*plain
		Members map[string]json.RawMessage `json:"members"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	p.Members = nil
	if in.Members != nil {
		p.Members = make(map[string]any, len(in.Members))
	}
	for k, v := range in.Members {
		p.Members[k] = v
	}
	return nil
}

// Err returns the problem as an error again.
func (p *Problem) Err() error {
	return &bridge.Error{Kind: p.Kind, Op: "jobs.result", Msg: p.Msg, RetryAfter: p.RetryAfter, Members: p.Members}
}

// An Event is something that happened to a job.
type Event struct {
	ID   uint64          `json:"id"`   // from 1; where another bridge runs the job, some that were soon forgotten may be missing
	Type string          `json:"type"` // progress, log, input, state, result or problem
	Data json.RawMessage `json:"data"`
}

// The types of events.
const (
	EventProgress = "progress" // params of the notification, as the server sent them
	EventLog      = "log"      // the same of a log message
	EventInput    = "input"    // what is asked, and where to answer it: {"job": id, "requests": [questions]}
	EventEnd      = "end"      // the last one: the record says how
)

// maxInline bounds a result that is kept in its record, for want of a store.
const maxInline = 1 << 20

// result notes where the result is.
func (r *Record) result(a *bridge.Answer) {
	r.State = Done
	size := a.Result.Size()
	switch {
	case a.Artifact != nil:
		r.Artifact, r.Type = a.Artifact.Ref, a.Artifact.Type
	case size > maxInline:
		r.State = Failed
		r.Problem = &Problem{Kind: bridge.StoreUnavailable, Msg: fmt.Sprintf("The tool ran, but its result of %d bytes could not be stored, so that it is lost.", size)}
	default:
		r.Data = make([]byte, 0, size)
		for _, p := range a.Result.Data() {
			r.Data = append(r.Data, p...)
		}
	}
}

// failure notes why there is no result.
func (r *Record) failure(err error) {
	r.State, r.Problem = Failed, problemOf(err)
	if r.Problem.Kind == bridge.Canceled {
		r.State = Cancelled
	}
}

// problemOf returns what may be told of an error.
func problemOf(err error) *Problem {
	if e, ok := errors.AsType[*bridge.Error](err); ok {
		return &Problem{Kind: e.Kind, Msg: e.Msg, RetryAfter: e.RetryAfter, Members: e.Members}
	}
	p := &Problem{Kind: bridge.KindOf(err), Msg: "An internal error; the log has it."}
	switch p.Kind {
	case bridge.Canceled:
		p.Msg = "The call was cancelled."
	case bridge.DeadlineExceeded:
		p.Msg = "The call's time was up."
	}
	return p
}
