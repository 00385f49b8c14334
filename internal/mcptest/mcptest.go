// Package mcptest runs MCP servers that misbehave, as real processes, for tests
// only. A test binary is its own server: its TestMain calls [Main] first, and
// [Command] gives the command line that starts the binary again as a server of
// one mode.
//
//	func TestMain(m *testing.M) {
//		mcptest.Main()
//		os.Exit(m.Run())
//	}
//
//	command, args, env := mcptest.Command(t, mcptest.DieInCall)
//
// Where a configuration file or a command line is tested, the same is
//
//	<test binary> mcptest <mode> [args…]
//
// Most modes speak JSON-RPC by hand, since the SDK would not break the rules
// that they break, and serve the tools of [OK] besides their own fault. What
// modes there are, and what each does, is in modes.go; [Start] runs the modes
// that listen for HTTP; [NoLeaks] checks what a test leaves behind.
package mcptest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	envMode = "MCPTEST_SERVER" // names the mode, for processes that get no arguments of ours
	argMode = "mcptest"        // as first argument, says that the second names the mode
)

// Main turns this process into a server, and never returns, if [Command] or
// the arguments "mcptest <mode>" started it; otherwise it does nothing. Call it
// first in TestMain, before flags are parsed.
func Main() {
	mode, args := os.Getenv(envMode), os.Args[1:]
	if mode == "" {
		if len(args) < 2 || args[0] != argMode {
			return
		}
		mode, args = args[1], args[2:]
	}
	os.Exit(run(mode, args))
}

// run is the server process. It returns the exit status.
func run(mode string, args []string) int {
	p, ok := program(mode)
	if !ok {
		fmt.Fprintf(os.Stderr, "mcptest: there is no mode %q\n", mode)
		return 2
	}
	if err := p(args); err != nil {
		fmt.Fprintf(os.Stderr, "mcptest %s: %v\n", mode, err)
		return 1
	}
	return 0
}

// Command returns the command that runs this test binary as a server of the
// mode, its arguments, and what it needs in its environment ("NAME=value").
// It fails the test when there is no such mode, or TestMain does not call Main.
func Command(t testing.TB, mode string, args ...string) (command string, argv, env []string) {
	t.Helper()
	if _, ok := program(mode); !ok {
		t.Fatalf("mcptest: there is no mode %q", mode)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	// A program with the race detector sleeps a second before it exits, unless told otherwise.
	return self, slices.Clone(args), []string{envMode + "=" + mode, "GORACE=atexit_sleep_ms=0"}
}

// CommandLine returns the same as one list of arguments that needs nothing in
// the environment, for configuration files and command lines.
func CommandLine(t testing.TB, mode string, args ...string) []string {
	t.Helper()
	command, args, _ := Command(t, mode, args...)
	return append([]string{command, argMode, mode}, args...)
}

// Env returns this process's environment without the variables of this
// package, followed by env: what to start a program under test with.
func Env(env ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, envMode+"=") })
	return append(own, env...)
}
