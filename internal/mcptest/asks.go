package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AskState is what the tool ask gives its caller to return: a text in which nothing may change.
const AskState = "ask:\u00e9\u2028</b>&\"\\ \U0001f600="

// asks is the SDK's server over stdio with tools that take long, and that ask.
func asks(args []string) error {
	s := newAsker().server()
	if slices.Contains(args, "modern") {
		s.AddReceivingMiddleware(refuseInitialize)
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// refuseInitialize makes the server one of 2026-07-28 alone.
func refuseInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "initialize" {
			return nil, &jsonrpc.Error{Code: -32601, Message: "initialize is not supported"}
		}
		return next(ctx, method, req)
	}
}

// httpAsks is the same over Streamable HTTP.
func httpAsks(args []string) (http.Handler, error) {
	s, stateless := newAsker().server(), slices.Contains(args, "stateless")
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	if !stateless {
		return h, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
	}), nil
}

// requestKey has the context of the HTTP request as its value: closing the stream cancels
// a call without a session, and the SDK does not tell the tool of it.
type requestKey struct{}

// An asker is the state of a server that asks.
type asker struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with each change, guarded by mu
	hung     hung          // guarded by mu
	released bool          // by release, guarded by mu
}

// hung counts the calls of hang.
type hung struct{ running, ended int }

func newAsker() *asker { return &asker{changed: make(chan struct{})} }

func (a *asker) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcptest-asks", Version: "1.2.3"}, &mcp.ServerOptions{
		Capabilities:      &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}, //nolint:staticcheck // deprecated, and still spoken
		CompletionHandler: completeAsking,
	})
	offer(s)
	add := func(name, description, properties string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}, h)
	}
	add("ask", "Asks for a name, and greets it.", `"who":{"type":"string"}`, ask)
	add("ask_both", "Asks for a name and a colour together.", ``, askBoth)
	add("ask_again", "Asks for a name, then for an age.", ``, askAgain)
	add("ask_page", "Asks to visit a page.", ``, askPage)
	add("ask_model", "Asks for what a model says.", ``, askModel)
	add("busy", "Puts the call off some times before it answers.", `"times":{"type":"integer"}`, busy)
	add("work", "Works in steps, and reports and logs each.", `"steps":{"type":"integer"},"seconds":{"type":"number"},"wait":{"type":"boolean","description":"for release before the end"}`, a.work)
	add("release", "Lets all calls of work go on.", ``, a.release)
	add("hang", "Never answers, but ends when it is cancelled.", ``, a.hang)
	add("hung", "Waits until so many calls of hang have ended or run, and says how many did.", `"ended":{"type":"integer"},"running":{"type":"integer"}`, a.counts)
	return s
}

