package routes

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// segment returns the name in one segment of the path. The router matches the
// path as it was sent when its escapes matter, and the decoded one otherwise.
func segment(r *http.Request, name string) string {
	v := r.PathValue(name)
	if r.URL.RawPath == "" {
		return v
	}
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v // cannot be: the server refuses a path with a broken escape
}

// root returns the relative reference from the request's URL to the directory
// where all of ours begins: "", "../" and so on.
func root(x *exchange, r *http.Request) string {
	if x.bare {
		return x.s.BasePath[strings.LastIndexByte(x.s.BasePath, '/')+1:] + "/"
	}
	return strings.Repeat("../", strings.Count(cmp.Or(r.URL.RawPath, r.URL.Path), "/")-1)
}

// serverRef is the path of a server, from the root.
func serverRef(handle string) string { return "tools/" + url.PathEscape(handle) }

// toolRef is the path of a tool, from the root, where a call is posted.
func toolRef(handle, tool string) string {
	if tool == "" || tool == "." || tool == ".." {
		// No segment can carry these: clients take them as steps, escaped or not.
		return serverRef(handle) + "?tool=" + url.QueryEscape(tool)
	}
	return serverRef(handle) + "/" + url.PathEscape(tool)
}
