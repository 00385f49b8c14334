package main

import (
	"context"
	"fmt"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/routes"
)

type openapiCmd struct {
	configFlags
	Handle  string `arg:"" optional:"" help:"Only this server's tools, with paths relative to it."`
	YAML    bool   `help:"Print YAML instead of JSON."`
	Partial bool   `help:"Print the document also if a server cannot be used."`
	Fixed   bool   `help:"Print the document of the bridge's own fixed operations, in YAML; needs no configuration."`
}

// Run prints the document, byte for byte what the bridge would serve.
func (c *openapiCmd) Run(ctx context.Context, io streams) error {
	if c.Fixed {
		b, err := routes.FixedOpenAPI()
		if err != nil {
			return err
		}
		_, err = io.stdout.Write(b)
		return err
	}
	cfg, err := c.load(io)
	if err != nil {
		return err
	}
	return withCatalogue(ctx, io, cfg, c.Handle, func(a *app) error {
		view := a.bridge.View(bridge.Caller{})
		// A document without some of its tools looks just like one of a smaller configuration.
		if err := missing(view); err != nil && !c.Partial {
			return fmt.Errorf("%w; --partial prints the document without it", err)
		}
		doc := a.documents.Whole(view)
		if c.Handle != "" {
			doc = a.documents.Handle(view, c.Handle)
		}
		b := doc.JSON().Body
		if c.YAML {
			b = doc.YAML().Body
		}
		_, err := io.stdout.Write(b)
		return err
	})
}
