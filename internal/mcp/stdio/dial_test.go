package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

func TestDialPeer(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	want := &rpc.Peer{
		Name: "fake", Title: "A fake", Version: "1", Protocol: "2025-11-25", Instructions: "be careful",
		Capabilities: rpc.Capabilities{Tools: true, Logging: true},
	}
	if d := cmp.Diff(want, c.Peer()); d != "" {
		t.Errorf("Peer (-want +got):\n%s", d)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err of a live connection = %v", err)
	}
	// The session era needs no _meta on a request that asks for no progress.
	do(t, c, &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo"`)})
	if got, want := waitFrames(t, c, 1)[0], `{"jsonrpc":"2.0","id":1099511627777,"method":"tools/call","params":{"name":"echo"}}`; got != want {
		t.Errorf("the server got %s, want %s", got, want)
	}
}

func TestDialFailures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("plain", "#!/bin/sh\n", 0o644)
	orphan := write("orphan", "#!/no/such/interpreter\n", 0o755)
	noise := write("noise", "\x00\x01", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name   string
		change func(*Options)
		reason rpc.Reason
		msg    string // in the message
	}{
		{"no command", func(o *Options) { o.Command = "" }, rpc.Start, "no command is given"},
		{
			"not in PATH", func(o *Options) { o.Command = "no-such-server" }, rpc.Start,
			`command "no-such-server" not found in PATH; install it or give its full path`,
		},
		{"no such file", func(o *Options) { o.Command = "./nothing"; o.Dir = dir }, rpc.Start, `command "./nothing" does not exist`},
		{"not executable", func(o *Options) { o.Command = plain }, rpc.Start, `cannot be run: permission denied (is it marked executable?)`},
		{
			"not executable in PATH", func(o *Options) { o.Command = "plain"; o.Env = append(o.Env, "PATH="+dir) }, rpc.Start,
			`command "plain" was found as "` + plain + `", but cannot be run: permission denied`,
		},
		{"a directory", func(o *Options) { o.Command = dir }, rpc.Start, "it is a directory"},
		{"a directory in PATH only", func(o *Options) { o.Command = "sub"; o.Env = append(o.Env, "PATH=/nowhere::.:"+plain+":"+dir) }, rpc.Start, "it is a directory"},
		{"no interpreter", func(o *Options) { o.Command = orphan }, rpc.Start, "could not be started: no such file or directory (the interpreter"},
		{"no program", func(o *Options) { o.Command = noise }, rpc.Start, "could not be started: exec format error (it is not a program"},
		{"no directory", func(o *Options) { o.Dir = filepath.Join(dir, "nothing") }, rpc.Start, `nothing" does not exist`},
		{"directory is a file", func(o *Options) { o.Dir = plain }, rpc.Start, `plain" is not a directory`},
		{"directory below a file", func(o *Options) { o.Dir = filepath.Join(plain, "x") }, rpc.Start, "cannot be used: not a directory"},
		{"bad environment", func(o *Options) { o.Env = append(o.Env, "X=a\x00b") }, rpc.Start, "NUL"},
		{
			"exits at once", func(o *Options) { o.Env = []string{"STDIO_FAKE=exits"} }, rpc.Handshake,
			`the server ended during the handshake: the process exited with status 3; its last words: cannot open the database\a`,
		},
		{
			"never answers", func(o *Options) { o.Env = []string{"STDIO_FAKE=silent"}; o.Handshake = 3*time.Second - 1 }, rpc.Handshake,
			"the server did not answer initialize within 3s; its last words: still compiling",
		},
		{
			"half an answer", func(o *Options) { o.Env = []string{"STDIO_FAKE=breaks"} }, rpc.Handshake,
			"the server ended during the handshake: the process exited with status 0",
		},
		{
			"refuses both eras", func(o *Options) { o.Env = []string{"STDIO_FAKE=refuses"} }, rpc.Handshake,
			`the server refused initialize: error -32602: not\nlike this`,
		},
		{"a version of its own", func(o *Options) { o.Env = []string{"STDIO_FAKE=ancient"} }, rpc.Handshake, `unsupported protocol version: "1999-12-31"`},
	}
	for _, supervised := range []bool{true, false} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				o := fakeOptions(t, "plain")
				o.CloseWait, o.TermWait = 100*time.Millisecond, time.Second
				if !supervised {
					o.Supervisor = nil
				}
				tt.change(&o)
				c, err := Dial(t.Context(), o)
				if err == nil {
					_ = c.Close()
					t.Fatal("Dial succeeded")
				}
				f := failure(t, err)
				if f.Reason != tt.reason || !strings.Contains(f.Error(), tt.msg) {
					t.Errorf("Dial = %s: %q, want %s: %q", f.Reason, f.Error(), tt.reason, tt.msg)
				}
				if n := ownChildren(); len(n) > 0 {
					t.Errorf("processes left: %v", n)
				}
			})
		}
	}
}

