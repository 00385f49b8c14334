package web

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"strings"
)

// A Page is the documentation page of one OpenAPI document. It is a handler for
// one request or for many: where the fields depend on the request, make a Page
// and let it serve.
//
// References are relative to the page's own path without a trailing slash; where
// a page is asked for with one, it allows for that. They come from the program,
// with any name in them percent-encoded.
type Page struct {
	Title    string // of the browser's tab; "" is "API"
	Document string // reference to the OpenAPI document
	Assets   string // reference to the directory where Assets is served, "/" at its end
}

func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Title = cmp.Or(p.Title, "API")
	if strings.HasSuffix(r.URL.Path, "/") {
		p.Document, p.Assets = "../"+p.Document, "../"+p.Assets
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p); err != nil {
		panic(err) // three strings into a template: neither can fail
	}
	serve(w, r, "text/html; charset=utf-8", digest(body.Bytes()), body.Bytes())
}

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<link rel="icon" type="image/png" href="{{.Assets}}favicon-32x32.png">
<link rel="stylesheet" href="{{.Assets}}swagger-ui.css">
<link rel="stylesheet" href="{{.Assets}}docs.css">
<script defer src="{{.Assets}}swagger-ui-bundle.js"></script>
<script defer src="{{.Assets}}docs.js"></script>
</head>
<body>
<div id="swagger-ui" data-document="{{.Document}}"></div>
<noscript><p>This page needs JavaScript. The OpenAPI document that it shows is <a href="{{.Document}}">here</a>.</p></noscript>
</body>
</html>
`))
