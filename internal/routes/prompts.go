package routes

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A PromptList is the answer of GET /prompts/{handle}.
type PromptList struct {
	Prompts []PromptInfo `json:"prompts" nullable:"false" doc:"The prompts, in their server's order."`
	OfferList
}

// A PromptInfo describes a prompt as its server lists it.
type PromptInfo struct {
	Name        string          `json:"name" example:"explain"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Arguments   json.RawMessage `json:"arguments,omitempty" doc:"Its arguments, as sent: each with name, description and whether it is required."`
	Links       PromptLinks     `json:"links"`
}

// PromptLinks are relative references from the answer's URL.
type PromptLinks struct {
	Get string `json:"get" format:"uri-reference" doc:"Where to POST the arguments."`
}

func (s *server) promptRoutes() {
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/prompts/{handle}", OperationID: "list-prompts", Tags: []string{"resources"},
		Summary:     "List a server's prompts",
		Description: "The prompts of the server, with the arguments that each takes.",
		Responses:   linked(s.answers(s.jsonAnswer("A page of the list.", PromptList{}), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound)),
	}, s.listPrompts)
	body := &huma.RequestBody{
		Description: "The arguments.",
		Content: map[string]*huma.MediaType{"application/json": {
			Schema:  &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
			Example: json.RawMessage(`{"note":"arch"}`),
		}},
	}
	answers := func() map[string]*huma.Response {
		result := objectAnswer("The result as the server sent it.", `{"messages":[{"role":"user","content":{"type":"text","text":"Explain this to a curious child."}}]}`)
		m := s.askAnswers(result, TooLarge, UnsupportedMediaType, bridge.InvalidArguments)
		m["202"] = s.acceptedAnswer(askedFirst)
		return m
	}
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/prompts/{handle}/{prompt}", OperationID: "get-prompt", Tags: []string{"resources"},
		Summary:     "Get a prompt",
		Description: "Has the server make the prompt's messages. The body is its arguments, one JSON object of texts; an empty body is {}.",
		Parameters:  []*huma.Param{handleParam, param("path", "prompt", "The prompt's name, percent-encoded: a slash in it is %2F."), waitParam},
		RequestBody: body,
		Responses:   answers(),
	}, func(x *exchange, r *http.Request) error {
		return x.askJSON(r, &bridge.Call{Handle: segment(r, "handle"), Method: bridge.GetPrompt, Tool: segment(r, "prompt")})
	})
	name := param("query", "prompt", "The prompt's name.")
	name.Required = true
	s.register(huma.Operation{
		Method: http.MethodPost, Path: "/prompts/{handle}", OperationID: "get-prompt-by-query", Tags: []string{"resources"},
		Summary:     "Get a prompt named in the query",
		Description: "The same as POST /prompts/{handle}/{prompt}, for names that a path or a proxy cannot carry.",
		Parameters:  []*huma.Param{handleParam, name, waitParam},
		RequestBody: body,
		Responses:   answers(),
	}, func(x *exchange, r *http.Request) error {
		prompt, err := only(r, "prompt", "prompt: POST /prompts/{handle}?prompt=name, or POST /prompts/{handle}/{prompt}")
		if err != nil {
			return err
		}
		return x.askJSON(r, &bridge.Call{Handle: segment(r, "handle"), Method: bridge.GetPrompt, Tool: prompt})
	})
}

func (s *server) listPrompts(x *exchange, r *http.Request, in *offerInput) error {
	if err := x.attach(r); err != nil {
		return err
	}
	srv, err := x.visibleServer(r, in.Handle)
	if err != nil {
		return err
	}
	from, to, next, err := window(r, in, len(srv.Prompts), func(i int) string { return srv.Prompts[i].Name })
	if err != nil {
		return err
	}
	p := PromptList{Prompts: []PromptInfo{}, OfferList: x.offerList(srv, len(srv.Prompts), next, srv.PromptsError, srv.SkippedPrompts)}
	up := root(x, r)
	for _, e := range srv.Prompts[from:to] {
		p.Prompts = append(p.Prompts, PromptInfo{
			Name: e.Name, Title: e.Title, Description: e.Description, Arguments: raw.Get(e.Raw, "arguments"),
			Links: PromptLinks{Get: up + promptRef(srv.Handle, e.Name)},
		})
	}
	return x.writeJSON(r, "", p)
}

// promptsRef is the path of a server's prompts, from the root.
func promptsRef(handle string) string { return "prompts/" + url.PathEscape(handle) }

// promptRef is the path of a prompt, from the root, where its arguments are posted.
func promptRef(handle, prompt string) string {
	if prompt == "." || prompt == ".." { // as with tools, no segment can carry these
		return promptsRef(handle) + "?prompt=" + url.QueryEscape(prompt)
	}
	return promptsRef(handle) + "/" + url.PathEscape(prompt)
}

// askJSON makes a call that the body has the arguments of, and answers with its result as it came.
func (x *exchange) askJSON(r *http.Request, c *bridge.Call) error {
	return x.ask(r, c, func(a *bridge.Answer) {
		x.send(r, http.StatusOK, "application/json", a.Result.Raw)
	})
}

// objectAnswer describes an answer that is an object of a server's own making.
func objectAnswer(doc, example string) *huma.Response {
	return &huma.Response{Description: doc, Content: map[string]*huma.MediaType{"application/json": {
		Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}, Example: json.RawMessage(example),
	}}}
}