// ownChildren are our child processes but for the supervisor.
func ownChildren() []int {
	var pids []int
	for _, pid := range children() {
		b, _ := os.ReadFile(filepath.Join("/proc", itoa(pid), "cmdline"))
		if !strings.HasPrefix(string(b), supervisorMode) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A command is looked for in the PATH that it will have.
func TestDialPath(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.Env = append(o.Env, "PATH=/nowhere:"+filepath.Dir(o.Command))
	o.Command = filepath.Base(o.Command)
	dialFake(t, o)

	o.Dir = filepath.Dir(t.TempDir())
	rel, err := filepath.Rel(o.Dir, mustExecutable(t))
	if err != nil {
		t.Fatal(err)
	}
	o.Command = rel
	dialFake(t, o)
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// Nothing of ours reaches the server: no variable, no argument, no descriptor.
func TestDialLeavesNoTrace(t *testing.T) {
	for _, sup := range []*Supervisor{supervisor(), nil} {
		o := fakeOptions(t, "plain")
		o.Supervisor = sup
		o.Args = []string{"", "-x", "a b"}
		o.Env = append(o.Env, "A=1", "EMPTY=", "A=2")
		c := dialFake(t, o)
		var got struct {
			Env, Args []string
			FDs       int
		}
		if err := json.Unmarshal([]byte(do(t, c, request("env", nil))), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"STDIO_FAKE=plain", "EMPTY=", "A=2"}, got.Env); d != "" {
			t.Errorf("environment (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{o.Command, "", "-x", "a b"}, got.Args); d != "" {
			t.Errorf("arguments (-want +got):\n%s", d)
		}
		if got.FDs != 0 {
			t.Errorf("the server inherited %d pipes of ours", got.FDs)
		}
	}
}

func TestDialBanner(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "banner"))
	if got := do(t, c, request("echo", nil)); got != "{}" {
		t.Errorf("echo = %s", got)
	}
	// Two lines of text, two of JSON that is no JSON-RPC; the empty one does not count.
	if got, want := c.Stats(), (Stats{Skipped: 4, TooLarge: 0}); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}

// A server that refuses initialize is started again in the other era, and the
// next time begins there.
func TestDialStateless(t *testing.T) {
	var era Era
	for round := range 2 {
		o := fakeOptions(t, "stateless")
		o.Era = &era
		o.ClientName = "tester"
		starts := countStarts(&o)
		c := dialFake(t, o)
		if got, want := *starts, 2-round; got != want {
			t.Errorf("round %d: %d starts, want %d", round, got, want)
		}
		if p := c.Peer(); p.Protocol != "2026-07-28" || !p.Modern() || p.Name != "fake" || p.Version != "2" {
			t.Errorf("Peer = %+v", p)
		}
		do(t, c, &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(`{}`), Idle: time.Minute})
		do(t, c, &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo"`)})
		frames := waitFrames(t, c, 2)
		meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tester","version":"dev"},"io.modelcontextprotocol/clientCapabilities":{}`
		if want := `"params":{"_meta":{"progressToken":1099511627777,` + meta + `},"name":"echo","arguments":{}}}`; !strings.HasSuffix(frames[0], want) {
			t.Errorf("the server got %s, want …%s", frames[0], want)
		}
		if want := `"params":{"_meta":{` + meta + `},"name":"echo"}}`; !strings.HasSuffix(frames[1], want) {
			t.Errorf("the server got %s, want …%s", frames[1], want)
		}
	}
	// What is remembered and turns out wrong is forgotten.
	o := fakeOptions(t, "plain")
	o.Era = &era
	if c := dialFake(t, o); c.Peer().Protocol != "2025-11-25" || era.modern.Load() {
		t.Errorf("Peer = %+v, modern is remembered: %v", c.Peer(), era.modern.Load())
	}
}

func TestDialCancelled(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Dial(ctx, fakeOptions(t, "silent")); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial = %v", err)
		}
	})
	for _, wait := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			o := fakeOptions(t, "silent")
			o.CloseWait = 10 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			if _, err := Dial(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial = %v", err)
			}
			if n := ownChildren(); len(n) > 0 {
				t.Errorf("processes left: %v", n)
			}
		})
	}
}

