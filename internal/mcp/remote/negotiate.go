package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// connect finds out what the server speaks and does the handshake.
func (c *Conn) connect(ctx context.Context) error {
	switch c.o.Protocol {
	case SSE:
		return c.connectSSE(ctx)
	case v20260728:
		answer, err := c.probe(ctx)
		if err != nil {
			return err
		}
		return c.connectModern(ctx, answer)
	case "", Auto:
		return c.negotiate(ctx)
	default:
		return c.connectSession(ctx, c.o.Protocol)
	}
}

// negotiate tries the eras from the newest to the oldest. Only a server that
// shows no sign of knowing the newer one is asked in the older way: credentials that are
// refused, a server that is down and an error that only a modern server sends are final.
func (c *Conn) negotiate(ctx context.Context) error {
	answer, err := c.probe(ctx)
	if err == nil {
		return c.connectModern(ctx, answer)
	}
	if !errors.Is(err, errOlder) {
		return err
	}
	return c.connectSession(ctx, v20251125)
}

// errOlder is the error of a probe that a server of an older era answered.
var errOlder = errors.New("the server does not know server/discover")

// probe asks server/discover and returns the result if the server speaks 2026-07-28.
func (c *Conn) probe(ctx context.Context) (json.RawMessage, error) {
	// Some servers of the older eras do not answer what they do not know before initialize.
	half := ctx
	if end, ok := ctx.Deadline(); ok && c.o.Protocol != v20260728 {
		var stop context.CancelFunc
		half, stop = context.WithTimeout(ctx, time.Until(end)/2)
		defer stop()
	}
	k, o := c.discover(half)
	if slices.Contains(supported(o.err), v20260728) {
		// It names the version that it refuses, so it wants to be asked again.
		k, o = c.discover(half)
	}
	switch {
	case o.err == nil:
	case half.Err() != nil && ctx.Err() == nil:
		return nil, errOlder
	default:
		return nil, c.judge(int(k.status.Load()), o.err)
	}
	var versions []string
	if json.Unmarshal(raw.Get(o.result, "supportedVersions"), &versions) != nil {
		versions = nil
	}
	switch {
	case slices.Contains(versions, v20260728):
		return o.result, nil
	case len(versions) > 0 && !slices.ContainsFunc(versions, older):
		return nil, c.noCommonVersion(versions)
	default:
		return nil, errOlder
	}
}

func (c *Conn) discover(ctx context.Context) (*call, outcome) {
	k := c.newCall(&rpc.Request{Method: "server/discover"}, &era{version: v20260728})
	return k, c.handshakeCall(ctx, k)
}

// supported returns the versions that a server says it speaks when it refuses ours.
func supported(err error) []string {
	e, ok := errors.AsType[*rpc.Error](err)
	if !ok || e.Code != codeBadVersion {
		return nil
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	return data.Supported
}

// older reports whether a version is one of the eras of sessions that we speak.
func older(v string) bool {
	return slices.Contains([]string{v20251125, v20250618, v20250326, v20241105}, v)
}

func (c *Conn) noCommonVersion(versions []string) error {
	return &rpc.Failure{
		Reason: rpc.Handshake,
		Msg:    fmt.Sprintf("%s speaks no protocol version that we do: %s", c.where, clip(c.secrets.Text(strings.Join(versions, ", ")))),
	}
}

// judge decides what a failed probe says: errOlder, or an error that is final.
func (c *Conn) judge(status int, err error) error {
	if status == 0 || status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests || status >= 500 {
		return err
	}
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		switch e.Code {
		case codeHeaderMismatch, codeMissingNeeds:
			return err
		case codeBadVersion:
			// It is no guess to follow a server that names the older versions which it speaks.
			versions := supported(err)
			if slices.ContainsFunc(versions, older) {
				return errOlder
			}
			return c.noCommonVersion(versions)
		default:
			return errOlder
		}
	}
	f, ok := asFailure(err)
	if !ok || f.Reason != rpc.Protocol && f.Reason != rpc.Lost {
		return err
	}
	switch {
	case status < 300, status == http.StatusBadRequest, status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return errOlder
	default:
		return err
	}
}

// connectModern makes a session without a handshake, from the server's answer to the probe.
func (c *Conn) connectModern(ctx context.Context, answer json.RawMessage) error {
	c.era.Store(&era{version: v20260728})
	l := newLink(c)
	l.discover = answer
	return c.begin(ctx, l, v20260728)
}

// connectSession does the handshake of the eras of sessions. A server that
// refuses it as if there were no such address may be one of HTTP+SSE; it is not
// tried with credentials, which that protocol sends to wherever the server says.
func (c *Conn) connectSession(ctx context.Context, version string) error {
	l := newLink(c)
	err := c.begin(ctx, l, version)
	if err == nil {
		c.hearSession(ctx)
		return nil
	}
	status, _ := l.failure()
	mayBeSSE := status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
	asked := c.o.Protocol == v20241105 || c.o.Protocol == Auto || c.o.Protocol == ""
	if !mayBeSSE || !asked || c.headers.Get("Authorization") != "" || c.tokens != nil {
		return err
	}
	if sseErr := c.connectSSE(ctx); sseErr != nil {
		c.log.DebugContext(ctx, "HTTP+SSE neither", "url", c.where, "error", sseErr.Error())
		if f, ok := asFailure(sseErr); ok && f.Reason == rpc.Auth {
			return sseErr
		}
		return err
	}
	return nil
}

// feedWait is how long a handshake waits for the stream of what belongs to no request.
const feedWait = time.Second

// hearSession opens the stream of what belongs to no request. Where questions come on it, they
// would be lost before that: then it waits until the server has taken it, or refused.
func (c *Conn) hearSession(ctx context.Context) {
	tried := make(chan struct{})
	f := &feed{
		resumable: true, request: request{method: http.MethodGet, url: c.url},
		tried: sync.OnceFunc(func() { close(tried) }),
	}
	c.wg.Go(func() { c.listen(c.listening, f) })
	if o := c.offered(); !o.Elicitation || !o.Exclusive {
		return
	}
	timer := time.NewTimer(feedWait)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	case <-ctx.Done():
	case <-c.listening.Done():
	}
}

// connectSSE opens the stream of HTTP+SSE and does the handshake over it.
func (c *Conn) connectSSE(ctx context.Context) error {
	s, err := c.openSSE(ctx)
	if err != nil {
		return err
	}
	c.era.Store(&era{})
	c.sse = s
	l := newLink(c)
	c.setLink(l)
	c.wg.Go(s.run)
	return c.begin(ctx, l, v20251125)
}

func (c *Conn) setLink(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	if c.err != nil { // closed in between
		_ = l.Close() // always nil
	}
}

// begin lets the SDK do its part of the handshake over the link.
func (c *Conn) begin(ctx context.Context, l *link, version string) error {
	c.setLink(l)
	session, err := rpc.NewClient(c.offered()).Connect(ctx, linkTo{l}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		_ = l.Close() // always nil
		if _, ours := l.failure(); ours != nil {
			return ours
		}
		return err
	}
	c.mu.Lock()
	c.session, c.peer = session, rpc.PeerOf(session)
	c.mu.Unlock()
	c.wg.Go(func() {
		err := session.Wait()
		c.end(&rpc.Failure{Reason: rpc.Lost, Msg: "the session has ended", Err: err})
	})
	return nil
}

// linkTo is the SDK's transport that leads to a link.
type linkTo struct{ l *link }

// Connect implements [mcp.Transport].
func (t linkTo) Connect(context.Context) (mcp.Connection, error) { return t.l, nil }
