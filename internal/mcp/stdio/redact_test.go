package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

// A server that repeats its environment in an error does not get a secret into
// what many see. Results are not touched.
func TestErrorsHoldNoSecrets(t *testing.T) {
	const secret = `tok/en"1234`
	o := fakeOptions(t, "plain")
	o.Redact = []string{secret}
	c := dialFake(t, o)
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	in := string(quoted[1 : len(quoted)-1])
	for _, tt := range []struct {
		name, frame string
		want        *rpc.Error
	}{
		{"message", `"error":{"code":-1,"message":"bad ` + in + `!"}`, &rpc.Error{Code: -1, Message: "bad [redacted]!"}},
		{
			"data", `"error":{"code":-1,"message":"m","data":{ "n":1.0,"env":["TOKEN=` + strings.ReplaceAll(in, "/", `\/`) + `"]}}`,
			&rpc.Error{Code: -1, Message: "m", Data: []byte(`{ "n":1.0,"env":["TOKEN=[redacted]"]}`)},
		},
		{"nothing", `"error":{"code":-1,"message":"m","data":{ "n":1.0}}`, &rpc.Error{Code: -1, Message: "m", Data: []byte(`{ "n":1.0}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Do(t.Context(), request("frame", map[string]any{"text": `{"jsonrpc":"2.0","id":@,` + tt.frame + `}`}))
			if d := cmp.Diff(error(tt.want), err); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
	for _, result := range []string{`{"x":"` + in + `"}`, `{"isError":true,"content":[{"type":"text","text":"` + in + `"}]}`} {
		if got := do(t, c, request("text", map[string]any{"text": result})); got != result {
			t.Errorf("got %s, want %s", got, result)
		}
	}
	long := fmt.Sprintf(`{"jsonrpc":"2.0","id":@,"error":{"code":-1,"message":%q}}`, strings.Repeat("é", 200_000))
	_, err = c.Do(t.Context(), request("frame", map[string]any{"text": long}))
	if e, ok := errors.AsType[*rpc.Error](err); !ok || len(e.Message) > rpc.MessageBytes || !strings.HasSuffix(e.Message, "é…") {
		t.Errorf("a message of 400 kB came as %T of %d bytes", err, len(err.Error()))
	}
}

// The same for servers that fail the handshake, also with a text that the SDK wraps.
func TestRefusalsHoldNoSecrets(t *testing.T) {
	const secret = `tok/en"1234`
	for mode, want := range map[string]string{
		"tellsall": "the server refused initialize: error -32602: no entry with [redacted]",
		"ancient":  `unsupported protocol version: "1999-12-31[redacted]"`,
	} {
		t.Run(mode, func(t *testing.T) {
			var log bytes.Buffer
			o := fakeOptions(t, mode)
			o.Log = newTextLog(&log)
			o.Env = append(o.Env, "TOKEN="+secret)
			o.Redact = []string{secret}
			_, err := Dial(t.Context(), o)
			f := failure(t, err)
			if f.Reason != rpc.Handshake || !strings.Contains(f.Error(), want) {
				t.Errorf("Dial = %s: %q, want %q", f.Reason, f.Error(), want)
			}
			if strings.Contains(log.String(), "1234") {
				t.Errorf("the log holds the secret: %s", log.String())
			}
		})
	}
}

// What cannot be started is told without the secrets in its command and directory.
func TestStartErrorsHoldNoSecrets(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "hunter2", "script")
	if err := os.Mkdir(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, command, dir, want string
	}{
		{"command", filepath.Join(dir, "hunter2", "nothing"), "", `command "[redacted]" does not exist`},
		{"name", "hunter2-server", "", `command "[redacted]" not found in PATH`},
		{"interpreter", script, "", `command "[redacted]" could not be started`},
		{"directory", "true", filepath.Join(dir, "hunter2", "nowhere"), `working directory "[redacted]" does not exist`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := fakeOptions(t, "plain")
			o.Command, o.Dir, o.Redact = tt.command, tt.dir, []string{tt.command, tt.dir}
			_, err := Dial(t.Context(), o)
			if f := failure(t, err); f.Reason != rpc.Start || !strings.Contains(f.Error(), tt.want) || strings.Contains(f.Error(), "hunter2") {
				t.Errorf("Dial = %s: %q, want %q", f.Reason, f.Error(), tt.want)
			}
		})
	}
}
