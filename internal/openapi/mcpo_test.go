package openapi

import (
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi/openapitest"
)

func operationOf(t *testing.T, doc map[string]any, path string) map[string]any {
	t.Helper()
	item, ok := doc["paths"].(map[string]any)[path].(map[string]any)
	if !ok {
		t.Fatalf("there is no path %s", path)
	}
	return item["post"].(map[string]any)
}

func TestHandleMCPO(t *testing.T) {
	cat := catalogue(t)
	d := New(Options{})
	if d.HandleMCPO(cat, "nobody") != nil {
		t.Error("there is a document of nobody")
	}
	for _, s := range cat.Servers {
		checkDocument(t, d.HandleMCPO(cat, s.Handle))
	}
	doc := checkDocument(t, d.HandleMCPO(cat, "demo"))
	native := checkDocument(t, d.Handle(cat, "demo"))
	if len(doc["paths"].(map[string]any)) != len(native["paths"].(map[string]any)) {
		t.Error("the two documents do not have the same tools")
	}
	echo := operationOf(t, doc, "/echo")
	if echo["operationId"] != "tool_echo_post" {
		t.Errorf("operationId = %v", echo["operationId"])
	}
	ok := echo["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
	if len(ok) != 0 {
		t.Errorf("an answer of any shape is described as %v", ok)
	}
	if env := operationOf(t, doc, "/get-env"); env["operationId"] != "tool_get_env_post" || env["requestBody"] != nil {
		t.Errorf("get-env is %v", env)
	}
	body := d.HandleMCPO(cat, "demo").JSON().Body
	if strings.Contains(string(body), "problem+json") || strings.Contains(string(body), "ContentBlock") {
		t.Error("the document speaks of what is answered elsewhere")
	}
	for _, f := range []Form{{Flat: true}, {Flat: true, YAML: true}} {
		openapitest.Validate(t, d.HandleMCPO(cat, "demo").Form(f).Body)
	}
}

// An output schema is what most answers of such a tool are, but none must be.
func TestMCPOOutput(t *testing.T) {
	s := server("h",
		tool(t, "h", "plain", `{"type":"object"}`),
		tool(t, "h", "typed", `{"type":"object"}`, output(`{"type":"object","properties":{"n":{"type":"integer"}}}`)))
	doc := checkDocument(t, New(Options{}).HandleMCPO(view(s), "h"))
	schema := func(path string) map[string]any {
		r := operationOf(t, doc, path)["responses"].(map[string]any)["200"].(map[string]any)
		return r["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
	}
	if s := schema("/plain"); len(s) != 0 {
		t.Errorf("plain = %v", s)
	}
	options, ok := schema("/typed")["anyOf"].([]any)
	if !ok || len(options) != 2 || options[0].(map[string]any)["properties"] == nil || len(options[1].(map[string]any)) != 0 {
		t.Errorf("typed = %v", schema("/typed"))
	}
}

func TestWholeMCPO(t *testing.T) {
	cat := catalogue(t)
	d := New(Options{})
	doc := checkDocument(t, d.WholeMCPO(cat))
	if id := operationOf(t, doc, "/demo/echo")["operationId"]; id != "demo__echo" {
		t.Errorf("operationId = %v", id)
	}
	n := 0
	for _, s := range cat.Servers {
		n += len(offered(s))
		if link := "](" + segment(s.Handle) + "/docs)"; !strings.Contains(doc["info"].(map[string]any)["description"].(string), link) {
			t.Errorf("there is no link to the page of %q", s.Handle)
		}
	}
	if got := len(doc["paths"].(map[string]any)); got != n {
		t.Errorf("%d paths, want %d", got, n)
	}
	checkDocument(t, d.WholeMCPO(view()))
}

// The documents of one view stay apart, and equal views share theirs.
func TestMCPODocumentsAreKept(t *testing.T) {
	d := New(Options{})
	cat := catalogue(t)
	docs := map[*Document]bool{d.Whole(cat): true, d.Handle(cat, "demo"): true, d.WholeMCPO(cat): true, d.HandleMCPO(cat, "demo"): true}
	if len(docs) != 4 {
		t.Errorf("four documents are %d", len(docs))
	}
	again := bridge.NewSnapshot(9, true, cat.Servers)
	if !docs[d.WholeMCPO(again)] || !docs[d.HandleMCPO(again, "demo")] {
		t.Error("an equal view has another document")
	}
}
