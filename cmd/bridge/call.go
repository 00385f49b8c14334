package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
)

type callCmd struct {
	configFlags
	Timeout time.Duration `placeholder:"DURATION" help:"Time that the call may take, as 20s."`
	Stream  bool          `help:"Show the tool's progress on the standard error output, and ask on the terminal what it asks."`
	Async   bool          `help:"Leave the call to a running bridge as a job, and print the job's URL."`
	URL     string        `placeholder:"URL" help:"The running bridge, for --async; else $$BRIDGE_URL. $$BRIDGE_KEY is the key to it."`
	Handle  string        `arg:"" help:"The server."`
	Tool    string        `arg:"" help:"The tool."`
	Args    string        `arg:"" optional:"" help:"Its arguments, a JSON object; - reads them from the standard input."`
}

// Run calls the tool and prints the result's data.
func (c *callCmd) Run(ctx context.Context, s streams) error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("--timeout is negative; %w", errUsage)
	case c.Async && (c.Stream || c.Timeout > 0):
		return fmt.Errorf("--async ends before the call does, so that --stream and --timeout say nothing; %w", errUsage)
	case c.URL != "" && !c.Async:
		return fmt.Errorf("--url goes with --async; any other call is made without a running bridge; %w", errUsage)
	}
	var args io.Reader = strings.NewReader(c.Args)
	if c.Args == "-" {
		args = s.stdin
	}
	body, err := io.ReadAll(args)
	if err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	body = bytes.TrimSpace(body)
	if c.Async {
		return c.leave(ctx, s, body)
	}
	cfg, err := c.load(s)
	if err != nil {
		return err
	}
	return withCatalogue(ctx, s, cfg, c.Handle, func(a *app) error {
		call := &bridge.Call{Handle: c.Handle, Tool: c.Tool, Args: body, Timeout: c.Timeout, Caller: a.anonymous}
		wipe := func() {}
		if c.Stream {
			t := newTerminal(s, c.Args != "-", openapi.NewSchemas(a.log).Question)
			wipe = t.clear
			call.Progress, call.Log, call.Ask = t.progress, t.message, t.ask
		}
		answer, err := a.bridge.Invoke(ctx, call)
		wipe() // what follows may go to the same screen
		if err != nil {
			return explain(err)
		}
		for _, p := range answer.Result.Data() {
			if _, err := s.stdout.Write(p); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintln(s.stdout)
		return err
	})
}

// explain returns err as a person is to see it: the message, and what else there is to know.
func explain(err error) error {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		return err
	}
	msg := fmt.Sprintf("%s: %s", e.Kind, e.Msg)
	if problems, ok := e.Members["errors"]; ok {
		if b, err := json.MarshalIndent(problems, "", "  "); err == nil {
			msg += "\n" + string(b)
		}
	}
	return errors.New(msg)
}
