package publish

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcptest"
)

// lines has the server answer these lines over a pipe, and returns what it writes.
func (f *fixture) lines(in ...string) []string {
	f.t.Helper()
	var out strings.Builder
	if err := f.server.ServeStdio(f.t.Context(), strings.NewReader(strings.Join(in, "\n")), &out, bridge.Caller{}, time.Minute); err != nil {
		f.t.Errorf("ServeStdio: %v", err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// connectPipes returns a session of the SDK's client over pipes, which ends with the test.
func (f *fixture) connectPipes(version string, o *mcp.ClientOptions) *mcp.ClientSession {
	f.t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- f.server.ServeStdio(context.Background(), serverIn, serverOut, bridge.Caller{}, time.Minute)
	}()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(f.t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cs.Close() // what is left of it, done says
		if err := <-done; err != nil {
			f.t.Errorf("ServeStdio: %v", err)
		}
	})
	return cs
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// answers has the lines answered after a handshake, whose own answer is left out.
func (f *fixture) answers(in ...string) string {
	f.t.Helper()
	out := f.lines(append([]string{initialize, initialized}, in...)...)
	return strings.Join(slices.DeleteFunc(out, func(l string) bool { return strings.HasPrefix(l, `{"jsonrpc":"2.0","id":0,"result":`) }), "\n")
}

func TestStdio(t *testing.T) {
	f := newFixture(t)
	f.ref = "mcp~abc"
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		return newResult(`{"content" : [],"args":` + string(r.Args) + `}`), nil
	}
	f.publish()
	got := f.answers(callOf("demo__add", `{"n": 9007199254740993,"x":1e400}`))
	want := `{"jsonrpc":"2.0","id":1,"result":{"content" : [],"args":{"n": 9007199254740993,"x":1e400},"_meta":{"artifact_ref":"«artifact:mcp~abc»"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever comes before the end of the input is answered, once, and what is no message too.
func TestStdioBadInput(t *testing.T) {
	f := newFixture(t)
	f.opts.RequestBytes = 200_000
	f.publish()
	for _, tt := range []struct{ name, in, want string }{
		{"no JSON", `garbage`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"no message", `{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{"blank lines", "\n \r\n" + `{"jsonrpc":"2.0","id":5,"method":"ping"}` + "\r", `{"jsonrpc":"2.0","id":5,"result":{}}`},
		{"an unknown method", `{"jsonrpc":"2.0","id":5,"method":"no/such"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32601`},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"no/such"}`, ``},
		{"too long", `"` + strings.Repeat("x", 200_000) + `"`, `larger than the limit of 200000 bytes`},
		{"an empty batch", `[]`, `"code":-32600`},
		{"a batch", `[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}]`, `{"jsonrpc":"2.0","id":5,"result":{}}`},
		{"a second initialize", strings.Replace(initialize, `"id":0`, `"id":8`, 1), `"id":8,"error"`},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":5,"result":{}}`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := f.answers(tt.in, callOf("demo__add", `{}`))
			if !strings.Contains(got, tt.want) || !strings.Contains(got, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`) {
				t.Errorf("got %s\nwant %s and the answer of the call", got, tt.want)
			}
			if n := strings.Count(got, "\n"); tt.want == "" && n != 0 || tt.want != "" && n != 1 {
				t.Errorf("there are %d answers more than one: %s", n, got)
			}
		})
	}
}

func TestStdioBothEras(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		mcptest.NoLeaks(t)
		f := newFixture(t).publish()
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- f.server.ServeStdio(context.Background(), serverIn, serverOut, bridge.Caller{}, time.Minute)
		}()
		changed := make(chan struct{}, 10)
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		}).Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"demo__add", "demo__echo", "files__read"}, namesOf(t, cs)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "demo__add"}); err != nil {
			t.Error(err)
		}
		f.set(true, newServer("new", newTool("new", "tool", "")))
		<-changed
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
}

// The end of the input lets calls be answered, for so long; the end of the context does not.
func TestStdioEnds(t *testing.T) {
	for _, tt := range []struct {
		name          string
		grace, cancel time.Duration
		takes         time.Duration
		answered      bool
	}{
		{"in time", time.Minute, time.Hour, 10 * time.Second, true},
		{"the grace is over", 5 * time.Second, time.Hour, 5 * time.Second, false},
		{"the context ends", time.Minute, 3 * time.Second, 3 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
					select {
					case <-time.After(10 * time.Second):
						return newResult(`{"content":[]}`), nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				f.publish()
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(tt.cancel, cancel).Stop()
				defer cancel()
				var out strings.Builder
				start := time.Now()
				err := f.server.ServeStdio(ctx, strings.NewReader(initialize+"\n"+callOf("demo__add", `{}`)), &out, bridge.Caller{}, tt.grace)
				if err != nil {
					t.Errorf("ServeStdio: %v", err)
				}
				if d := time.Since(start); d != tt.takes {
					t.Errorf("it took %v, want %v", d, tt.takes)
				}
				if answered := strings.Contains(out.String(), `"result":{"content":[]}`); answered != tt.answered {
					t.Errorf("answered is %v: %s", answered, out.String())
				}
			})
		})
	}
}

// A client that takes nothing does not keep the program from ending.
func TestStdioDeadClient(t *testing.T) {
	f := newFixture(t).publish()
	in, w := io.Pipe()
	defer w.Close()
	r, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.server.ServeStdio(ctx, in, out, bridge.Caller{}, time.Minute) }()
	if _, err := fmt.Fprintln(w, initialize); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReaderSize(r, 16).ReadByte(); err != nil { // it writes, and the rest stays unread
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "does not take") {
		t.Errorf("ServeStdio: %v", err)
	}
	r.Close()
}

func TestStdioBrokenInput(t *testing.T) {
	f := newFixture(t).publish()
	broken := errors.New("broken")
	err := f.server.ServeStdio(t.Context(), io.MultiReader(strings.NewReader(initialize+"\n"), iotest.ErrReader(broken)), io.Discard, bridge.Caller{}, time.Minute)
	if !errors.Is(err, broken) {
		t.Errorf("ServeStdio: %v", err)
	}
}
