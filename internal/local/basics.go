package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addBasics adds the tools that answer texts, numbers and errors.
func addBasics(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "add", Title: "Add two numbers", Annotations: pure(),
		Description: "Adds two numbers.",
	}, add)
	mcp.AddTool(s, &mcp.Tool{
		Name: "greet", Title: "Greet somebody", Annotations: pure(),
		Description: "Greets somebody, in one of three languages.",
		InputSchema: greetSchema,
	}, greet)
	mcp.AddTool(s, &mcp.Tool{
		Name: "dice", Title: "Throw dice",
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
		Description:  "Throws dice. With the seed of an earlier answer the same throws come again.",
		InputSchema:  diceSchema,
		OutputSchema: throwsSchema,
	}, dice)
	mcp.AddTool(s, &mcp.Tool{
		Name: "countdown", Title: "Count down", Annotations: pure(),
		Description: "Counts down, reporting its progress, and stops when it is cancelled.",
		InputSchema: countdownSchema,
	}, countdown)
	mcp.AddTool(s, &mcp.Tool{
		Name: "fail", Title: "Fail", Annotations: pure(),
		Description: "Fails, always, as a tool does whose work cannot be done.",
	}, fail)
}

type addArgs struct {
	A float64 `json:"a" jsonschema:"the first number"`
	B float64 `json:"b" jsonschema:"the second number"`
}

type sum struct {
	Sum float64 `json:"sum" jsonschema:"the sum of both"`
}

func add(_ context.Context, _ *mcp.CallToolRequest, a addArgs) (*mcp.CallToolResult, sum, error) {
	s := a.A + a.B
	if math.IsInf(s, 0) {
		return nil, sum{}, errors.New("the sum is too large")
	}
	return nil, sum{s}, nil
}

type greetArgs struct {
	Name     string `json:"name"`
	Language string `json:"language"`
}

// Where a Go type cannot say it, a tool brings its schema as JSON. The function
// sees arguments that were checked against it, with the defaults filled in.
var greetSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1, "description": "who is greeted"},
		"language": {"type": "string", "enum": ["en", "de", "fr"], "default": "en", "description": "the language to greet in"}
	},
	"required": ["name"],
	"additionalProperties": false
}`)

func greet(_ context.Context, _ *mcp.CallToolRequest, a greetArgs) (*mcp.CallToolResult, any, error) {
	hello := map[string]string{"en": "Hello", "de": "Guten Tag", "fr": "Bonjour"}[a.Language]
	return texts(fmt.Sprintf("%s, %s!", hello, a.Name)), nil, nil
}

type diceArgs struct {
	Count int     `json:"count"`
	Sides int     `json:"sides"`
	Seed  *uint32 `json:"seed"`
}

var diceSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 2, "description": "how many dice"},
		"sides": {"type": "integer", "minimum": 2, "maximum": 1000, "default": 6, "description": "the sides of each"},
		"seed": {"type": "integer", "minimum": 0, "maximum": 4294967295, "description": "makes the throws repeatable"}
	},
	"additionalProperties": false
}`)

type throws struct {
	Throws []int  `json:"throws"`
	Total  int    `json:"total"`
	Seed   uint32 `json:"seed"`
}

var throwsSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"throws": {"type": "array", "items": {"type": "integer"}, "description": "what each of the dice shows"},
		"total": {"type": "integer", "description": "their sum"},
		"seed": {"type": "integer", "description": "brings the same throws again"}
	},
	"required": ["throws", "total", "seed"]
}`)

func dice(_ context.Context, _ *mcp.CallToolRequest, a diceArgs) (*mcp.CallToolResult, throws, error) {
	t := throws{Seed: rand.Uint32()}
	if a.Seed != nil {
		t.Seed = *a.Seed
	}
	r := rand.New(rand.NewPCG(uint64(t.Seed), 0))
	for range a.Count {
		n := 1 + r.IntN(a.Sides)
		t.Throws = append(t.Throws, n)
		t.Total += n
	}
	return nil, t, nil
}

type countdownArgs struct {
	From  int     `json:"from"`
	Pause float64 `json:"pause"`
}

var countdownSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"from": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 3, "description": "where to start"},
		"pause": {"type": "number", "minimum": 0, "maximum": 60, "default": 1, "description": "seconds between two numbers"}
	},
	"additionalProperties": false
}`)

func countdown(ctx context.Context, req *mcp.CallToolRequest, a countdownArgs) (*mcp.CallToolResult, any, error) {
	pause := time.Duration(a.Pause * float64(time.Second))
	token := req.Params.GetProgressToken()
	for i := range a.From {
		if token != nil { // otherwise nobody wants to know
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(i + 1), Total: float64(a.From), Message: fmt.Sprintf("%d…", a.From-i),
			})
			if err != nil {
				return nil, nil, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	return texts("Lift-off!"), nil, nil
}

type failArgs struct {
	Reason string `json:"reason,omitempty" jsonschema:"what to complain about; the disk, if nothing else"`
}

// An error of a tool becomes a result with isError: the call itself has worked.
func fail(_ context.Context, _ *mcp.CallToolRequest, a failArgs) (*mcp.CallToolResult, any, error) {
	return nil, nil, errors.New(cmp.Or(a.Reason, "disk full"))
}

// texts is a result of text blocks.
func texts(texts ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	for _, t := range texts {
		r.Content = append(r.Content, &mcp.TextContent{Text: t})
	}
	return r
}
