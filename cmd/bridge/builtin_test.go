package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mcpbridge/internal/redistest"
)

// everybody may call everything, the built-in tools too.
var everybody = map[string]any{"anonymous": map[string]any{"allow": []string{"*/*", "bridge/*"}}}

// The built-in tools are listed, documented and called like any other, over each store.
func TestBuiltinTools(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"memory": func(*testing.T) string { return "memory" }, "redis": func(t *testing.T) string { return redistest.Start(t).URL() }, "cluster": redisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, map[string]server{"ok": mode(t, "ok"), "exact": mode(t, "exact")}, map[string]any{"auth": everybody, "artifacts": map[string]any{"store": store(t)}})
			p.ready()
			long := strings.Repeat("0123456789", 1500)
			ref := p.call("ok", "echo", `{"message":"a `+long+` needle"}`, 200).Header.Get("Artifact-Ref")

			var field struct {
				Ref, Field, Text string
				Offset           int
				Next             int `json:"next_offset"`
			}
			res := p.call("bridge", "get_artifact_field", `{"ref":"`+ref+`","field":"/content/0/text"}`, 200)
			decode(t, res, &field)
			if field.Text != "a "+long[:9998] || field.Next != 10_000 {
				t.Errorf("the first piece is %.300s", res.body)
			}
			for _, header := range []string{"Artifact-Ref", "Content-Location"} {
				if res.Header.Get(header) != "" {
					t.Errorf("a piece of an artifact has %s: %s", header, res.Header.Get(header))
				}
			}
			res = p.call("bridge", "get_artifact_field", `{"ref":"`+ref+`","field":"/content/0/text","offset":14990,"max_chars":100}`, 200, "Accept", "text/plain")
			if string(res.body) != long[14988:]+" needle" {
				t.Errorf("the last piece is %s", res.body)
			}
			res = p.call("exact", "numbers", "", 200)
			res = p.call("bridge", "get_artifact_field", `{"ref":"`+res.Header.Get("Artifact-Ref")+`","field":"/a"}`, 200, "Accept", "text/plain")
			if string(res.body) != "1e400" {
				t.Errorf("the number is %s", res.body)
			}
			var found struct {
				Matches []struct {
					Field, Excerpt string
					Offset         int
				}
				More bool
			}
			decode(t, p.call("bridge", "search_artifact_content", `{"ref":"`+ref+`","query":"NEEDLE"}`, 200), &found)
			if len(found.Matches) != 1 || found.More || found.Matches[0].Field != "/content/0/text" || found.Matches[0].Offset != 15_003 || found.Matches[0].Excerpt != long[14801:]+" needle" {
				t.Errorf("found %+v", found)
			}
			p.problem("bridge", "get_artifact_field", `{"ref":"`+ref+`","field":"/content/0/txt"}`, 422, "tool-error", `Keys: ["type" "text"].`)
			p.problem("bridge", "get_artifact_field", `{"ref":"mcp~none"}`, 422, "tool-error", "no such artifact")
			p.problem("bridge", "get_artifact_field", `{"ref":"`+ref+`","max_chars":0}`, 422, "invalid-arguments", "")
			p.problem("bridge", "forget_artifact", `{}`, 404, "not-found", "no tool")
			if res := p.do("POST", "/tools/bridge/get_artifact_field?dry_run=1", `{"ref":"`+ref+`"}`); res.StatusCode != http.StatusNoContent {
				t.Errorf("dry_run: %d %s", res.StatusCode, res.body)
			}
			// What was read is not kept once more.
			var list struct{ Artifacts []struct{ Handle string } }
			decode(t, p.get("/artifacts"), &list)
			for _, a := range list.Artifacts {
				if a.Handle == "bridge" {
					t.Errorf("artifacts: %+v", list)
				}
			}
		})
	}
}

func TestBuiltinToolsAreDocumented(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"auth": everybody})
	p.ready()
	var page struct {
		Handle, State string
		Tools         []struct {
			Name   string
			Input  json.RawMessage `json:"input_schema"`
			Output json.RawMessage `json:"output_schema"`
		}
	}
	decode(t, p.get("/tools/bridge"), &page)
	if page.Handle != "bridge" || page.State != "ready" || len(page.Tools) != 2 || page.Tools[0].Name != "get_artifact_field" || page.Tools[1].Name != "search_artifact_content" || page.Tools[0].Output == nil {
		t.Errorf("GET /tools/bridge = %+v", page)
	}
	for path, want := range map[string]string{"/openapi.json": `"operationId":"bridge__get_artifact_field"`, "/tools/bridge/openapi.json": `"operationId":"search_artifact_content"`, "/tools": `"max_chars"`} {
		if res := p.get(path); res.StatusCode != http.StatusOK || !strings.Contains(string(res.body), want) {
			t.Errorf("%s has no %s: %d %.300s", path, want, res.StatusCode, res.body)
		}
	}
}

// Who is not told about the built-in tools does not have them.
func TestBuiltinToolsAreOptIn(t *testing.T) {
	for name, auth := range map[string]any{"no rule": map[string]any{}, "a rule": map[string]any{"anonymous": map[string]any{"allow": []string{"*/*"}}}} {
		t.Run(name, func(t *testing.T) {
			p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"auth": auth})
			p.ready()
			p.problem("bridge", "get_artifact_field", `{"ref":"mcp~x"}`, 404, "not-found", "no server")
			for _, path := range []string{"/tools/bridge", "/tools/bridge/get_artifact_field", "/tools/bridge/openapi.json"} {
				wantProblem(t, p.get(path), http.StatusNotFound, "not-found", "")
			}
			for _, path := range []string{"/tools", "/openapi.json"} {
				if res := p.get(path); strings.Contains(string(res.body), "get_artifact_field") {
					t.Errorf("%s tells of them: %s", path, res.body)
				}
			}
		})
	}
}

// Without their store the built-in tools fail as reading does, and are there again when it is.
func TestBuiltinToolsWithoutRedis(t *testing.T) {
	redis := redistest.Start(t)
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"auth": everybody, "artifacts": map[string]any{"store": redis.URL()}})
	p.ready()
	ref := p.call("ok", "echo", `{"message":"x"}`, 200).Header.Get("Artifact-Ref")
	redis.Kill()
	for range 10 { // more than open a circuit
		p.problem("bridge", "get_artifact_field", `{"ref":"`+ref+`"}`, http.StatusServiceUnavailable, "store-unavailable", "")
	}
	redis.Restart(t)
	until(t, "there is an answer again", func() bool {
		return p.do("POST", "/tools/bridge/get_artifact_field", `{"ref":"`+ref+`"}`).StatusCode == http.StatusUnprocessableEntity // it is gone
	})
}
