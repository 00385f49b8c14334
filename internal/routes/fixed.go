package routes

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/yaml"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// apiVersion is the version of the fixed surface; it grows when that changes.
const apiVersion = "0.1.0"

// FixedOpenAPI returns the OpenAPI document of the fixed surface as YAML. The
// same program always makes the same bytes.
func FixedOpenAPI() ([]byte, error) {
	b, err := newServer(Options{}).fixed(nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = yaml.Convert(&out, bytes.NewReader(b))
	return out.Bytes(), err
}

// fixed returns that document as JSON, with other servers in it unless they are nil.
func (s *server) fixed(servers []byte) ([]byte, error) {
	b, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return nil, err
	}
	// In the order of the specification rather than of the alphabet: who reads it wants the paths first.
	ordered := []byte{'{'}
	for _, name := range [...]string{"openapi", "info", "servers", "security", "tags", "paths", "components"} {
		value := raw.Get(b, name)
		if name == "servers" && servers != nil {
			value = servers
		}
		ordered = append(append(append(raw.AppendQuote(ordered, name), ':'), value...), ',')
	}
	ordered[len(ordered)-1] = '}'
	return ordered, nil
}

// fixedRoutes serves the document of this very surface. It says nothing of the tools, and so is for everybody.
func (s *server) fixedRoutes() {
	document := sync.OnceValues(func() (page, error) { // at the first request, when all operations are there
		b, err := s.fixed([]byte(`[{"url":"."}]`))
		return page{mediaType: "application/json", etag: tagOf(b), body: b}, err
	})
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/openapi-bridge.json", OperationID: "get-bridge-openapi", Tags: []string{"documents"},
		Summary:     "Get the document of the bridge's own operations",
		Description: "What is the same whatever the tools are: jobs, artifacts, resources, prompts, and how tools are called in general. What the tools take and return is in /openapi.json.",
		Responses:   notModified(s.answers(&huma.Response{Description: "The document.", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}}})),
	}, func(x *exchange, r *http.Request) error {
		p, err := document()
		if err != nil {
			return err
		}
		p.write(x, r)
		return nil
	})
}

// apiConfig is huma without its documents and pages, which are not ours: its
// handler for the document fills a cache without a lock, and its page loads
// scripts from another host.
func apiConfig() huma.Config {
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "MCP Bridge", Version: apiVersion,
				Description: "The fixed surface of the bridge. What the tools of a running bridge take and return is in its own /openapi.json.",
				License:     &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
			},
			Servers: []*huma.Server{{URL: "http://127.0.0.1:8080", Description: "The address that the bridge has by default."}},
			Tags: []*huma.Tag{
				{Name: "calls", Description: "Run tools."},
				{Name: "catalogue", Description: "See which servers and tools there are."},
				{Name: "resources", Description: "What servers have beside tools: resources and prompts."},
				{Name: "artifacts", Description: "Fetch results again, whole or in parts."},
				{Name: "jobs", Description: "Calls that outlast their request."},
				{Name: "documents", Description: "OpenAPI documents of the tools, and pages that show them."},
				{Name: "operations", Description: "For those who run the bridge."},
				{Name: "administration", Description: "Change the servers while the bridge runs."},
			},
			// A bridge may be configured to take no credentials, or callers without any.
			Security: []map[string][]string{{}, {"bearer": {}}, {"apiKey": {}}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", Description: "An API key, or a token of an issuer that the bridge trusts."},
					"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "An API key."},
				},
			},
		},
		Formats:       huma.DefaultFormats,
		DefaultFormat: "application/json",
	}
	// A client that refuses members it does not know could not take the next version's answers.
	c.AllowAdditionalPropertiesByDefault = true
	return c
}

// param describes a parameter of text.
func param(in, name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Description: doc, Required: in == "path", Schema: &huma.Schema{Type: huma.TypeString}}
}

// answers describes the answers of an operation: the good one, and the problems of some kinds.
func (s *server) answers(ok *huma.Response, kinds ...bridge.Kind) map[string]*huma.Response {
	status := "200"
	m := map[string]*huma.Response{status: ok}
	codes := map[int][]string{}
	for _, k := range append(kinds, bridge.Internal) {
		codes[meanings[k].status] = append(codes[meanings[k].status], string(k))
	}
	for code, slugs := range codes {
		slices.Sort(slugs)
		p := &huma.Response{
			Description: "A problem: " + strings.Join(slugs, ", ") + ".",
			Content:     map[string]*huma.MediaType{problemType: {Schema: s.schemaOf(Problem{})}},
		}
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
			p.Headers = map[string]*huma.Header{"Retry-After": {
				Description: "Seconds after which trying again may help.", Schema: &huma.Schema{Type: huma.TypeInteger},
			}}
		}
		m[strconv.Itoa(code)] = p
	}
	return m
}

// schemaOf returns a reference to the schema of v's type, which is then among the document's components.
func (s *server) schemaOf(v any) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
}

// jsonAnswer describes a good answer that is the JSON of v.
func (s *server) jsonAnswer(doc string, v any) *huma.Response {
	return &huma.Response{Description: doc, Content: map[string]*huma.MediaType{"application/json": {Schema: s.schemaOf(v)}}}
}
