package routes

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write api/openapi.yaml anew")

func TestFixedOpenAPI(t *testing.T) {
	got, err := FixedOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "api", "openapi.yaml")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("api/openapi.yaml is not what the code says; run make openapi")
	}
}

func TestFixedOpenAPIIsDeterministic(t *testing.T) {
	first, err := FixedOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := FixedOpenAPI()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("two runs made different documents")
		}
	}
}

// A running bridge serves the document, with its own address in it, and a page of it.
func TestFixedDocument(t *testing.T) {
	c := newFixture().serve(t)
	r := c.do("GET", "/openapi-bridge.json", "")
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &doc); err != nil || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %v", err, r.header)
	}
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "." {
		t.Errorf("servers = %v", doc.Servers)
	}
	for _, path := range []string{"/tools/{handle}/{tool}", "/jobs/{id}/input", "/resources/{handle}/content", "/prompts/{handle}/{prompt}", "/complete/{handle}", "/artifacts/{ref}"} {
		if doc.Paths[path] == nil {
			t.Errorf("%s is not in the document", path)
		}
	}
	if r := c.do("GET", "/docs/bridge", ""); !strings.Contains(r.body, `data-document="../openapi-bridge.json"`) || !strings.Contains(r.body, `src="assets/docs.js"`) {
		t.Errorf("the page is %s", r.body)
	}
}
