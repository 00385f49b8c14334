package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"mcpbridge/internal/config"
)

// quote makes text that both formats read as it is.
func quote(s string) string { return fmt.Sprintf("%q", s) }

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plain": "from file", "newline": "from file\n", "crlf": "from file\r\n", "two": "a\n\n", "refs": "${A} ${caller.user}", "empty": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"A": "alpha", "B": `quote " brace } : - # ${A} ${caller.user}`, "DIR": dir, "EMPTY": ""}
	for _, tc := range []struct {
		text, want string
		expanded   bool
	}{
		{"", "", false},
		{"plain", "plain", false},
		{"$ $A $$ } {", "$ $A $$ } {", false},
		{"${A}", "alpha", true},
		{"${env:A}", "alpha", true},
		{"x${A}y${A}z", "xalphayalphaz", true},
		{"$${A}", "${A}", false},
		{"$$${A}", "$${A}", false},
		{"${A}$${A}", "alpha${A}", true},
		{"${B}", vars["B"], true}, // not expanded again
		{"${UNSET:-x}", "x", true},
		{"${UNSET:-}", "", true},
		{"${EMPTY:-x}", "x", true},
		{"${A:-x}", "alpha", true},
		{"${UNSET:-${A}}", "alpha", true},
		{"${UNSET:-${UNSET:-x}y}", "xy", true},
		{"${A:-${UNSET}}", "alpha", true}, // the default is not looked at
		{"${UNSET:-$${A}}", "${A}", true},
		{"${UNSET:-a:-b}", "a:-b", true},
		{"${file:plain}", "from file", true},
		{"${file:newline}", "from file", true},
		{"${file:crlf}", "from file", true},
		{"${file:two}", "a\n", true},
		{"${file:refs}", "${A} ${caller.user}", true},
		{"${file:empty}", "", true},
		{"${file:" + dir + "/plain}", "from file", true},
		{"${file:${DIR}/plain}", "from file", true},
		{"${file:${UNSET:-plain}}", "from file", true},
	} {
		for _, format := range []string{"mcpServers: {a: {command: x, args: [%s]}}", `{"mcpServers": {"a": {"command": "x", "args": [%s]}}}`} {
			text := fmt.Sprintf(format, quote(tc.text))
			cfg, _, err := config.Read(strings.NewReader(text), filepath.Join(dir, "bridge.yaml"), env(vars))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			got := cfg.Servers[0].Args[0]
			if got.Text() != tc.want || got.Secret() != tc.expanded {
				t.Errorf("%s: %q (secret %t), want %q (%t)", text, got.Text(), got.Secret(), tc.want, tc.expanded)
			}
			if refs := got.Caller(); refs != nil {
				t.Errorf("%s: refers to the caller: %v", text, refs)
			}
		}
	}
}

func TestExpandErrors(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nul"), []byte("s3cret\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := env(map[string]string{"DIR": "/s3cret"})
	const where = "line 1: mcpServers.a.args[0]: "
	deep := strings.Repeat("${U:-", 9) + "s3cret" + strings.Repeat("}", 9)
	for _, tc := range []struct{ text, want string }{
		{"${A}${B}", where + "refers to ${A}, which is not set in the environment; ${A:-default} gives a default\n" +
			where + "refers to ${B}, which is not set in the environment; ${B:-default} gives a default"},
		{"s3cret${", where + "has a ${ without its }; write $${ for a plain ${"},
		{"s3cret${A:-${B}", where + "has a ${ without its }; write $${ for a plain ${"},
		{"${s3cret!}", where + "has a ${…} that is none of ${NAME}, ${NAME:-default} and ${file:path}; write $${ for a plain ${"},
		{"${}", where + "has a ${…} that is none of ${NAME}, ${NAME:-default} and ${file:path}; write $${ for a plain ${"},
		{"${1}", where + "has a ${…} that is none of ${NAME}, ${NAME:-default} and ${file:path}; write $${ for a plain ${"},
		{"${input:key}", where + "refers to an input that an editor would ask for; use ${NAME} and the environment"},
		{"${file:}", where + "has a ${file:} without a path"},
		{"${file:none}", where + "cannot read ${file:none}: no such file or directory"},
		{"${file:${DIR}/none}", where + "cannot read ${file:${DIR}/none}: no such file or directory"},
		{"${file:${NONE}/x}", where + "refers to ${NONE}, which is not set in the environment; ${NONE:-default} gives a default"},
		{"${file:.}", where + "cannot read ${file:.}: not a regular file"},
		{"${file:pipe}", where + "cannot read ${file:pipe}: not a regular file"},
		{"${file:big}", where + "cannot read ${file:big}: larger than 1 MiB"},
		{"${file:nul}", where + "the value holds a NUL, which no process can be given"},
		{deep, where + "has references inside references more than 8 deep"},
	} {
		text := fmt.Sprintf("mcpServers: {a: {command: x, args: [%s]}}", quote(tc.text))
		_, _, err := config.Read(strings.NewReader(text), filepath.Join(dir, "bridge.yaml"), vars)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\n%v\nwant:\n%s", text, err, tc.want)
		}
		if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), tc.text, ""), "s3cret") {
			t.Errorf("%s: error shows a secret: %v", text, err)
		}
	}
}

