package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// A server speaks MCP by hand. With nothing but tools it keeps all rules; the
// hooks are how a mode breaks one.
type server struct {
	capabilities string // JSON; "" is tools with listChanged
	idLast       bool   // write an answer's id behind its result
	stay         bool   // outlive the end of stdin

	// first sees each message before anybody else, and returns true when it has dealt with it.
	first func(w *wire, m *message) bool
	// frame changes each frame on its way out; what it returns goes out in one piece.
	frame func(frame []byte) []byte

	mu        sync.Mutex
	tools     []*tool
	lines     []string                      // every line read
	calls     int                           // tools/call seen
	cancelled []string                      // the requestIds of notifications/cancelled, as JSON
	running   map[string]context.CancelFunc // :: request id -> ends its call
	changed   chan struct{}                 // closed and replaced whenever the fields of this group change
	released  map[string]chan struct{}      // :: key -> closed by the tool release
	blocked   map[string]int                // :: key -> calls of block that wait
	listener  *wire                         // where notifications go that belong to no call; nil is to whoever causes them
	listen    json.RawMessage               // the id of subscriptions/listen, on a modern server
}

// A wire is where a server's frames go: stdout, or the answer to one HTTP request.
type wire struct {
	s    *server
	done chan struct{} // closed when no more frames come; nil on stdout

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// A message is a request or a notification. Its members are the exact bytes that came.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// A tool answers a call with the JSON of its result.
type tool struct {
	name string
	def  string // its JSON in tools/list
	run  func(ctx context.Context, c *call) (result string, err error)
}

// A call is one tools/call.
type call struct {
	*wire
	id     json.RawMessage
	params json.RawMessage
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"arguments"`
	Meta   struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

// errSilent is how a tool gives no answer.
var errSilent = errors.New("no answer")

// A wireError is a JSON-RPC error.
type wireError struct {
	code int
	msg  string
}

func (e *wireError) Error() string { return e.msg }

func newServer(tools ...*tool) *server {
	return &server{
		tools: tools, running: map[string]context.CancelFunc{}, changed: make(chan struct{}),
		released: map[string]chan struct{}{}, blocked: map[string]int{},
	}
}

// serveStdio reads lines until stdin ends. Calls run side by side; all else is answered in order.
func (s *server) serveStdio() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &wire{s: s, w: os.Stdout}
	r := bufio.NewReader(os.Stdin)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			w.handle(ctx, line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if s.stay {
		fmt.Println("the end of stdin is ignored")
		forever()
	}
	return nil
}

// handle answers one message on w.
func (w *wire) handle(ctx context.Context, line []byte) {
	s := w.s
	s.update(func() { s.lines = append(s.lines, string(line)) })
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		w.refuse(json.RawMessage("null"), -32700, err.Error())
		w.end()
		return
	}
	switch {
	case s.first != nil && s.first(w, m):
	case m.Method == "tools/call":
		w.call(ctx, m) // ends w when it is over
		return
	case m.Method == "initialize":
		w.answer(m.ID, s.initialize(m.Params))
	case m.Method == "ping":
		w.answer(m.ID, `{}`)
	case m.Method == "tools/list":
		w.answer(m.ID, s.listTools())
	case m.Method == "notifications/cancelled":
		s.cancel(m.Params)
	case m.ID != nil && m.Method != "":
		w.refuse(m.ID, -32601, fmt.Sprintf("method %q not found", m.Method))
	}
	w.end()
}

func (s *server) initialize(params json.RawMessage) string {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	version := "2025-11-25"
	if json.Unmarshal(params, &p) == nil && slices.Contains([]string{"2025-06-18", "2025-03-26", "2024-11-05"}, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s,"instructions":%q}`, version, s.caps(), info, instructions)
}

const (
	info         = `{"name":"mcptest","version":"1.2.3"}`
	instructions = "A server for tests. Call echo to see that it lives."
)

func (s *server) caps() string {
	if s.capabilities != "" {
		return s.capabilities
	}
	return `{"tools":{"listChanged":true}}`
}

