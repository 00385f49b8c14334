package routes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// ListInput holds the parameters of a list of tools.
type ListInput struct {
	Q      string `query:"q" doc:"Only tools with this text in their name, title or description, in whatever case."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"The most tools in one answer; next leads to the others."`
	Cursor string `query:"cursor" doc:"Where to go on, from an answer's next."`
}

type catalogueInput struct {
	ListInput
	Handles string `query:"handles" doc:"Only these servers, by their handles with commas between. An empty list is none; a handle that is not there, or not visible, is left out."`
}

type serverInput struct {
	Handle string `path:"handle" doc:"The server's name in the bridge, percent-encoded."`
	ListInput
}

type toolInput struct {
	Handle string `path:"handle" doc:"The server's name in the bridge, percent-encoded."`
	Tool   string `path:"tool" doc:"The tool's name, percent-encoded: a slash in it is %2F."`
}

// A Catalogue is the answer of GET /tools.
type Catalogue struct {
	Servers []ServerInfo `json:"servers" nullable:"false" doc:"Every server that the caller may see, by handle."`
	ToolList
}

// A ToolList is a page of a list of tools.
type ToolList struct {
	Tools []ToolInfo `json:"tools" nullable:"false" doc:"The tools, by handle and then in their server's order."`
	Total int        `json:"total" doc:"How many tools the whole list has."`
	Next  string     `json:"next,omitempty" format:"uri-reference" doc:"The next page; absent on the last."`
}

// A ServerInfo says how a server is.
type ServerInfo struct {
	Handle      string       `json:"handle" doc:"The server's name in the bridge."`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	State       bridge.State `json:"state" enum:"connecting,ready,idle,degraded,failed,needs-auth,disabled,needs-caller" doc:"How it is. An idle server is connected by the next call."`
	LastError   string       `json:"last_error,omitempty" doc:"Why it is not ready."`
	Since       *time.Time   `json:"since,omitempty" doc:"When it came into this state."`
	Listed      *time.Time   `json:"listed,omitempty" doc:"When its tools were last read."`
	Server      *SelfInfo    `json:"server,omitempty" doc:"What the server says of itself."`
	ToolCount   int          `json:"tool_count" doc:"How many tools it offers to the caller."`

	ResourceCount int         `json:"resource_count" doc:"How many resources."`
	TemplateCount int         `json:"template_count" doc:"How many templates of resources."`
	PromptCount   int         `json:"prompt_count" doc:"How many prompts."`
	Links         ServerLinks `json:"links"`
}

// A SelfInfo is what a server says of itself.
type SelfInfo struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Protocol     string `json:"protocol" doc:"The version of MCP in use."`
	Instructions string `json:"instructions,omitempty" doc:"How to use it, for models."`
}

// ServerLinks are relative references from the answer's URL.
type ServerLinks struct {
	Self      string `json:"self" format:"uri-reference"`
	OpenAPI   string `json:"openapi" format:"uri-reference"`
	Docs      string `json:"docs" format:"uri-reference"`
	Resources string `json:"resources" format:"uri-reference"`
	Prompts   string `json:"prompts" format:"uri-reference"`
}

// A ServerPage is the answer of GET /tools/{handle}.
type ServerPage struct {
	ServerInfo
	ToolList
	Skipped []bridge.Skipped `json:"skipped" nullable:"false" doc:"Tools that cannot be offered, and why."`
}

// A ToolInfo describes a tool as its server lists it.
type ToolInfo struct {
	Handle       string          `json:"handle"`
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty" doc:"The server's hints about the tool, as sent."`
	InputSchema  json.RawMessage `json:"input_schema" doc:"The schema of the arguments, as sent."`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" doc:"The schema of structured content, as sent."`
	SchemaHash   string          `json:"schema_sha256" doc:"A digest of both schemas."`
	Unchecked    string          `json:"unchecked,omitempty" doc:"Why arguments or results are not checked against their schema."`
	Links        ToolLinks       `json:"links"`
}

// ToolLinks are relative references from the answer's URL.
type ToolLinks struct {
	Self string `json:"self" format:"uri-reference" doc:"The description of the tool."`
	Call string `json:"call" format:"uri-reference" doc:"Where to POST the arguments."`
}

func (s *server) catalogueRoutes() {
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/tools", OperationID: "list-tools", Tags: []string{"catalogue"},
		Summary:     "List servers and tools",
		Description: "The servers with their state, and their tools with schemas: all that the caller may call.",
		Responses:   s.answers(s.jsonAnswer("The servers and a page of their tools.", Catalogue{}), bridge.Malformed, Unauthenticated, bridge.Forbidden),
	}, s.listTools)
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/tools/{handle}", OperationID: "get-server", Tags: []string{"catalogue"},
		Summary:     "Describe a server",
		Description: "The server's state, its tools with schemas, and the tools that were left out with the reasons.",
		Responses:   s.answers(s.jsonAnswer("The server and a page of its tools.", ServerPage{}), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound),
	}, s.getServer)
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/tools/{handle}/{tool}", OperationID: "get-tool", Tags: []string{"catalogue"},
		Summary:     "Describe a tool",
		Description: "The tool as its server lists it. The ETag is its schema_sha256. Tools called docs, openapi.json or the like, where this path is another thing's, are in the server's description.",
		Responses:   s.answers(s.jsonAnswer("The tool.", ToolInfo{}), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.NotReady, bridge.Unavailable, bridge.UpstreamAuth),
	}, s.getTool)
}

