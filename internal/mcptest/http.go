package mcptest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	envAddr  = "MCPTEST_ADDR"  // where to listen; empty is any port of the loopback
	envStdin = "MCPTEST_STDIN" // set: end when stdin does
)

// An HTTPServer is a server process that [Start] started.
type HTTPServer struct {
	URL  string // where MCP is served
	Addr string // host and port
	Pid  int

	stop func()
}

// Stop kills the process and waits for its end. It may be called twice.
func (s *HTTPServer) Stop() { s.stop() }

// Start runs a mode that listens for HTTP as a process, until the test ends, and returns once it listens.
func Start(t testing.TB, mode string, args ...string) *HTTPServer {
	t.Helper()
	return StartAt(t, "", mode, args...)
}

// StartAt is Start on an address, such as that of a server that was stopped.
func StartAt(t testing.TB, addr, mode string, args ...string) *HTTPServer {
	t.Helper()
	command, argv, env := Command(t, mode, args...)
	cmd := exec.Command(command, argv...)
	cmd.Env = Env(append(env, envAddr+"="+addr, envStdin+"=1")...)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe() // it ends when this process does, and the server with it
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	s := &HTTPServer{Pid: cmd.Process.Pid, stop: sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		stdin.Close()
	})}
	t.Cleanup(s.Stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.Stop()
		t.Fatalf("mcptest: the server %s does not start: %v", mode, err)
	}
	s.URL = strings.TrimSpace(line)
	_, rest, _ := strings.Cut(s.URL, "//")
	s.Addr, _, _ = strings.Cut(rest, "/")
	return s
}

// listening makes a mode's program of a handler: it prints the URL and serves.
func listening(path string, handler func(args []string) (http.Handler, error)) func(args []string) error {
	return func(args []string) error {
		h, err := handler(args)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", cmp.Or(os.Getenv(envAddr), "127.0.0.1:0"))
		if err != nil {
			return err
		}
		if os.Getenv(envStdin) != "" {
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				os.Exit(0)
			}()
		}
		fmt.Printf("http://%s%s\n", l.Addr(), path)
		return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
	}
}

func httpOK(args []string) (http.Handler, error) {
	s := sdkServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		JSONResponse: slices.Contains(args, "json"),
		Stateless:    slices.Contains(args, "stateless"),
	}), nil
}

func sseOK([]string) (http.Handler, error) {
	s := sdkServer()
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil), nil
}

// sdkServer is a small server that keeps all rules.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcptest-sdk", Version: "1.2.3"}, &mcp.ServerOptions{Instructions: instructions})
	type message struct {
		Message string `json:"message"`
	}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Answers the message.", Annotations: readOnly},
		func(_ context.Context, _ *mcp.CallToolRequest, m message) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: m.Message}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "structured", Description: "Answers the message as structured content.", Annotations: readOnly},
		func(_ context.Context, _ *mcp.CallToolRequest, m message) (*mcp.CallToolResult, message, error) {
			return nil, m, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "Answers isError with the message."},
		func(_ context.Context, _ *mcp.CallToolRequest, m message) (*mcp.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("%s", m.Message)
		})
	mcp.AddTool(s, &mcp.Tool{Name: "header", Description: "Answers a header of the request that brought this call.", Annotations: readOnly},
		func(_ context.Context, r *mcp.CallToolRequest, m message) (*mcp.CallToolResult, any, error) {
			v := ""
			if r.Extra != nil {
				v = r.Extra.Header.Get(m.Message)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: v}}}, nil, nil
		})
	type work struct {
		Seconds float64 `json:"seconds"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "slow", Description: "Works for a time, and reports its progress once before."},
		func(ctx context.Context, r *mcp.CallToolRequest, w work) (*mcp.CallToolResult, any, error) {
			if token := r.Params.GetProgressToken(); token != nil {
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "working"}
				if err := r.Session.NotifyProgress(ctx, p); err != nil {
					return nil, nil, err
				}
			}
			select {
			case <-time.After(seconds(w.Seconds)):
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		})
	return s
}

func httpHang([]string) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), nil
}

func http401([]string) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcptest", error="invalid_token"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}), nil
}

func http502([]string) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html><body><h1>502 Bad Gateway</h1></body></html>")
	}), nil
}

// httpNeed answers 401 unless the request has a header with a value, and serves what httpOK does otherwise.
func httpNeed(args []string) (http.Handler, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("want the name and value of a header")
	}
	ok, err := httpOK(args[2:])
	if err != nil {
		return nil, err
	}
	no, err := http401(nil)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(args[0]) == args[1] {
			ok.ServeHTTP(w, r)
		} else {
			no.ServeHTTP(w, r)
		}
	}), nil
}
