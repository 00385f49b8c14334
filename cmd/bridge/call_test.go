package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/openapi"
)

// at returns a terminal at which somebody has typed this.
func at(typed string) (*terminal, *bytes.Buffer) {
	var out bytes.Buffer
	a := &app{log: slog.New(slog.DiscardHandler)}
	return &terminal{out: &out, bar: true, in: bufio.NewReader(strings.NewReader(typed)), compile: openapi.NewSchemas(a.log).Question}, &out
}

func TestTerminalAsks(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"name":{"type":"string","title":"Name","minLength":2},
		"age":{"type":"integer","minimum":0},
		"sure":{"type":"boolean","description":"really?"},
		"colour":{"type":"string","enum":["red","blue"],"default":"red"},
		"tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b"}]}}},"required":["name","sure"]}`)
	form := bridge.Question{ID: "q", Mode: "form", Message: "Who\x1b[2J?", Schema: schema}
	either := bridge.Question{ID: "q", Mode: "form", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"minProperties":1}`)}
	page := bridge.Question{ID: "q", Mode: "url", Message: "Sign in", URL: "https://example.com/\x07x"}
	accept := func(content string) bridge.Reply {
		return bridge.Reply{Action: bridge.Accept, Content: json.RawMessage(content)}
	}
	for _, tt := range []struct {
		name, typed string
		q           bridge.Question
		want        bridge.Reply
		shows       string
	}{
		{"all of it", "a\nAda\n36\ny\nblue\na, b\n", form, accept(`{"name":"Ada","age":36,"sure":true,"colour":"blue","tags":["a","b"]}`), "tags, one of a, b []: "},
		{"as little as can be", "\n\nAda\n\nno\n\n\n", form, accept(`{"name":"Ada","sure":false,"colour":"red"}`), `colour, one of red, blue ["red"]: `},
		{"wrong, then right", "maybe\na\nA\nAda\nold\n1.0\ntrue\nred\n\n", form, accept(`{"name":"Ada","age":1.0,"sure":true,"colour":"red"}`), "/age: is a string, must be an integer"},
		{"wrong as a whole, then right", "a\n\n\na\n\nx\n", either, accept(`{"b":"x"}`), "That does not fit: "},
		{"declined", "d\n", form, bridge.Reply{Action: bridge.Decline}, "The tool asks: Who [2J?"},
		{"cancelled", "c\n", form, bridge.Reply{Action: bridge.Cancel}, "Answer, decline or cancel? [A/d/c] "},
		{"no more input", "", form, bridge.Reply{Action: bridge.Cancel}, ""},
		{"no more input in the middle", "a\nAda\n", form, bridge.Reply{Action: bridge.Cancel}, "age []: "},
		{"a page", "\n", page, bridge.Reply{Action: bridge.Accept}, "https://example.com/ x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			term, out := at(tt.typed)
			got, err := term.ask(t.Context(), []bridge.Question{tt.q})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got["q"]); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
			if !strings.Contains(out.String(), tt.shows) || strings.ContainsAny(out.String(), "\x07\x1b") {
				t.Errorf("shown %q, want %q and nothing that steers the terminal", out, tt.shows)
			}
		})
	}
	term, _ := at("a\n")
	if _, err := term.ask(t.Context(), []bridge.Question{{ID: "q", Schema: json.RawMessage(`{"type":"string"}`)}}); err == nil {
		t.Error("a schema that is none was used")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w, err := os.Pipe() // on which nothing comes
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	term.in = bufio.NewReader(r)
	if _, err := term.ask(ctx, []bridge.Question{form}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended asks on: %v", err)
	}
}

func TestTerminalShows(t *testing.T) {
	show := func(bar bool) string {
		term, out := at("")
		term.bar, term.in = bar, nil
		term.progress(json.RawMessage(`{"progress":1,"total":4,"message":"one\u001b[0m"}`))
		term.message(json.RawMessage(`{"level":"info","data":"hi\nthere"}`))
		term.message(json.RawMessage(`{"level":"error","data":{"n":1.10}}`))
		term.progress(json.RawMessage(`{"progress":2.5}`))
		term.progress(json.RawMessage(`{"progress":9,"total":4}`))
		term.progress(json.RawMessage(`"nonsense"`))
		if r, err := term.ask(t.Context(), []bridge.Question{{ID: "a", Message: "Who?"}, {ID: "b"}}); err != nil || r["a"].Action != bridge.Decline || r["b"].Action != bridge.Decline {
			t.Errorf("with nobody there: %+v, %v", r, err)
		}
		term.clear()
		return out.String()
	}
	const declined = "The tool asks: Who?\nIt is declined, since the standard input is no terminal.\nThe tool asks: \nIt is declined, since the standard input is no terminal.\n"
	want := "progress: 1/4 one [0m\ninfo: hi there\nerror: {\"n\":1.10}\nprogress: 2.5\nprogress: 9/4\n" + declined
	if d := cmp.Diff(want, show(false)); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	first := "[#######-----------------------] 1/4 one [0m"
	want = erase + first + erase + "info: hi there\n" + first + erase + "error: {\"n\":1.10}\n" + first +
		erase + "2.5" + erase + "[##############################] 9/4" + erase + declined
	if d := cmp.Diff(want, show(true)); d != "" {
		t.Errorf("on a screen (-want +got):\n%s", d)
	}
}

// configured writes a configuration of these servers and returns its path.
func configured(t *testing.T, servers map[string]server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.json")
	write(t, path, string(mustJSON(map[string]any{"mcpServers": servers})))
	return path
}

