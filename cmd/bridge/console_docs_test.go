package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/web/webtest"
)

// Where callers have keys, the page shows what the reader's key may call, and calls go with
// it; the dialog behind Authorize takes another one for the calls, of which the policy decides.
func TestDocsWithKeys(t *testing.T) {
	mcptest.NoLeaks(t)
	ci, ciEntry := newKey(t, "ci", map[string]any{"allow": []string{"demo/greet", "demo/add"}})
	less, lessEntry := newKey(t, "less", map[string]any{"allow": []string{"demo/add"}})
	p := start(t, map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}, map[string]any{"auth": map[string]any{"keys": []any{ciEntry, lessEntry}}})
	until(t, "the demo is there", func() bool { return len(p.names("X-API-Key", ci)) == 2 })
	const greet, answer = "#operations-demo-demo__greet", `document.querySelector('.live-responses-table .response').innerText.replace(/\s+/g, ' ')`
	steps := []webtest.Step{
		{Wait: "#key label", Text: "needs an API key"},
		{Fill: "#key input", Text: "wrong"},
		{Press: "Enter"},
		{Wait: "#key label", Text: "not right"},
		{Fill: "#key input", Text: ci},
		{Press: "Enter"},
		{Wait: greet},
		{Value: `[...document.querySelectorAll('.opblock')].map((e) => e.id)`},
		{Click: greet + " .opblock-summary-control"},
		{Fill: greet + " textarea.body-param__text", Text: `{"name":"Ada"}`},
		{Click: greet + " button.execute"},
		{Wait: ".live-responses-table .response", Text: "Ada"},
		{Value: answer},
	}
	for _, key := range []string{less, "wrong"} {
		steps = append(steps,
			webtest.Step{Click: ".btn.authorize"}, webtest.Step{Click: ".auth-container button:has-text('Logout')"},
			webtest.Step{Fill: ".auth-container input >> nth=0", Text: key}, webtest.Step{Click: ".auth-container .btn.authorize"}, webtest.Step{Click: ".auth-container .btn-done"},
			webtest.Step{Click: greet + " button.btn-clear"}, webtest.Step{Click: greet + " button.execute"},
			webtest.Step{Wait: ".live-responses-table .response", Text: "request_id"}, webtest.Step{Value: answer})
	}
	s := webtest.Browse(t, webtest.Visit{URL: p.base + "/docs", Steps: steps})
	var operations []string
	if err := json.Unmarshal(s.Values[0], &operations); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"operations-demo-demo__add", "operations-demo-demo__greet"}, operations); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	for i, want := range []string{"200 ", "404 ", "401 "} {
		if got := string(s.Values[1+i]); !strings.HasPrefix(got, `"`+want) {
			t.Errorf("call %d was answered %s, want %s", i, got, want)
		}
	}
	if len(s.Foreign) > 0 {
		t.Errorf("it asked other hosts: %q", s.Foreign)
	}
	for _, f := range s.Faults {
		if !strings.Contains(f, "401") && !strings.Contains(f, "404") { // the browser tells of each
			t.Errorf("the browser complained: %s", f)
		}
	}
}