// Keys are not expanded, and values of every type may come from references.
func TestExpandEverywhere(t *testing.T) {
	vars := env(map[string]string{
		"N": "7", "B": "true", "D": "3s", "S": "2MiB", "R": "5/m", "W": "sse", "L": "127.0.0.1:1", "O": "mcpo", "H": "x.example.com",
	})
	_, _, err := config.Read(strings.NewReader(`mcpServers: {"${N}": {url: "http://${H}/", headers: {"X-${N}": x}}}`), "x", vars)
	if err == nil || err.Error() != "line 1: mcpServers[\"${N}\"].headers: the name of a header is empty, or holds spaces or other characters that no name can" {
		t.Fatalf("a key was expanded, or: %v", err)
	}
	cfg, _, err := config.Read(strings.NewReader(`
mcpServers:
  ${N}: {url: "http://${H}/", type: "${W}", disabled: "${B}", maxConcurrent: "${N}", timeout: "${D}", rate: "${R}"}
bridge:
  listen: ${L}
  hosts: ["${H}"]
  operationIds: ${O}
  limits: {requestBytes: "${S}"}
  compat: {mcpo: "${B}"}
`), "x", vars)
	if err != nil {
		t.Fatal(err)
	}
	s, b := cfg.Servers[0], cfg.Bridge
	got := fmt.Sprintln(s.Handle, s.URL.Text(), s.Transport, s.Disabled, s.MaxConcurrent, s.Timeout, s.Rate, b.Listen, b.Hosts, b.OperationIDs, b.Limits.RequestBytes, b.Compat.MCPO)
	if want := fmt.Sprintln("${N}", "http://x.example.com/", "sse", true, 7, "3s", "5/m", "127.0.0.1:1", "[x.example.com]", "mcpo", 2<<20, true); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// The same with values that do not fit: no message shows one.
	_, _, err = config.Read(strings.NewReader(`
mcpServers:
  a: {url: "http://x", type: "${X}", maxConcurrent: "${X}", timeout: "${X}", rate: "${X}", sharing: "${X}", tools: {deny: ["${X}"]}, forwardHeaders: ["${X}"]}
  b: {command: "${X}", env: {A: "${X}"}}
bridge:
  listen: ${X}
  hosts: ["${X}"]
  operationIds: ${X}
  limits: {requestBytes: "${X}"}
  compat: {mcpo: "${X}"}
  cors: {origins: ["${X}"]}
  artifacts: {store: "${X}"}
`), "x", env(map[string]string{"X": "[s3cret\x00"}))
	if err == nil {
		t.Fatal("no error")
	}
	e, ok := errors.AsType[*config.Error](err)
	if !ok || len(e.Problems) != 16 {
		t.Errorf("%v: not an *Error with 16 problems", err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error shows a secret:\n%v", err)
	}
}

// Without a lookup nothing is expanded, but callers can be referred to.
func TestNoExpansion(t *testing.T) {
	cfg, _, err := config.Read(strings.NewReader(`
mcpServers:
  a: {command: "${A}", args: ["${file:/etc/passwd}", "${A:-x}", "$${B}"], env: {U: "${caller.user}${A}"}, sharing: user}
`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Servers[0]
	got := fmt.Sprintln(s.Command.Text(), s.Args, s.Env["U"].Text(), s.CallerRefs())
	if want := "${A} [${file:/etc/passwd} ${A:-x} ${B}] ${caller.user}${A} [user]\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A server that is switched off is not held to its secrets, but to its form.
func TestDisabledServer(t *testing.T) {
	cfg, _, err := read(t, `
mcpServers:
  a: {command: "${A}", args: ["${file:none}"], env: {K: "${K}", L: here}, disabled: true, timeout: "${T}"}
  b: {url: "${U}", headers: {K: "${K}"}, enabled: false}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.Servers {
		if !s.Disabled {
			t.Errorf("%s is not disabled", s.Handle)
		}
	}
	if a := cfg.Servers[0]; a.Env["L"].Text() != "here" || len(a.Env) != 1 || a.Timeout != cfg.Bridge.Timeouts.Call {
		t.Errorf("a = %+v", a)
	}
	wantError(t, "mcpServers:\n  a: {command: x, disabled: true, timeout: soon}\n",
		`line 2: mcpServers.a.timeout: "soon" is not a duration: write 300ms, 20s, 5m, 1h30m or a number of seconds`)
}

func TestValueResolve(t *testing.T) {
	cfg, _, err := config.Read(strings.NewReader(
		`{"mcpServers": {"a": {"command": "x", "sharing": "user", "env": {"P": "${A}/${caller.user}/${caller.header.x-a}/${caller.user}"}}}}`,
	), "", env(map[string]string{"A": "${caller.tenant}"}))
	if err != nil {
		t.Fatal(err)
	}
	v := cfg.Servers[0].Env["P"]
	if diff := cmp.Diff([]string{"user", "header.X-A"}, v.Caller()); diff != "" {
		t.Errorf("Caller (-want +got):\n%s", diff)
	}
	got, err := v.Resolve(func(ref string) (string, error) { return "<" + ref + ">", nil })
	if want := "${caller.tenant}/<user>/<header.X-A>/<user>"; got != want || err != nil {
		t.Errorf("Resolve = %q, %v; want %q", got, err, want)
	}
	unfit := errors.New("unfit")
	if got, err := v.Resolve(func(string) (string, error) { return "x", unfit }); got != "" || !errors.Is(err, unfit) {
		t.Errorf("Resolve = %q, %v; want the error of lookup", got, err)
	}
}

// However a Value is printed, a secret does not show.
func TestValueHidden(t *testing.T) {
	type holder struct {
		V config.Value
		M map[string]config.Value
		P *config.Value
	}
	v := config.Hidden("s3cret")
	h := holder{V: v, M: map[string]config.Value{"k": v}, P: &v}
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%T"} {
		fmt.Fprintf(&b, verb+" "+verb+" "+verb+"\n", v, &v, h)
	}
	lg := slog.New(slog.NewJSONHandler(&b, nil))
	lg.LogAttrs(t.Context(), slog.LevelInfo, "x", slog.Any("v", v), slog.Any("h", h))
	slog.New(slog.NewTextHandler(&b, nil)).LogAttrs(t.Context(), slog.LevelInfo, "x", slog.Any("v", v), slog.Any("h", h))
	text, err := yaml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(text)
	if out := b.String(); strings.Contains(out, "s3cret") || strings.Contains(out, fmt.Sprintf("%x", "s3cret")) || !strings.Contains(out, "[hidden]") {
		t.Errorf("printed:\n%s", out)
	}
	if got := fmt.Sprintf("%s|%q|%v", config.Plain("a b"), config.Plain("a b"), config.Value{}); got != `a b|"a b"|` {
		t.Errorf("plain values print as %s", got)
	}
	if config.Plain("a").Equal(config.Hidden("a")) || !config.Plain("a").Equal(config.Plain("a")) {
		t.Error("Equal is wrong")
	}
	if diff := cmp.Diff(config.Value{}, config.Plain(""), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