func said(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

var nameSchema = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","title":"Name","minLength":2}},"required":["name"]}`)

func wants(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// reply returns what was replied to a question: the value of the content's member, or the action if that is not accept.
func reply(r *mcp.CallToolRequest, id, member string) (value any, accepted bool) {
	e, ok := r.Params.InputResponses[id].(*mcp.ElicitResult)
	switch {
	case !ok:
		return "missing", false
	case e.Action != "accept":
		return e.Action, false
	default:
		return e.Content[member], true
	}
}

// checkState refuses a call that goes on with another state than it was given.
func checkState(r *mcp.CallToolRequest, want string) error {
	if got := r.Params.RequestState; got != want {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the state is %q, not %q", got, want)}
	}
	return nil
}

func ask(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Who string }
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	if r.Params.InputResponses == nil {
		return wants(AskState, mcp.InputRequestMap{"name": &mcp.ElicitParams{Mode: "form", Message: "Who are you, " + args.Who + "?", RequestedSchema: nameSchema}}), nil
	}
	if err := checkState(r, AskState); err != nil {
		return nil, err
	}
	name, ok := reply(r, "name", "name")
	if !ok {
		return said("no name: %v", name), nil
	}
	return said("hello %v", name), nil
}

func askBoth(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r.Params.InputResponses == nil {
		return wants("", mcp.InputRequestMap{
			"name": &mcp.ElicitParams{Mode: "form", Message: "Who are you?", RequestedSchema: nameSchema},
			"a/b~": &mcp.ElicitParams{Mode: "form", Message: "Which colour?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"]}`)},
		}), nil
	}
	name, _ := reply(r, "name", "name")
	colour, _ := reply(r, "a/b~", "colour")
	return said("%v is %v", name, colour), nil
}

func askAgain(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r.Params.InputResponses == nil {
		return wants("1", mcp.InputRequestMap{"name": &mcp.ElicitParams{Mode: "form", Message: "Who are you?", RequestedSchema: nameSchema}}), nil
	}
	if r.Params.RequestState == "1" {
		name, ok := reply(r, "name", "name")
		if !ok {
			return said("no name: %v", name), nil
		}
		return wants(fmt.Sprintf("2%v", name), mcp.InputRequestMap{"age": &mcp.ElicitParams{
			Mode: "form", Message: fmt.Sprintf("How old are you, %v?", name),
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"age":{"type":"integer","minimum":0}},"required":["age"]}`),
		}}), nil
	}
	name, ok := strings.CutPrefix(r.Params.RequestState, "2")
	if !ok {
		return nil, checkState(r, "2…")
	}
	age, _ := reply(r, "age", "age")
	return said("%s is %v", name, age), nil
}

func askPage(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r.Params.InputResponses == nil {
		return wants("", mcp.InputRequestMap{"page": &mcp.ElicitParams{Mode: "url", Message: "Sign in.", URL: "https://example.com/sign-in", ElicitationID: "1"}}), nil
	}
	_, ok := reply(r, "page", "")
	return said("visited: %v", ok), nil
}

func askModel(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return wants("", mcp.InputRequestMap{"model": &mcp.CreateMessageParams{MaxTokens: 1}}), nil //nolint:staticcheck // deprecated, and still spoken
}

func busy(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := struct{ Times int }{3}
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	if n := len(r.Params.RequestState); n < args.Times {
		return wants(r.Params.RequestState+"x", mcp.InputRequestMap{}), nil
	}
	return said("at last"), nil
}

func (a *asker) work(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := struct {
		Steps   int
		Seconds float64
		Wait    bool
	}{5, 1, false}
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	for i := range args.Steps {
		select {
		case <-time.After(seconds(args.Seconds) / time.Duration(args.Steps)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if token := r.Params.GetProgressToken(); token != nil {
			p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: float64(args.Steps), Message: fmt.Sprintf("step %d", i+1)}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: fmt.Sprintf("did step %d", i+1)}); err != nil { //nolint:staticcheck // deprecated, and still spoken
			return nil, err
		}
	}
	if err := a.await(ctx, func() bool { return a.released || !args.Wait }); err != nil {
		return nil, err
	}
	return said("%d steps done", args.Steps), nil
}

func (a *asker) release(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a.update(func() { a.released = true })
	return said("released"), nil
}

// await returns when ok, which is asked under the lock, returns true.
func (a *asker) await(ctx context.Context, ok func() bool) error {
	for {
		a.mu.Lock()
		done, changed := ok(), a.changed
		a.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// update changes the state and wakes those who wait.
func (a *asker) update(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *asker) hang(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a.update(func() { a.hung.running++ })
	request, ok := ctx.Value(requestKey{}).(context.Context)
	if !ok {
		request = ctx
	}
	select {
	case <-ctx.Done():
	case <-request.Done():
	}
	a.update(func() { a.hung.running--; a.hung.ended++ })
	return nil, context.Canceled
}

func (a *asker) counts(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Ended, Running int }
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	var now hung
	err := a.await(ctx, func() bool {
		now = a.hung
		return now.ended >= args.Ended && now.running >= args.Running
	})
	if err != nil {
		return nil, err
	}
	return said("%d ended, %d running", now.ended, now.running), nil
}
