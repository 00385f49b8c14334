package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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

// What docker-compose.yml starts works: its Redis command, its bridge command, and the
// configuration in it, with only the names of the containers' world changed.
func TestCompose(t *testing.T) {
	b, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Build, Image   string
			Command, Ports []string
			Configs        []struct{ Source, Target string }
		}
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(b, &compose); err != nil {
		t.Fatal(err)
	}
	bridge, redis := compose.Services["bridge"], compose.Services["redis"]
	if len(compose.Services) != 2 || bridge.Build != "." || len(bridge.Configs) != 1 || len(redis.Ports) != 0 {
		t.Fatalf("compose = %+v", compose)
	}
	for _, port := range bridge.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("the port %s is open to others, who need no credential", port)
		}
	}
	server := &redisServer{t: t, port: freePort(t)}
	server.run(append(redis.Command[1:], "--port", server.port, "--bind", "127.0.0.1")...)
	t.Cleanup(server.kill)

	text := compose.Configs[bridge.Configs[0].Source].Content
	for from, to := range map[string]string{"command: /bridge": "command: bridge", "redis://redis:6379": server.url()} {
		if !strings.Contains(text, from) {
			t.Errorf("the configuration has no %q:\n%s", from, text)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	write(t, path, text)
	args := slices.Clone(bridge.Command)
	args[slices.Index(args, bridge.Configs[0].Target)] = path
	args[slices.Index(args, "0.0.0.0:8080")] = "0.0.0.0:0"
	p := startArgs(t, args...)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p.base = "http://127.0.0.1:" + port
	p.ready()
	ref := p.call("demo", "add", `{"a":40,"b":2}`, 200).Header.Get("Artifact-Ref")
	if got := p.get("/artifacts/" + ref + "/sum"); string(got.body) != "42" {
		t.Errorf("the artifact = %d %s", got.StatusCode, got.body)
	}
	wantProblem(t, p.do("GET", "/tools", "", "Host", "evil.example"), 403, "forbidden", "")
}
