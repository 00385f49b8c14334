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

// A server speaks MCP by hand. Its zero value, with tools, keeps all rules; the
// hooks are how a mode breaks one.
type server struct {
	name         string
	capabilities string // JSON; "" is tools with listChanged
	idLast       bool   // write an answer's id behind its result

	// first sees each message before anybody else, and returns true when it has dealt with it.
	first func(s *server, m *message) bool
	// frame changes each frame on its way out; it holds all that goes out between two others.
	frame func(frame []byte) []byte

	wmu sync.Mutex
	w   io.Writer // guarded by wmu

	mu        sync.Mutex
	tools     []*tool
	lines     []string                      // every line read
	calls     int                           // tools/call seen
	cancelled []string                      // the requestIds of notifications/cancelled, as JSON
	running   map[string]context.CancelFunc // :: request id -> ends its call
	changed   chan struct{}                 // closed and replaced whenever the fields above change
	released  map[string]chan struct{}      // :: key -> closed by the tool release
	blocked   map[string]int                // :: key -> calls of block that wait
	listen    json.RawMessage               // the id of subscriptions/listen, on a modern server
}

// A message is a request or a notification. Spans are the exact bytes that came.
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
	s      *server
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
		name: "mcptest", w: os.Stdout, tools: tools,
		running: map[string]context.CancelFunc{}, changed: make(chan struct{}),
		released: map[string]chan struct{}{}, blocked: map[string]int{},
	}
}

// serve reads lines until in ends. Calls run side by side; all else is answered in order.
func (s *server) serve(in io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.handle(ctx, line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) handle(ctx context.Context, line []byte) {
	s.update(func() { s.lines = append(s.lines, string(line)) })
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		s.refuse(json.RawMessage("null"), -32700, err.Error())
		return
	}
	if s.first != nil && s.first(s, m) {
		return
	}
	switch m.Method {
	case "initialize":
		s.answer(m.ID, s.initialize(m.Params))
	case "ping":
		s.answer(m.ID, `{}`)
	case "tools/list":
		s.answer(m.ID, s.listTools())
	case "tools/call":
		s.call(ctx, m)
	case "notifications/cancelled":
		s.cancel(m.Params)
	default:
		if m.ID != nil && m.Method != "" {
			s.refuse(m.ID, -32601, fmt.Sprintf("method %q not found", m.Method))
		}
	}
}

func (s *server) initialize(params json.RawMessage) string {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	version := "2025-11-25"
	if json.Unmarshal(params, &p) == nil && slices.Contains([]string{"2025-06-18", "2025-03-26", "2024-11-05"}, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s,"instructions":%q}`,
		version, s.caps(), s.info(), instructions)
}

const instructions = "A server for tests. Call echo to see that it lives."

func (s *server) caps() string {
	if s.capabilities != "" {
		return s.capabilities
	}
	return `{"tools":{"listChanged":true}}`
}

func (s *server) info() string { return fmt.Sprintf(`{"name":%q,"version":"1.2.3"}`, s.name) }

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

func (s *server) call(ctx context.Context, m *message) {
	c := &call{s: s, id: m.ID, params: m.Params}
	if err := json.Unmarshal(m.Params, c); err != nil {
		s.refuse(m.ID, -32602, err.Error())
		return
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.tools, func(t *tool) bool { return t.name == c.Name })
	var t *tool
	if i >= 0 {
		t = s.tools[i]
	}
	s.mu.Unlock()
	if t == nil {
		s.refuse(m.ID, -32602, fmt.Sprintf("unknown tool %q", c.Name))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.update(func() {
		s.calls++
		s.running[string(c.id)] = cancel
	})
	// Ends with the process at the latest.
	go func() {
		result, err := t.run(ctx, c)
		s.update(func() { delete(s.running, string(c.id)) })
		defer cancel()
		if err == nil {
			s.answer(c.id, result)
		} else if e, ok := errors.AsType[*wireError](err); ok {
			s.refuse(c.id, e.code, e.msg)
		} else if !errors.Is(err, errSilent) && ctx.Err() == nil {
			s.refuse(c.id, -32603, err.Error())
		}
	}()
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
func (s *server) answer(id json.RawMessage, result string) {
	if s.idLast {
		s.write([]byte(`{"jsonrpc":"2.0","result":` + result + `,"id":` + string(id) + `}`))
		return
	}
	s.write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`))
}

// refuse writes an error.
func (s *server) refuse(id json.RawMessage, code int, msg string) {
	e := fmt.Sprintf(`"error":{"code":%d,"message":%s}`, code, quote(msg))
	if s.idLast {
		s.write([]byte(`{"jsonrpc":"2.0",` + e + `,"id":` + string(id) + `}`))
		return
	}
	s.write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,` + e + `}`))
}

// notify writes a notification.
func (s *server) notify(method, params string) {
	s.write([]byte(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`))
}

// write writes one frame and its newline.
func (s *server) write(frame []byte) {
	if s.frame != nil {
		frame = s.frame(frame)
	}
	s.wmu.Lock()
	defer s.wmu.Unlock()
	// A client that has gone away is noticed by the end of stdin.
	_, _ = s.w.Write(append(frame, '\n'))
}

// changedTools says that the list of tools has changed, as the era wants it.
func (s *server) changedTools() {
	s.mu.Lock()
	listen := s.listen
	s.mu.Unlock()
	params := `{}`
	if listen != nil {
		params = `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(listen) + `}}`
	}
	s.notify("notifications/tools/list_changed", params)
}

// progress reports on the call, if its client asked for that.
func (c *call) progress(done, total float64, msg string) {
	if c.Meta.Token == nil {
		return
	}
	c.s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%g,"total":%g,"message":%s}`, c.Meta.Token, done, total, quote(msg)))
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
