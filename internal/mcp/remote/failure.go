package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const (
	refusalBytes = 64 << 10 // what is read of an answer that is no MCP answer
	refusalWait  = time.Second
	excerptChars = 200
)

// Codes of JSON-RPC errors that mean something to the transport.
const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeHeaderMismatch = -32020
	codeMissingNeeds   = -32021 // the client lacks a capability
	codeBadVersion     = -32022
)

// broken is the failure of a request whose connection failed. maybeRun says
// whether the server may have all of it. The error itself is not kept: its text
// is in the message, and may hold what must not get into a log.
func (c *Conn) broken(ctx context.Context, err error, maybeRun bool) *rpc.Failure {
	if t, ok := errors.AsType[*tokenError](err); ok {
		return t.Failure
	}
	if c.ctx.Err() != nil && ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	text := c.secrets.Text(err.Error())
	if maybeRun {
		return &rpc.Failure{Reason: rpc.Lost, Msg: fmt.Sprintf("the connection to %s failed before the answer was there: %s", c.where, text)}
	}
	return &rpc.Failure{Reason: rpc.NotSent, Msg: fmt.Sprintf("%s cannot be reached: %s", c.where, text)}
}

func (c *Conn) protocolFailure(status int, format string, args ...any) *rpc.Failure {
	return &rpc.Failure{Reason: rpc.Protocol, Status: status, Msg: c.where + " " + fmt.Sprintf(format, args...)}
}

func (c *Conn) tooLarge() *rpc.Failure {
	return &rpc.Failure{Reason: rpc.TooLarge, Msg: fmt.Sprintf("the answer has more than %d bytes", c.limit)}
}

// expired ends the connection because the server has forgotten its session.
func (c *Conn) expired(status int, said string) *rpc.Failure {
	f := &rpc.Failure{Reason: rpc.SessionExpired, Status: status, Msg: "the server has forgotten the session"}
	if said != "" {
		f.Msg += ": " + clip(c.secrets.Text(said))
	}
	c.end(f)
	return f
}

// refusal explains an answer whose status says that the request was not served.
// It reads the answer, but neither for long nor much of it. id is the request's, or empty for a notification.
func (c *Conn) refusal(r *reply, id string) error {
	stop := time.AfterFunc(refusalWait, r.cancel)
	defer stop.Stop()
	body, _ := io.ReadAll(io.LimitReader(r.Body, refusalBytes)) // what came before an error will do
	status := r.StatusCode
	if status >= 300 && status < 400 {
		return c.protocolFailure(status, "redirects to %s, which is not followed: use that address if it is the server's", c.location(r.Response))
	}
	var answered *rpc.Error
	ours := false
	if f, err := raw.ParseFrame(body); err == nil && f.Response() && !raw.IsNull(f.Error) {
		answered, ours = rpcError(f.Error), id != "" && matches(f.ID, id)
	}
	said := c.excerpt(body, r.forward)
	if answered != nil {
		r.forward.hide(answered)
		said = clip(c.secrets.Text(answered.Message))
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &rpc.Failure{Reason: rpc.Auth, Status: status, Msg: c.refusedToken(r, said)}
	case r.session && (status == http.StatusNotFound && (answered == nil || answered.Code != codeMethodNotFound) ||
		status == http.StatusBadRequest && answered != nil && aboutSession(answered)):
		return c.expired(status, said)
	case answered != nil && (status < 500 || ours):
		c.secrets.Error(answered)
		return answered
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		// A gateway has lost the server that it sent the request to.
		return &rpc.Failure{Reason: rpc.Lost, Status: status, Msg: fmt.Sprintf("%s answered HTTP %d%s", c.where, status, colon(said))}
	default:
		return c.protocolFailure(status, "answered HTTP %d%s", status, colon(said))
	}
}

// location names where an answer redirects to, without query or user.
func (c *Conn) location(r *http.Response) string {
	u, err := r.Location()
	if err != nil {
		return "nowhere"
	}
	return clip(c.secrets.Text(display(u)))
}

// aboutSession reports whether an error speaks of the session, which servers
// that refuse an unknown one do under several codes.
func aboutSession(e *rpc.Error) bool { return strings.Contains(strings.ToLower(e.Message), "session") }

// rpcError reads the error member of a response, as the server wrote it. It returns nil if that is no object.
func rpcError(b []byte) *rpc.Error {
	if raw.KindOf(b) != raw.Object {
		return nil
	}
	// The answer itself, which may be large, is not kept.
	e := &rpc.Error{Message: raw.GetString(b, "message"), Data: bytes.Clone(raw.Get(b, "data"))}
	e.Code, _ = strconv.ParseInt(string(raw.Get(b, "code")), 10, 64) // 0 for what is no integer
	return e
}

// matches reports whether the id of a response is that of a request of ours.
// Some servers make a string of a number.
func matches(id []byte, ours string) bool {
	if len(id) == len(ours)+2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	return string(id) == ours
}

// excerpt shows the beginning of what a server said, on one line.
func (c *Conn) excerpt(b []byte, f *forwarded) string {
	text := strings.ToValidUTF8(c.secrets.Text(f.text(string(b))), "\uFFFD")
	return clip(strings.Join(strings.Fields(text), " "))
}

// clip bounds a text and escapes what is not printable in it.
func clip(s string) string {
	var b strings.Builder
	for n := 0; s != ""; n++ {
		r, size := utf8.DecodeRuneInString(s)
		if n == excerptChars {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

func colon(said string) string {
	if said == "" {
		return ""
	}
	return ": " + said
}

// shortSecret is the length under which a secret would tear holes in every text, and hide nothing.
const shortSecret = 4

// shortPath is the same for one part of a path, most of which are plain words ("messages").
const shortPath = 9

// secretsOf collects what is secret in the headers and the URL, so that a
// server that repeats it (many show a failed request in full) does not put it in our errors.
// So are the server's name and path where something else is displayed for the URL.
func secretsOf(h http.Header, u *url.URL, whole bool) rpc.Redactor {
	var secrets []string
	add := func(s string) {
		// A version says nothing, and what a server says of the versions it speaks must be understood.
		if len(s) >= shortSecret && s != v20260728 && !older(s) {
			secrets = append(secrets, s)
		}
	}
	for _, values := range h {
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok { // the scheme of an Authorization may be shown alone
				add(token)
			}
		}
	}
	if p, ok := u.User.Password(); ok {
		add(p)
		add(url.QueryEscape(p))
	}
	if whole {
		add(u.Host)
		add(u.Hostname())
		add(u.Path)
		add(u.EscapedPath())
		for _, path := range [...]string{u.Path, u.EscapedPath()} {
			for part := range strings.SplitSeq(path, "/") {
				if len(part) >= shortPath {
					add(part)
				}
			}
		}
	}
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, v := range values {
			add(v)
			add(url.QueryEscape(v))
		}
	}
	return rpc.NewRedactor("[secret]", secrets)
}

// asFailure returns err as a failure if it is one.
func asFailure(err error) (*rpc.Failure, bool) { return errors.AsType[*rpc.Failure](err) }
