package routes

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/raw"
)

// JobInfo is a job as its caller sees it.
type JobInfo struct {
	ID       string            `json:"id"`
	Handle   string            `json:"handle"`
	Method   bridge.Method     `json:"method,omitempty" doc:"What is asked of the server if no tool is called: resources/read or prompts/get."`
	Tool     string            `json:"tool" doc:"The tool, or the resource's URI or the prompt's name."`
	State    jobs.State        `json:"state" enum:"queued,running,input_required,done,failed,cancelled"`
	Created  time.Time         `json:"created"`
	Changed  time.Time         `json:"changed"`
	Expires  *time.Time        `json:"expires,omitempty" doc:"When the job is forgotten; not before its end."`
	Progress json.RawMessage   `json:"progress,omitempty" doc:"The server's latest progress: progress, and perhaps total and message."`
	Requests []bridge.Question `json:"requests,omitempty" doc:"What the server asks, in state input_required; POST …/input answers."`
	Result   *JobResult        `json:"result,omitempty" doc:"Where the result is, in state done."`
	Problem  *Problem          `json:"problem,omitempty" doc:"Why there is none, in state failed."`
	Links    JobLinks          `json:"links"`
}

// JobResult is where a job's result is, or the result itself where no store has it.
type JobResult struct {
	ArtifactRef  string          `json:"artifact_ref,omitempty"`
	ArtifactType string          `json:"artifact_type,omitempty"`
	Artifact     string          `json:"artifact,omitempty" format:"uri-reference" doc:"GET it for the answer that the call would have had."`
	Data         json.RawMessage `json:"data,omitempty" doc:"The answer itself, where the store of artifacts did not take it."`
}

// JobLinks lead to a job and what belongs to it.
type JobLinks struct {
	Self   string `json:"self" format:"uri-reference"`
	Events string `json:"events" format:"uri-reference"`
}

// JobList is a page of jobs.
type JobList struct {
	Jobs []JobInfo `json:"jobs"`
	Next string    `json:"next,omitempty" format:"uri-reference" doc:"The next page, if there is one."`
}

// JobListInput selects jobs.
type JobListInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Most jobs to return."`
	After string `query:"after" maxLength:"64" doc:"The job that the page before ended with."`
}

var jobParam = param("path", "id", "The job, by its id.")

func (s *server) jobRoutes() {
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/jobs", OperationID: "list-jobs", Tags: []string{"jobs"},
		Summary:     "List jobs",
		Description: "The caller's jobs, newest first.",
		Responses:   linked(s.answers(s.jobsAnswer(), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.StoreUnavailable)),
	}, s.listJobs)
	wait := param("header", "Prefer", "wait=N waits up to N seconds for the job to end or to ask something; with If-None-Match, for any change.")
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/jobs/{id}", OperationID: "get-job", Tags: []string{"jobs"},
		Summary:     "See how a job is",
		Description: "The job's state, its progress, what it asks, and where its result is.",
		Parameters:  []*huma.Param{jobParam, wait},
		Responses:   notModified(s.answers(s.jobAnswer("The job."), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.StoreUnavailable)),
	}, s.getJob)
	s.register(huma.Operation{
		Method: http.MethodDelete, Path: "/jobs/{id}", OperationID: "cancel-job", Tags: []string{"jobs"},
		Summary:     "Cancel a job",
		Description: "Tells the server to cancel. The job stays readable. One that has ended is left as it is.",
		Parameters:  []*huma.Param{jobParam},
		Responses:   noContent(s.answers(nil, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.StoreUnavailable), "The job is being cancelled, or has ended."),
	}, s.cancelJob)
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/jobs/{id}/events", OperationID: "get-job-events", Tags: []string{"jobs"},
		Summary:     "Follow a job",
		Description: "The job's events, as server-sent events: progress, log, input, and at its end one result or problem. Last-Event-ID continues where a stream was cut off, as far as events are kept.",
		Parameters:  []*huma.Param{jobParam, param("header", "Last-Event-ID", "The last event that the caller has.")},
		Responses:   s.answers(jobEvents(), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.StoreUnavailable),
	}, s.jobEvents)
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/jobs/{id}/input", OperationID: "answer-job", Tags: []string{"jobs"},
		Summary:     "Answer what a job asks",
		Description: "Replies to all that the job asks, by the id of each request: {\"<id>\": {\"action\": \"accept\", \"content\": {…}}}. The action is accept, decline or cancel; with accept the content fits the request's schema. To a single request the reply alone will do.",
		Parameters:  []*huma.Param{jobParam},
		RequestBody: repliesBody(),
		Responses:   noContent(s.answers(nil, bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.JobConflict, TooLarge, UnsupportedMediaType, bridge.InvalidArguments, bridge.StoreUnavailable), "The server has been told."),
	}, s.answerJob)
}

