// Package openapi turns tools into OpenAPI documents, and their schemas into
// checks.
//
// It has two doors. [Schemas] compiles a tool once, when its server lists it: the
// original schemas become checkers of arguments and results, the normalized ones
// wait, rendered, for the documents. [Documents] joins what is rendered into one
// document for all tools of a view, or for one handle, and keeps it until the
// view changes. A document is rendered as OpenAPI 3.1 in JSON; its other forms
// (3.0, flat, YAML) are made from that. Nothing here speaks HTTP: a [Document] is
// bytes with an entity tag and a media type.
package openapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"sync/atomic"

	"mcpbridge/internal/bridge"
)

// Options are the settings of documents. The zero value is useful.
type Options struct {
	Title       string // of the document of all tools; "MCP Bridge" if empty
	Version     string // of the documents; "0.0.0" if empty
	Description string // of the document of all tools; a short text of ours if empty

	// DescriptionChars is what a description is cut to, in characters; 4096 if zero.
	DescriptionChars int

	// MCPO names the operations of a server's own document as mcpo does:
	// tool_<name>_post. In the document of all tools they would not be unique.
	MCPO bool

	// Credentials returns what callers send now, which documents then say. Nil is nothing.
	Credentials func() Credentials
}

// toolID names a tool in its server's own document.
func (o *Options) toolID(tool string) string {
	if o.MCPO {
		return mcpoID(tool)
	}
	return ToolID(tool)
}

// Documents makes and keeps OpenAPI documents. It is safe for concurrent use.
type Documents struct {
	o     Options
	cache cache
}

// New returns documents with these options.
func New(o Options) *Documents {
	o.Title = cmp.Or(o.Title, "MCP Bridge")
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.Description = cmp.Or(o.Description, wholeDescription)
	o.DescriptionChars = cmp.Or(o.DescriptionChars, 4096)
	return &Documents{o: o}
}

// Whole returns the document of all tools of a view of the catalogue. Its paths
// start with /tools/ and its server is the directory that it is served from.
func (d *Documents) Whole(view *bridge.Snapshot) *Document {
	sec := d.o.security()
	return d.cache.get(viewKey(sec.kind, view.Servers), view.Servers, func() []byte { return d.o.whole(view.Servers, sec) })
}

// Handle returns the document of one server of the view, or nil if the view has
// no such server. Its paths are the tools' names alone: it is to be served from
// the server's own directory, /tools/{handle}/.
func (d *Documents) Handle(view *bridge.Snapshot, handle string) *Document {
	s := view.Server(handle)
	if s == nil {
		return nil
	}
	servers := []*bridge.Server{s}
	sec := d.o.security()
	return d.cache.get(viewKey("handle"+sec.kind, servers), servers, func() []byte { return d.o.handle(s, sec) })
}

// Prepare makes the documents of a view ahead of the first request: the one of
// all tools, and each server's. It is to be called whenever the catalogue changes.
func (d *Documents) Prepare(view *bridge.Snapshot) {
	d.cache.advance()
	d.Whole(view).JSON()
	for _, s := range view.Servers {
		d.Handle(view, s.Handle).JSON()
	}
}

// A Document is one OpenAPI document. Each form is made when it is first asked
// for, once, whoever asks.
type Document struct {
	forms [forms]func() Encoded
	size  atomic.Int64 // bytes rendered so far
}

// Encoded is a document in one encoding. The bytes must not be changed.
type Encoded struct {
	Body        []byte
	ETag        string // strong, with its quotes; equal bytes have equal tags
	ContentType string
}

// Form returns the document in a form.
func (d *Document) Form(f Form) Encoded { return d.forms[f.index()]() }

// JSON returns the document as OpenAPI 3.1 in JSON.
func (d *Document) JSON() Encoded { return d.Form(Form{}) }

// YAML returns the document as OpenAPI 3.1 in YAML.
func (d *Document) YAML() Encoded { return d.Form(Form{YAML: true}) }

func newDocument(render func() []byte) *Document {
	d := &Document{}
	d.forms[0] = sync.OnceValue(func() Encoded { return d.encoded(render(), "application/json") })
	for i := 1; i < forms; i++ {
		d.forms[i] = sync.OnceValue(func() Encoded { return d.form(formAt(i)) })
	}
	return d
}

func (d *Document) encoded(body []byte, contentType string) Encoded {
	d.size.Add(int64(len(body)))
	sum := sha256.Sum256(body)
	return Encoded{
		Body:        body,
		ETag:        `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`,
		ContentType: contentType,
	}
}
