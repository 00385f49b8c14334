package openapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A document says what to send, in each of its forms, while calls need a credential.
func TestSecurity(t *testing.T) {
	on := false
	d := New(Options{Secured: func() bool { return on }})
	v := view(server("files", tool(t, "files", "read", `{"type":"object"}`)))
	type document struct {
		Security   []map[string][]string
		Components struct {
			SecuritySchemes map[string]struct{ Type, Scheme, In, Name string } `json:"securitySchemes"`
		}
	}
	for _, on = range []bool{false, true, false} {
		for name, doc := range map[string]*Document{"whole": d.Whole(v), "handle": d.Handle(v, "files")} {
			checkDocument(t, doc)
			for _, form := range []Form{{}, {Older: true}, {Flat: true}} {
				body := doc.Form(form).Body
				checkOpenAPI(t, body)
				var got, want document
				if err := json.Unmarshal(body, &got); err != nil {
					t.Fatal(err)
				}
				if on {
					want.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
					want.Components.SecuritySchemes = map[string]struct{ Type, Scheme, In, Name string }{
						"bearer": {Type: "http", Scheme: "bearer"}, "apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key"},
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %+v, credentials needed: %t (-want +got):\n%s", name, form, on, diff)
				}
			}
		}
	}
}
