package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
)

// sdkServer is a server made with the SDK; told gets the names of cancelled tools.
func sdkServer(told chan string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	schema := &jsonschema.Schema{Type: "object"}
	add := func(name string, in *jsonschema.Schema, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: in}, h)
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	echo := func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	}
	add("echo", schema, echo)
	add("tööl", schema, echo)
	add("region", &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"region": {Type: "string", Extra: map[string]any{"x-mcp-header": "Region"}},
	}}, echo)
	add("progress", schema, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			// It fails where answers are JSON, for want of a stream.
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return text("done"), nil
	})
	add("hang", schema, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		told <- "started"
		<-ctx.Done()
		told <- "cancelled"
		return nil, ctx.Err()
	})
	add("grow", schema, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add("grown", schema, echo)
		return text("grown"), nil
	})
	return s
}

func tool(name, args string) *rpc.Request {
	n, _ := json.Marshal(name) // a string: it cannot fail
	return &rpc.Request{
		Method: "tools/call", Name: name, Params: []byte(`"name":` + string(n) + `,"arguments":`), Args: []byte(args),
		Total: 20 * time.Second,
	}
}

// TestSDKServers: everything a connection does, with the SDK's own servers of every kind.
func TestSDKServers(t *testing.T) {
	for _, test := range []struct {
		name     string
		options  *mcp.StreamableHTTPOptions // nil is HTTP+SSE
		protocol string
		want     string // the version
	}{
		{"stateless", &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, Auto, v20260728},
		{"stateless, JSON", &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true}, v20260728, v20260728},
		{"sessions", &mcp.StreamableHTTPOptions{}, Auto, v20251125},
		{"sessions, JSON", &mcp.StreamableHTTPOptions{JSONResponse: true}, v20250618, v20250618},
		{"sessions that can be resumed", &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}, v20250326, v20250326},
		{"SSE", nil, SSE, v20251125},
		{"SSE, found out", nil, Auto, v20251125},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			told := make(chan string, 8)
			server := sdkServer(told)
			get := func(*http.Request) *mcp.Server { return server }
			var h http.Handler
			if test.options == nil {
				h = mcp.NewSSEHandler(get, nil)
			} else {
				h = mcp.NewStreamableHTTPHandler(get, test.options)
			}
			hs := httptest.NewServer(h)
			t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
			o, lists := listening(Options{URL: hs.URL, Protocol: test.protocol, Options: rpc.Options{CancelGrace: 200 * time.Millisecond}})
			c := dial(t, o)
			if p := c.Peer(); p.Protocol != test.want || p.Name != "sdk" || !p.Capabilities.Tools {
				t.Fatalf("Peer = %+v, want %s", p, test.want)
			}
			do := func(r *rpc.Request) string {
				t.Helper()
				b, err := c.Do(t.Context(), r)
				if err != nil {
					t.Errorf("Do: %v", err)
				}
				return string(b)
			}
			if got := do(&rpc.Request{Method: "tools/list"}); !strings.Contains(got, `"name":"echo"`) {
				t.Errorf("tools/list = %s", got)
			}
			for _, name := range []string{"echo", "tööl"} {
				if got := do(tool(name, `{"z":9007199254740993, "y":1.10}`)); !strings.Contains(got, "9007199254740993") || !strings.Contains(got, `1.10`) {
					t.Errorf("%s = %s", name, got)
				}
			}
			r := tool("region", `{"region":"wörld"}`)
			r.Input = []byte(`{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
			if got := do(r); !strings.Contains(got, "wörld") {
				t.Errorf("region = %s", got)
			}
			if _, err := c.Do(t.Context(), tool("unheard of", `{}`)); err == nil {
				t.Error("an unknown tool was called")
			} else if _, ok := errors.AsType[*rpc.Error](err); !ok {
				t.Errorf("an unknown tool: %v", err)
			}
			r = tool("progress", `{}`)
			var got []string
			r.Progress = func(p jsonRaw) { got = append(got, string(p)) }
			do(r)
			// With JSON answers there is no stream for it.
			if want := 3; (test.options == nil || !test.options.JSONResponse) && len(got) != want {
				t.Errorf("%d notifications of progress came: %s", len(got), got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-told; cancel() }()
			let := make(chan struct{})
			r = tool("hang", `{}`)
			r.LetGo = func() { close(let) }
			if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			if got := <-told; got != "cancelled" {
				t.Errorf("the tool was told %q", got)
			}
			<-let
			do(tool("grow", `{}`))
			select {
			case got := <-lists:
				if got != "tools" {
					t.Errorf("%s changed", got)
				}
			case <-time.After(5 * time.Second):
				t.Error("nobody told that the tools have changed")
			}
			if got := do(tool("grown", `{}`)); !strings.Contains(got, "{}") {
				t.Errorf("grown = %s", got)
			}
		})
	}
}

// TestSDKSessionExpires: the server forgets its sessions, as after a restart.
func TestSDKSessionExpires(t *testing.T) {
	leakFree(t)
	server := sdkServer(nil)
	fresh := func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{})
	}
	var h atomic.Value // a stream that breaks is opened again while the handler changes
	h.Store(fresh())
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Load().(http.Handler).ServeHTTP(w, r) }))
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	c := dial(t, Options{URL: hs.URL})
	if _, err := c.Do(t.Context(), tool("echo", `{}`)); err != nil {
		t.Fatal(err)
	}
	hs.CloseClientConnections()
	h.Store(fresh())
	_, err := c.Do(t.Context(), tool("echo", `{}`))
	if f, ok := asFailure(err); ok && f.Reason == rpc.Lost { // it was on a connection that has just been closed
		_, err = c.Do(t.Context(), tool("echo", `{}`))
	}
	failed(t, err, rpc.SessionExpired)
	<-c.Done()
	failed(t, c.Err(), rpc.SessionExpired)
}

// everything starts the reference server of MCP and returns its base URL.
func everything(t *testing.T, transport string) string {
	t.Helper()
	script, err := filepath.Abs(filepath.FromSlash("../../../testdata/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("server-everything is not there, run make deps: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	cmd := exec.Command("node", script, transport)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", addr.Port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("node is needed, run make deps: %v", err)
	}
	up := make(chan bool, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if text := lines.Text(); strings.Contains(text, "listening on port") || strings.Contains(text, "running on port") {
				up <- true
			}
		}
		select {
		case up <- false:
		default:
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
		<-drained
		_ = cmd.Wait() // killed
	})
	select {
	case ok := <-up:
		if !ok {
			t.Fatal("server-everything ended")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("server-everything does not listen")
	}
	return fmt.Sprintf("http://127.0.0.1:%d", addr.Port)
}

func TestEverything(t *testing.T) {
	for _, test := range []struct{ name, transport, path, protocol string }{
		{"streamable HTTP", "streamableHttp", "/mcp", Auto},
		{"SSE", "sse", "/sse", SSE},
		{"SSE, found out", "sse", "/sse", Auto},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakFree(t)
			url := everything(t, test.transport)
			c := dial(t, Options{URL: url + test.path, Protocol: test.protocol, Options: rpc.Options{CancelGrace: 500 * time.Millisecond}})
			if p := c.Peer(); p.Protocol != v20251125 || !p.Capabilities.Tools || !p.Capabilities.Prompts || p.Name == "" {
				t.Errorf("Peer = %+v", p)
			}
			do := func(r *rpc.Request) string {
				t.Helper()
				b, err := c.Do(t.Context(), r)
				if err != nil {
					t.Errorf("Do: %v", err)
				}
				return string(b)
			}
			if got := do(&rpc.Request{Method: "tools/list"}); !strings.Contains(got, `"get-structured-content"`) {
				t.Errorf("tools/list = %.300s", got)
			}
			if got := do(tool("echo", `{"message":"hi <&> \u00e9"}`)); !strings.Contains(got, "hi <&> é") {
				t.Errorf("echo = %s", got)
			}
			if got := do(tool("get-tiny-image", `{}`)); !strings.Contains(got, `"image/png"`) {
				t.Errorf("get-tiny-image = %.300s", got)
			}
			if got := do(tool("get-structured-content", `{"location":"Chicago"}`)); !strings.Contains(got, `"structuredContent":{`) {
				t.Errorf("get-structured-content = %s", got)
			}
			r := tool("trigger-long-running-operation", `{"duration":0.5,"steps":5}`)
			n := 0
			r.Progress = func(jsonRaw) { n++ }
			if got := do(r); !strings.Contains(got, "completed") || n != 5 {
				t.Errorf("trigger-long-running-operation = %s, with %d notifications of progress", got, n)
			}
			r = tool("trigger-long-running-operation", `{"duration":60,"steps":300}`)
			ctx, cancel := context.WithCancel(t.Context())
			var once bool
			r.Progress = func(jsonRaw) {
				if !once {
					once = true
					cancel()
				}
			}
			r.Total = 2 * time.Second // and with it the end of the grace: it goes on reporting progress
			let := make(chan struct{})
			r.LetGo = func() { close(let) }
			began := time.Now()
			if _, err := c.Do(ctx, r); !errors.Is(err, context.Canceled) {
				t.Errorf("Do ended with %v", err)
			}
			<-let
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("let go after %s", d)
			}
			if got := do(&rpc.Request{Method: "ping"}); got != "{}" {
				t.Errorf("ping = %s", got)
			}
		})
	}
}

// TestEverythingForgetsUs: the real server says so with a 400.
func TestEverythingForgetsUs(t *testing.T) {
	leakFree(t)
	url := everything(t, "streamableHttp")
	c := dial(t, Options{URL: url + "/mcp"})
	e := *c.era.Load()
	e.session = "somebody else's"
	c.era.Store(&e)
	_, err := c.Do(t.Context(), tool("echo", `{"message":"hi"}`))
	failed(t, err, rpc.SessionExpired)
	<-c.Done()
}
