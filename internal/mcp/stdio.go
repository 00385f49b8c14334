package mcp

import (
	"cmp"
	"context"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/mcp/stdio"
)

// A StdioConfig says how to start a server as a process.
type StdioConfig struct {
	Name    string // label of its accounts
	Command Arg
	Args    []Arg
	Env     map[string]string // set over BaseEnv; secret
	BaseEnv []string          // what every process gets
	Dir     string            // empty is the bridge's own
	HideDir bool              // Dir is secret

	Start         time.Duration // bounds the start of the process; zero is 30 s
	MaxConcurrent int           // calls at a time; zero is Limits.StdioCallsPerServer
	Rate          Rate
	Limits        Limits
	Supervisor    *stdio.Supervisor
}

// NewStdio returns the endpoint of a server that is a process.
func NewStdio(c StdioConfig) Endpoint {
	args := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		args = append(args, a.Text)
	}
	limits := c.Limits.orDefaults()
	id := identity{Transport: "stdio", Command: c.Command.Text, Args: args, Dir: c.Dir, Env: c.Env}.id(c.Name)
	return &stdioEndpoint{
		id: id, printed: printedCommand(c.Command, c.Args, c.Env, c.Dir),
		demand: demand(id, cmp.Or(c.MaxConcurrent, limits.StdioCallsPerServer), c.Rate, bridge.StdioSlots, limits.StdioCalls),
		options: stdio.Options{
			Command: c.Command.Text, Args: args, Env: environ(c.BaseEnv, c.Env), Dir: c.Dir,
			Label: c.Name, Redact: redact(c), Start: c.Start, Supervisor: c.Supervisor, Era: new(stdio.Era),
		},
	}
}

type stdioEndpoint struct {
	id      bridge.EndpointID
	printed string
	demand  bridge.Demand
	options stdio.Options
}

func (e *stdioEndpoint) ID() bridge.EndpointID { return e.id }
func (e *stdioEndpoint) String() string        { return e.printed }
func (e *stdioEndpoint) Demand() bridge.Demand { return e.demand }
func (e *stdioEndpoint) Process() bool         { return true }
func (e *stdioEndpoint) start() time.Duration  { return e.options.Start }

func (e *stdioEndpoint) Connect(ctx context.Context, o rpc.Options) (rpc.Conn, error) {
	opts := e.options
	opts.Options = o
	conn, err := stdio.Dial(ctx, opts)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// redact returns what the server must not be quoted with: the values that it alone was
// given. Of --name=value that is the value alone, too.
func redact(c StdioConfig) []string {
	var values []string
	for _, v := range c.Env {
		values = append(values, v)
	}
	for _, a := range append([]Arg{c.Command, {Text: c.Dir, Secret: c.HideDir}}, c.Args...) {
		if !a.Secret {
			continue
		}
		values = append(values, a.Text)
		if _, value, ok := strings.Cut(a.Text, "="); ok && strings.HasPrefix(a.Text, "-") {
			values = append(values, value)
		}
	}
	return values
}
