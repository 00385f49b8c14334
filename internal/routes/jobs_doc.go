package routes

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// ---- what the document says of jobs

const (
	exampleRunning = `{"id":"kq3mhvzc5yqrn2ba7w4xjt6sfu","handle":"everything","tool":"trigger-long-running-operation","state":"running",` +
		`"created":"2026-11-30T12:00:00Z","changed":"2026-11-30T12:00:05Z","progress":{"progress":1,"total":24},` +
		`"links":{"self":"../jobs/kq3mhvzc5yqrn2ba7w4xjt6sfu","events":"../jobs/kq3mhvzc5yqrn2ba7w4xjt6sfu/events"}}`
	exampleAsking = `{"id":"d2u5nqjx3f7wkayv6mbzcp4hrt","handle":"everything","tool":"trigger-elicitation-request","state":"input_required",` +
		`"created":"2026-11-30T12:00:00Z","changed":"2026-11-30T12:00:01Z","requests":[{"id":"1","mode":"form","message":"Who are you?",` +
		`"schema":{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}}],` +
		`"links":{"self":"../jobs/d2u5nqjx3f7wkayv6mbzcp4hrt","events":"../jobs/d2u5nqjx3f7wkayv6mbzcp4hrt/events"}}`
	exampleDone = `{"id":"kq3mhvzc5yqrn2ba7w4xjt6sfu","handle":"everything","tool":"trigger-long-running-operation","state":"done",` +
		`"created":"2026-11-30T12:00:00Z","changed":"2026-11-30T12:02:00Z","expires":"2026-11-30T13:02:00Z","progress":{"progress":24,"total":24},` +
		`"result":{"artifact_ref":"mcp~4f7c2wq6y3nkzvh5xjd2batmre","artifact_type":"mcp","artifact":"../artifacts/mcp~4f7c2wq6y3nkzvh5xjd2batmre"},` +
		`"links":{"self":"../jobs/kq3mhvzc5yqrn2ba7w4xjt6sfu","events":"../jobs/kq3mhvzc5yqrn2ba7w4xjt6sfu/events"}}`

	exampleEvents = ": open\n\n" +
		"id: 1\nevent: progress\ndata: {\"progress\":1,\"total\":2,\"message\":\"half of it\"}\n\n" +
		"id: 2\nevent: log\ndata: {\"level\":\"info\",\"data\":\"still at it\"}\n\n" +
		"id: 3\nevent: input\ndata: {\"job\":\"d2u5nqjx3f7wkayv6mbzcp4hrt\",\"requests\":[{\"id\":\"1\",\"mode\":\"form\",\"message\":\"Who are you?\"}]}\n\n" +
		"id: 4\nevent: result\ndata: {\"content\":[{\"type\":\"text\",\"text\":\"hello Ada\"}]}\n\n"

	exampleReply   = `{"action":"accept","content":{"name":"Ada"}}`
	exampleReplies = `{"name":{"action":"accept","content":{"name":"Ada"}},"colour":{"action":"decline"}}`
)

// examples are several, each with what it shows.
func examples(pairs ...string) map[string]*huma.Example {
	m := make(map[string]*huma.Example, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = &huma.Example{Value: json.RawMessage(pairs[i+1])}
	}
	return m
}

// eventsAnswer describes an answer of events.
var eventsAnswer = &huma.Response{
	Description: "Events.",
	Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
}

// jobEvents describes the events of a job.
func jobEvents() *huma.Response {
	return &huma.Response{Description: "Events.", Content: map[string]*huma.MediaType{"text/event-stream": eventsType()}}
}

// jobAnswer describes an answer that is a job.
func (s *server) jobAnswer(doc string) *huma.Response {
	r := s.jsonAnswer(doc, JobInfo{})
	r.Content["application/json"].Examples = examples("running", exampleRunning, "asking", exampleAsking, "done", exampleDone)
	return r
}

// jobsAnswer describes an answer that is a page of them.
func (s *server) jobsAnswer() *huma.Response {
	r := s.jsonAnswer("A page of jobs.", JobList{})
	r.Content["application/json"].Example = json.RawMessage(`{"jobs":[` + exampleDone + `,` + exampleAsking + `]}`)
	return r
}

// acceptedAnswer describes the answer to a call that goes on as a job.
func (s *server) acceptedAnswer(doc string) *huma.Response {
	r := s.jsonAnswer(doc, JobInfo{})
	r.Content["application/json"].Examples = examples("running", exampleRunning, "asking", exampleAsking)
	r.Headers = map[string]*huma.Header{
		"Location":    textHeader("The job."),
		"Retry-After": textHeader("When to look again, in seconds."),
	}
	return r
}

// eventsType describes content that is events.
func eventsType() *huma.MediaType {
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: exampleEvents}
}

// repliesBody describes what answers a job that asks.
func repliesBody() *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {
		Schema: &huma.Schema{Type: huma.TypeObject}, Examples: examples("one", exampleReply, "several", exampleReplies),
	}}}
}

// noContent makes the good answer one without a body.
func noContent(m map[string]*huma.Response, doc string) map[string]*huma.Response {
	delete(m, "200")
	m["204"] = &huma.Response{Description: doc}
	return m
}