func TestCallStream(t *testing.T) {
	path := configured(t, asking(t))
	for _, handle := range []string{"modern", "pipe", "http", "stdio"} {
		cmd := exec.CommandContext(t.Context(), "bridge", "call", "--stream", "-c", path, handle, "work", `{"steps":2,"seconds":0.05}`)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != "{\"content\":[{\"type\":\"text\",\"text\":\"2 steps done\"}]}\n" {
			t.Errorf("%s: %v, %s", handle, err, out)
		}
		want := "progress: 1/2 step 1\nprogress: 2/2 step 2\n"
		if handle == "modern" || handle == "http" { // where messages are tied to their call
			want = "progress: 1/2 step 1\ninfo: did step 1\nprogress: 2/2 step 2\ninfo: did step 2\n"
		}
		_, shown, _ := strings.Cut(stderr.String(), "which call it asks for\n") // the warning of pipe
		if d := cmp.Diff(want, shown); d != "" {
			t.Errorf("%s: the standard error (-want +got):\n%s", handle, d)
		}
		stderr.Reset()
		cmd = exec.CommandContext(t.Context(), "bridge", "call", "--stream", "-c", path, handle, "ask")
		cmd.Stderr = &stderr
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "no name: decline") || !strings.Contains(stderr.String(), "is no terminal") {
			t.Errorf("%s: %v, %s, %s", handle, err, out, &stderr)
		}
	}
}

// On a terminal there are a bar and questions, and the result alone is on the standard output.
func TestCallOnATerminal(t *testing.T) {
	path := configured(t, map[string]server{"modern": {"url": mcptest.Start(t, mcptest.HTTPAsks, "stateless").URL, "elicitation": true}})
	result := filepath.Join(t.TempDir(), "result")
	for _, tt := range []struct{ call, typed, shows, result string }{
		{`modern ask`, "a\nAda\n", "Name (Name): |name (Name): |Who are you, ?", "hello Ada"},
		{`modern work '{"steps":2,"seconds":0.05}'`, "", "[###############---------------] 1/2 step 1", "2 steps done"},
	} {
		cmd := exec.CommandContext(t.Context(), "script", "-q", "-e", "-c", "bridge call --stream -c "+path+" "+tt.call+" > "+result, os.DevNull)
		cmd.Stdin = strings.NewReader(tt.typed)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, err := os.ReadFile(result)
		if err != nil || !strings.Contains(string(got), tt.result) || bytes.Contains(out, []byte(tt.result)) {
			t.Errorf("result = %s, %v; on the terminal: %q", got, err, out)
		}
		shown := false
		for s := range strings.SplitSeq(tt.shows, "|") {
			shown = shown || bytes.Contains(out, []byte(s))
		}
		if !shown {
			t.Errorf("on the terminal: %q, want %q", out, tt.shows)
		}
	}
	// On one screen with the bar, the result has its line for itself.
	cmd := exec.CommandContext(t.Context(), "script", "-q", "-e", "-c", "bridge call --stream -c "+path+` modern work '{"steps":1}'`, os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(erase+`{"content":`)) || !bytes.HasSuffix(out, []byte("}\r\n")) {
		t.Errorf("%v: on the terminal: %q", err, out)
	}
}

func TestCallAsync(t *testing.T) {
	key, entry := newKey(t, "cli", map[string]any{"user": "ada"})
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"auth": map[string]any{"keys": []any{entry}}, "basePath": "/base"})
	until(t, "the bridge is ready", func() bool { return p.get("/base/readyz").StatusCode == 200 })
	page := site(t)
	call := func(env []string, args ...string) (string, string, int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bridge", append([]string{"call", "--async"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	withKey := []string{"BRIDGE_KEY=" + key, "BRIDGE_URL=" + p.base + "/base/"}
	out, errs, code := call(withKey, "ok", "echo", `{"message":"hi"}`)
	path, ok := strings.CutPrefix(strings.TrimSpace(out), p.base)
	if code != 0 || !ok || !strings.HasPrefix(path, "/base/jobs/") {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	until(t, "the job is done", func() bool {
		return strings.Contains(string(p.do("GET", path, "", "X-API-Key", key, "Prefer", "wait=5").body), `"state":"done"`)
	})
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		says string
	}{
		{"no bridge is named", nil, []string{"ok", "echo"}, 2, "--url or $BRIDGE_URL"},
		{"no URL", nil, []string{"--url", "127.0.0.1:1", "ok", "echo"}, 2, "http://"},
		{"nobody there", nil, []string{"--url", "http://127.0.0.1:1", "ok", "echo"}, 1, "cannot be reached"},
		{"no bridge there", nil, []string{"--url", page, "ok", "echo"}, 1, "no bridge: HTTP 200 OK"},
		{"no key", []string{"BRIDGE_URL=" + p.base + "/base"}, []string{"ok", "echo"}, 1, "unauthenticated: "},
		{"wrong arguments", withKey, []string{"ok", "echo", `{"message":5}`}, 1, `"pointer": "/message"`},
		{"no such tool", withKey, []string{"ok", "a/b"}, 1, "not-found: "},
		{"with --stream", withKey, []string{"--stream", "ok", "echo"}, 2, "--stream"},
		{"with --timeout", withKey, []string{"--timeout", "5s", "ok", "echo"}, 2, "--timeout"},
	} {
		if out, errs, code := call(tt.env, tt.args...); code != tt.code || out != "" || !strings.Contains(errs, tt.says) || strings.Contains(errs, key) {
			t.Errorf("%s: status %d, %q, %q; want %d and %q", tt.name, code, out, errs, tt.code, tt.says)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bridge", "call", "--url", p.base, "ok", "echo")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--url goes with --async") {
		t.Errorf("--url alone: %v, %s", err, out)
	}
}
