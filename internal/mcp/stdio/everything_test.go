package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// everythingOptions start the reference server that has one of everything.
func everythingOptions(t *testing.T) Options {
	t.Helper()
	script, err := filepath.Abs("../../../testdata/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%v; run make deps", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatalf("%v; run make deps", err)
	}
	o := fakeOptions(t, "everything")
	o.Command, o.Args = "node", []string{script, "stdio"}
	o.Env = os.Environ()
	o.Handshake = time.Minute
	return o
}

func TestEverything(t *testing.T) {
	o := everythingOptions(t)
	c := dialFake(t, o)
	if p := c.Peer(); p.Protocol != "2025-11-25" || !p.Capabilities.Tools || !p.Capabilities.Resources || !p.Capabilities.Prompts || p.Instructions == "" {
		t.Errorf("Peer = %+v", p)
	}

	list := do(t, c, &rpc.Request{Method: "tools/list"})
	tools := map[string]bool{}
	for _, e := range raw.Elements(raw.Get([]byte(list), "tools")) {
		tools[raw.GetString(e, "name")] = true
	}
	for _, name := range []string{"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} {
		if !tools[name] {
			t.Errorf("tools/list lacks %s: %v", name, tools)
		}
	}

	if got, want := do(t, c, request("echo", map[string]any{"message": "hé"})), `{"content":[{"type":"text","text":"Echo: hé"}]}`; got != want {
		t.Errorf("echo = %s, want %s", got, want)
	}
	image := do(t, c, request("get-tiny-image", nil))
	if !strings.Contains(image, `"type":"image"`) || !strings.Contains(image, `"mimeType":"image/png"`) {
		t.Errorf("get-tiny-image = %.200s", image)
	}
	if got := do(t, c, &rpc.Request{Method: "resources/list"}); raw.KindOf(raw.Get([]byte(got), "resources")) != raw.Array {
		t.Errorf("resources/list = %.200s", got)
	}
	_, err := c.Do(t.Context(), &rpc.Request{Method: "no/such"})
	if e, ok := errors.AsType[*rpc.Error](err); !ok || e.Code != -32601 {
		t.Errorf("no/such = %v", err)
	}

	n := 0
	r := request("trigger-long-running-operation", map[string]any{"duration": 1, "steps": 4})
	r.Progress = func(p json.RawMessage) {
		n++
		if raw.KindOf(raw.Get(p, "progress")) != raw.Number {
			t.Errorf("progress = %s", p)
		}
	}
	do(t, c, r)
	if n != 4 {
		t.Errorf("progress came %d times, want 4", n)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r = request("trigger-long-running-operation", map[string]any{"duration": 2, "steps": 2})
	letGo := make(chan struct{})
	r.LetGo = func() { close(letGo) }
	if _, err := c.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do = %v", err)
	}
	<-letGo

	pid := c.Pid()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "cmdline")); err == nil && bytes.Contains(b, []byte("everything")) {
		t.Errorf("process %d is still there: %q", pid, b)
	}
	if got := c.Stats(); got.Skipped != 0 || got.TooLarge != 0 {
		t.Errorf("Stats = %+v", got)
	}
}