func (s *server) listTools(x *exchange, r *http.Request, in *catalogueInput) error {
	if err := x.attach(r); err != nil {
		return err
	}
	snap, err := x.view(r)
	if err != nil {
		return err
	}
	up := root(x, r)
	c := Catalogue{Servers: []ServerInfo{}}
	for _, srv := range snap.Servers {
		c.Servers = append(c.Servers, serverInfo(srv, up))
	}
	if c.ToolList, err = listPage(r, snap.Servers, in.ListInput, up); err != nil {
		return err
	}
	return x.writeJSON(r, "", c)
}

func (s *server) getServer(x *exchange, r *http.Request, in *serverInput) error {
	if err := x.attach(r); err != nil {
		return err
	}
	srv, err := x.visibleServer(r, in.Handle)
	if err != nil {
		return err
	}
	up := root(x, r)
	p := ServerPage{ServerInfo: serverInfo(srv, up), Skipped: append([]bridge.Skipped{}, srv.Skipped...)}
	if p.ToolList, err = listPage(r, []*bridge.Server{srv}, in.ListInput, up); err != nil {
		return err
	}
	return x.writeJSON(r, "", p)
}

func (s *server) getTool(x *exchange, r *http.Request, in *toolInput) error {
	c := &bridge.Call{Handle: in.Handle, Tool: in.Tool}
	var err error
	if c.Caller, err = x.identify(r); err != nil {
		return err
	}
	t, err := s.Bridge.Find(c)
	if err != nil {
		return err
	}
	return x.writeJSON(r, `"`+t.SchemaHash+`"`, toolInfo(t, root(x, r)))
}

// attach begins to connect the servers of the caller's own, so that they can be listed.
func (x *exchange) attach(r *http.Request) error {
	c, err := x.identify(r)
	if err != nil {
		return err
	}
	x.s.Bridge.Attach(c)
	return nil
}

// view returns the part of the catalogue that the caller may see, narrowed to the
// handles that the request asks for.
func (x *exchange) view(r *http.Request) (*bridge.Snapshot, error) {
	c, err := x.identify(r)
	if err != nil {
		return nil, err
	}
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	snap := x.s.Bridge.View(c)
	values, ok := q["handles"]
	if !ok {
		return snap, nil
	}
	asked := map[string]bool{}
	for _, v := range values {
		for h := range strings.SplitSeq(v, ",") {
			asked[h] = true
		}
	}
	servers := []*bridge.Server{}
	for _, srv := range snap.Servers {
		if asked[srv.Handle] {
			servers = append(servers, srv)
		}
	}
	return bridge.NewSnapshot(snap.Version, snap.Ready, servers), nil
}

// visibleServer returns the part of a server that the caller may see.
func (x *exchange) visibleServer(r *http.Request, handle string) (*bridge.Server, error) {
	c, err := x.identify(r)
	if err != nil {
		return nil, err
	}
	if srv := x.s.Bridge.View(c).Server(handle); srv != nil {
		return srv, nil
	}
	return nil, unknownServer(handle)
}

func unknownServer(handle string) error {
	return &bridge.Error{Kind: bridge.NotFound, Op: "routes", Msg: fmt.Sprintf("There is no server %q here; GET /tools lists the servers.", cut(handle, loggedName))}
}

// writeJSON answers with v. Without an entity tag the body gets one of its own.
func (x *exchange) writeJSON(r *http.Request, etag string, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	if etag == "" {
		etag = tagOf(body)
	}
	page{mediaType: "application/json", etag: etag, body: body}.write(x, r)
	return nil
}

func serverInfo(s *bridge.Server, up string) ServerInfo {
	i := ServerInfo{
		Handle: s.Handle, Title: s.Title, Description: s.Description,
		State: s.State, LastError: s.LastError, Since: timeOf(s.Since), Listed: timeOf(s.Listed),
		ToolCount: len(s.Tools), ResourceCount: len(s.Resources), TemplateCount: len(s.Templates), PromptCount: len(s.Prompts),
		Links: ServerLinks{
			Self:      up + serverRef(s.Handle),
			OpenAPI:   up + serverRef(s.Handle) + "/openapi.json",
			Docs:      up + serverRef(s.Handle) + "/docs",
			Resources: up + resourcesRef(s.Handle),
			Prompts:   up + promptsRef(s.Handle),
		},
	}
	if s.Name != "" || s.Protocol != "" {
		i.Server = &SelfInfo{Name: s.Name, Version: s.Version, Protocol: s.Protocol, Instructions: s.Instructions}
	}
	return i
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func toolInfo(t *bridge.Tool, up string) ToolInfo {
	return ToolInfo{
		Handle: t.Handle, Name: t.Name, Title: t.Title, Description: t.Description,
		Annotations: raw.Get(t.Raw, "annotations"), InputSchema: t.Input, OutputSchema: t.Output,
		SchemaHash: t.SchemaHash, Unchecked: t.Unchecked,
		Links: ToolLinks{Self: up + describeRef(t.Handle, t.Name), Call: up + toolRef(t.Handle, t.Name)},
	}
}

// describeRef is the path of a tool's description, from the root: that of its
// server, where the tool's own path is something else.
func describeRef(handle, tool string) string {
	switch tool {
	case "", ".", "..", "docs", "openapi.json", "openapi.yaml", "openapi-3.0.json", "openapi-3.0.yaml":
		return serverRef(handle) + "?q=" + url.QueryEscape(tool)
	default:
		return toolRef(handle, tool)
	}
}
