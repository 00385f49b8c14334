package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script that shows artifacts to a person does what it says.
func TestArtifactsExample(t *testing.T) {
	p := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	p.ready()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "bash", "../../examples/artifacts.sh", p.base, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"Artifact-Ref: mcp~", "[SUMMARY: ", `"@ref":"mcp~`, `"Arch bridges"`, "\nAn arch turns a load that points down into a push that points", `"Suspension bridges"`,
		`"pointer":"/notes/0/text"`, `{"artifacts":[{"ref":"mcp~`, "\n204\n",
	} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the script does not show %q:\n%s", want, out)
		}
	}
	calls := 0
	for line := range strings.Lines(string(out)) { // as a person copies them
		if call, ok := strings.CutPrefix(line, "$ curl -i "); ok {
			calls++
			shown, err := exec.CommandContext(t.Context(), "bash", "-c", "curl -sSi "+call).CombinedOutput()
			if err != nil || !bytes.Contains(shown, []byte("Artifact-Ref: mcp~")) {
				t.Errorf("%s%v\n%s", line, err, shown)
			}
		}
	}
	if calls != 2 {
		t.Errorf("the script shows %d calls", calls)
	}
	png, err := os.ReadFile(filepath.Join(dir, "picture.png"))
	if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG\r\n\x1a\n")) {
		t.Errorf("the picture: %v, %.20q", err, png)
	}
}
