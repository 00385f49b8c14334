// Package api holds the document of the fixed surface, which is generated; this
// test holds it to the specification.
package api

import (
	"os"
	"testing"

	"mcpbridge/internal/openapi/openapitest"
)

func TestDocumentIsValid(t *testing.T) {
	b, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	openapitest.Validate(t, b)
}
