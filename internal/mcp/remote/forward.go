package remote

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mcpbridge/internal/mcp/rpc"
)

// forwarded are the headers that a caller sends along with one call: with its
// POST, its cancellation and the GET that resumes it, and with nothing else. They are as
// secret as ours. Nil is none.
type forwarded struct {
	header  http.Header
	secrets rpc.Redactor
}

// notForwarded are never a caller's to set, whatever the configuration allows: who we are, what
// belongs to one connection (RFC 9110 section 7.6.1), and what the transport says itself.
var notForwarded = []string{
	"Authorization", "Cookie", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Content-Encoding", "Content-Type", "Expect", "Accept", "Accept-Encoding",
	headerLastEvent,
}

// forward returns what of a caller's headers goes along. What is configured wins.
func (c *Conn) forward(given http.Header) *forwarded {
	if len(given) == 0 { // as nearly always
		return nil
	}
	h := http.Header{}
	for name, values := range given {
		name = http.CanonicalHeaderKey(name)
		if !isToken(name) || strings.HasPrefix(name, "Mcp-") || slices.Contains(notForwarded, name) || c.configured[name] != nil {
			continue
		}
		for _, v := range values {
			if !strings.ContainsFunc(v, isControl) {
				h[name] = append(h[name], v)
			}
		}
	}
	if len(h) == 0 {
		return nil
	}
	return &forwarded{h, secretsOf(h, c.url, false)}
}

func (f *forwarded) copyTo(h http.Header) {
	if f != nil {
		maps.Copy(h, f.header)
	}
}

// text returns s without the values of the headers.
func (f *forwarded) text(s string) string {
	if f == nil {
		return s
	}
	return f.secrets.Text(s)
}

// hide hides the values of the headers in an error that the server answered.
func (f *forwarded) hide(e *rpc.Error) {
	if f != nil {
		f.secrets.Error(e)
	}
}

// conceal returns err without the values of the headers.
func (f *forwarded) conceal(err error) error {
	if f == nil {
		return err
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		f.hide(e)
		return e
	}
	if fail, ok := asFailure(err); ok {
		hidden := *fail // it may be the connection's too
		hidden.Msg = f.text(hidden.Msg)
		return &hidden
	}
	return err
}
