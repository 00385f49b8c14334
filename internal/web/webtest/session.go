package webtest

import (
	"encoding/json"
	"testing"
)

// A Visit says what to do on a page, step by step.
type Visit struct {
	URL   string `json:"url"`
	Width int    `json:"width,omitempty"` // of the window, in pixels; zero is 1200
	Dark  bool   `json:"-"`               // the browser prefers dark pages
	Steps []Step `json:"steps"`
}

// A Step is one thing to do. One of its fields is set, and Text with Wait or Fill.
type Step struct {
	Wait       string `json:"wait,omitempty"`  // for an element by this selector, visible and with Text in it
	Fill       string `json:"fill,omitempty"`  // the field by this selector, with Text
	Click      string `json:"click,omitempty"` // on the element by this selector
	Press      string `json:"press,omitempty"` // a key, like "Tab"
	Value      string `json:"value,omitempty"` // a JavaScript expression whose value is noted
	Screenshot string `json:"screenshot,omitempty"`
	Text       string `json:"text,omitempty"`
}

// A Session is what the browser saw of a visit.
type Session struct {
	Values   []json.RawMessage // of the steps with Value, in order
	Faint    []string          // texts that are hard to read on their ground, at the end
	Requests []Request         // everything that was asked for, in order
	Foreign  []string          // addresses of another origin that were asked for
	Faults   []string          // console errors and warnings, exceptions, failed requests, breaches of the page's policy
}

// Browse opens a page, takes the steps, and returns what the browser saw. The test fails at
// once if a step cannot be taken.
func Browse(t *testing.T, v Visit) *Session {
	t.Helper()
	var s Session
	drive(t, "steps.mjs", struct {
		Visit
		browser
	}{v, newBrowser(t, v.Dark)}, &s)
	return &s
}
