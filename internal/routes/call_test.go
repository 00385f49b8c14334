package routes

import "testing"

func TestCallSmoke(t *testing.T) {
	f := newFixture().returns(`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"n":9007199254740993, "e":1e400}}`)
	c := f.serve(t)
	c.do("POST", "/tools/demo/echo", `{"a":1}`).wantOK(t, `{"n":9007199254740993, "e":1e400}`)
	c.do("POST", "/tools/demo/nope", `{}`).wantProblem(t, 404, "not-found")
	for _, p := range []string{"/", "/tools", "/tools/demo", "/tools/demo/echo", "/openapi.json", "/openapi.yaml", "/docs", "/tools/demo/docs", "/healthz", "/readyz", "/problems/not-found", "/tools?limit=0"} {
		r := c.do("GET", p, "")
		t.Log(p, r.status, r.header, r.body[:min(len(r.body), 300)])
	}
	t.Log(f.log.String())
}
