package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestSDKServers(t *testing.T) {
	for _, tt := range []struct {
		mode, version string
		args          []string
	}{
		{HTTPOK, "2025-11-25", nil},
		{HTTPOK, "2025-11-25", []string{"json"}},
		{HTTPOK, "2026-07-28", []string{"stateless"}},
		{HTTPRaw, "2025-11-25", nil},
		{HTTPRaw, "2025-11-25", []string{OK, "json", "no-get", "no-session"}},
		{HTTPRaw, "2026-07-28", []string{Modern}},
		{SSEOK, "2025-11-25", nil},
	} {
		t.Run(tt.mode+" "+strings.Join(tt.args, " "), func(t *testing.T) {
			NoLeaks(t)
			s := Start(t, tt.mode, tt.args...)
			var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: s.URL}
			if tt.mode == SSEOK {
				transport = &mcp.SSEClientTransport{Endpoint: s.URL}
			}
			changed := make(chan struct{}, 1)
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			}).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cs.Close() })
			if got := cs.InitializeResult().ProtocolVersion; got != tt.version {
				t.Errorf("it speaks %s, want %s", got, tt.version)
			}
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hi"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Content[0].(*mcp.TextContent).Text; got != "hi" {
				t.Errorf("echo = %q, want hi", got)
			}
			r, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail", Arguments: map[string]any{"message": "disk full"}})
			if err != nil || !r.IsError {
				t.Errorf("fail = %+v (%v), want isError", r, err)
			}
			if tt.mode == HTTPRaw && len(tt.args) < 2 {
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_tool"}); err != nil {
					t.Fatal(err)
				}
				<-changed
			}
		})
	}
}

// exchange POSTs a message and returns the status, the type and the body.
func exchange(t *testing.T, url, session, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp, string(b)
}

const httpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`

func callFrame(tool, args string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":` + quote(tool) + `,"arguments":` + args + `}}`
}

