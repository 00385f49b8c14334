package openapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
)

// Every operation says how else it can be answered; only those whose tool may ask have another good answer.
func TestLongCallsAreDescribed(t *testing.T) {
	asking := tool(t, "h", "asks", `{"type":"object"}`, func(t *bridge.Tool) { t.Target = &bridge.Target{Asks: true} })
	quiet := tool(t, "h", "quiet", `{"type":"object"}`)
	d := New(Options{})
	for name, doc := range map[string]*Document{
		"whole": d.Whole(view(server("h", asking, quiet))), "handle": d.Handle(view(server("h", asking, quiet)), "h"),
	} {
		root := checkDocument(t, doc)
		openapitest.Validate(t, doc.Form(Form{Older: true}).Body)
		if !bytes.Contains(doc.Form(Form{Older: true}).Body, []byte(`"#/components/schemas/Job"`)) {
			t.Errorf("%s: 3.0 has no job", name)
		}
		for path, item := range root["paths"].(map[string]any) {
			responses := item.(map[string]any)["post"].(map[string]any)["responses"].(map[string]any)
			said := responses["200"].(map[string]any)["description"].(string)
			for _, word := range []string{"text/event-stream", "respond-async", "wait=N", "Idempotency-Key"} {
				if !strings.Contains(said, word) {
					t.Errorf("%s %s does not tell of %s", name, path, word)
				}
			}
			if _, ok := responses["202"]; ok != strings.HasSuffix(path, "/asks") {
				t.Errorf("%s %s: 202 is %v", name, path, responses["202"])
			}
		}
		components := root["components"].(map[string]any)
		if b, err := json.Marshal(components["schemas"].(map[string]any)["Job"]); err != nil || !strings.Contains(string(b), "input_required") {
			t.Errorf("%s: Job = %s, %v", name, b, err)
		}
		content := components["responses"].(map[string]any)["Accepted"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
		if b, err := json.Marshal(content["example"]); err != nil || !strings.Contains(string(b), `"state":"input_required"`) {
			t.Errorf("%s: the example is %s, %v", name, b, err)
		}
	}
	if body := d.Whole(view(server("h", quiet))).JSON().Body; bytes.Contains(body, []byte(`"Job"`)) || bytes.Contains(body, []byte("Accepted")) {
		t.Error("a document of tools that never ask has jobs")
	}
}
