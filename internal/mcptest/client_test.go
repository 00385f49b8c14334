package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A client speaks to one server process, line by line.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	id     int
}

// A frame is an answer or a notification, with the exact bytes of its members.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
	line string
}

func start(t *testing.T, mode string, args ...string) *client {
	t.Helper()
	command, argv, env := Command(t, mode, args...)
	c := &client{t: t, cmd: exec.CommandContext(t.Context(), command, argv...)}
	c.cmd.Env = Env(env...)
	c.cmd.Stderr = &c.stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.stdin.Close()
		_ = c.cmd.Process.Kill() // it may have ended
		_ = c.cmd.Wait()
	})
	return c
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// line reads a line, or "" at the end.
func (c *client) line() string {
	c.t.Helper()
	l, err := c.out.ReadString('\n')
	if err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(l, "\n")
}

// next reads the next frame, which must be one.
func (c *client) next() frame {
	c.t.Helper()
	f := frame{line: c.line()}
	if err := json.Unmarshal([]byte(f.line), &f); err != nil {
		c.t.Fatalf("%v in %q", err, f.line)
	}
	return f
}

// request sends one and returns its id.
func (c *client) request(method, params string) string {
	c.t.Helper()
	c.id++
	id := strconv.Itoa(c.id)
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return id
}

// ask sends a request and returns the next frame, which must be its answer.
func (c *client) ask(method, params string) frame {
	c.t.Helper()
	id := c.request(method, params)
	f := c.next()
	if string(f.ID) != id {
		c.t.Fatalf("%s: got %s, want the answer to %s", method, f.line, id)
	}
	return f
}

func (c *client) initialize() frame {
	c.t.Helper()
	f := c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return f
}

// call calls a tool and returns its result's JSON.
func (c *client) call(name, args string) string {
	c.t.Helper()
	f := c.ask("tools/call", `{"name":`+quote(name)+`,"arguments":`+args+`}`)
	if f.Error != nil {
		c.t.Fatalf("%s answered error %d: %s", name, f.Error.Code, f.Error.Message)
	}
	return string(f.Result)
}

// text calls a tool and returns its one text.
func (c *client) text(name, args string) string {
	c.t.Helper()
	var r struct{ Content []struct{ Text string } }
	js := c.call(name, args)
	if err := json.Unmarshal([]byte(js), &r); err != nil || len(r.Content) != 1 {
		c.t.Fatalf("%s: want one text block, got %s", name, js)
	}
	return r.Content[0].Text
}

// names lists one page of tools.
func (c *client) names(params string) (names []string, cursor string) {
	c.t.Helper()
	var r struct {
		Tools      []json.RawMessage
		NextCursor string
	}
	f := c.ask("tools/list", params)
	if err := json.Unmarshal(f.Result, &r); err != nil {
		c.t.Fatal(err)
	}
	for _, raw := range r.Tools {
		var t struct{ Name string }
		if json.Unmarshal(raw, &t) == nil {
			names = append(names, t.Name)
		}
	}
	return names, r.NextCursor
}

// wait waits for the process and returns its status.
func (c *client) wait() int {
	c.t.Helper()
	_, _ = io.Copy(io.Discard, c.out) // Wait closes the pipe, so what is in it is read first
	_ = c.cmd.Wait()                  // the status says it
	return c.cmd.ProcessState.ExitCode()
}
