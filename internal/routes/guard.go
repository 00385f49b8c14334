package routes

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"mcpbridge/internal/bridge"
)

// stripBase takes the base path off the request's. It reports false if the request is for something outside.
func (s *server) stripBase(x *exchange, r *http.Request) (*http.Request, bool) {
	if s.BasePath == "" {
		return r, true
	}
	path, ok := behind(r.URL.Path, s.BasePath)
	rawPath := ""
	if ok && r.URL.RawPath != "" {
		rawPath, ok = behind(r.URL.RawPath, s.BasePath)
	}
	if !ok {
		return nil, false
	}
	if path == "" {
		path, x.bare = "/", true
	}
	inside := new(http.Request)
	*inside = *r
	inside.URL = new(url.URL)
	*inside.URL = *r.URL
	inside.URL.Path, inside.URL.RawPath = path, rawPath
	return inside, true
}

// behind returns the part of path behind base, which is empty or starts with a slash.
func behind(path, base string) (string, bool) {
	rest, ok := strings.CutPrefix(path, base)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// checkHost refuses names that are not ours. A page whose own name was pointed at
// this address (DNS rebinding) has the same origin as we do, as far as the browser
// knows; only the name in Host tells.
func (s *server) checkHost(r *http.Request) error {
	if !s.Loopback && len(s.hosts) == 0 {
		return nil
	}
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		return nil // probes come by address, and learn nothing that a page could use
	}
	host := strings.ToLower(r.Host)
	if s.hosts[host] {
		return nil
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if s.hosts[name] {
		return nil
	}
	if s.Loopback {
		if name == "localhost" {
			return nil
		}
		if a, err := netip.ParseAddr(name); err == nil && a.Unmap().IsLoopback() {
			return nil
		}
	}
	return &bridge.Error{
		Kind: bridge.Forbidden, Op: "routes.checkHost",
		Msg: "The bridge does not answer for the host name of this request. If it is right, add it to hosts in the configuration.",
	}
}

// checkOrigin refuses requests that change something and were made by a page of
// another origin, with or without a body, unless CORS allows that origin.
func (s *server) checkOrigin(r *http.Request) error {
	if s.cors.allows(r) {
		return nil
	}
	if err := s.origin.Check(r); err != nil {
		return &bridge.Error{
			Kind: bridge.Forbidden, Op: "routes.checkOrigin", Err: err,
			Msg: "A page of another origin may not make calls here; cors.origins in the configuration would allow it.",
		}
	}
	return nil
}
