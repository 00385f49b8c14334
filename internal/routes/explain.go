package routes

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
)

// An Explanation says what a kind of problem means.
type Explanation struct {
	Code    bridge.Kind `json:"code"`
	Title   string      `json:"title"`
	Status  int         `json:"status" doc:"The HTTP status of such problems."`
	Meaning string      `json:"meaning" doc:"What happened."`
	Action  string      `json:"action" doc:"What to do about it."`
}

func (s *server) problemRoutes() {
	ok := s.jsonAnswer("The explanation; as a page for those who prefer text/html.", Explanation{})
	ok.Content["text/html"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/problems/{slug}", OperationID: "explain-problem", Tags: []string{"operations"},
		Summary:     "Explain a problem",
		Description: "What a problem means, and what to do about it: where the type of every problem leads.",
		Parameters:  []*huma.Param{param("path", "slug", "The problem's code.")},
		Responses:   s.answers(ok, bridge.NotFound),
	}, func(x *exchange, r *http.Request) error {
		code := bridge.Kind(segment(r, "slug"))
		m, ok := meanings[code]
		if !ok {
			return &bridge.Error{Kind: bridge.NotFound, Op: "routes.explain", Msg: fmt.Sprintf("There is no problem called %q.", cut(string(code), loggedName))}
		}
		e := Explanation{Code: code, Title: m.title, Status: m.status, Meaning: m.what, Action: m.do}
		x.Header().Set("Vary", "Accept")
		accept := parseAccept(r.Header["Accept"])
		if accept == nil || accept.weight("text", "html") <= accept.weight("application", "json") {
			return x.writeJSON(r, "", e)
		}
		var body bytes.Buffer
		if err := explainTemplate.Execute(&body, e); err != nil {
			return err
		}
		x.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		page{mediaType: "text/html; charset=utf-8", etag: tagOf(body.Bytes()), body: body.Bytes()}.write(x, r)
		return nil
	})
}

var explainTemplate = template.Must(template.New("explain").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
</head>
<body>
<h1>{{.Title}}</h1>
<p>{{.Meaning}}</p>
<p>{{.Action}}</p>
<p>Status {{.Status}}, code <code>{{.Code}}</code>.</p>
</body>
</html>
`))
