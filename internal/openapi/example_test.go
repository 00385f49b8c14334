package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

func ExampleSchemas() {
	tool := &bridge.Tool{
		Handle: "library", Name: "find",
		Input: json.RawMessage(`{
			"type": "object",
			"properties": {"title": {"type": "string"}, "limit": {"type": "integer"}},
			"required": ["title"]
		}`),
	}
	if err := openapi.NewSchemas(nil).Compile(tool); err != nil {
		fmt.Println(err)
	}
	args, err := tool.Arguments.Check([]byte(`{"title": "Emma", "limit": null}`))
	fmt.Println(string(args), err)

	_, err = tool.Arguments.Check([]byte(`{"limit": "ten"}`))
	if e, ok := errors.AsType[*bridge.Error](err); ok {
		fmt.Println(e.Msg)
	}
	// Output:
	// {"title": "Emma"} <nil>
	// The arguments do not fit the tool's schema: misses "title"; /limit: is a string, must be an integer.
}

func ExampleDocuments() {
	tool := &bridge.Tool{Handle: "library", Name: "find", Input: json.RawMessage(`{"type": "object"}`)}
	if err := openapi.NewSchemas(nil).Compile(tool); err != nil {
		fmt.Println(err)
	}
	view := bridge.NewSnapshot(1, true, []*bridge.Server{{Handle: "library", Tools: []*bridge.Tool{tool}}})
	documents := openapi.New(openapi.Options{Title: "My tools"})
	documents.Prepare(view)

	var doc struct {
		Info  struct{ Title string }
		Paths map[string]struct{ Post struct{ OperationID string } }
	}
	if err := json.Unmarshal(documents.Whole(view).JSON().Body, &doc); err != nil {
		fmt.Println(err)
	}
	fmt.Println(doc.Info.Title)
	for path, item := range doc.Paths {
		fmt.Println(path, item.Post.OperationID)
	}
	// Output:
	// My tools
	// /tools/library/find library__find
}
