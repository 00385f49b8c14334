package routes

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
)

func (s *server) completeRoutes() {
	text := &huma.Schema{Type: huma.TypeString}
	object := func(required []string, properties map[string]*huma.Schema) *huma.Schema {
		return &huma.Schema{Type: huma.TypeObject, Required: required, Properties: properties}
	}
	result := objectAnswer("The result as the server sent it.", `{"completion":{"values":["arch"],"total":1,"hasMore":false}}`)
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/complete/{handle}", OperationID: "complete", Tags: []string{"resources"},
		Summary:     "Complete an argument",
		Description: "Asks the server how the value of an argument of a prompt, or of a variable of a template, could go on.",
		Parameters:  []*huma.Param{handleParam, waitParam},
		RequestBody: &huma.RequestBody{
			Description: "What to complete, as MCP has it.", Required: true,
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: object([]string{"ref", "argument"}, map[string]*huma.Schema{
					"ref": object([]string{"type"}, map[string]*huma.Schema{
						"type": {Type: huma.TypeString, Enum: []any{"ref/prompt", "ref/resource"}},
						"name": {Type: huma.TypeString, Description: "Of the prompt."},
						"uri":  {Type: huma.TypeString, Description: "The template, as listed."},
					}),
					"argument": object([]string{"name", "value"}, map[string]*huma.Schema{"name": text, "value": text}),
					"context": object(nil, map[string]*huma.Schema{
						"arguments": {Type: huma.TypeObject, AdditionalProperties: text, Description: "The values of other arguments."},
					}),
				}),
				Example: json.RawMessage(`{"ref":{"type":"ref/prompt","name":"explain"},"argument":{"name":"note","value":"a"}}`),
			}},
		},
		Responses: s.askAnswers(result, TooLarge, UnsupportedMediaType, bridge.InvalidArguments),
	}, func(x *exchange, r *http.Request) error {
		return x.askJSON(r, &bridge.Call{Handle: segment(r, "handle"), Method: bridge.Complete})
	})
}
