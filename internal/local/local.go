// Package local holds tools that are written in Go and live in this binary. The
// handles of a [Host] run in the bridge itself and know who calls them: so far
// there is one, [Builtin].
//
// The demo, which the quick start rests on and which is meant to be read as an example, is a whole
// MCP server like those of others: [Demo] makes it from a handful of
// tools, resources and a prompt, and [ServeDemo] speaks to it over a pipe.
// To add a tool there, write a function that takes a struct and returns a struct, and
// hand it to mcp.AddTool: the schemas come from the types.
package local

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Demo returns a new MCP server with a tool for everything that a bridge has to
// carry: numbers, texts, pictures, progress, errors, long answers.
func Demo() *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "demo", Title: "Demo tools", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions: "Small tools that need no network and change nothing. Start with add and greet; search_notes finds texts about bridges.",
			// No logging capability: this server has nothing to log.
			Capabilities: &mcp.ServerCapabilities{},
		})
	addBasics(s)
	addMedia(s)
	addNotes(s)
	return s
}

// pure are the annotations of a tool that only computes: it may be called again and reaches nothing outside.
func pure() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)}
}
