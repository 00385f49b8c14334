package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A Handle is a server that runs in the bridge itself, under a handle of its own: its tools are
// listed, documented and called like any other, but know who calls them. See [Builtin] for one.
type Handle struct {
	Name         string // the handle
	Title        string
	Description  string
	Instructions string // for models
	Tools        []Tool
	Transient    bool // results are not kept as artifacts
}

// A Tool is one tool of a [Handle].
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`            // the schema of its arguments
	Output      json.RawMessage `json:"outputSchema,omitempty"` // the schema of its structured content; nil is none
	Annotations Annotations     `json:"annotations"`
	Run         Func            `json:"-"`
}

// Annotations are the hints of MCP about a tool.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// A Func runs a tool. The request's Args fit the tool's schema; Func may read them with [encoding/json], which fills in no
// defaults. It returns soon after ctx has ended. What the tool cannot do is a result, see [Failure]; an error is a failure of the bridge.
type Func func(ctx context.Context, r bridge.Request) (*bridge.Result, error)

// Options set up a [Host]. Compiler and Next must be set.
type Options struct {
	Handles  []Handle
	Compiler bridge.Compiler
	Next     bridge.Clients // hands out the clients of all other targets
	// Timeout is the time without progress after which a call is given up, MaxTimeout the time in all; zero is no bound.
	Timeout, MaxTimeout time.Duration
}

// A Host runs handles. Nothing of theirs is ever down or needs a slot.
type Host struct {
	servers []*bridge.Server
	clients map[bridge.EndpointID]client
	next    bridge.Clients
}

var _ bridge.Clients = (*Host)(nil)

// NewHost returns a host of these handles. The error says which tool cannot be offered, and why.
func NewHost(o Options) (*Host, error) {
	h := &Host{clients: make(map[bridge.EndpointID]client, len(o.Handles)), next: o.Next}
	for _, l := range o.Handles {
		target := &bridge.Target{
			Handle: l.Name, Endpoint: bridge.EndpointID{Sum: sha256.Sum256([]byte("local:" + l.Name)), Label: "local:" + l.Name},
			Timeout: o.Timeout, MaxTimeout: o.MaxTimeout, Transient: l.Transient,
		}
		now := time.Now()
		s := &bridge.Server{
			Handle: l.Name, Title: l.Title, Description: l.Description, Endpoint: target.Endpoint,
			State: bridge.Ready, Since: now, Listed: now, Name: l.Name, Instructions: l.Instructions,
		}
		c := client{}
		tools := make([]*bridge.Tool, 0, len(l.Tools))
		for _, t := range l.Tools {
			tool, err := t.compile(target, o.Compiler)
			if err != nil {
				return nil, fmt.Errorf("the tool %s/%s cannot be offered: %w", l.Name, t.Name, err)
			}
			tools = append(tools, tool)
			c[t.Name] = t.Run
		}
		s.SetTools(tools)
		h.servers = append(h.servers, s)
		h.clients[target.Endpoint] = c
	}
	return h, nil
}

// compile makes the tool what a catalogue has.
func (t *Tool) compile(target *bridge.Target, compiler bridge.Compiler) (*bridge.Tool, error) {
	entry, err := encode(t)
	if err != nil {
		return nil, err
	}
	hints := t.Annotations
	tool := &bridge.Tool{
		Handle: target.Handle, Name: t.Name, Title: t.Title, Description: t.Description,
		Annotations: bridge.Annotations{ReadOnly: &hints.ReadOnly, Destructive: &hints.Destructive, Idempotent: &hints.Idempotent, OpenWorld: &hints.OpenWorld},
		Raw:         entry, Input: raw.Get(entry, "inputSchema"), Output: raw.Get(entry, "outputSchema"), Target: target,
	}
	tool.SchemaHash = bridge.HashSchemas(tool.Input, tool.Output)
	if err := compiler.Compile(tool); err != nil {
		return nil, err
	}
	if tool.Unchecked != "" {
		return nil, errors.New(tool.Unchecked)
	}
	return tool, nil
}

// Servers returns the entries of the catalogue.
func (h *Host) Servers() []*bridge.Server { return h.servers }

// Client implements [bridge.Clients].
func (h *Host) Client(ctx context.Context, t *bridge.Target) (bridge.Client, func(), error) {
	if c, ok := h.clients[t.Endpoint]; ok {
		return c, func() {}, nil
	}
	return h.next.Client(ctx, t)
}

// A client runs the tools of one handle.
type client map[string]Func // by name

// Connected implements [bridge.Client].
func (client) Connected() bool { return true }

var errTimeUp = errors.New("the time for the call is up")

// Call implements [bridge.Client].
func (c client) Call(ctx context.Context, r bridge.Request, letGo func()) (*bridge.Result, error) {
	defer letGo()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	timeUp := func() { end(errTimeUp) }
	if r.Total > 0 {
		defer time.AfterFunc(r.Total, timeUp).Stop()
	}
	if r.Idle > 0 {
		idle, report := time.AfterFunc(r.Idle, timeUp), r.Progress
		defer idle.Stop()
		r.Progress = func(params json.RawMessage) {
			idle.Reset(r.Idle)
			if report != nil {
				report(params)
			}
		}
	}
	res, err := c[r.Tool.Name](ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), errTimeUp) {
		return nil, &bridge.Error{Kind: bridge.DeadlineExceeded, Op: "local.Call", Msg: fmt.Sprintf("The tool %s/%s did not end in time.", r.Tool.Handle, r.Tool.Name), Err: err}
	}
	return res, err
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content    []block `json:"content"`
	Structured any     `json:"structuredContent,omitempty"`
	IsError    bool    `json:"isError,omitempty"`
}

// Answer returns a result with structured content, which becomes JSON, and blocks of text.
func Answer(structured any, texts ...string) (*bridge.Result, error) {
	r := result{Content: []block{}, Structured: structured}
	for _, t := range texts {
		r.Content = append(r.Content, block{"text", t})
	}
	return r.parse()
}

// Failure returns the result of a tool that could not do its work; text says why, and what to do.
func Failure(text string) (*bridge.Result, error) {
	return result{Content: []block{{"text", text}}, IsError: true}.parse()
}

func (r result) parse() (*bridge.Result, error) {
	b, err := encode(r)
	if err != nil {
		return nil, err
	}
	return bridge.ParseResult(b)
}

// encode returns v as JSON on one line, with its texts as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
