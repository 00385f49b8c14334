// Bridge gives every MCP server a REST API with an OpenAPI document.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"mcpbridge/internal/mcp/stdio"
)

// version is what the bridge calls itself, to servers and in documents.
const version = "0.1.0"

func main() {
	stdio.Main() // does not return if this process is to be a supervisor or a server
	ctx, stop := untilSignal(context.Background())
	code := exitCode(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr), os.Stderr)
	stop()
	os.Exit(code)
}

// commands is the command line.
type commands struct {
	Serve   serveCmd         `cmd:"" help:"Serve every tool of the configured MCP servers over HTTP; behind --, the command of a single one."`
	Check   checkCmd         `cmd:"" help:"Check the configuration, and say what it would expose."`
	Tools   toolsCmd         `cmd:"" help:"List the tools of the configured servers."`
	Call    callCmd          `cmd:"" help:"Call one tool and print its result."`
	Openapi openapiCmd       `cmd:"" name:"openapi" help:"Print the OpenAPI document of all tools, or of one server's."`
	MCP     mcpCmd           `cmd:"" name:"mcp" help:"Be an MCP server over stdio that publishes the tools of the configured servers."`
	Health  healthCmd        `cmd:"" help:"Ask a running bridge whether it is ready; exit status 0 says yes."`
	Keys    keysCmd          `cmd:"" help:"Make API keys for callers of the bridge."`
	Demo    demoCmd          `cmd:"" help:"Be a small MCP server over stdio, to try things with."`
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// streams is what a command may read, write and know of its surroundings.
type streams struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	command        []string // what stands behind -- on the command line
}

// errUsage is in the tree of an error of the command line itself.
var errUsage = errors.New("see bridge --help")

// run is the program.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	var cli commands
	done := errors.New("help or version was printed")
	defer func() {
		// kong ends the program through its Exit option after --help; it is not
		// prepared for a return, so that has to be a panic.
		if r := recover(); r != nil {
			if r != done { //nolint:errorlint // identity is meant
				panic(r)
			}
			err = nil
		}
	}()
	parser, err := kong.New(&cli,
		kong.Name("bridge"), kong.Description("MCP Bridge gives every MCP server a REST API with an OpenAPI document."),
		kong.Vars{"version": "bridge " + version}, kong.Writers(stdout, stderr), kong.Exit(func(int) { panic(done) }),
		kong.UsageOnError(),
	)
	if err != nil {
		return err
	}
	args, behind := cutCommand(args)
	if len(args) > 0 && args[0] == "openapi" { // whose own flag of this name is another
		parser.Model.Flags = slices.DeleteFunc(parser.Model.Flags, func(f *kong.Flag) bool { return f.Name == "version" })
	}
	command, err := parser.Parse(args)
	if err != nil {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(streams{getenv, stdin, stdout, stderr, behind})
}

// cutCommand splits the command line at --, so that no mistyped flag of ours is
// taken for the beginning of somebody else's command.
func cutCommand(args []string) (ours, command []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// exitCode prints err and returns what the process ends with: 0 for success, 2
// for a command line or configuration that is wrong, 1 for any other failure.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bridge:", err)
	if errors.Is(err, errUsage) || errors.Is(err, errConfig) {
		return 2
	}
	return 1
}
