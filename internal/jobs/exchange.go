package jobs

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

// exchanges are what bridges tell each other, and what they answer.
type exchanges struct {
	inbox    chan message  // what this bridge is told to do
	patience time.Duration // with other bridges' answers

	pendingMu sync.Mutex
	pending   map[string]chan *Problem // :: exchange -> who waits for its answer, guarded by pendingMu
}

// A message tells a bridge something about a job that it runs, or answers that.
type message struct {
	Op       op                      `json:"op"`
	Exchange string                  `json:"exchange"`
	From     string                  `json:"from,omitempty"`
	Tag      string                  `json:"tag,omitempty"`
	Replies  map[string]bridge.Reply `json:"replies,omitempty"`
	Problem  *Problem                `json:"problem,omitempty"` // in an answer; nil if it was done
}

// An op is what a message is for.
type op string

const (
	opCancel  op = "cancel"
	opReply   op = "reply"
	opPublish op = "publish"
	opAnswer  op = "answer"
)

const (
	answerTime = 5 * time.Second        // that another bridge has to answer
	again      = 500 * time.Millisecond // after which it is told once more, since it may not have listened
	remembered = 256                    // exchanges of which a bridge knows its answer
)

// tell has another bridge do something, and returns its error.
func (s *shared) tell(ctx context.Context, node string, m message) error {
	m.Exchange, m.From = newID(), s.node
	text, err := json.Marshal(m)
	if err != nil {
		return unreachable(err)
	}
	answer := make(chan *Problem, 1)
	s.pendingMu.Lock()
	s.pending[m.Exchange] = answer
	s.pendingMu.Unlock()
	defer func() {
		s.pendingMu.Lock()
		delete(s.pending, m.Exchange)
		s.pendingMu.Unlock()
	}()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		err = s.do(ctx, len(text), func(ctx context.Context) error { return s.r.tell(ctx, node, text) })
		if err != nil {
			return err
		}
		select {
		case p := <-answer:
			if p != nil {
				return p.Err()
			}
			return nil
		case <-ticker.C:
		case <-timer.C:
			return &bridge.Error{Kind: bridge.StoreUnavailable, Op: "jobs.tell", RetryAfter: time.Second, Msg: "The bridge that runs the job did not answer, so that it may have heard this or not; GET the job to see, and try again."}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hear takes a message. What comes faster than it can be done is lost, and so not answered.
func (s *shared) hear(text string) {
	var m message
	if json.Unmarshal([]byte(text), &m) != nil {
		return
	}
	if m.Op != opAnswer {
		select {
		case s.inbox <- m:
		default:
		}
		return
	}
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	if answer := s.pending[m.Exchange]; answer != nil {
		delete(s.pending, m.Exchange)
		answer <- m.Problem // there is room for the one
	}
}

// obeys does what this bridge is told, one after the other, until ctx ends. What it is
// told again it answers again.
func (s *shared) obeys(ctx context.Context) {
	answers := make(map[string][]byte, remembered)
	order := make([]string, 0, remembered)
	for {
		var m message
		select {
		case <-ctx.Done():
			return
		case m = <-s.inbox:
		}
		text := answers[m.Exchange]
		if text == nil {
			answer := message{Op: opAnswer, Exchange: m.Exchange}
			if err := s.obey(m); err != nil {
				answer.Problem = problemOf(err)
			}
			var err error
			if text, err = json.Marshal(answer); err != nil {
				continue // and who waits gives up
			}
			if len(order) == remembered {
				delete(answers, order[0])
				order = order[1:]
			}
			order = append(order, m.Exchange)
			answers[m.Exchange] = text
		}
		_ = s.do(ctx, len(text), func(ctx context.Context) error { return s.r.tell(ctx, m.From, text) })
	}
}

func (s *shared) obey(m message) error {
	j := s.m.tagged(m.Tag)
	switch {
	case j == nil:
		return ErrUnknown
	case m.Op == opPublish:
		err := s.m.Publish(j)
		s.m.Show(s.m.ctx, j)
		return err
	case !j.Published():
		return ErrUnknown
	case m.Op == opCancel:
		j.cancel(errByCaller)
		return nil
	case m.Op == opReply:
		err := j.reply(m.Replies)
		if err == nil {
			s.m.Show(s.m.ctx, j)
		}
		return err
	default:
		return &bridge.Error{Kind: bridge.StoreUnavailable, Op: "jobs.obey", Msg: "The bridge that runs the job is of another version, and did not understand."}
	}
}

// cancel ends another bridge's job.
func (s *shared) cancel(ctx context.Context, o bridge.Owner, id string) error {
	tag := hashOf(o, id)
	rec, _, err := s.read(ctx, o, tag, 0)
	if err != nil || rec.State.Final() {
		return err
	}
	return s.tell(ctx, rec.Node, message{Op: opCancel, Tag: tag})
}

// reply answers what another bridge's job asks.
func (s *shared) reply(ctx context.Context, o bridge.Owner, id string, replies map[string]bridge.Reply) error {
	tag := hashOf(o, id)
	rec, _, err := s.read(ctx, o, tag, 0)
	switch {
	case err != nil:
		return err
	case rec.State.Final():
		return nothingAsked() // else its own bridge knows
	}
	return s.tell(ctx, rec.Node, message{Op: opReply, Tag: tag, Replies: replies})
}
