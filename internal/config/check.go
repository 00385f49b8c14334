package config

import (
	"errors"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Like the parsers, checks return errors that continue a sentence about the
// text and never hold it.

func notEmpty(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	return nil
}

func noControls(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("holds control characters")
	}
	return nil
}

// checkURL accepts absolute URLs of the given schemes that hold no user
// information unless it is allowed.
func checkURL(s string, userinfo bool, schemes ...string) error {
	// The parser's error would repeat the URL, and a URL may hold a token.
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsFunc(s, unicode.IsSpace):
		return errors.New("is not a URL")
	case !slices.Contains(schemes, u.Scheme):
		return errors.New("is not a URL that starts with " + strings.Join(schemes, ":// or ") + "://")
	case u.Hostname() == "":
		return errors.New("is a URL without a host")
	case u.User != nil && !userinfo:
		return errors.New("is a URL with a user or password in it, which logs would show; a server takes them in headers, or in a credential")
	case strings.Contains(s, "#"):
		return errors.New("is a URL with a fragment (#…), which is never sent")
	}
	if port := u.Port(); port != "" {
		return checkPort(port)
	}
	return nil
}

func checkPort(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return errors.New("has a port that is not a number from 1 to 65535")
	}
	return nil
}

// checkListen accepts host:port, where the host may be empty and the port 0.
func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is not host:port, as 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has a port that is not a number from 0 to 65535")
	}
	return nil
}

// isLoopback reports whether only this machine can reach the address. Of names,
// localhost alone is known to be so.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func checkLoopback(s string) error {
	if !isLoopback(s) {
		return errors.New("is not on loopback, and profiles are for this machine only; write 127.0.0.1 and a port")
	}
	return nil
}

func checkBasePath(s string) error {
	switch {
	case s == "":
		return nil
	case !strings.HasPrefix(s, "/"):
		return errors.New("does not start with a slash")
	case strings.HasSuffix(s, "/"):
		return errors.New("ends with a slash")
	case path.Clean(s) != s:
		return errors.New("has an empty segment, or one of dots")
	}
	for _, c := range []byte(s) {
		if c != '/' && !isPathByte(c) {
			return errors.New("holds characters other than letters, digits and - . _ ~ /")
		}
	}
	return nil
}

func isPathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// checkHost accepts what stands in a Host header, without a port.
func checkHost(s string) error {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return nil
	}
	for _, c := range []byte(s) {
		if !isPathByte(c) || c == '~' {
			return errors.New("is not a host name; write it without scheme, port and path")
		}
	}
	return notEmpty(s)
}

// checkOrigin accepts what a browser sends as Origin, or a star.
func checkOrigin(s string) error {
	if s == "*" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != s || strings.ToLower(s) != s {
		return errors.New("is not an origin: write https://app.example.com, in lower case and without a path, or *")
	}
	return nil
}

func checkGlob(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("is not a glob: a [ without its ], or a backslash at the end")
	}
	return noControls(s)
}

// checkToolGlob accepts globs on handle/tool.
func checkToolGlob(s string) error {
	if !strings.Contains(s, "/") {
		return errors.New("names no tool: write handle/tool, as files/* or */delete_*")
	}
	return checkGlob(s)
}

// isToken is the token of RFC 9110, section 5.6.2, which names of headers are.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// checkHeaderValue accepts what RFC 9110, section 5.5, does: no control
// characters but tabs, and no space at either end.
func checkHeaderValue(s string) error {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("holds a line break or another control character, which no header can")
		}
	}
	if strings.Trim(s, " \t") != s {
		return errors.New("has space around it, which no header can")
	}
	return nil
}

func canonicalHeader(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }

func headerSet(names ...string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range names {
		set[canonicalHeader(name)] = true
	}
	return set
}

var (
	// hopByHop are of one connection, not of the message (RFC 9110, section 7.6.1).
	hopByHop = headerSet("Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"TE", "Trailer", "Transfer-Encoding", "Upgrade")
	// transportHeaders are set by the connection to a server itself.
	transportHeaders = headerSet("Host", "Content-Length", "Content-Encoding", "Expect", "Last-Event-ID")
	// negotiationHeaders are too, but often stand in files, where they do no harm.
	negotiationHeaders = headerSet("Accept", "Content-Type", "Accept-Encoding")
	// bridgeCredential are the headers that callers show the bridge who they are in.
	bridgeCredential = headerSet("Authorization", "X-API-Key", "Cookie")
)

// protocolHeader reports headers that MCP gives a meaning.
func protocolHeader(canonical string) bool { return strings.HasPrefix(canonical, "Mcp-") }
