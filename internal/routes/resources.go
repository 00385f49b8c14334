package routes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

type offerInput struct {
	Handle string `path:"handle" doc:"The server's name in the bridge, percent-encoded."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"The most entries in one answer; next leads to the others."`
	Cursor string `query:"cursor" doc:"Where to go on, from an answer's next."`
}

// A ResourceList is the answer of GET /resources/{handle}.
type ResourceList struct {
	Resources []ResourceInfo `json:"resources" nullable:"false" doc:"The resources, in their server's order."`
	Templates []TemplateInfo `json:"templates" nullable:"false" doc:"The templates, in their server's order, behind the resources."`
	OfferList
}

// An OfferList says what a page of a list is of.
type OfferList struct {
	Total     int              `json:"total" doc:"How many entries the whole list has."`
	Next      string           `json:"next,omitempty" format:"uri-reference" doc:"The next page; absent on the last."`
	State     bridge.State     `json:"state" enum:"connecting,ready,idle,degraded,failed,needs-auth,disabled,needs-caller" doc:"How the server is."`
	LastError string           `json:"last_error,omitempty" doc:"Why the list could not be read anew; it is the last good one then."`
	Skipped   []bridge.Skipped `json:"skipped" nullable:"false" doc:"Entries that cannot be used, and why."`
}

