package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// ListLimits bound what a server's lists may hold. Zero fields mean what they say in their comment.
type ListLimits struct {
	Pages   int           // zero is 1000
	Tools   int           // zero is 10000
	Timeout time.Duration // of one page; zero is 20 s
}

// list reads all pages of one list and returns its entries, each as the server sent it.
func list(ctx context.Context, conn rpc.Conn, method, member string, l ListLimits) ([]json.RawMessage, error) {
	var entries []json.RawMessage
	var params []byte
	seen := map[string]bool{}
	for page := 1; ; page++ {
		b, err := conn.Do(ctx, &rpc.Request{Method: method, Params: params, Idle: l.Timeout, Total: l.Timeout})
		if err != nil {
			return nil, err
		}
		items := raw.Get(b, member)
		if raw.KindOf(items) != raw.Array {
			return nil, &rpc.Failure{Reason: rpc.Protocol, Msg: fmt.Sprintf("its answer to %s has no array %q", method, member)}
		}
		for _, e := range raw.Elements(items) {
			if len(entries) == l.Tools {
				return nil, &rpc.Failure{Reason: rpc.Protocol, Msg: fmt.Sprintf("%s has more than %d entries; raise limits.toolsPerServer", method, l.Tools)}
			}
			entries = append(entries, e)
		}
		cursor := raw.Get(b, "nextCursor")
		switch {
		case raw.KindOf(cursor) != raw.String || len(cursor) == len(`""`):
			return entries, nil
		case seen[string(cursor)]:
			return nil, &rpc.Failure{Reason: rpc.Protocol, Msg: fmt.Sprintf("%s goes in circles: a cursor came twice", method)}
		case page == l.Pages:
			return nil, &rpc.Failure{Reason: rpc.Protocol, Msg: fmt.Sprintf("%s has more than %d pages; raise limits.pages", method, l.Pages)}
		}
		seen[string(cursor)] = true
		params = append([]byte(`"cursor":`), cursor...)
		raw.Flatten(params)
	}
}

// decodeTools makes tools of the entries of a list, one by one: an entry that
// cannot be used is left out alone, with its reason.
func decodeTools(entries []json.RawMessage, target *bridge.Target, keep func(name string) bool, compiler bridge.Compiler) (tools []*bridge.Tool, skipped []bridge.Skipped) {
	seen := map[string]bool{}
	for i, e := range entries {
		name := raw.GetString(e, "name")
		skip := func(format string, args ...any) {
			skipped = append(skipped, bridge.Skipped{Name: name, Reason: fmt.Sprintf(format, args...)})
		}
		switch {
		case name == "":
			skip("entry %d of the list has no name", i)
			continue
		case !keep(name):
			continue
		case seen[name]:
			skip("the list has it twice; the first one counts")
			continue
		}
		seen[name] = true
		t := decodeTool(e, name, target)
		if err := compiler.Compile(t); err != nil {
			skip("%v", err)
			continue
		}
		tools = append(tools, t)
	}
	return tools, skipped
}

// decodeTool takes what is usable of one entry. Texts and hints of a wrong type are as if they were missing.
func decodeTool(e json.RawMessage, name string, target *bridge.Target) *bridge.Tool {
	hints := raw.Get(e, "annotations")
	t := &bridge.Tool{
		Handle: target.Handle, Name: name, Raw: e, Target: target,
		Title: raw.GetString(e, "title"), Description: raw.GetString(e, "description"),
		Annotations: bridge.Annotations{
			ReadOnly: hint(hints, "readOnlyHint"), Destructive: hint(hints, "destructiveHint"),
			Idempotent: hint(hints, "idempotentHint"), OpenWorld: hint(hints, "openWorldHint"),
		},
		Input: json.RawMessage(`{"type":"object"}`),
	}
	if t.Title == "" {
		t.Title = raw.GetString(hints, "title")
	}
	if s := raw.Get(e, "inputSchema"); !raw.IsNull(s) {
		t.Input = s
	}
	if s := raw.Get(e, "outputSchema"); !raw.IsNull(s) {
		t.Output = s
	}
	t.SchemaHash = bridge.HashSchemas(t.Input, t.Output)
	// The name goes back in the server's own bytes: a lone surrogate would not survive decoding.
	t.Params = slices.Concat([]byte(`"name":`), raw.Get(e, "name"), []byte(`,"arguments":`))
	return t
}

func hint(hints []byte, name string) *bool {
	switch string(raw.Get(hints, name)) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	default:
		return nil
	}
}
