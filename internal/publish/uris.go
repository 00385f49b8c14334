package publish

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcpbridge/internal/bridge"
)

// scheme begins the URIs of resources here. Two servers may have different things
// under one URI, so each is told by its handle; what follows that is the server's own
// URI, or template, as it is.
const scheme = "bridge:"

// publicURI returns what a server's resource, or a template, is called here.
func publicURI(handle, uri string) string { return scheme + url.QueryEscape(handle) + ":" + uri }

// splitURI undoes publicURI.
func splitURI(public string) (handle, uri string, ok bool) {
	rest, ok := strings.CutPrefix(public, scheme)
	if !ok {
		return "", "", false
	}
	escaped, uri, ok := strings.Cut(rest, ":")
	handle, err := url.QueryUnescape(escaped)
	return handle, uri, ok && err == nil
}

// locate finds the server of a resource. What servers say in their results they call by
// their own URIs, so such a URI is found too if it can be only one server's.
func locate(view *bridge.Snapshot, public string) (handle, uri string, err error) {
	if handle, uri, ok := splitURI(public); ok && view.Server(handle) != nil {
		return handle, uri, nil
	}
	owners := owners(view, func(s *bridge.Server) bool { return lists(s, public) })
	if owners == nil {
		owners = ownersByTemplate(view, public)
	}
	switch len(owners) {
	case 1:
		return owners[0], public, nil
	case 0:
		return "", "", unknownResource(public)
	default:
		return "", "", &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("several servers have a resource of this URI; read %s for one of %q", scheme+"<server>:<uri>", owners),
		}
	}
}

func owners(view *bridge.Snapshot, has func(*bridge.Server) bool) (handles []string) {
	for _, s := range view.Servers {
		if has(s) {
			handles = append(handles, s.Handle)
		}
	}
	return handles
}

// lists reports whether a server lists the URI, or the template.
func lists(s *bridge.Server, uri string) bool {
	for _, l := range [...][]*bridge.Resource{s.Resources, s.Templates} {
		for _, r := range l {
			if r.URI == uri {
				return true
			}
		}
	}
	return false
}

// ownersByTemplate returns the servers with a template that begins as the URI does.
func ownersByTemplate(view *bridge.Snapshot, uri string) []string {
	return owners(view, func(s *bridge.Server) bool {
		for _, r := range s.Templates {
			if literal, _, _ := strings.Cut(r.URI, "{"); literal != "" && strings.HasPrefix(uri, literal) {
				return true
			}
		}
		return false
	})
}

func unknownResource(uri string) error {
	return &bridge.Error{Kind: bridge.NotFound, Op: "publish.locate", Msg: "unknown resource: " + bridge.FirstChars(uri, 200)}
}