func (s *server) listJobs(x *exchange, r *http.Request, in *JobListInput) error {
	c, err := x.identify(r)
	if err != nil {
		return err
	}
	list := JobList{Jobs: []JobInfo{}}
	if s.Jobs != nil {
		all, err := s.Jobs.List(r.Context(), c)
		if err != nil {
			return err
		}
		started := in.After == ""
		for _, rec := range all {
			if started && len(list.Jobs) == in.Limit {
				list.Next = "?limit=" + strconv.Itoa(in.Limit) + "&after=" + list.Jobs[in.Limit-1].ID
				x.Header().Set("Link", "<"+list.Next+`>; rel="next"`)
				break
			}
			if started {
				list.Jobs = append(list.Jobs, x.jobInfo(r, rec))
			}
			started = started || rec.ID == in.After
		}
		if !started {
			return &bridge.Error{Kind: bridge.Malformed, Op: "routes.jobs", Msg: "after names no job of yours; it may be forgotten by now. Start again without it."}
		}
	}
	x.Header().Set("Cache-Control", "no-store")
	return x.writeJSON(r, "", list)
}

// job finds the job that a request names, and its changes.
func (x *exchange) job(r *http.Request) (bridge.Caller, string, error) {
	c, err := x.identify(r)
	if err != nil {
		return c, "", err
	}
	if x.s.Jobs == nil {
		return c, "", jobs.ErrUnknown
	}
	return c, segment(r, "id"), nil
}

func (s *server) getJob(x *exchange, r *http.Request) error {
	c, id, err := x.job(r)
	if err != nil {
		return err
	}
	wait, waits, err := x.waits(r, true)
	if err != nil {
		return err
	}
	rec, err := s.awaitJob(r, c, id, wait)
	if err != nil {
		return err
	}
	h := x.Header()
	if waits {
		h.Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait.Seconds())))
	}
	h.Set("Cache-Control", "no-store")
	if !rec.State.Final() {
		h.Set("Retry-After", "1")
	}
	return x.writeJSON(r, versionTag(rec), x.jobInfo(r, rec))
}

func versionTag(rec jobs.Record) string { return `"` + strconv.FormatUint(rec.Version, 10) + `"` }

// awaitJob returns the job's record as soon as its caller has to know of it: when
// it has ended or asks something or, for one who knows a version of it, with any
// change; at the latest after wait.
func (s *server) awaitJob(r *http.Request, c bridge.Caller, id string, wait time.Duration) (jobs.Record, error) {
	if wait == 0 {
		rec, _, err := s.Jobs.Read(r.Context(), c, id, math.MaxInt64)
		return rec, err
	}
	known := r.Header["If-None-Match"]
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		rec, _, more, err := s.Jobs.Changes(r.Context(), c, id, math.MaxInt64) // no event
		if err != nil || rec.State.Final() {
			return rec, err
		}
		if known != nil {
			if len(known) != 1 || known[0] != versionTag(rec) {
				return rec, nil
			}
		} else if rec.State == jobs.InputRequired {
			return rec, nil
		}
		select {
		case <-more:
		case <-timer.C:
			return rec, nil
		case <-r.Context().Done():
			if stopping(r.Context()) {
				return rec, nil // it can be asked for again, elsewhere
			}
			return rec, noAnswer(r.Context())
		}
	}
}

func (s *server) cancelJob(x *exchange, r *http.Request) error {
	c, id, err := x.job(r)
	if err != nil {
		return err
	}
	if err := s.Jobs.Cancel(r.Context(), c, id); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) jobEvents(x *exchange, r *http.Request) error {
	c, id, err := x.job(r)
	if err != nil {
		return err
	}
	after := uint64(0)
	if v := r.Header.Get("Last-Event-ID"); v != "" {
		if after, err = strconv.ParseUint(v, 10, 62); err != nil {
			return &bridge.Error{Kind: bridge.Malformed, Op: "routes.events", Msg: "Last-Event-ID is the number of an event of this job."}
		}
	}
	next := func(after uint64) (jobs.Record, []jobs.Event, <-chan struct{}, error) {
		return s.Jobs.Changes(r.Context(), c, id, after)
	}
	if _, _, err := s.Jobs.Read(r.Context(), c, id, math.MaxInt64); err != nil { // what can be refused is refused before the stream begins
		return err
	}
	if r.Method == http.MethodHead {
		x.Header().Set("Content-Type", "text/event-stream")
		x.WriteHeader(http.StatusOK)
		return nil
	}
	st := x.events()
	defer st.end()
	rec, last, err := st.follow(r.Context(), after, next)
	switch {
	case err == nil:
		return st.outcome(r, c, rec, last)
	case st.err == nil && stopping(r.Context()):
		return nil // an end, behind which the reader can go on elsewhere
	case st.err != nil:
		err = &bridge.Error{Kind: bridge.Canceled, Op: "routes.events", Msg: "The caller went away.", Err: st.err}
	}
	x.note(err)
	panic(http.ErrAbortHandler)
}