func TestHTTPRawKeepsBytes(t *testing.T) {
	s := Start(t, HTTPRaw, Exact)
	resp, _ := exchange(t, s.URL, "", httpHello)
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("there is no session id")
	}
	const args = "{ \"b\":1.10,\n\"a\":9007199254740993 }"
	resp, body := exchange(t, s.URL, session, callFrame("args", args))
	want := "event: message\ndata: " + `{"jsonrpc":"2.0","id":2,"result":` + text(strings.ReplaceAll(args, "\n", " ")) + "}\n\n"
	if ct := resp.Header.Get("Content-Type"); body != want || ct != "text/event-stream" {
		t.Errorf("args = %s of %s, want %s", body, ct, want)
	}
	if _, body := exchange(t, s.URL, session, callFrame("numbers", `{}`)); !strings.Contains(body, ExactNumbers) {
		t.Errorf("numbers = %s, want it to hold %s", body, ExactNumbers)
	}
	s = Start(t, HTTPRaw, Exact, "json", "no-session")
	resp, body = exchange(t, s.URL, "", callFrame("surrogate", `{}`))
	if ct := resp.Header.Get("Content-Type"); ct != "application/json" || !strings.Contains(body, ExactSurrogate) || !json.Valid([]byte(body)) {
		t.Errorf("surrogate = %s of %s", body, ct)
	}
	_, body = exchange(t, s.URL, "", strings.Replace(callFrame("slow", `{"seconds":0.01,"every":0.001}`), `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1))
	if !json.Valid([]byte(body)) || !strings.Contains(body, "done") {
		t.Errorf("slow in JSON = %s, want the answer alone", body)
	}
}

func TestHTTPRawFaults(t *testing.T) {
	s := Start(t, HTTPRaw)
	resp, _ := exchange(t, s.URL, "", httpHello)
	session := resp.Header.Get("Mcp-Session-Id")
	for _, tt := range []struct {
		session, body string
		status        int
		contains      string
	}{
		{session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
		{session, callFrame("http_status", `{"status":502}`), 502, "<h1>502</h1>"},
		{session, callFrame("http_type", `{}`), 200, "<h1>Welcome</h1>"},
		{session, callFrame("http_drop_stream", `{}`), 200, "notifications/message"},
		{"", callFrame("echo", `{}`), 400, "Mcp-Session-Id"},
		{"other", callFrame("echo", `{}`), 404, "session not found"},
		{session, `{"jsonrpc"`, 400, "unexpected"},
		{session, callFrame("http_expire", `{}`), 200, "this tool"},
		{session, callFrame("echo", `{}`), 404, "session not found"},
	} {
		resp, body := exchange(t, s.URL, tt.session, tt.body)
		if resp.StatusCode != tt.status || !strings.Contains(body, tt.contains) {
			t.Errorf("%s: %d %q, want %d with %q", tt.body, resp.StatusCode, body, tt.status, tt.contains)
		}
	}
	resp, _ = exchange(t, s.URL, "", httpHello)
	session = resp.Header.Get("Mcp-Session-Id")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(callFrame("http_drop", `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("http_drop answered %s", resp.Status)
	}
	req, err = http.NewRequestWithContext(t.Context(), http.MethodDelete, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp, _ := exchange(t, s.URL, session, callFrame("echo", `{}`)); resp.StatusCode != 404 {
		t.Errorf("after DELETE: %s, want 404", resp.Status)
	}
}

func TestHTTPRawModernChecksHeaders(t *testing.T) {
	s := Start(t, HTTPRaw, Modern)
	resp, body := exchange(t, s.URL, "", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`)
	if resp.StatusCode != 400 || !strings.Contains(body, "-32020") {
		t.Errorf("without Mcp-Method: %s %s, want 400 and -32020", resp.Status, body)
	}
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("GET: %s, want 405", resp.Status)
	}
}

func TestHTTPRawArguments(t *testing.T) {
	for _, args := range [][]string{{"nobody"}, {OK, "fast"}, {HTTPRaw}} {
		if _, err := httpRaw(args); err == nil {
			t.Errorf("http-raw %v is served", args)
		}
	}
}

func TestHTTPRefusals(t *testing.T) {
	resp, _ := exchange(t, Start(t, HTTP401).URL, "", httpHello)
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || !strings.HasPrefix(got, "Bearer ") {
		t.Errorf("http-401: %s with the challenge %q", resp.Status, got)
	}
	resp, body := exchange(t, Start(t, HTTP502).URL, "", httpHello)
	if resp.StatusCode != 502 || !strings.Contains(body, "Bad Gateway") {
		t.Errorf("http-502: %s %s", resp.Status, body)
	}
	s := Start(t, HTTPNeed, "X-Key", "sesame", "json", "stateless")
	if resp, _ := exchange(t, s.URL, "", httpHello); resp.StatusCode != 401 {
		t.Errorf("http-need without the header: %s, want 401", resp.Status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(callFrame("header", `{"message":"X-Key"}`)))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"X-Key": "sesame", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		req.Header.Set(k, v)
	}
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), `"text":"sesame"`) {
		t.Errorf("http-need with the header: %s %s (%v)", resp.Status, b, err)
	}
	if _, err := httpNeed(nil); err == nil {
		t.Error("http-need without a header's name is served")
	}
}

func TestHTTPHang(t *testing.T) {
	s := Start(t, HTTPHang)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(httpHello))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			resp.Body.Close()
		}
		t.Errorf("http-hang answered, or failed with %v", err)
	}
}

func TestStartAt(t *testing.T) {
	NoLeaks(t)
	s := Start(t, HTTP502)
	s.Stop()
	s.Stop()
	if resp, err := http.Post(s.URL, "application/json", strings.NewReader(httpHello)); err == nil {
		resp.Body.Close()
		t.Errorf("a stopped server answered %s", resp.Status)
	}
	again := StartAt(t, s.Addr, HTTP502)
	if again.URL != s.URL {
		t.Errorf("it came back at %s, want %s", again.URL, s.URL)
	}
}

// A server must not outlive a test binary that dies.
func TestStartedServerEndsWithStdin(t *testing.T) {
	c := start(t, OK) // any process will do; this one is replaced below
	c.stdin.Close()
	c.wait()
	t.Setenv(envStdin, "1")
	c = start(t, HTTPHang)
	line, err := bufio.NewReader(c.out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		t.Errorf("its first line is %q (%v), want a URL", line, err)
	}
	c.stdin.Close()
	if got := c.wait(); got != 0 {
		t.Errorf("status %d at the end of stdin, want 0", got)
	}
}
