package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcptest"
)

// connect connects a client to the demo, in memory.
func connect(t *testing.T, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ss, err := Demo().Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		_ = ss.Wait() // it ends as the client hangs up
	})
	return cs
}

// call calls a tool, which must not fail in the protocol.
func call(t *testing.T, cs *mcp.ClientSession, tool string, args any) *mcp.CallToolResult {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// structured returns the JSON of a result's structured content.
func structured(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDemoDescribesItself(t *testing.T) {
	cs := connect(t, nil)
	info := cs.InitializeResult()
	if info.ServerInfo.Name != "demo" || info.Instructions == "" {
		t.Errorf("server %+v with instructions %q, want demo with some", info.ServerInfo, info.Instructions)
	}
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		if tool.Title == "" || tool.Description == "" || a == nil || !a.ReadOnlyHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("tool %s lacks a title, a description or annotations: %+v", tool.Name, tool)
		}
		if a != nil && a.IdempotentHint == (tool.Name == "dice") {
			t.Errorf("tool %s: idempotent is %v", tool.Name, a.IdempotentHint)
		}
	}
	want := []string{"add", "countdown", "dice", "fail", "greet", "mixed", "picture", "search_notes"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestDemoTexts(t *testing.T) {
	cs := connect(t, nil)
	for _, tt := range []struct {
		tool    string
		args    map[string]any
		want    string // the first text
		isError bool
	}{
		{"greet", map[string]any{"name": "Ada"}, "Hello, Ada!", false},
		{"greet", map[string]any{"name": "Ada", "language": "fr"}, "Bonjour, Ada!", false},
		{"greet", map[string]any{"name": "Ada", "language": "xx"}, "validating", true},
		{"add", map[string]any{"a": 2, "b": 40}, `{"sum":42}`, false},
		{"add", map[string]any{"a": 1e308, "b": 1e308}, "the sum is too large", true},
		{"add", map[string]any{"a": 1}, "validating", true},
		{"countdown", map[string]any{"from": 2, "pause": 0}, "Lift-off!", false},
		{"fail", nil, "disk full", true},
		{"fail", map[string]any{"reason": "no ink"}, "no ink", true},
		{"search_notes", map[string]any{"query": "KEYSTONE"}, "1 found: Arch bridges", false},
		{"search_notes", map[string]any{"query": "spaceship"}, "0 found: ", false},
	} {
		r := call(t, cs, tt.tool, tt.args)
		got := r.Content[0].(*mcp.TextContent).Text
		if !strings.HasPrefix(got, tt.want) || r.IsError != tt.isError {
			t.Errorf("%s(%v) = %q (error %v), want %q (error %v)", tt.tool, tt.args, got, r.IsError, tt.want, tt.isError)
		}
	}
}

func TestDemoStructures(t *testing.T) {
	cs := connect(t, nil)
	if got := structured(t, call(t, cs, "add", map[string]any{"a": 0.5, "b": 2})); got != `{"sum":2.5}` {
		t.Errorf("add = %s", got)
	}
	var first, again throws
	if err := json.Unmarshal([]byte(structured(t, call(t, cs, "dice", map[string]any{"count": 20}))), &first); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"count": 20, "seed": first.Seed}
	if err := json.Unmarshal([]byte(structured(t, call(t, cs, "dice", args))), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("dice with the same seed (-first +again):\n%s", diff)
	}
	total := 0
	for _, n := range first.Throws {
		if n < 1 || n > 6 {
			t.Errorf("dice threw %d", n)
		}
		total += n
	}
	if len(first.Throws) != 20 || total != first.Total {
		t.Errorf("dice = %+v, want 20 throws that make the total", first)
	}
	var f found
	if err := json.Unmarshal([]byte(structured(t, call(t, cs, "search_notes", map[string]any{"query": "bridge", "limit": 2}))), &f); err != nil {
		t.Fatal(err)
	}
	if f.Count != len(notes) || len(f.Notes) != 2 {
		t.Errorf("search_notes found %d and answered %d, want %d and 2", f.Count, len(f.Notes), len(notes))
	}
	if diff := cmp.Diff(notes[:2], f.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	// What a bridge makes of long texts and big objects is to be seen here.
	if long := len(notes[1].Text); long <= 2000 {
		t.Errorf("the longest note has %d bytes, want more than 2000", long)
	}
}

func TestDemoMedia(t *testing.T) {
	cs := connect(t, nil)
	r := call(t, cs, "picture", map[string]any{"width": 200})
	img, err := png.Decode(bytes.NewReader(r.Content[0].(*mcp.ImageContent).Data))
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got.X != 200 || got.Y != 100 {
		t.Errorf("the picture is %v, want 200 by 100", got)
	}
	if img.At(100, 70) == img.At(100, 2) {
		t.Error("the picture shows no deck")
	}
	r = call(t, cs, "mixed", nil)
	var kinds []string
	for _, c := range r.Content {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var k struct{ Type string }
		if err := json.Unmarshal(b, &k); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, k.Type)
	}
	if diff := cmp.Diff([]string{"text", "image", "audio", "resource", "resource_link"}, kinds); diff != "" {
		t.Errorf("mixed (-want +got):\n%s", diff)
	}
	if b := beep(); string(b[:4]) != "RIFF" || string(b[36:40]) != "data" || len(b) != 844 {
		t.Errorf("the sound is no WAV: %q", b[:44])
	}
}

func TestDemoResourcesAndPrompt(t *testing.T) {
	cs := connect(t, nil)
	list, err := cs.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Resources) != len(notes) {
		t.Errorf("%d resources, want %d", len(list.Resources), len(notes))
	}
	for _, r := range list.Resources {
		got, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		if err != nil {
			t.Fatal(err)
		}
		if text := got.Contents[0].Text; !strings.HasPrefix(text, "# "+r.Title+"\n") || int64(len(text)) != r.Size {
			t.Errorf("%s has %d bytes and begins %.30q, want %d bytes and its title", r.URI, len(text), text, r.Size)
		}
	}
	p, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "explain", Arguments: map[string]string{"note": "arch"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Messages[1].Content.(*mcp.TextContent).Text; got != "Explain this to a curious child." {
		t.Errorf("explain = %q", got)
	}
	if _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "explain", Arguments: map[string]string{"note": "rope"}}); err == nil {
		t.Error("explain made a prompt of a note that is not there")
	}
}

func TestCountdownReportsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		progress := make(chan *mcp.ProgressNotificationParams, 10)
		cs := connect(t, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params
		}})
		start := time.Now()
		params := &mcp.CallToolParams{Name: "countdown"}
		params.SetProgressToken("t")
		if _, err := cs.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("counting down took %v, want 3s", got)
		}
		for i := range 3 {
			if p := <-progress; p.Progress != float64(i+1) || p.Total != 3 || p.ProgressToken != "t" {
				t.Errorf("progress %d = %+v", i, p)
			}
		}
		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		params = &mcp.CallToolParams{Name: "countdown", Arguments: map[string]any{"from": 60, "pause": 60}}
		if _, err := cs.CallTool(ctx, params); err == nil {
			t.Error("a cancelled countdown answered")
		}
		synctest.Wait() // the tool has stopped: otherwise closing would wait for it
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got != 90*time.Second {
			t.Errorf("the countdown ended after %v, want 90s", got)
		}
	})
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func TestServeDemoWritesFramesOnly(t *testing.T) {
	mcptest.NoLeaks(t)
	inr, inw := io.Pipe()
	outr, outw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := ServeDemo(t.Context(), inr, outw)
		outw.Close()
		done <- err
	}()
	out := bufio.NewReader(outr)
	for i, in := range []string{hello, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"<Ada>"}}}` + "\n"} {
		if _, err := io.WriteString(inw, in); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			JSONRPC string
			ID      int
			Result  json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.JSONRPC != "2.0" || f.ID != i+1 || f.Result == nil {
			t.Errorf("line %d is no answer to %d: %s", i, i+1, line)
		}
	}
	inw.Close()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("after its last answer it wrote %q (%v)", rest, err)
	}
	if err := <-done; err != nil {
		t.Errorf("ServeDemo = %v at the end of its input, want nil", err)
	}
}

func TestServeDemoAnswersBeforeTheEnd(t *testing.T) {
	mcptest.NoLeaks(t)
	var in strings.Builder
	in.WriteString(hello)
	const calls = 50
	for i := range calls {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1,"pause":0.01}}}`+"\n", i+2)
	}
	var out bytes.Buffer
	if err := ServeDemo(t.Context(), strings.NewReader(in.String()), &out); err != nil {
		t.Errorf("ServeDemo = %v, want nil", err)
	}
	if got := strings.Count(out.String(), "Lift-off!"); got != calls {
		t.Errorf("%d of %d calls were answered", got, calls)
	}
}

func TestServeDemoDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		in := hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1000,"pause":60}}}` + "\n"
		var out bytes.Buffer
		if err := ServeDemo(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Errorf("ServeDemo = %v, want nil", err)
		}
		if got := time.Since(start); got != lastWords {
			t.Errorf("it ended after %v, want %v", got, lastWords)
		}
	})
}

func TestServeDemoEndsWithContext(t *testing.T) {
	mcptest.NoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe()
	outr, outw := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- ServeDemo(ctx, pr, outw) }()
	go func() {
		_, _ = io.WriteString(pw, hello+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1000,"pause":60},"_meta":{"progressToken":"p"}}}`+"\n")
	}()
	b := make([]byte, 1<<16)
	for seen := ""; !strings.Contains(seen, "notifications/progress"); {
		n, err := outr.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(b[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, outr) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ServeDemo = %v after its context ended, want nil", err)
	}
	pw.Close()
	outw.Close()
}

func TestServeDemoRefusesGarbage(t *testing.T) {
	var out bytes.Buffer
	if err := ServeDemo(t.Context(), strings.NewReader("no frame\n"), &out); err == nil {
		t.Error("ServeDemo took garbage for the end of its input")
	}
}
