package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong, or without effect, in a file.
type Problem struct {
	Line int    // 1 is the first; 0 when there is no line to name
	Path string // the key, as mcpServers.files.timeout; empty for the file as a whole
	Msg  string // what is wrong and what to do
}

// String is `line 3: mcpServers.files.timeout: message`.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Error says everything that is wrong with a configuration.
type Error struct {
	Name     string    // the file, as given to [Load] or [Read]
	Problems []Problem // by line; never empty
}

// Error returns one line per problem. It does not repeat the name of the file.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func sortProblems(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return ps
}