func (s *server) listTools() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return `{"tools":` + listOf(s.tools) + `}`
}

// listOf returns the tools as a JSON array.
func listOf(tools []*tool) string {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.def)
	}
	b.WriteByte(']')
	return b.String()
}

func (w *wire) call(ctx context.Context, m *message) {
	c := &call{wire: w, id: m.ID, params: m.Params}
	if err := json.Unmarshal(m.Params, c); err != nil {
		w.refuse(m.ID, -32602, err.Error())
		w.end()
		return
	}
	s := w.s
	t := s.tool(c.Name)
	if t == nil {
		w.refuse(m.ID, -32602, fmt.Sprintf("unknown tool %q", c.Name))
		w.end()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.update(func() {
		s.calls++
		s.running[string(c.id)] = cancel
	})
	// Ends with the process at the latest.
	go func() {
		defer w.end()
		defer cancel()
		result, err := t.run(ctx, c)
		s.update(func() { delete(s.running, string(c.id)) })
		if err == nil {
			w.answer(c.id, result)
		} else if e, ok := errors.AsType[*wireError](err); ok {
			w.refuse(c.id, e.code, e.msg)
		} else if !errors.Is(err, errSilent) && ctx.Err() == nil {
			w.refuse(c.id, -32603, err.Error())
		}
	}()
}

func (s *server) tool(name string) *tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.update(func() {
		s.cancelled = append(s.cancelled, string(p.ID))
		if end := s.running[string(p.ID)]; end != nil {
			end()
		}
	})
}

// update runs f under the lock and wakes those who wait.
func (s *server) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns when ok, which is asked under the lock, returns true.
func (s *server) await(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answer writes a result.
func (w *wire) answer(id json.RawMessage, result string) { w.respond(id, `"result":`+result) }

// refuse writes an error.
func (w *wire) refuse(id json.RawMessage, code int, msg string) {
	w.respond(id, fmt.Sprintf(`"error":{"code":%d,"message":%s}`, code, quote(msg)))
}

func (w *wire) respond(id json.RawMessage, member string) {
	if w.s.idLast {
		w.write([]byte(`{"jsonrpc":"2.0",` + member + `,"id":` + string(id) + `}`))
		return
	}
	w.write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,` + member + `}`))
}

// notify writes a notification.
func (w *wire) notify(method, params string) {
	w.write([]byte(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`))
}

// write writes one frame and its newline.
func (w *wire) write(frame []byte) {
	if w.s.frame != nil {
		frame = w.s.frame(frame)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A client that has gone away is noticed by the end of what it sends.
	_, _ = w.w.Write(append(frame, '\n'))
}

// end says that no more frames come.
func (w *wire) end() {
	if w.done != nil {
		close(w.done)
	}
}

// changedTools says that the list of tools has changed, where and how the era wants it.
func (c *call) changedTools() {
	c.s.mu.Lock()
	listen, w := c.s.listen, c.s.listener
	c.s.mu.Unlock()
	if w == nil {
		w = c.wire
	}
	params := `{}`
	if listen != nil {
		params = `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(listen) + `}}`
	}
	w.notify("notifications/tools/list_changed", params)
}

// progress reports on the call, if its client asked for that.
func (c *call) progress(done, total float64, msg string) {
	if c.Meta.Token == nil {
		return
	}
	c.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%g,"total":%g,"message":%s}`, c.Meta.Token, done, total, quote(msg)))
}

// decode reads the arguments into v, which may hold defaults.
func (c *call) decode(v any) error {
	if c.Args == nil {
		return nil
	}
	if err := json.Unmarshal(c.Args, v); err != nil {
		return &wireError{-32602, err.Error()}
	}
	return nil
}

// text is a result of one text block.
func text(s string) string { return `{"content":[{"type":"text","text":` + quote(s) + `}]}` }

// quote returns s as a JSON string that decodes to the very same characters.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // no string fails to encode
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
