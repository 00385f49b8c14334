package openapi

import (
	"strings"

	"mcpbridge/internal/bridge"
)

// operation writes the one operation of a tool. It is always a POST: a hint that
// a tool only reads is no promise that it may be prefetched or cached.
func (o *Options) operation(w *writer, t *bridge.Tool, id string) {
	o.request(w, t, id)
	w.key("responses").open('{')
	w.key("200").open('{').text("description", okDescription)
	w.key("headers").open('{').bytes(okHeaders).close('}')
	w.key("content").open('{').key("application/json").open('{').key("schema").bytes(published(t).output)
	w.close('}').close('}').close('}')
	if asks(t) {
		w.reference("202", "responses", "Accepted")
	}
	w.bytes(problemAnswers).close('}')
	hints(w, t)
}

// request opens an operation, and writes what it is and takes.
func (o *Options) request(w *writer, t *bridge.Tool, id string) {
	p := published(t)
	w.open('{')
	w.key("operationId").str(id)
	w.key("tags").open('[').str(t.Handle).close(']')
	w.key("summary").str(summary(t))
	w.text("description", o.cut(strings.TrimSpace(t.Description)))
	if p.input != nil {
		w.key("requestBody").open('{')
		if p.required {
			w.key("required").raw("true")
		}
		w.key("content").open('{').key("application/json").open('{').key("schema").bytes(p.input)
		w.close('}').close('}').close('}')
	}
}

// hints writes what the server says of how the tool behaves, and closes the operation.
func hints(w *writer, t *bridge.Tool) {
	w.flag("x-mcp-read-only", t.Annotations.ReadOnly)
	w.flag("x-mcp-destructive", t.Annotations.Destructive)
	w.flag("x-mcp-idempotent", t.Annotations.Idempotent)
	w.flag("x-mcp-open-world", t.Annotations.OpenWorld)
	w.text("x-mcp-schema-sha256", t.SchemaHash)
	w.close('}')
}

func summary(t *bridge.Tool) string {
	if s := strings.TrimSpace(t.Title); s != "" {
		return s
	}
	return t.Name
}

// idSet keeps the operation ids of one document apart. Two names can share one
// only if somebody searched for them; the second then gets a longer hash.
type idSet map[string]struct{}

func (s idSet) add(id string, t *bridge.Tool) string {
	if _, taken := s[id]; taken {
		id = longHash(t.Handle, t.Name)
	}
	s[id] = struct{}{}
	return id
}
