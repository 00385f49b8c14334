package main

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/web/webtest"
)

// wantMCPO calls a tool as clients of mcpo do, and demands the answer.
func (p *process) wantMCPO(handle, tool, args string, status int, body string) {
	p.t.Helper()
	res := p.do("POST", "/mcpo/"+url.PathEscape(handle)+"/"+url.PathEscape(tool), args)
	if res.StatusCode != status || string(res.body) != body || res.Header.Get("Content-Type") != "application/json" {
		p.t.Errorf("%s/%s(%s) = %d %.500s\nwant %d %.500s", handle, tool, args, res.StatusCode, res.body, status, body)
	}
}

// Real servers answer under /mcpo as they do behind mcpo, without its losses.
func TestMCPO(t *testing.T) {
	p := start(t, map[string]server{
		"everything": npm("everything"), "demo": {"command": "bridge", "args": []string{"demo"}},
		"ok": mode(t, "ok"), "exact": mode(t, "exact"), "results": mode(t, "results"),
	}, map[string]any{"compat": map[string]any{"mcpo": true}})
	p.ready()

	p.wantMCPO("everything", "echo", `{"message":"hi"}`, 200, `"Echo: hi"`)
	p.wantMCPO("everything", "get-structured-content", `{"location":"New York"}`, 200, `{"temperature":33,"conditions":"Cloudy","humidity":82}`)
	p.wantMCPO("everything", "get-sum", `{"a":"x"}`, 422, `{"detail":[{"type":"missing","loc":["body","b"],"msg":"misses \"b\""},{"type":"type","loc":["body","a"],"msg":"is a string, must be a number"}]}`)
	shape := func(handle, tool, args string, want ...string) {
		t.Helper()
		var blocks []json.RawMessage
		decode(t, p.do("POST", "/mcpo/"+handle+"/"+tool, args), &blocks)
		if len(blocks) != len(want) {
			t.Fatalf("%s/%s answered %d blocks, want %d", handle, tool, len(blocks), len(want))
		}
		for i, b := range blocks {
			if !regexp.MustCompile("^" + want[i]).Match(b) {
				t.Errorf("%s/%s: block %d is %.200s, want %s", handle, tool, i, b, want[i])
			}
		}
	}
	shape("everything", "get-tiny-image", "", `"Here's`, `"data:image/png;base64,iVBOR`, `"The image above`)
	shape("everything", "get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `"Returning`, `"Resource 1: `, `"You can access`)
	shape("everything", "get-resource-links", `{"count":2}`, `"Here are 2`, `{.*"type":"resource_link"`, `{.*"type":"resource_link"`)
	shape("demo", "mixed", "", `"A picture, `, `"data:image/png;base64,`, `"data:audio/wav;base64,`, `"`, `{.*"type":"resource_link"`)

	p.wantMCPO("demo", "fail", `{"reason":"no ink"}`, 500, `{"detail":{"message":"no ink"}}`)
	p.wantMCPO("ok", "rpc_error", `{"code":-32602,"message":"bad"}`, 422, `{"detail":{"message":"bad"}}`)
	p.wantMCPO("ok", "rpc_error", `{"code":-32601,"message":"no such"}`, 404, `{"detail":{"message":"no such"}}`)
	p.wantMCPO("ok", "rpc_error", `{"code":-32600,"message":"odd"}`, 400, `{"detail":{"message":"odd"}}`)
	p.wantMCPO("ok", "rpc_error", `{"code":7,"message":"own"}`, 500, `{"detail":{"message":"own"}}`)
	p.wantMCPO("exact", "surrogate", "", 200, exactSurrogate) // no block: what is structured is all there is
	p.wantMCPO("ok", "answer", `{"result":"{\"content\":[{\"type\":\"text\",\"text\":\"[1.10, 1e400,9007199254740993]\"}]}"}`, 200, "[1.10, 1e400,9007199254740993]")
	p.wantMCPO("results", "image", "", 200, `"data:image/png;base64,`+mcptest.PNG+`"`)
	p.wantMCPO("results", "audio", "", 200, `"data:audio/wav;base64,`+mcptest.WAV+`"`)
	p.wantMCPO("results", "embedded_text", "", 200, `"the notes"`)

	var failure struct{ Detail string }
	if res := p.do("POST", "/mcpo/demo/nothing", "{}"); res.StatusCode != 404 || json.Unmarshal(res.body, &failure) != nil || !strings.Contains(failure.Detail, "nothing") {
		t.Errorf("an unknown tool = %d %s", res.StatusCode, res.body)
	}
	// The artifact has the whole of it.
	res := p.do("POST", "/mcpo/demo/add", `{"a":1,"b":2}`)
	if got := p.get("/artifacts/" + res.Header.Get("Artifact-Ref") + "/sum"); string(got.body) != "3" {
		t.Errorf("the artifact has %d %s", got.StatusCode, got.body)
	}

	text := `{"a": 40, "b": 2}`
	r := webtest.Swagger(t, webtest.Options{URL: p.base + "/mcpo/demo/docs", Calls: []webtest.Call{{Operation: "tool_add_post", Body: &text}}})
	if len(r.Faults) > 0 || len(r.Foreign) > 0 || len(r.Answers) != 1 || r.Answers[0].Status != 200 || !strings.Contains(r.Answers[0].Shown, "42") || !strings.HasSuffix(r.Answers[0].URL, "/mcpo/demo/add") {
		t.Errorf("the page: %+v", r)
	}
}

// A host's view of a tool: what Open WebUI makes of an operation.
type hostTool struct {
	path       string
	properties []string
}

// hostTools reads the document at path as Open WebUI does: every operation is a
// tool of its id's name, whose parameters are the properties of the body, and which is
// called at base with the operation's path behind it, whatever the document says of servers.
func hostTools(p *process, path string) map[string]hostTool {
	p.t.Helper()
	type schema map[string]any
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	decode(p.t, p.get(path), &doc)
	tools := map[string]hostTool{}
	for path, methods := range doc.Paths {
		for _, op := range methods {
			s := op.RequestBody.Content["application/json"].Schema
			if ref, ok := s["$ref"].(string); ok {
				s = doc.Components.Schemas[ref[strings.LastIndexByte(ref, '/')+1:]]
			}
			properties, _ := s["properties"].(map[string]any)
			tools[op.OperationID] = hostTool{path, slices.Sorted(maps.Keys(properties))}
		}
	}
	return tools
}

// Each of the addresses that examples/open-webui.md says to enter gives a host its tools.
func TestOpenWebUI(t *testing.T) {
	p := start(t, map[string]server{"demo": {"command": "bridge", "args": []string{"demo"}}}, map[string]any{"compat": map[string]any{"mcpo": true}})
	p.ready()
	for _, tt := range []struct{ base, document, add, body string }{
		{"/tools/demo", "openapi.json?profile=flat", "add", `{"sum":42}`},
		{"/tools/demo", "openapi.json", "add", `{"sum":42}`},
		{"", "openapi.json?profile=flat", "demo__add", `{"sum":42}`},
		{"/mcpo/demo", "openapi.json", "tool_add_post", `{"sum":42}`},
		{"/mcpo", "openapi.json", "demo__add", `{"sum":42}`},
	} {
		tools := hostTools(p, tt.base+"/"+tt.document)
		add, ok := tools[tt.add]
		if !ok || !slices.Equal(add.properties, []string{"a", "b"}) {
			t.Fatalf("%s has %v, want %s with a and b", tt.base, tools, tt.add)
		}
		if res := p.do("POST", tt.base+add.path, `{"a":40,"b":2}`); res.StatusCode != 200 || string(res.body) != tt.body {
			t.Errorf("%s: %d %s, want 200 %s", tt.base, res.StatusCode, res.body, tt.body)
		}
	}
}
