package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"mcpbridge/internal/config"
)

type checkCmd struct {
	configFlags
	Offline        bool   `help:"Only read the file; connect to no server."`
	Diff           bool   `help:"Say what the running bridge would add (+), change (~) and remove (-) if it read this file; it is asked with $$BRIDGE_KEY, which needs the scope admin. The exit status is 0 whatever would change."`
	URL            string `name:"url" placeholder:"URL" help:"With --diff, where the bridge runs; else where the file has it listen."`
	InsecureNoAuth bool   `help:"As for serve."`
}

// Run says whether the configuration can be used and what it would expose.
func (c *checkCmd) Run(ctx context.Context, io streams) error {
	cfg, err := c.load(io)
	if err != nil {
		return err
	}
	if err := config.CheckExposure(cfg.Bridge.Listen, cfg.Bridge.Auth.Enabled(), c.InsecureNoAuth); err != nil {
		return fmt.Errorf("%w%w", err, errConfig)
	}
	switch {
	case c.Diff:
		return c.diff(ctx, io, cfg)
	case c.URL != "":
		return fmt.Errorf("--url goes with --diff; %w", errUsage)
	case c.Offline:
		fmt.Fprintf(io.stdout, "The configuration is valid: %s, listening on %s.\n", count(len(cfg.Servers), "server"), cfg.Bridge.Listen)
		return nil
	}
	return withCatalogue(ctx, io, cfg, "", func(a *app) error {
		failed := 0
		w := tabwriter.NewWriter(io.stdout, 0, 4, 2, ' ', 0)
		for _, s := range a.bridge.View(a.anonymous).Servers {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", line(s.Handle), s.State, count(len(s.Tools), "tool"), line(s.LastError))
			for _, t := range s.Skipped {
				fmt.Fprintf(w, "\tleft out\t%s\t%s\n", line(t.Name), line(t.Reason))
			}
			if cannotBeUsed(s) {
				failed++
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if failed > 0 {
			return fmt.Errorf("the configuration is valid, but %s cannot be used", count(failed, "server"))
		}
		fmt.Fprintf(io.stdout, "The configuration is valid and every server that can be asked answers; serve listens on %s.\n", cfg.Bridge.Listen)
		return nil
	})
}
