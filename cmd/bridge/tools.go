package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/local"
	"mcpbridge/internal/telemetry"
)

type toolsCmd struct {
	configFlags
	Handle string `arg:"" optional:"" help:"Only this server."`
}

// Run lists the tools.
func (c *toolsCmd) Run(ctx context.Context, io streams) error {
	cfg, err := c.load(io)
	if err != nil {
		return err
	}
	return withCatalogue(ctx, io, cfg, c.Handle, func(a *app) error {
		w := tabwriter.NewWriter(io.stdout, 0, 4, 2, ' ', 0)
		view := a.bridge.View(a.anonymous)
		for _, s := range view.Servers {
			if c.Handle == "" || s.Handle == c.Handle {
				printServer(w, s)
			}
		}
		return errors.Join(w.Flush(), missing(view))
	})
}

// missing says which servers of the view have not told what they offer, or returns nil.
func missing(view *bridge.Snapshot) error {
	var errs []error
	for _, s := range view.Servers {
		if cannotBeUsed(s) {
			errs = append(errs, fmt.Errorf("the server %q cannot be used: %s", s.Handle, line(s.LastError)))
		}
	}
	return errors.Join(errs...)
}

// cannotBeUsed reports whether a server is broken. One that is connected for each caller
// apart is not: a command comes as nobody.
func cannotBeUsed(s *bridge.Server) bool { return s.LastError != "" && s.State != bridge.NeedsCaller }

// printServer prints one line for each tool of s, and for each one that was left out.
func printServer(w io.Writer, s *bridge.Server) {
	for _, t := range s.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\n", line(s.Handle), line(t.Name), line(firstLine(t)))
	}
	if s.State == bridge.NeedsCaller {
		fmt.Fprintf(w, "%s\t\t(needs a caller: %s)\n", line(s.Handle), line(s.LastError))
	}
	for _, t := range s.Skipped {
		fmt.Fprintf(w, "%s\t%s\t(left out: %s)\n", line(s.Handle), line(t.Name), line(t.Reason))
	}
}

func firstLine(t *bridge.Tool) string {
	if t.Title != "" {
		return t.Title
	}
	first, _, _ := strings.Cut(t.Description, "\n")
	return first
}

// count is a number of things, in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// line makes a server's text fit for one line of a terminal.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// withCatalogue connects the servers, waits until each has answered or failed
// (only the one called handle, if that is not empty; the built-in tools need none), and calls do.
func withCatalogue(ctx context.Context, io streams, cfg *config.Config, handle string, do func(*app) error) (err error) {
	switch s, ok := cfg.Server(handle); {
	case handle == "":
	case ok:
		cfg.Servers = []config.Server{*s}
	case handle == local.BuiltinName:
		cfg.Servers = nil
	default:
		names := make([]string, 0, len(cfg.Servers))
		for _, s := range cfg.Servers {
			names = append(names, s.Handle)
		}
		return fmt.Errorf("there is no server %q in the configuration; there are %q", handle, names)
	}
	// What servers print, and how they come and go, is no part of a command's output.
	level := max(cfg.Bridge.Telemetry.LogLevel, slog.LevelError)
	a, err := newApp(cfg, telemetry.NewLog(io.stderr, level), artifacts.Discard{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	a.run(ctx)
	if err := a.catalogue.Settle(ctx); err != nil {
		return err
	}
	return do(a)
}
