package openapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/openapi/openapitest"
)

// A document says what to send, in each of its forms, while calls need a credential or can have one.
func TestSecurity(t *testing.T) {
	var now Credentials
	d := New(Options{Credentials: func() Credentials { return now }})
	v := view(server("files", tool(t, "files", "read", `{"type":"object"}`)))
	type document struct {
		Security   []map[string][]string
		Components struct {
			SecuritySchemes map[string]struct{ Type, Scheme, In, Name string } `json:"securitySchemes"`
		}
	}
	for _, now = range []Credentials{NoCredentials, NeededCredentials, OptionalCredentials, NoCredentials} {
		for name, doc := range map[string]*Document{"whole": d.Whole(v), "handle": d.Handle(v, "files")} {
			checkDocument(t, doc)
			for _, form := range []Form{{}, {Older: true}, {Flat: true}} {
				body := doc.Form(form).Body
				openapitest.Validate(t, body)
				var got, want document
				if err := json.Unmarshal(body, &got); err != nil {
					t.Fatal(err)
				}
				if now != NoCredentials {
					want.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
					if now == OptionalCredentials {
						want.Security = append([]map[string][]string{{}}, want.Security...)
					}
					want.Components.SecuritySchemes = map[string]struct{ Type, Scheme, In, Name string }{
						"bearer": {Type: "http", Scheme: "bearer"}, "apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key"},
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %+v, credentials %d (-want +got):\n%s", name, form, now, diff)
				}
			}
		}
	}
}
