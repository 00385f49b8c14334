package routes

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
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
