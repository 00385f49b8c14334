package local

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed notes
var noteFiles embed.FS

const noteType = "text/markdown"

// A note is a text about bridges.
type note struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Tags  []string `json:"tags"`
	Text  string   `json:"text"`
}

var notes = []note{
	readNote("arch", "stone", "concrete"),
	readNote("suspension", "steel", "long spans"),
	readNote("cantilever", "steel", "concrete"),
	readNote("movable", "steel", "ships"),
}

// readNote reads a note of this binary, whose first line is its title.
func readNote(id string, tags ...string) note {
	b, err := noteFiles.ReadFile("notes/" + id + ".md")
	if err != nil {
		panic(err) // it was there when this was built
	}
	title, text, _ := strings.Cut(string(b), "\n")
	return note{id, strings.TrimPrefix(title, "# "), tags, strings.TrimSpace(text)}
}

func (n note) uri() string { return "demo://notes/" + n.ID }

func (n note) contents() *mcp.ResourceContents {
	return &mcp.ResourceContents{URI: n.uri(), MIMEType: noteType, Text: "# " + n.Title + "\n\n" + n.Text + "\n"}
}

// addNotes adds the notes: a tool that searches them, a resource for each, and a prompt.
func addNotes(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "search_notes", Title: "Search the notes", Annotations: pure(),
		Description:  "Finds notes about bridges that contain a word, and answers their whole texts.",
		InputSchema:  searchSchema,
		OutputSchema: foundSchema,
	}, searchNotes)
	for _, n := range notes {
		s.AddResource(&mcp.Resource{
			URI: n.uri(), Name: n.ID, Title: n.Title, MIMEType: noteType,
			Description: "A note about " + strings.ToLower(n.Title) + ".", Size: int64(len(n.contents().Text)),
		}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{n.contents()}}, nil
		})
	}
	s.AddPrompt(&mcp.Prompt{
		Name: "explain", Title: "Explain a kind of bridge", Description: "Asks for an explanation of one of the notes.",
		Arguments: []*mcp.PromptArgument{
			{Name: "note", Description: "the note's id, such as arch", Required: true},
			{Name: "audience", Description: "who it is for; a curious child, if nothing else"},
		},
	}, explain)
}

type searchArgs struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

var searchSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"query": {"type": "string", "minLength": 1, "description": "a word, in any case"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 10, "description": "how many notes at most"}
	},
	"required": ["query"],
	"additionalProperties": false
}`)

type found struct {
	Count int    `json:"count"`
	Notes []note `json:"notes"`
}

var foundSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"count": {"type": "integer", "description": "how many notes contain the word"},
		"notes": {"type": "array", "description": "the first of them", "items": {"$ref": "#/$defs/note"}}
	},
	"required": ["count", "notes"],
	"$defs": {
		"note": {
			"type": "object",
			"properties": {
				"id": {"type": "string"},
				"title": {"type": "string"},
				"tags": {"type": "array", "items": {"type": "string"}},
				"text": {"type": "string", "description": "the whole text, in Markdown"}
			},
			"required": ["id", "title", "tags", "text"]
		}
	}
}`)

func searchNotes(_ context.Context, _ *mcp.CallToolRequest, a searchArgs) (*mcp.CallToolResult, found, error) {
	f := found{Notes: []note{}}
	query, titles := strings.ToLower(a.Query), []string{}
	for _, n := range notes {
		if !strings.Contains(strings.ToLower(n.Title+"\n"+n.Text), query) {
			continue
		}
		if f.Count++; f.Count <= a.Limit {
			f.Notes = append(f.Notes, n)
			titles = append(titles, n.Title)
		}
	}
	// The text is for readers; without it, it would be the whole JSON once more.
	return texts(fmt.Sprintf("%d found: %s", f.Count, strings.Join(titles, ", "))), f, nil
}

func explain(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	audience := cmp.Or(req.Params.Arguments["audience"], "a curious child")
	for _, n := range notes {
		if n.ID == req.Params.Arguments["note"] {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.EmbeddedResource{Resource: n.contents()}},
				{Role: "user", Content: &mcp.TextContent{Text: "Explain this to " + audience + "."}},
			}}, nil
		}
	}
	return nil, fmt.Errorf("there is no note %q", req.Params.Arguments["note"])
}