// outcome sends what came of a job, by its record.
func (s *eventStream) outcome(r *http.Request, c bridge.Caller, rec jobs.Record, id uint64) error {
	switch {
	case rec.Problem != nil && rec.State == jobs.Cancelled:
		s.problem(r, id, &bridge.Error{Kind: bridge.JobConflict, Op: "routes.events", Msg: "The job was cancelled."})
	case rec.Problem != nil:
		s.problem(r, id, rec.Problem.Err())
	case rec.Data != nil:
		s.bytes(id, "result", rec.Data)
	case s.x.s.Artifacts != nil:
		a, err := s.x.s.Artifacts.Open(r.Context(), c, rec.Artifact)
		if err != nil {
			s.problem(r, id, err)
			return nil
		}
		v, err := a.Data("")
		if err != nil {
			s.problem(r, id, err)
			return nil
		}
		s.artifact(r, rec.Artifact, rec.Type)
		s.event(id, "result", func(w io.Writer) error {
			_, err := v.WriteTo(w)
			return err
		})
	}
	if s.err != nil {
		s.x.note(s.err)
		panic(http.ErrAbortHandler) // what was sent is not whole
	}
	return nil
}

func (s *server) answerJob(x *exchange, r *http.Request) error {
	c, id, err := x.job(r)
	if err != nil {
		return err
	}
	body, err := x.readBody(r)
	if err != nil {
		return err
	}
	replies, err := parseReplies(body, s.Bridge.Nesting)
	if err != nil {
		return err
	}
	if err := s.Jobs.Reply(r.Context(), c, id, replies); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// parseReplies reads the body of an input.
func parseReplies(body []byte, nesting int) (map[string]bridge.Reply, error) {
	if err := raw.Check(body, nesting); err != nil {
		return nil, &bridge.Error{Kind: bridge.Malformed, Op: "routes.input", Msg: fmt.Sprintf("The input must be one JSON object: %v.", err)}
	}
	if raw.KindOf(raw.Get(body, "action")) == raw.String {
		return map[string]bridge.Reply{jobs.Alone: reply(body)}, nil
	}
	replies := map[string]bridge.Reply{}
	for m := range raw.Members(body) {
		replies[raw.Unquote(m.Key)] = reply(m.Val)
	}
	return replies, nil
}

// reply reads one reply; what is no reply has no action, which is refused later.
func reply(b []byte) bridge.Reply {
	if raw.KindOf(b) != raw.Object {
		return bridge.Reply{}
	}
	return bridge.Reply{Action: raw.GetString(b, "action"), Content: raw.Get(b, "content")}
}

// jobInfo is a record as its caller sees it.
func (x *exchange) jobInfo(r *http.Request, rec jobs.Record) JobInfo {
	self := root(x, r) + "jobs/" + rec.ID
	i := JobInfo{
		ID: rec.ID, Handle: rec.Handle, Method: rec.Method, Tool: rec.Tool, State: rec.State, Created: rec.Created, Changed: rec.Changed,
		Expires: timeOf(rec.Expires), Progress: rec.Progress, Requests: rec.Asked,
		Links: JobLinks{Self: self, Events: self + "/events"},
	}
	switch {
	case rec.State == jobs.Failed && rec.Problem != nil:
		i.Problem = x.problem(rec.Problem.Err())
		i.Problem.RequestID = "" // it names this request, and not the call
		i.Problem.link(x, r)
	case rec.State == jobs.Done:
		i.Result = &JobResult{ArtifactRef: rec.Artifact, ArtifactType: rec.Type, Data: rec.Data}
		if rec.Artifact != "" {
			i.Result.Artifact = artifactRef(x, r, rec.Artifact)
		}
	}
	return i
}
