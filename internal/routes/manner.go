package routes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
)

// A manner is how the caller of a tool wants to be answered.
type manner struct {
	async  bool // as a job, if it lasts longer than wait
	waits  bool // wait is given
	wait   time.Duration
	stream bool   // as events
	key    string // names the call, which is made once; empty for no name
}

// manner reads what the request says of it.
func (x *exchange) manner(r *http.Request, accept ranges) (m manner, err error) {
	if x.s.Jobs != nil {
		_, m.async = preference(r.Header["Prefer"], "respond-async")
		m.stream = !m.async && accept.stream()
		if m.async && accept.stream() && accept.weight("application", "json") == 0 {
			return m, &bridge.Error{Kind: NotAcceptable, Op: "routes.manner", Msg: "What becomes a job is answered as JSON: leave out one of Prefer: respond-async and Accept: text/event-stream. GET /jobs/{id}/events streams a job."}
		}
		if m.key, err = idempotencyKey(r); err != nil {
			return m, err
		}
	}
	m.wait, m.waits, err = x.waits(r, m.async)
	return m, err
}

// stream reports whether events are wanted more than JSON.
func (rs ranges) stream() bool {
	for _, want := range rs {
		switch {
		case want.q == 0 || want.matches("application", "json"):
			return false
		case want.typ == "text" && want.sub == "event-stream":
			return true
		}
	}
	return false
}

// applied says what of Prefer was honoured, beside what a header says already.
func (m manner) applied(h http.Header) {
	var all []string
	if m.async {
		all = append(all, "respond-async")
	}
	if m.waits {
		all = append(all, fmt.Sprintf("wait=%d", int(m.wait.Seconds())))
	}
	if all != nil {
		h.Set("Preference-Applied", strings.Join(all, ", "))
	}
}

// mayAsk reports whether the call's server may ask something before it answers: also one
// that is still to be connected for this caller, of which nothing is known yet.
func (x *exchange) mayAsk(c *bridge.Call) bool {
	if x.s.Jobs == nil {
		return false
	}
	tool, err := x.s.Bridge.Find(c)
	if err != nil {
		return bridge.KindOf(err) != bridge.NotFound
	}
	return tool.Target.Asks
}

var errLeft = errors.New("the caller went away")

// viaJob makes a call that may outlast its request, that is answered as events, or
// that may ask something on its way; answer writes the plain answer.
func (x *exchange) viaJob(r *http.Request, c *bridge.Call, m manner, answer func(*bridge.Answer)) error {
	caller := c.Caller
	j, err := x.begin(r, c, m)
	x.rate(x.Header(), caller)
	if err != nil {
		return err
	}
	x.call = &bridge.Call{Caller: caller, Handle: c.Handle, Method: c.Method, Tool: c.Tool} // the job writes into c
	if m.async && m.wait == 0 {
		return x.accepted(r, j)
	}
	defer j.Leave(errLeft)
	if m.stream {
		return x.streamCall(r, j)
	}
	if done, err := x.await(r, j, m); err != nil || !done {
		if err != nil {
			return err
		}
		return x.accepted(r, j)
	}
	a, err := j.Outcome()
	x.call, x.asJob = j.Call(), j.Published()
	h := x.Header()
	h["Server-Timing"] = []string{serverTiming(&x.call.Timing)}
	h["Vary"] = varyCall
	x.rate(h, caller)
	if err != nil {
		return err
	}
	x.breach = a.Breach
	answer(a)
	return nil
}

// begin starts the call as a job, or finds the one that it is to be.
func (x *exchange) begin(r *http.Request, c *bridge.Call, m manner) (j *jobs.Job, err error) {
	m.applied(x.Header())
	x.origin(c)
	// Another key of the same user may have made the call, which this one may not make.
	if m.key != "" && x.s.Bridge.Policy.Allows(c.Caller, c.Handle, c.Tool) {
		if j, err = x.s.Jobs.Recall(r.Context(), c, m.key); err != nil {
			return nil, err
		}
	}
	again := j != nil
	if !again {
		// What can be refused is refused here and now, not by a job or in a stream.
		check := *c
		check.DryRun = true
		if _, err := x.s.Bridge.Invoke(r.Context(), &check); err != nil {
			return nil, err
		}
	}
	switch {
	case m.async:
		c.Timeout, c.Patient = x.s.MaxTimeout, true
	case m.waits:
		c.Timeout = max(m.wait-time.Since(x.start), time.Nanosecond)
	}
	async := m.async && m.wait == 0
	switch {
	case !again && m.key != "":
		if j, again, err = x.s.Jobs.Once(r.Context(), c, m.key); err != nil {
			return nil, err
		}
	case again:
	case async:
		return x.s.Jobs.Submit(r.Context(), c)
	default:
		return x.s.Jobs.Start(r.Context(), c), nil
	}
	if again {
		x.Header().Set("Idempotency-Replayed", "true")
	}
	if async {
		err = x.s.Jobs.Publish(j)
	}
	return j, err
}

// idempotencyKey returns the key that names the call: a string as the IETF's draft
// has it, in quotes, or the bare text that most senders write.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if values == nil {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if inner, ok := strings.CutPrefix(key, `"`); ok {
		key, ok = strings.CutSuffix(inner, `"`)
		if !ok {
			key = ""
		}
	}
	if len(values) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", &bridge.Error{Kind: bridge.Malformed, Op: "routes.key", Msg: "Idempotency-Key is one text of 1 to 255 printable ASCII characters, different for each call."}
	}
	return key, nil
}

// await waits until the job is done, and reports that, or until its caller is to
// be told of the job: it asks something, or the time that the caller waits is over.
func (x *exchange) await(r *http.Request, j *jobs.Job, m manner) (done bool, err error) {
	var over <-chan time.Time
	if m.async {
		timer := time.NewTimer(m.wait - time.Since(x.start))
		defer timer.Stop()
		over = timer.C
	}
	for {
		rec, _, more := j.Changes(0)
		if rec.State == jobs.InputRequired {
			return false, nil
		}
		select {
		case <-j.Done():
			return true, nil
		case <-more:
		case <-over:
			return false, x.s.Jobs.Publish(j)
		case <-r.Context().Done():
			return false, noAnswer(r.Context())
		}
	}
}

// accepted answers that the call goes on as a job.
func (x *exchange) accepted(r *http.Request, j *jobs.Job) error {
	x.s.Jobs.Show(r.Context(), j)
	h := x.Header()
	h.Set("Location", root(x, r)+"jobs/"+j.ID())
	h.Set("Retry-After", "1")
	h.Set("Cache-Control", "no-store")
	h["Vary"] = varyCall
	body, err := encode(x.jobInfo(r, j.Record()))
	if err != nil {
		return err
	}
	x.send(r, http.StatusAccepted, "application/json", body)
	return nil
}
