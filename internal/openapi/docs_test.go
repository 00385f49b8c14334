package openapi

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/schemas.md anew")

const (
	tableStart = "<!-- This table is written by: make docs -->\n"
	tableEnd   = "<!-- The end of the table. -->\n"
)

// docs/schemas.md shows what TestBecomes proves.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("| | the server's | in 3.1 | in 3.0 |\n|---|---|---|---|\n")
	for _, c := range becomes {
		cell := func(s string) string {
			if s == "" || s == c.schema {
				return "the same"
			}
			return code(s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.what, code(c.schema), cell(c.newer), cell(c.older))
	}
	file := filepath.Join("..", "..", "docs", "schemas.md")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(old, []byte(tableStart))
	_, after, closed := bytes.Cut(rest, []byte(tableEnd))
	if !found || !closed {
		t.Fatal("docs/schemas.md has no place for the table")
	}
	now := fmt.Appendf(nil, "%s%s%s%s%s", before, tableStart, b.String(), tableEnd, after)
	if bytes.Equal(now, old) {
		return
	}
	if !*update {
		t.Fatal("the table of docs/schemas.md is not what the tests say; run make docs")
	}
	if err := os.WriteFile(file, now, 0o644); err != nil {
		t.Fatal(err)
	}
}

// code writes a schema, with room to break lines, for a cell of a table.
func code(s string) string {
	s = strings.NewReplacer(`,"`, `, "`, `,{`, `, {`, `,null`, `, null`, `":`, `": `, `|`, `\|`).Replace(s)
	return "`" + s + "`"
}
