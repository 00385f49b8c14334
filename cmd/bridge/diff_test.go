package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkDiff runs bridge check --diff and returns what it prints.
func checkDiff(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("bridge", append([]string{"check", "--diff"}, args...)...)
	cmd.Env = append(os.Environ(), "BRIDGE_KEY=s3cret-key")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "s3cret") {
		t.Errorf("it prints a secret: %s", out)
	}
	return string(out), err
}

// The difference of a file is what its reload then logs.
func TestCheckDiff(t *testing.T) {
	off := func(env string) server {
		return server{"command": "x", "disabled": true, "env": map[string]string{"K": env}}
	}
	_, more := stateFile(t)
	p, f := startFile(t, map[string]server{"changed": off("s3cret one"), "gone": off(""), "kept": off("")}, more)
	p.put("/admin/servers/put", `{"url":"http://127.0.0.1:1"}`, 201)
	p.put("/admin/servers/other", `{"url":"http://127.0.0.1:1"}`, 201)

	out, err := checkDiff(t, "--config", f.path, "--url", p.base)
	if err != nil || out != "Nothing would change: 3 servers stay as they are.\n" {
		t.Errorf("of the same file: %v\n%s", err, out)
	}
	next := filepath.Join(t.TempDir(), "next.json")
	text := f.text(map[string]server{"changed": off("s3cret two"), "kept": off(""), "put": off(""), "new\tone": off("")})
	write(t, next, strings.Replace(text, `new\tone`, "new one", 1))
	out, err = checkDiff(t, "--config", next, "--url", p.base+"/")
	want := "~ changed\n- gone\n+ new one\n+ put  (in place of the one that was put through the administration)\n4 servers would change, 1 stay as they are.\n"
	if err != nil || out != want {
		t.Errorf("of another file: %v\n%s\nwant:\n%s", err, out, want)
	}

	// What cannot be asked.
	demo := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--url", demo.base}, "runs without a configuration file"},
		{[]string{"--url", "http://127.0.0.1:" + freePort(t)}, "no running bridge can be asked"},
		{[]string{"--url", "http://u:s3cret@127.0.0.1:1"}, "no running bridge can be asked"},
		{[]string{"--url", "http://s3cret:x"}, "--url is not the URL of a bridge"},
		{[]string{"--url", p.base + "/tools"}, "answers 404"},
	} {
		out, err := checkDiff(t, append([]string{"--config", next}, tt.args...)...)
		if err == nil || !strings.Contains(out, tt.says) {
			t.Errorf("%q: %v\n%s\nwant %q", tt.args, err, out, tt.says)
		}
	}
}

func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", ":80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80",
		"bridge.example.com:80": "bridge.example.com:80", "[::1]:80": "[::1]:80",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("reachable(%q) = %q, want %q", listen, got, want)
		}
	}
}

// A bridge with keys wants one, and the error says where to put it.
func TestCheckDiffNeedsAKey(t *testing.T) {
	p, f := startFile(t, nil, map[string]any{"auth": map[string]any{"keys": []any{
		map[string]any{"id": "op", "hash": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("an-operators-key"))), "user": "op", "scopes": []string{"admin"}},
	}}})
	for key, says := range map[string]string{"": "put it into $BRIDGE_KEY", "another-key": "answers 401", "an-operators-key": "Nothing would change"} {
		cmd := exec.Command("bridge", "check", "--diff", "--config", f.path, "--url", p.base)
		cmd.Env = append(os.Environ(), "BRIDGE_KEY="+key)
		if out, err := cmd.CombinedOutput(); (err == nil) != strings.HasPrefix(says, "Nothing") || !strings.Contains(string(out), says) {
			t.Errorf("with the key %q: %v\n%s\nwant %q", key, err, out, says)
		}
	}
}
