package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process is one bridge, run as a program.
type process struct {
	t    *testing.T
	base string // "http://127.0.0.1:12345"
	cmd  *exec.Cmd
	tag  string // in the environment of the bridge and of everything that it started

	mu     sync.Mutex
	logged bytes.Buffer // guarded by mu
	exited chan struct{}
	err    error // of the exit; set before exited is closed
}

// A server is one entry of mcpServers.
type server map[string]any

// npm returns the entry of one of the servers in testdata/npm.
func npm(name string, args ...string) server {
	path, err := filepath.Abs(filepath.Join("../../testdata/npm/node_modules/@modelcontextprotocol", "server-"+name, "dist/index.js"))
	if err != nil {
		panic(err)
	}
	return server{"command": "node", "args": append([]string{path}, args...)}
}

// start writes a configuration of these servers, runs bridge serve, and waits until it listens.
func start(t *testing.T, servers map[string]server, more map[string]any) *process {
	t.Helper()
	section := map[string]any{"listen": "127.0.0.1:0"}
	maps.Copy(section, more)
	b, err := json.Marshal(map[string]any{"mcpServers": servers, "bridge": section})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bridge.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return startArgs(t, "serve", "--config", path)
}

// startArgs runs the bridge with these arguments and waits until it listens.
func startArgs(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command("bridge", args...))
}

// startCommand runs a command that is a bridge in the end, and waits until it listens.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, tag: "BRIDGE_TEST_TAG=" + t.Name() + "." + time.Now().Format("150405.000000"), exited: make(chan struct{})}
	p.cmd.Env = append(p.cmd.Environ(), p.tag)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() { // ends with the process
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.logged.Write(lines.Bytes())
			p.logged.WriteByte('\n')
			p.mu.Unlock()
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				listening <- line.Addr
			}
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the bridge logged:\n%s", p.log())
		}
	})
	select {
	case addr := <-listening:
		p.base = "http://" + addr
	case <-p.exited:
		t.Fatalf("the bridge ended: %v\n%s", p.err, p.log())
	case <-time.After(time.Minute):
		t.Fatal("the bridge does not listen")
	}
	return p
}

// log returns what the bridge has logged. The lines of calls come a little after their answers.
func (p *process) log() string {
	time.Sleep(50 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logged.String()
}

// stop signals the bridge, waits for its end, and demands that nothing of it is left.
func (p *process) stop(sig syscall.Signal) {
	p.t.Helper()
	select {
	case <-p.exited:
		return
	default:
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Errorf("the bridge does not end on %v", sig)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	if sig == syscall.SIGTERM && p.err != nil {
		p.t.Errorf("the bridge ended with %v", p.err)
	}
	p.wantNoProcess()
}

// wantNoProcess demands that every process with the bridge's tag is gone, within a few seconds.
func (p *process) wantNoProcess() {
	p.t.Helper()
	var left []string
	for range 100 {
		if left = tagged(p.tag); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Errorf("left running: %q", left)
}

// tagged returns the command lines of the processes that have tag in their environment.
func tagged(tag string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte(tag)) {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err == nil && len(cmdline) > 0 {
			found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// A response is an answer that has been read.
type response struct {
	*http.Response
	body []byte
}

// do makes one request; header is pairs of names and values.
func (p *process) do(method, path, body string, header ...string) response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response{res, b}
}

func (p *process) get(path string) response {
	p.t.Helper()
	return p.do("GET", path, "")
}

// call calls a tool and demands the status.
func (p *process) call(handle, tool, args string, status int, header ...string) response {
	p.t.Helper()
	res := p.do("POST", "/tools/"+url.PathEscape(handle)+"/"+url.PathEscape(tool), args, header...)
	if res.StatusCode != status {
		p.t.Errorf("%s/%s(%.200s): status %d, want %d: %.500s", handle, tool, args, res.StatusCode, status, res.body)
	}
	return res
}

// problem calls a tool and demands the problem of that code, which says what is wanted.
func (p *process) problem(handle, tool, args string, status int, code, says string) {
	p.t.Helper()
	res := p.call(handle, tool, args, status)
	wantProblem(p.t, res, status, code, says)
}

func wantProblem(t *testing.T, res response, status int, code, says string) {
	t.Helper()
	var got struct{ Code, Detail string }
	if err := json.Unmarshal(res.body, &got); err != nil {
		t.Errorf("no problem: %v: %.300s", err, res.body)
		return
	}
	if res.StatusCode != status || got.Code != code || !strings.Contains(got.Detail, says) || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s %q (%s), want %d %s that says %q", res.StatusCode, got.Code, got.Detail, res.Header.Get("Content-Type"), status, code, says)
	}
}

// ready waits until the bridge is ready and no server is connecting any more, and returns /tools.
func (p *process) ready() catalogue {
	p.t.Helper()
	for range 600 {
		var c catalogue
		decode(p.t, p.get("/tools?limit=1000"), &c)
		connecting := false
		for _, s := range c.Servers {
			connecting = connecting || s.State == "connecting"
		}
		if !connecting && p.get("/readyz").StatusCode == http.StatusOK {
			return c
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatal("the bridge does not become ready")
	return catalogue{}
}

// A catalogue is what tests need of GET /tools.
type catalogue struct {
	Servers []struct {
		Handle, State string
		LastError     string `json:"last_error"`
		Tools         []struct{ Name string }
		Skipped       []struct{ Name, Reason string }
	}
}

func decode(t *testing.T, res response, v any) {
	t.Helper()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %.500s", res.StatusCode, res.body)
	}
	if err := json.Unmarshal(res.body, v); err != nil {
		t.Fatalf("%v: %.500s", err, res.body)
	}
}
