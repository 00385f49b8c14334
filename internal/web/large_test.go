package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpbridge/internal/web"
	"mcpbridge/internal/web/webtest"
)

// largeDocument has n operations of two servers, each with components of its own.
func largeDocument(n int) []byte {
	paths, schemas := object{}, object{"Shared": object{"type": "string"}}
	for i := range n {
		handle, id := [...]string{"a/b", "two"}[i%2], fmt.Sprint("tool-", i)
		paths[fmt.Sprintf("/tools/%s/%s", [...]string{"a%2Fb", "two"}[i%2], id)] = object{"post": object{
			"operationId": id, "tags": []string{handle}, "summary": fmt.Sprint("The tool ", i), "description": "It does what it does. Word" + fmt.Sprint(i/10),
			"requestBody": object{"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/" + id + ".in"}}}},
			"responses":   object{"200": object{"description": "Good"}, "404": object{"$ref": "#/components/responses/NotFound"}},
		}}
		schemas[id+".in"] = object{"type": "object", "properties": object{"of_" + id: object{"$ref": "#/components/schemas/" + id + ".deep"}}}
		schemas[id+".deep"] = object{"anyOf": []object{{"$ref": "#/components/schemas/Shared"}, {"$ref": "#/components/schemas/" + id + ".in"}}}
	}
	b, err := json.Marshal(object{
		"openapi": "3.1.0", "info": object{"title": "Large", "version": "1"}, "servers": []object{{"url": "."}},
		"tags": []object{{"name": "a/b"}, {"name": "two"}}, "paths": paths,
		"security": []object{{"key": []string{}}},
		"components": object{
			"schemas": schemas, "responses": object{"NotFound": object{"description": "Nothing", "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Shared"}}}}},
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}},
		},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// Of a document with thousands of operations some are shown at a time: the first, those of a
// server, those that are searched for, or one that a link leads to. Each can be tried, and
// an authorization holds from one part to the next.
func TestLargeDocsInBrowser(t *testing.T) {
	doc := largeDocument(2000)
	mux := http.NewServeMux()
	mux.Handle("GET /docs/assets/{name}", web.Assets(http.NotFoundHandler()))
	mux.Handle("GET /docs", web.Page{Document: "openapi.json", Assets: "docs/assets/"})
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	})
	mux.HandleFunc("POST /tools/{handle}/{tool}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"called":%q,"with":%q,"by":%q}`, r.PathValue("handle")+" "+r.PathValue("tool"), b, r.Header.Get("Authorization"))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	const count, ids = `document.querySelector('#parts [role=status]').textContent`, `[...document.querySelectorAll('.opblock')].map((e) => e.id.replace(/^operations-/, ''))`
	const answer = `document.querySelector('.live-responses-table .response .highlight-code pre, .live-responses-table .response .microlight').textContent.replace(/\s+/g, ' ')`
	s := webtest.Browse(t, webtest.Visit{URL: srv.URL + "/docs#/two/tool-1777", Steps: []webtest.Step{
		{Wait: "#operations-two-tool-1777.is-open .opblock-body"}, // by the link
		{Value: count},
		{Click: ".btn.authorize"},
		{Fill: ".auth-container input", Text: "secret"},
		{Click: ".auth-container .btn.authorize"},
		{Click: ".auth-container .btn-done"},
		{Fill: "#operations-two-tool-1777 textarea.body-param__text", Text: `{"x":1}`},
		{Click: "#operations-two-tool-1777 button.execute"},
		{Wait: ".live-responses-table .response .highlight-code", Text: "tool-1777"},
		{Value: answer},
		{Click: "#parts-search"},
		{Fill: "#parts-search", Text: "TOOL word199 1990"},
		{Wait: "#parts [role=status]", Text: "0 of 0 shown"}, // it is the other server's
		{Press: "Shift+Tab"},
		{Press: "Home"},
		{Wait: "#parts [role=status]", Text: "1 of 1 shown"},
		{Wait: ".opblock .opblock-summary", Text: "tool-1990"},
		{Value: ids},
		{Click: ".opblock .opblock-summary-control"},
		{Wait: ".opblock .model-example, .opblock .body-param", Text: "of_tool-1990"}, // its schema came along
		{Click: ".opblock button.execute"},
		{Wait: ".live-responses-table .response .highlight-code", Text: "tool-1990"},
		{Value: answer},
		{Fill: "#parts-search", Text: ""},
		{Wait: "#parts [role=status]", Text: "50 of 2000 shown"},
		{Wait: ".opblock >> nth=49"},
		{Value: ids + `.length`},
	}})
	if len(s.Foreign)+len(s.Faults) > 0 {
		t.Errorf("it asked other hosts %q, and the browser complained: %q", s.Foreign, s.Faults)
	}
	if got := value[string](t, s, 0); got != "50 of 1000 shown" {
		t.Errorf("by the link: %s", got)
	}
	if got := value[string](t, s, 1); got != `{ "called": "two tool-1777", "with": "{\"x\":1}", "by": "Bearer secret" }` {
		t.Errorf("the call answered %s", got)
	}
	if got := value[[]string](t, s, 2); len(got) != 1 {
		t.Errorf("the search found %q", got)
	}
	if got := value[string](t, s, 3); !strings.HasPrefix(got, `{ "called": "a/b tool-1990",`) || !strings.HasSuffix(got, `"by": "Bearer secret" }`) {
		t.Errorf("the call answered %s", got)
	}
	if got := value[int](t, s, 4); got != 50 {
		t.Errorf("%d operations are shown", got)
	}
	documents := 0
	for _, q := range s.Requests {
		if q.URL == srv.URL+"/openapi.json" {
			documents++
		}
	}
	if documents != 1 {
		t.Errorf("the document was asked for %d times", documents)
	}
	// A link that is none leads to the beginning, though Swagger UI complains of it.
	webtest.Browse(t, webtest.Visit{URL: srv.URL + "/docs#/100%", Steps: []webtest.Step{{Wait: "#parts [role=status]", Text: "50 of 2000 shown"}, {Wait: ".opblock >> nth=49"}}})
}
