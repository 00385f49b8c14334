package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// def is a tool's JSON in tools/list. props are the members of "properties"; more are further members, with a comma before.
func def(name, description, props, more string) string {
	return `{"name":` + quote(name) + `,"description":` + quote(description) +
		`,"inputSchema":{"type":"object","properties":{` + props + `}}` + more + `}`
}

const (
	readOnly   = `,"annotations":{"readOnlyHint":true}`
	idempotent = `,"annotations":{"idempotentHint":true}`
)

// kit are the tools of mode OK.
func kit() []*tool {
	return []*tool{
		{"echo", def("echo", "Answers the message.", `"message":{"type":"string"}`, readOnly), echo},
		{"args", def("args", "Answers the exact bytes of its arguments, as text.", ``, readOnly), func(_ context.Context, c *call) (string, error) { return text(string(c.Args)), nil }},
		{"params", def("params", "Answers the exact bytes of the request's params, as text.", ``, readOnly), func(_ context.Context, c *call) (string, error) { return text(string(c.params)), nil }},
		{"frames", def("frames", "Answers every line that the server has read, as a JSON array of strings in text.", ``, readOnly), frames},
		{"answer", def("answer", "Answers the given text, byte by byte, as the JSON of its result.", `"result":{"type":"string"}`, ``), answer},
		{"write", def("write", "Writes the given text, byte by byte, in place of an answer's frame; {id} in it is the request's id.", `"frame":{"type":"string"}`, ``), write},
		{"rpc_error", def("rpc_error", "Answers a JSON-RPC error.", `"code":{"type":"integer"},"message":{"type":"string"}`, ``), rpcError},
		{"fail", def("fail", "Answers isError with the message.", `"message":{"type":"string"}`, ``), fail},
		{"huge", def("huge", "Answers a text of so many bytes.", `"bytes":{"type":"integer"}`, readOnly), huge},
		{"pid", def("pid", "Answers the server's process id.", ``, readOnly), func(context.Context, *call) (string, error) { return text(strconv.Itoa(os.Getpid())), nil }},
		{"env", def("env", "Answers a variable of the server's environment.", `"name":{"type":"string"}`, readOnly), env},
		{"cwd", def("cwd", "Answers the server's working directory.", ``, readOnly), cwd},
		{"calls", def("calls", "Answers how many calls the server has seen, this one included.", ``, readOnly), calls},
		{"exit", def("exit", "Ends the server without an answer; its last words go to stderr.", `"status":{"type":"integer"},"words":{"type":"string"}`, ``), exit},
		{"say", def("say", "Writes a line to stderr, another to stdout, then answers.", `"stderr":{"type":"string"},"stdout":{"type":"string"}`, ``), say},
		{"hang", def("hang", "Never answers, whatever happens.", ``, ``), func(context.Context, *call) (string, error) { select {} }},
		{"slow", def("slow", "Works for a time and reports progress. Cancelled, it stops and says nothing; stubborn, it goes on and answers late.",
			`"seconds":{"type":"number"},"every":{"type":"number"},"stubborn":{"type":"boolean"}`, ``), slow},
		{"block", def("block", "Answers when release is called with the same key. Cancelled, it stops and says nothing.", `"key":{"type":"string"}`, ``), block},
		{"release", def("release", "Lets the calls of block with this key answer, those to come included.", `"key":{"type":"string"}`, ``), release},
		{"blocked", def("blocked", "Answers when at least so many calls of block wait with this key.", `"key":{"type":"string"},"count":{"type":"integer"}`, ``), blocked},
		{"cancelled", def("cancelled", "Answers, as a JSON array in text, the requestIds that were cancelled, when there are at least so many.", `"count":{"type":"integer"}`, ``), cancelled},
		{"add_tool", def("add_tool", "Adds a tool that answers its own name, and says that the list has changed.", `"name":{"type":"string"}`, ``), addTool},
		{"remove_tool", def("remove_tool", "Removes a tool, and says that the list has changed.", `"name":{"type":"string"}`, ``), removeTool},
	}
}

func echo(_ context.Context, c *call) (string, error) {
	var a struct{ Message string }
	err := c.decode(&a)
	return text(a.Message), err
}

func frames(_ context.Context, c *call) (string, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var b bytes.Buffer
	for i, l := range c.s.lines {
		b.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
		b.WriteString(quote(l))
	}
	b.WriteByte(']')
	return text(b.String()), nil
}

func answer(_ context.Context, c *call) (string, error) {
	var a struct{ Result string }
	err := c.decode(&a)
	return a.Result, err
}

func write(_ context.Context, c *call) (string, error) {
	var a struct{ Frame string }
	if err := c.decode(&a); err != nil {
		return "", err
	}
	c.write([]byte(strings.ReplaceAll(a.Frame, "{id}", string(c.id))))
	return "", errSilent
}

