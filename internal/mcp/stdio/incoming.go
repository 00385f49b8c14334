package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const (
	// excerptBytes of a skipped line go to the log or a message.
	excerptBytes = 200
	// headBytes of it are looked at: a secret at the excerpt's end must be seen whole.
	headBytes = 4 << 10
)

// line finds out what a line of the server's output is and hands it on. It may
// keep b if own is set.
func (c *Conn) line(b []byte, own bool) {
	f, err := raw.ParseFrame(b)
	if err != nil {
		c.malformed(b, err)
		return
	}
	switch {
	case f.Method == nil:
		id, ours := parseID(f.ID)
		switch {
		case ours:
			c.lane.deliver(id, c.answerOf(&f, b, own))
		case f.Response():
			c.forward(b)
		default:
			c.skip(b, "it is not JSON-RPC")
		}
	case f.ID != nil:
		if !methodIs(f.Method, "elicitation/create") || !c.elicitation(&f) {
			c.forward(b)
		}
	case methodIs(f.Method, "notifications/progress"):
		// All tokens are the lane's.
		if token, ours := parseID(raw.Get(f.Params, "progressToken")); ours {
			c.lane.progressed(token, f.Params)
		}
	case methodIs(f.Method, "notifications/message"):
		// Nobody listens: the session era does not say which call a message belongs to.
	default:
		c.forward(b)
	}
}

// methodIs compares a method as it stands in a frame; some servers escape slashes.
func methodIs(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		return raw.Unquote(quoted) == name
	}
	return len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name
}

// answerOf turns a frame, which lies in b, into the answer to a call. Errors are shown
// to many, so that no secret may stand in them; results are the caller's as they are.
func (c *Conn) answerOf(f *raw.Frame, b []byte, own bool) answer {
	switch {
	case !raw.IsNull(f.Error):
		if raw.KindOf(f.Error) != raw.Object {
			return answer{err: &rpc.Failure{Reason: rpc.Protocol, Msg: "the server answered an error that is no object"}}
		}
		e := &rpc.Error{Message: raw.GetString(f.Error, "message")}
		if code, err := strconv.ParseFloat(string(raw.Get(f.Error, "code")), 64); err == nil {
			e.Code = int64(code)
		}
		if data := raw.Get(f.Error, "data"); data != nil {
			e.Data = bytes.Clone(data)
		}
		c.tail.redact.Error(e)
		return answer{err: e}
	case f.Result == nil:
		return answer{err: &rpc.Failure{Reason: rpc.Protocol, Msg: "the server answered neither a result nor an error"}}
	case own && len(f.Result) > cap(b)/2:
		return answer{result: slices.Clip(f.Result)}
	default:
		return answer{result: bytes.Clone(f.Result)}
	}
}

// forward hands a message to the SDK's session.
func (c *Conn) forward(b []byte) {
	m, err := jsonrpc.DecodeMessage(b)
	if err != nil {
		c.skip(b, "it is not JSON-RPC 2.0")
		return
	}
	if r, ok := m.(*jsonrpc.Response); ok && r.Error != nil {
		id := c.hello.initialize.Load()
		if e, ok := errors.AsType[*jsonrpc.Error](r.Error); ok && id != nil && r.ID == *id {
			c.refused.Store(e)
		}
	}
	select {
	case c.toSDK <- m:
	case <-c.done:
	}
}

// malformed deals with a line that is no frame. If it was to be the answer to a
// call (a NaN in it, say), the call need not wait for its deadline.
func (c *Conn) malformed(b []byte, err error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	var s skim
	s.feed(b)
	if id, ours := parseID(s.answers()); ours && c.lane.waits(id) {
		c.lane.deliver(id, answer{err: &rpc.Failure{Reason: rpc.Protocol, Msg: "the server's answer is not valid JSON", Err: err}})
		return
	}
	c.skip(b, err.Error())
}

// dropped deals with a line that was not kept.
func (c *Conn) dropped(s *skim) {
	if s.size <= int(c.o.ResultBytes) {
		c.skip(s.head, "it is not JSON-RPC")
		return
	}
	c.tooLarge.Add(1)
	if id, ours := parseID(s.answers()); ours {
		c.lane.deliver(id, answer{err: &rpc.Failure{
			Reason: rpc.TooLarge,
			Msg:    "the server's answer is larger than " + sizeOf(c.o.ResultBytes),
		}})
		return
	}
	c.skip(s.head, "it is too large")
}

// skip counts a line that is no use, and logs the beginning of it.
func (c *Conn) skip(b []byte, why string) {
	b = b[:min(len(b), headBytes)]
	if c.skipped.Add(1) == 1 {
		c.noise = quoted(c.tail.redact.Text(string(bytes.TrimSpace(b))))
	}
	ok, lost := c.skips.allow(time.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("why", why), slog.String("line", excerpt(c.tail.clean(b)))}
	if lost > 0 {
		attrs = append(attrs, slog.Int("suppressed", lost))
	}
	c.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "skipped a line of the server's output", attrs...)
}

// excerpt returns the beginning of a text.
func excerpt(s string) string {
	if len(s) <= excerptBytes {
		return s
	}
	n := excerptBytes
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// quoted returns the beginning of a line in quotes, with nothing in it that does not print.
func quoted(s string) string {
	q := []byte{'"'}
	for s != "" {
		if n := colourCode(s); n > 0 {
			s = s[n:]
			continue
		}
		_, n := utf8.DecodeRuneInString(s)
		r := strconv.Quote(s[:n])
		if r = r[1 : len(r)-1]; len(q)+len(r) > excerptBytes {
			q = append(q, "…"...)
			break
		}
		q = append(q, r...)
		s = s[n:]
	}
	return string(append(q, '"'))
}

// babble tells of the lines that were no frames, for a message. Nothing must be read any more.
func (c *Conn) babble() string {
	switch n := c.skipped.Load(); n {
	case 0:
		return ""
	case 1:
		return "; it printed a line that is not JSON-RPC: " + c.noise
	default:
		return fmt.Sprintf("; it printed %d lines that are not JSON-RPC, the first: %s", n, c.noise)
	}
}
