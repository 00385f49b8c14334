package mcptest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ToolNames are the tools of mode [Names]: names that paths, documents and
// generators find hard. Each answers its own name as text.
var ToolNames = []string{
	"{id}", "other", "a/b", "a%2Fb", "with space", "grüße-名前", strings.Repeat("long_name_", 7),
	"docs", "openapi.json", "firecrawl_search", "a__b", "dot.ted", "..", "what?", "ha#sh", "trailing/", "Other", `quo"te`, "+", "a;b=c",
}

func names([]string) (*server, error) {
	var tools []*tool
	for _, n := range ToolNames {
		tools = append(tools, namesake(n))
	}
	return newServer(tools...), nil
}

// numbered are tools tool_<from>, … that answer their own names.
func numbered(from, n int) []*tool {
	var tools []*tool
	for i := range n {
		tools = append(tools, namesake(fmt.Sprintf("tool_%d", from+i)))
	}
	return tools
}

// listing answers tools/list with what page makes of the cursor ("" on the first page).
func listing(tools []*tool, page func(cursor string) string) *server {
	s := newServer(tools...)
	s.first = func(w *wire, m *message) bool {
		if m.Method != "tools/list" {
			return false
		}
		var p struct{ Cursor string }
		if len(m.Params) > 0 && json.Unmarshal(m.Params, &p) != nil {
			w.refuse(m.ID, -32602, "the cursor is not a string")
			return true
		}
		w.answer(m.ID, page(p.Cursor))
		return true
	}
	return s
}

func pages(args []string) (*server, error) {
	counts := []int{25, 10} // tools, on a page
	for i := range min(len(args), len(counts)) {
		n, err := strconv.Atoi(args[i])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of tools", args[i])
		}
		counts[i] = n
	}
	tools := numbered(0, counts[0])
	return listing(tools, func(cursor string) string {
		from, _ := strconv.Atoi(cursor)
		from = min(max(0, from), len(tools))
		to := min(from+counts[1], len(tools))
		next := ``
		if to < len(tools) {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
		}
		return `{"tools":` + listOf(tools[from:to]) + next + `}`
	}), nil
}

func pagesLoop([]string) (*server, error) {
	return listing(kit(), func(cursor string) string {
		if cursor == "" {
			return `{"tools":` + listOf(kit()) + `,"nextCursor":"again"}`
		}
		return `{"tools":[],"nextCursor":"again"}`
	}), nil
}

func pagesEndless([]string) (*server, error) {
	return listing(kit(), func(cursor string) string {
		if cursor == "" {
			return `{"tools":` + listOf(kit()) + `,"nextCursor":"1"}`
		}
		n, _ := strconv.Atoi(cursor)
		return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n+1)
	}), nil
}

func noTools([]string) (*server, error) {
	s := newServer()
	s.capabilities = `{}`
	s.first = func(w *wire, m *message) bool {
		if strings.HasPrefix(m.Method, "tools/") {
			w.refuse(m.ID, -32601, fmt.Sprintf("method %q not found", m.Method))
			return true
		}
		return false
	}
	return s, nil
}

func badSchema([]string) (*server, error) {
	tools := numbered(1, 6)
	tools[3].def = `{"name":"tool_4","description":"Its schema is of a string.","inputSchema":{"type":"string"}}`
	return newServer(tools...), nil
}

func badDescription([]string) (*server, error) {
	tools := numbered(1, 6)
	tools[3].def = `{"name":"tool_4","description":5,"inputSchema":{"type":"object"}}`
	return newServer(tools...), nil
}

func badTools([]string) (*server, error) {
	good := numbered(1, 3)
	entries := []string{
		`5`, good[0].def, `null`, `{"description":"no name","inputSchema":{"type":"object"}}`, `{"name":"","inputSchema":{"type":"object"}}`,
		good[1].def, `{"name":7,"inputSchema":{"type":"object"}}`, `{"name":"array_schema","inputSchema":[]}`, `{"name":"string_schema","inputSchema":"object"}`,
		`["name"]`, good[2].def, good[0].def,
	}
	return listing(good, func(string) string { return `{"tools":[` + strings.Join(entries, ",") + `]}` }), nil
}