// A ResourceInfo describes a resource as its server lists it.
type ResourceInfo struct {
	URI         string          `json:"uri" example:"demo://notes/arch"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MediaType   string          `json:"media_type,omitempty" doc:"Its type, if the server says." example:"text/markdown"`
	Size        json.RawMessage `json:"size,omitempty" doc:"Its size in bytes, if the server says."`
	Annotations json.RawMessage `json:"annotations,omitempty" doc:"The server's hints about it, as sent."`
	Links       ResourceLinks   `json:"links"`
}

// ResourceLinks are relative references from the answer's URL.
type ResourceLinks struct {
	Content string `json:"content" format:"uri-reference" doc:"Where to GET its content."`
}

// A TemplateInfo describes a template of resources as its server lists it.
type TemplateInfo struct {
	URITemplate string          `json:"uri_template" doc:"With its variables filled in (RFC 6570) it is the URI of a resource."`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MediaType   string          `json:"media_type,omitempty" doc:"The type of all its resources, if they have the same and the server says."`
	Annotations json.RawMessage `json:"annotations,omitempty" doc:"The server's hints about it, as sent."`
}

func (s *server) resourceRoutes() {
	registerInput(s, huma.Operation{
		Method: http.MethodGet, Path: "/resources/{handle}", OperationID: "list-resources", Tags: []string{"resources"},
		Summary:     "List a server's resources",
		Description: "The resources of the server, and the templates of more.",
		Responses:   linked(s.answers(s.jsonAnswer("A page of the list.", ResourceList{}), bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound)),
	}, s.listResources)
	uri := param("query", "uri", "The resource's URI: one of the list, or one that a template makes.")
	uri.Required = true
	uri.Example = "demo://notes/arch"
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/resources/{handle}/content", OperationID: "read-resource", Tags: []string{"resources"},
		Summary:     "Read a resource",
		Description: "What the server has under the URI. A resource of one content is that content, under its own media type; of several, or where Accept names application/json, it is the result as the server sent it.",
		Parameters:  []*huma.Param{handleParam, uri, waitParam},
		Responses:   s.contentAnswers(),
	}, s.readResource)
}

func (s *server) listResources(x *exchange, r *http.Request, in *offerInput) error {
	if err := x.attach(r); err != nil {
		return err
	}
	srv, err := x.visibleServer(r, in.Handle)
	if err != nil {
		return err
	}
	n := len(srv.Resources)
	from, to, next, err := window(r, in, n+len(srv.Templates), func(i int) string {
		if i < n {
			return "r" + srv.Resources[i].URI
		}
		return "t" + srv.Templates[i-n].URI
	})
	if err != nil {
		return err
	}
	up := root(x, r)
	p := ResourceList{
		Resources: []ResourceInfo{}, Templates: []TemplateInfo{},
		OfferList: x.offerList(srv, n+len(srv.Templates), next, srv.ResourcesError, srv.SkippedResources),
	}
	for i := from; i < to; i++ {
		if i < n {
			p.Resources = append(p.Resources, resourceInfo(srv.Handle, srv.Resources[i], up))
		} else {
			p.Templates = append(p.Templates, templateInfo(srv.Templates[i-n]))
		}
	}
	return x.writeJSON(r, "", p)
}

// offerList says what the page is of, and in Link where the next is.
func (x *exchange) offerList(s *bridge.Server, total int, next, failed string, skipped []bridge.Skipped) OfferList {
	l := OfferList{Total: total, Next: next, State: s.State, LastError: failed, Skipped: append([]bridge.Skipped{}, skipped...)}
	if failed == "" {
		l.LastError = s.LastError
	}
	if next != "" {
		x.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	return l
}

// window returns which of n entries are on the page that is asked for, and the
// reference to the page behind it. The key of an entry is unlike all others.
func window(r *http.Request, in *offerInput, n int, key func(int) string) (from, to int, more string, err error) {
	if in.Cursor != "" {
		after, err := parseCursor(in.Cursor)
		if err != nil {
			return 0, 0, "", err
		}
		from = min(max(0, after.Index), n) // if it is gone, those behind it moved up
		for i := range n {
			if key(i) == after.Tool {
				from = i + 1
			}
		}
	}
	if to = min(from+in.Limit, n); to < n {
		more = next(r, cursor{Tool: key(to - 1), Index: to - 1})
	}
	return from, to, more, nil
}

func resourceInfo(handle string, e *bridge.Resource, up string) ResourceInfo {
	return ResourceInfo{
		URI: e.URI, Name: e.Name, Title: e.Title, Description: e.Description, MediaType: e.MediaType,
		Size: raw.Get(e.Raw, "size"), Annotations: raw.Get(e.Raw, "annotations"),
		Links: ResourceLinks{Content: up + resourcesRef(handle) + "/content?uri=" + url.QueryEscape(e.URI)},
	}
}

func templateInfo(e *bridge.Resource) TemplateInfo {
	return TemplateInfo{
		URITemplate: e.URI, Name: e.Name, Title: e.Title, Description: e.Description, MediaType: e.MediaType,
		Annotations: raw.Get(e.Raw, "annotations"),
	}
}

// resourcesRef is the path of a server's resources, from the root.
func resourcesRef(handle string) string { return "resources/" + url.PathEscape(handle) }

func (s *server) readResource(x *exchange, r *http.Request) error {
	c := &bridge.Call{Handle: segment(r, "handle"), Method: bridge.ReadResource}
	var err error
	if c.Tool, err = only(r, "uri", "resource: GET /resources/{handle}/content?uri=…, with & and = in the URI percent-encoded"); err != nil {
		return err
	}
	return x.ask(r, c, func(a *bridge.Answer) { x.content(r, a) })
}

// content answers with what a resource is.
func (x *exchange) content(r *http.Request, a *bridge.Answer) {
	h := x.Header()
	h["Vary"] = varyContent
	if a.Artifact != nil && x.s.Artifacts != nil {
		h.Set("Artifact-Ref", a.Artifact.Ref)
		h.Set("Artifact-Type", a.Artifact.Type)
	}
	if only, ok := onlyContent(a.Result); ok && !prefersJSON(r.Header["Accept"], only.mediaType) {
		x.foreign(only.mediaType)
		page{mediaType: only.mediaType, etag: tagOf(only.body), body: only.body}.write(x, r)
		return
	}
	if h.Get("Artifact-Ref") != "" {
		h.Set("Content-Location", artifactRef(x, r, a.Artifact.Ref))
	}
	page{mediaType: "application/json", etag: tagOf(a.Result.Raw), body: a.Result.Raw}.write(x, r)
}

// only returns the value of the one key that the query has, which names what is wanted.
func only(r *http.Request, key, what string) (string, error) {
	q, err := query(r)
	if err != nil {
		return "", err
	}
	for k := range q {
		if k != key {
			return "", &bridge.Error{Kind: bridge.Malformed, Op: "routes.query", Msg: fmt.Sprintf("The query key %.100q is unknown; it is to name one %s.", k, what)}
		}
	}
	if len(q[key]) != 1 || q[key][0] == "" {
		return "", &bridge.Error{Kind: bridge.Malformed, Op: "routes.query", Msg: fmt.Sprintf("The query must name one %s.", what)}
	}
	return q[key][0], nil
}

// varyContent is shared by all answers, and so never appended to.
var varyContent = []string{"Accept"}

// ask makes a call that waits for its answer, within the time that the request allows. Where
// the server may ask something first, it goes on as a job if the server does.
func (x *exchange) ask(r *http.Request, c *bridge.Call, answer func(*bridge.Answer)) (err error) {
	x.call = c
	if c.Caller, err = x.identify(r); err != nil {
		return err
	}
	var m manner
	if m.wait, m.waits, err = x.waits(r, false); err != nil {
		return err
	}
	if c.Method != bridge.ReadResource {
		if c.Args, err = x.readBody(r); err != nil {
			return err
		}
	}
	if c.Method != bridge.Complete && x.mayAsk(c) { // a completion is of the moment: nobody waits for a person
		return x.viaJob(r, c, m, answer)
	}
	a, err := x.perform(r, c, m.wait)
	if err != nil {
		return err
	}
	answer(a)
	return nil
}

// askedFirst describes the answer of what goes on as a job.
const askedFirst = "The server asks something first, so that the request goes on as a job, which takes the reply."

var waitParam = param("header", "Prefer", "wait=N gives the request N seconds at most.")

// linked adds the header of an answer that is a page of a list.
func linked(m map[string]*huma.Response) map[string]*huma.Response {
	m["200"].Headers = map[string]*huma.Header{"Link": textHeader("The next page (next), if there is one.")}
	return m
}

// askKinds are the problems that anything asked of a server can end with.
var askKinds = []bridge.Kind{
	bridge.Malformed, Unauthenticated, bridge.Forbidden, bridge.NotFound, bridge.RateLimited, bridge.UpstreamError, bridge.UpstreamAuth,
	bridge.ResultTooLarge, bridge.Overloaded, bridge.Unavailable, bridge.NotReady, bridge.DeadlineExceeded,
}

// askAnswers describes the answers of what asks a server, besides those of more kinds.
func (s *server) askAnswers(ok *huma.Response, more ...bridge.Kind) map[string]*huma.Response {
	ok.Headers = map[string]*huma.Header{
		"Server-Timing":      textHeader("How long each step took, in milliseconds."),
		"Preference-Applied": textHeader("What was honoured of Prefer."),
	}
	return s.answers(ok, slices.Concat(askKinds, more)...)
}

func (s *server) contentAnswers() map[string]*huma.Response {
	ok := &huma.Response{
		Description: "The content, under its own media type; or the result as the server sent it.",
		Content: map[string]*huma.MediaType{
			"application/json": {
				Schema:  &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true},
				Example: json.RawMessage(`{"contents":[{"uri":"demo://notes/arch","mimeType":"text/markdown","text":"# Arch bridge\n…"}]}`),
			},
			"*/*": {Schema: &huma.Schema{}},
		},
	}
	m := notModified(s.askAnswers(ok))
	m["202"] = s.acceptedAnswer(askedFirst)
	ok.Headers["Artifact-Ref"] = textHeader("The reference under which the whole result is kept, if it is.")
	ok.Headers["Artifact-Type"] = textHeader("The type of the kept result.")
	ok.Headers["Content-Location"] = textHeader("Where GET returns this very answer again.")
	ok.Headers["ETag"] = textHeader("Names these bytes. The server is asked each time.")
	ok.Headers["Content-Disposition"] = textHeader("attachment, unless a browser may show the type: the bytes are the server's.")
	return m
}