func rpcError(_ context.Context, c *call) (string, error) {
	a := struct {
		Code    int
		Message string
	}{-32000, "the tool broke down"}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	return "", &wireError{a.Code, a.Message}
}

func fail(_ context.Context, c *call) (string, error) {
	a := struct{ Message string }{"disk full"}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	return `{"content":[{"type":"text","text":` + quote(a.Message) + `}],"isError":true}`, nil
}

func huge(_ context.Context, c *call) (string, error) {
	var a struct{ Bytes int }
	err := c.decode(&a)
	return text(strings.Repeat("x", max(0, a.Bytes))), err
}

func env(_ context.Context, c *call) (string, error) {
	var a struct{ Name string }
	err := c.decode(&a)
	return text(os.Getenv(a.Name)), err
}

func cwd(context.Context, *call) (string, error) {
	dir, err := os.Getwd()
	return text(dir), err
}

func calls(_ context.Context, c *call) (string, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return text(strconv.Itoa(c.s.calls)), nil
}

func exit(_ context.Context, c *call) (string, error) {
	a := struct {
		Status int
		Words  string
	}{7, "told to exit"}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, a.Words)
	os.Exit(a.Status)
	return "", nil
}

func say(_ context.Context, c *call) (string, error) {
	var a struct{ Stderr, Stdout string }
	if err := c.decode(&a); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, a.Stderr)
	c.write([]byte(a.Stdout))
	return text("said"), nil
}

func slow(ctx context.Context, c *call) (string, error) {
	a := struct {
		Seconds, Every float64
		Stubborn       bool
	}{Seconds: 1, Every: 1}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	cancelled := ctx.Done()
	if a.Stubborn {
		cancelled = nil
	}
	end := time.NewTimer(seconds(a.Seconds))
	tick := time.NewTicker(max(time.Millisecond, seconds(a.Every)))
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-end.C:
			return text("done"), nil
		case <-tick.C:
			c.progress(time.Since(start).Seconds(), a.Seconds, "working")
		case <-cancelled:
			return "", errSilent
		}
	}
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// gate returns the channel that release closes for the key.
func (s *server) gateLocked(key string) chan struct{} {
	if s.released[key] == nil {
		s.released[key] = make(chan struct{})
	}
	return s.released[key]
}

func block(ctx context.Context, c *call) (string, error) {
	var a struct{ Key string }
	if err := c.decode(&a); err != nil {
		return "", err
	}
	var gate chan struct{}
	c.s.update(func() {
		gate = c.s.gateLocked(a.Key)
		c.s.blocked[a.Key]++
	})
	defer c.s.update(func() { c.s.blocked[a.Key]-- })
	select {
	case <-gate:
		return text("released"), nil
	case <-ctx.Done():
		return "", errSilent
	}
}

func release(_ context.Context, c *call) (string, error) {
	var a struct{ Key string }
	if err := c.decode(&a); err != nil {
		return "", err
	}
	c.s.update(func() {
		gate := c.s.gateLocked(a.Key)
		select {
		case <-gate:
		default:
			close(gate)
		}
	})
	return text("released"), nil
}

func blocked(ctx context.Context, c *call) (string, error) {
	var a struct {
		Key   string
		Count int
	}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	err := c.s.await(ctx, func() bool { return c.s.blocked[a.Key] >= a.Count })
	return text("blocked"), err
}

func cancelled(ctx context.Context, c *call) (string, error) {
	var a struct{ Count int }
	if err := c.decode(&a); err != nil {
		return "", err
	}
	var ids []string
	err := c.s.await(ctx, func() bool {
		ids = slices.Clone(c.s.cancelled)
		return len(ids) >= a.Count
	})
	return text("[" + strings.Join(ids, ",") + "]"), err
}

func addTool(_ context.Context, c *call) (string, error) {
	a := struct{ Name string }{"added"}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	c.s.update(func() { c.s.tools = append(c.s.tools, namesake(a.Name)) })
	c.changedTools()
	return text("added"), nil
}

func removeTool(_ context.Context, c *call) (string, error) {
	a := struct{ Name string }{"added"}
	if err := c.decode(&a); err != nil {
		return "", err
	}
	c.s.update(func() {
		c.s.tools = slices.DeleteFunc(c.s.tools, func(t *tool) bool { return t.name == a.Name })
	})
	c.changedTools()
	return text("removed"), nil
}

// namesake is a tool that answers its own name.
func namesake(name string) *tool {
	return &tool{name, def(name, "Answers its own name.", ``, readOnly), func(context.Context, *call) (string, error) { return text(name), nil }}
}

// fixed is a tool that always answers the same result. more are further members of its definition.
func fixed(name, description, result, more string) *tool {
	return &tool{name, def(name, description, ``, more), func(context.Context, *call) (string, error) { return result, nil }}
}

// plain is mode OK.
func plain([]string) (*server, error) { return newServer(kit()...), nil }

func idLast([]string) (*server, error) {
	s := newServer(kit()...)
	s.idLast = true
	return s, nil
}
