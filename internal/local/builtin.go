package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpbridge/internal/bridge"
)

// Artifacts reads the results that are kept, each for the caller whose it is. The errors are
// of kind NotFound or Malformed when the caller can do something about them.
type Artifacts interface {
	// ReadText returns the characters from offset on, limit at most, of the text of a string at a JSON pointer, or of the
	// JSON of any other value, and the offset of what comes behind them, or -1.
	ReadText(ctx context.Context, c bridge.Caller, ref, pointer string, offset, limit int) (text string, next int, err error)
	// SearchText calls found for the first places where the text is, with what is around it, and reports whether there are more.
	SearchText(ctx context.Context, c bridge.Caller, ref, text string, found func(pointer string, offset int, excerpt string)) (more bool, err error)
}

// BuiltinName is the handle of the built-in tools, which no server may have.
const BuiltinName = "bridge"

// Builtin is the handle of that name: what the bridge itself offers as tools, so that callers who know nothing but tools have it
// too. A policy has to name it, see package identity.
func Builtin(a Artifacts) Handle {
	reads := Annotations{ReadOnly: true, Idempotent: true}
	return Handle{
		Name: BuiltinName, Title: "MCP Bridge", Description: "Parts of results that were too long to read at once.",
		Instructions: "The results of calls are kept for a while as artifacts, each under its reference, as mcp~…. Fetch a field of one by its JSON pointer, or search its text to find the pointer.",
		Transient:    true,
		Tools: []Tool{
			{
				Name: "get_artifact_field", Title: "Read a field of an artifact", Annotations: reads,
				Description: "Reads the field of an artifact at a JSON pointer: of a string its text, of anything else its JSON. A long one is read in pieces, by offset.",
				Input:       fieldInput, Output: fieldOutput,
				Run: func(ctx context.Context, r bridge.Request) (*bridge.Result, error) { return readField(ctx, a, r) },
			},
			{
				Name: "search_artifact_content", Title: "Search in an artifact", Annotations: reads,
				Description: "Finds a text in the strings of an artifact, in whatever case: the first ten places, each with its field and 200 characters around it.",
				Input:       searchInput, Output: searchOutput,
				Run: func(ctx context.Context, r bridge.Request) (*bridge.Result, error) { return searchContent(ctx, a, r) },
			},
		},
	}
}

var fieldInput = json.RawMessage(`{
	"type": "object",
	"properties": {
		"ref": {"type": "string", "minLength": 1, "description": "the artifact's reference, as mcp~…"},
		"field": {"type": "string", "default": "", "description": "a JSON pointer (RFC 6901) to the field, as /results/0/fullText; without one it is all of the artifact"},
		"offset": {"type": "integer", "minimum": 0, "maximum": 4294967295, "default": 0, "description": "how many characters to leave out before"},
		"max_chars": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 10000, "description": "how many characters to read at most"}
	},
	"required": ["ref"],
	"additionalProperties": false
}`)

var fieldOutput = json.RawMessage(`{
	"type": "object",
	"properties": {
		"ref": {"type": "string"},
		"field": {"type": "string"},
		"offset": {"type": "integer"},
		"text": {"type": "string", "description": "the text of a string, the JSON of anything else, from offset on"},
		"next_offset": {"type": "integer", "description": "where to go on; absent when this was the end"}
	},
	"required": ["ref", "field", "offset", "text"]
}`)

type fieldArgs struct {
	Ref      string   `json:"ref"`
	Field    string   `json:"field"`
	Offset   float64  `json:"offset"` // a JSON integer may be written 1e3 or 10.0
	MaxChars *float64 `json:"max_chars"`
}

type fieldAnswer struct {
	Ref    string `json:"ref"`
	Field  string `json:"field"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
	Next   *int   `json:"next_offset,omitempty"`
}

func readField(ctx context.Context, a Artifacts, r bridge.Request) (*bridge.Result, error) {
	var in fieldArgs
	if err := json.Unmarshal(r.Args, &in); err != nil {
		return nil, err
	}
	limit := 10_000
	if in.MaxChars != nil {
		limit = int(*in.MaxChars)
	}
	out := fieldAnswer{Ref: in.Ref, Field: in.Field, Offset: int(in.Offset)}
	var next int
	var err error
	out.Text, next, err = a.ReadText(ctx, r.Caller, in.Ref, in.Field, out.Offset, limit)
	switch {
	case err != nil:
		return refused(err)
	case next < 0:
		return Answer(out, out.Text)
	}
	out.Next = &next
	return Answer(out, out.Text, fmt.Sprintf("[There is more: go on with offset %d.]", next))
}

var searchInput = json.RawMessage(`{
	"type": "object",
	"properties": {
		"ref": {"type": "string", "minLength": 1, "description": "the artifact's reference, as mcp~…"},
		"query": {"type": "string", "minLength": 1, "description": "the text to find"}
	},
	"required": ["ref", "query"],
	"additionalProperties": false
}`)

var searchOutput = json.RawMessage(`{
	"type": "object",
	"properties": {
		"ref": {"type": "string"},
		"matches": {
			"type": "array",
			"description": "in the order of the artifact",
			"items": {
				"type": "object",
				"properties": {
					"field": {"type": "string", "description": "the JSON pointer of the string that has it"},
					"offset": {"type": "integer", "description": "how many of the string's characters are before it"},
					"excerpt": {"type": "string", "description": "it, with what is around it"}
				},
				"required": ["field", "offset", "excerpt"]
			}
		},
		"more": {"type": "boolean", "description": "there are more than these"}
	},
	"required": ["ref", "matches", "more"]
}`)

type contentArgs struct {
	Ref   string `json:"ref"`
	Query string `json:"query"`
}

type contentAnswer struct {
	Ref     string  `json:"ref"`
	Matches []match `json:"matches"`
	More    bool    `json:"more"`
}

type match struct {
	Field   string `json:"field"`
	Offset  int    `json:"offset"`
	Excerpt string `json:"excerpt"`
}

func searchContent(ctx context.Context, a Artifacts, r bridge.Request) (*bridge.Result, error) {
	var in contentArgs
	if err := json.Unmarshal(r.Args, &in); err != nil {
		return nil, err
	}
	out := contentAnswer{Ref: in.Ref, Matches: []match{}}
	var err error
	out.More, err = a.SearchText(ctx, r.Caller, in.Ref, in.Query, func(pointer string, offset int, excerpt string) {
		out.Matches = append(out.Matches, match{pointer, offset, excerpt})
	})
	if err != nil {
		return refused(err)
	}
	var text strings.Builder
	for _, m := range out.Matches {
		fmt.Fprintf(&text, "%s, from character %d: %s\n\n", m.Field, m.Offset, m.Excerpt)
	}
	switch {
	case out.More:
		text.WriteString("[There are more matches: search for a longer text.]")
	case len(out.Matches) == 0:
		text.WriteString("[It is not found.]")
	}
	return Answer(out, strings.TrimSpace(text.String()))
}

// refused makes what the caller can do something about the tool's own failure, with
// what is there instead of a field that is not. The rest fails the call.
func refused(err error) (*bridge.Result, error) {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok || e.Kind != bridge.NotFound && e.Kind != bridge.Malformed {
		return nil, err
	}
	text := e.Msg
	if keys, ok := e.Members["keys"].([]string); ok {
		text += fmt.Sprintf(" Keys: %q", keys)
		if n, _ := e.Members["keys_count"].(int); n > len(keys) {
			text += fmt.Sprintf(" and %d more", n-len(keys))
		}
		text += "."
	}
	return Failure(text)
}
