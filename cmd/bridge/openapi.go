package main

import (
	"context"
	"fmt"

	"mcpbridge/internal/openapi"
	"mcpbridge/internal/routes"
)

type openapiCmd struct {
	configFlags
	Handle  string `arg:"" optional:"" help:"Only this server's tools, with paths relative to it."`
	YAML    bool   `help:"Print YAML instead of JSON."`
	Version string `enum:"3.1,3.0" default:"3.1" help:"Of OpenAPI: 3.1, or 3.0 for older generators."`
	Profile string `enum:",flat" default:"" help:"With flat, without references in tools' schemas, for tool hosts that hardly resolve them."`
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
		view := a.bridge.View(a.anonymous)
		// A document without some of its tools looks just like one of a smaller configuration.
		if err := missing(view); err != nil && !c.Partial {
			return fmt.Errorf("%w; --partial prints the document without it", err)
		}
		doc := a.documents.Whole(view)
		if c.Handle != "" {
			doc = a.documents.Handle(view, c.Handle)
		}
		if doc == nil {
			return fmt.Errorf("bridge.auth.anonymous lets callers without a credential see nothing of %q", c.Handle)
		}
		form := openapi.Form{Older: c.Version == "3.0", Flat: c.Profile == "flat", YAML: c.YAML}
		_, err := io.stdout.Write(doc.Form(form).Body)
		return err
	})
}
