package web

import (
	"bytes"
	_ "embed" // the page is a file
	"html/template"
	"net/http"
)

// A Console is the page that shows how everything is, live. What it shows comes from
// console/events below Root; console.js draws it.
type Console struct {
	Version string // of the bridge, for people; "" shows none
	Root    string // reference to the directory where all of the bridge begins: "", "../" or the like
}

func (c Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if err := consoleTemplate.Execute(&body, c); err != nil {
		panic(err) // two strings into a template: neither can fail
	}
	serve(w, r, "text/html; charset=utf-8", digest(body.Bytes()), body.Bytes())
}

var consoleTemplate = template.Must(template.New("console").Parse(consoleHTML))

//go:embed console.html
var consoleHTML string
