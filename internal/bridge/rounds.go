package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"mcpbridge/internal/raw"
)

// Wanted is what a server of the stateless protocol wants to have before it
// answers: the call is made again with it. Without requests it only wants to be
// asked again later.
type Wanted struct {
	Requests json.RawMessage // an object of requests by key; nil if there are none
	State    json.RawMessage // opaque, to be returned as it came; nil if there is none
}

// ParseWanted returns what the result of a call wants, or nil if it is an answer.
func ParseWanted(result []byte) *Wanted {
	if raw.GetString(result, "resultType") != "input_required" {
		return nil
	}
	return &Wanted{Requests: raw.Get(result, "inputRequests"), State: raw.Get(result, "requestState")}
}

const (
	maxRounds = 100 // of one call, against a server that asks for ever
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// rounds runs the tool until its server wants nothing more. Between two rounds the
// call holds no slots, however long a person takes to reply.
func (b *Bridge) rounds(ctx context.Context, c *Call, t *Tool, args []byte) (*Tool, *Result, error) {
	resume := c.Resume
	wait, start := firstWait, time.Now()
	for range maxRounds {
		var res *Result
		var err error
		t, res, err = b.call(ctx, c, t, args, resume)
		if err != nil || res.Wanted == nil {
			return t, res, err
		}
		if len(res.Wanted.Requests) > len("{}") {
			if c.Relay {
				_, err = questions(c, t, res.Wanted)
				return t, res, err
			}
			resume, err = b.fulfil(ctx, c, t, res.Wanted)
		} else if time.Since(start)+wait > t.Target.MaxTimeout {
			err = &Error{Kind: Unavailable, Op: "bridge.rounds", RetryAfter: lastWait, Msg: fmt.Sprintf("The server %q has been putting the call off for %v, which is as long as a call may take.", c.Handle, t.Target.MaxTimeout)}
		} else {
			resume, err = put(nil, nil, res.Wanted.State), sleep(ctx, wait+rand.N(wait/4+1))
			wait = min(2*wait, lastWait)
		}
		if err != nil {
			return t, nil, ended(ctx, err, "while its server waited for input")
		}
	}
	return t, nil, &Error{Kind: UpstreamError, Op: "bridge.rounds", Msg: fmt.Sprintf("The server %q asked for input %d times and never answered.", c.Handle, maxRounds)}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fulfil has the caller reply to what the server wants, and returns the members that say so in the call's params.
func (b *Bridge) fulfil(ctx context.Context, c *Call, t *Tool, w *Wanted) ([]byte, error) {
	all, err := questions(c, t, w)
	if err != nil {
		return nil, err
	}
	replies, err := c.Ask(ctx, all)
	if err != nil {
		return nil, err
	}
	return put(nil, replies, w.State), nil
}

// questions returns what the server asks the caller, or why it may not.
func questions(c *Call, t *Tool, w *Wanted) (all []Question, err error) {
	refuse := func(format string, args ...any) error {
		return &Error{Kind: UpstreamError, Op: "bridge.questions", Msg: fmt.Sprintf("The server %q ", c.Handle) + fmt.Sprintf(format, args...)}
	}
	switch {
	case !t.Target.Asks:
		return nil, refuse("asks its caller something, which its configuration does not let it (elicitation: true).")
	case c.Ask == nil && !c.Relay:
		return nil, refuse("asks its caller something, who does not offer to be asked.")
	}
	for m := range raw.Members(w.Requests) {
		if method := raw.GetString(m.Val, "method"); method != "elicitation/create" {
			return nil, refuse("wants %q of the bridge, which does not offer that.", FirstChars(method, 100))
		}
		all = append(all, ParseQuestion(raw.Unquote(m.Key), raw.Get(m.Val, "params")))
	}
	if len(all) == 0 {
		return nil, refuse("wants input, but its requests are no object.")
	}
	return all, nil
}

// put appends the members of params that go on with a call.
func put(b []byte, replies map[string]Reply, state json.RawMessage) []byte {
	if replies != nil {
		b = append(b, `"inputResponses":{`...)
		for i, id := range slices.Sorted(maps.Keys(replies)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(raw.AppendQuote(b, id), ':')
			b = replies[id].Append(b)
		}
		b = append(b, '}')
	}
	if state != nil {
		if b != nil {
			b = append(b, ',')
		}
		flat := bytes.Clone(state)
		raw.Flatten(flat)
		b = append(append(b, `"requestState":`...), flat...)
	}
	return b
}

// ParseQuestion reads the params of an elicitation.
func ParseQuestion(id string, params []byte) Question {
	q := Question{ID: id, Mode: raw.GetString(params, "mode"), Message: raw.GetString(params, "message"), URL: raw.GetString(params, "url")}
	if s := raw.Get(params, "requestedSchema"); raw.KindOf(s) == raw.Object {
		q.Schema = s
	}
	if q.Mode == "" { // of the versions before there were two
		q.Mode = "form"
	}
	return q
}

// Append appends the reply as the protocol has it, on one line.
func (r Reply) Append(b []byte) []byte {
	b = raw.AppendQuote(append(b, `{"action":`...), r.Action)
	if r.Content != nil {
		flat := bytes.Clone(r.Content)
		raw.Flatten(flat)
		b = append(append(b, `,"content":`...), flat...)
	}
	return append(b, '}')
}