// A start that hangs (here: because nobody may read the report) is bounded.
func TestDialStartTimeout(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.Start = time.Nanosecond
	_, err := Dial(t.Context(), o)
	if f := failure(t, err); f.Reason != rpc.Start || !strings.Contains(f.Msg, "was not started within 1ns") {
		t.Errorf("Dial = %v", f)
	}
	if n := ownChildren(); len(n) > 0 {
		t.Errorf("processes left: %v", n)
	}
}

// A server that talks to people on its output, and fails, is told so.
func TestDialBabble(t *testing.T) {
	const secret = "hunter2-secret"
	long := strings.Repeat("é", 94) // so that the excerpt would end within the secret
	for _, tt := range []struct {
		name, script, want string
	}{
		{"silent", `echo hello world; echo; echo [1]; echo more; echo compiling >&2`, `it printed 3 lines that are not JSON-RPC, the first: "hello world"; its last words: compiling`},
		{"one line", `echo hello world`, `it printed a line that is not JSON-RPC: "hello world"`},
		{"escaped", `printf '\033[31mred\033[0m \033]0;"x"\a\377\r\n'`, `it printed a line that is not JSON-RPC: "red \x1b]0;\"x\"\a\xff"`},
		{"redacted", `echo the key is ` + secret, `it printed a line that is not JSON-RPC: "the key is [redacted]"`},
		{"capped", `echo ` + long + secret + long, `JSON-RPC: "` + long + `[redacted]…"`},
		{"too large", `echo '` + strings.Repeat("x", 187) + secret + strings.Repeat("x", 40_000) + `'`, `JSON-RPC: "` + strings.Repeat("x", 187) + `[redacted]xx…"`},
	} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ends %v", tt.name, ends), func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				o := fakeOptions(t, "")
				o.Log = newTextLog(&log)
				o.Command, o.Args = sh(t), []string{"-c", tt.script + "; read a; read b"}
				o.Redact = []string{secret}
				o.Handshake, o.CloseWait = 2*time.Second, 100*time.Millisecond
				want := "the server did not answer initialize within 2s; " + tt.want
				if ends {
					o.Handshake = time.Minute
					o.Args[1] = tt.script + "; exit 3"
					before, words, _ := strings.Cut(tt.want, "; its last")
					if words != "" {
						words = "; its last" + words
					}
					want = "the server ended during the handshake: the process exited with status 3" + words + "; " + before
				}
				_, err := Dial(t.Context(), o)
				f := failure(t, err)
				if tt.name == "capped" || tt.name == "too large" {
					if !strings.HasSuffix(f.Msg, tt.want) {
						t.Errorf("Dial = %q, want …%q", f.Msg, tt.want)
					}
				} else if f.Msg != want {
					t.Errorf("Dial = %q, want %q", f.Msg, want)
				}
				if strings.Contains(log.String(), "hunter") {
					t.Errorf("the log holds the secret: %s", log.String())
				}
			})
		}
	}
}
