package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Bridge A has bridge B as its MCP server: what B keeps under a reference, A keeps under the same one.
func TestReferencesTravelBetweenBridges(t *testing.T) {
	for _, protocol := range []string{"auto", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			b := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"auth": everybody})
			b.ready()
			a := start(t, map[string]server{"b": {"url": b.base + "/mcp", "protocol": protocol}, "ok": mode(t, "ok")}, nil)
			a.ready()

			long := strings.Repeat("0123456789", 300)
			data := `{"n":1.10,"big":{"k":"` + long + `"},"9007199254740993":[1e400]}`
			res := a.call("b", "ok__answer", answer(`{"structuredContent":`+data+`,"content":[]}`), 200)
			ref := res.Header.Get("Artifact-Ref")
			var minted struct {
				Artifacts []struct{ Ref, Handle, Tool string }
			}
			decode(t, b.get("/artifacts"), &minted)
			if len(minted.Artifacts) != 1 || minted.Artifacts[0].Ref != ref || minted.Artifacts[0].Handle != "ok" {
				t.Fatalf("A has %s, B has %+v", ref, minted)
			}
			for _, at := range []string{"", "?pointer=/big/k", "/n", "?view=summary"} {
				here, there := a.get("/artifacts/"+ref+at), b.get("/artifacts/"+ref+at)
				if here.StatusCode != 200 || string(here.body) != string(there.body) {
					t.Errorf("%q: A says %d %.200s, B says %d %.200s", at, here.StatusCode, here.body, there.StatusCode, there.body)
				}
			}
			if got := a.get("/artifacts/" + ref + ".1/k"); string(got.body) != `"`+long+`"` {
				t.Errorf("what is nested: %d %.200s", got.StatusCode, got.body)
			}
			if string(res.body) != data {
				t.Errorf("A answers %s", res.body)
			}

			// The same once more is the same artifact; other bytes under its reference are another one.
			for name, tt := range map[string]struct {
				result string
				same   bool
			}{
				"the same":    {`{"structuredContent":` + data + `,"content":[],"_meta":{"artifact_ref":"` + ref + `"}}`, true},
				"other bytes": {`{"structuredContent":{"n":2},"content":[],"_meta":{"artifact_ref":"` + ref + `"}}`, false},
				"in its data": {`{"structuredContent":{"artifact_ref":"` + ref + `"},"content":[]}`, false},
			} {
				res := a.call("ok", "answer", answer(tt.result), 200)
				if got := res.Header.Get("Artifact-Ref"); (got == ref) != tt.same || got == "" {
					t.Errorf("%s: the reference is %s, that of the first was %s", name, got, ref)
				}
				if got := a.get("/artifacts/" + res.Header.Get("Artifact-Ref")); string(got.body) != string(res.body) {
					t.Errorf("%s: the artifact is %s, not %s", name, got.body, res.body)
				}
			}
			// Nor does anybody take one that A minted.
			own := a.call("ok", "echo", `{"message":"mine"}`, 200).Header.Get("Artifact-Ref")
			res = a.call("b", "ok__answer", answer(`{"structuredContent":{"artifact_ref":"`+own+`"},"content":[]}`), 200)
			if got := res.Header.Get("Artifact-Ref"); got == own {
				t.Errorf("B took over %s", own)
			}
			for at, want := range map[string]string{ref: data, own: `{"content":[{"type":"text","text":"mine"}]}`} {
				if got := a.get("/artifacts/" + at); string(got.body) != want {
					t.Errorf("%s is now %.300s", at, got.body)
				}
			}

			// A type goes with its reference, through both.
			const link = `{"artifact_ref":"link:page:wiki~abc","title":"t","url":"https://example.com/"}`
			res = a.call("b", "ok__answer", answer(`{"structuredContent":`+link+`,"content":[]}`), 200)
			if res.Header.Get("Artifact-Ref") != "link:page:wiki~abc" || res.Header.Get("Artifact-Type") != "link:page" {
				t.Errorf("the link is %s of type %s", res.Header.Get("Artifact-Ref"), res.Header.Get("Artifact-Type"))
			}

			// Who has only tools reads B's artifacts by the same reference.
			var field struct {
				Text string
				Next int `json:"next_offset"`
			}
			decode(t, a.call("b", "bridge__get_artifact_field", `{"ref":"«artifact:`+ref+`»","field":"/big/k","max_chars":100}`, 200), &field)
			if field.Text != long[:100] || field.Next != 100 {
				t.Errorf("the field is %+v", field)
			}
			var found struct{ Matches []struct{ Field string } }
			decode(t, a.call("b", "bridge__search_artifact_content", `{"ref":"`+ref+`","query":"9012"}`, 200), &found)
			if len(found.Matches) != 10 || found.Matches[0].Field != "/big/k" {
				t.Errorf("found %+v", found)
			}
			a.problem("b", "bridge__get_artifact_field", `{"ref":"`+ref+`","field":"/x"}`, http.StatusUnprocessableEntity, "tool-error", `Keys: ["n" "big" "9007199254740993"].`)
			var list struct {
				Artifacts []struct{ Ref string }
			}
			decode(t, b.get("/artifacts"), &list)
			if b, _ := json.Marshal(list); strings.Count(string(b), `"Ref"`) != 3 {
				t.Errorf("B keeps %s", b)
			}
		})
	}
}
