package routes

import (
	"bytes"
	"encoding/json"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
)

// What the document shows of jobs is what the bridge says, and takes.
func TestJobExamples(t *testing.T) {
	strict := func(text string, v any) {
		t.Helper()
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, state := range map[string]jobs.State{exampleRunning: jobs.Running, exampleAsking: jobs.InputRequired, exampleDone: jobs.Done} {
		var j JobInfo
		strict(text, &j)
		if j.State != state || j.ID == "" || j.Links.Self != "../jobs/"+j.ID || (len(j.Requests) > 0) != (state == jobs.InputRequired) || (j.Result != nil) != (state == jobs.Done) {
			t.Errorf("%s: %+v", state, j)
		}
	}
	var one bridge.Reply
	strict(exampleReply, &one)
	var several map[string]bridge.Reply
	strict(exampleReplies, &several)
	if one.Action != bridge.Accept || several["name"].Action != bridge.Accept || several["colour"].Action != bridge.Decline {
		t.Errorf("replies: %+v, %+v", one, several)
	}
	var types []string
	for _, e := range readEvents(exampleEvents) {
		if types = append(types, e.typ); !json.Valid([]byte(e.data)) {
			t.Errorf("event %+v", e)
		}
	}
	if len(types) != 4 || types[3] != "result" {
		t.Errorf("events: %q", types)
	}
}
