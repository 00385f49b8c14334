package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

const (
	listenFirst  = time.Second      // before a stream of notifications is opened again; doubles
	listenMost   = 30 * time.Second // up to this
	listenSteady = 30 * time.Second // a stream that has lived so long starts anew with the first
	listenTries  = 5                // in a row that may fail
)

// A feed is a stream of notifications that is kept open: the GET of the eras of
// sessions, or the subscription of 2026-07-28.
type feed struct {
	request   request
	id        string // of the subscription
	resumable bool   // by Last-Event-ID

	cur    cursor
	opened bool // once at least

	tried func() // called when the server has answered, or not; may be nil
}

// errNoFeed says that a server offers no such stream, or not any more.
var errNoFeed = errors.New("the server has no stream of notifications")

// listen keeps a feed open until ctx ends or the server says that there is none.
// A server that had one and cannot be reached any more ends the connection, unless calls are still under way.
func (c *Conn) listen(ctx context.Context, f *feed) {
	f.cur.retry = -1
	failures, delay := 0, c.o.listenFirst
	for {
		began := time.Now()
		err := c.listenOnce(ctx, f, &failures)
		if ctx.Err() != nil {
			return
		}
		c.log.LogAttrs(ctx, slog.LevelDebug, "the stream of notifications ended", slog.String("url", c.where), slog.String("error", c.secrets.Text(err.Error())))
		if errors.Is(err, errNoFeed) {
			return
		}
		if failures > listenTries {
			if !f.opened {
				return
			}
			if c.quiet() {
				c.end(&rpc.Failure{Reason: rpc.Lost, Msg: fmt.Sprintf("the connection to %s was lost and could not be made again: %s", c.where, c.secrets.Text(err.Error()))})
				return
			}
		}
		if time.Since(began) >= listenSteady {
			delay = c.o.listenFirst
		}
		wait := delay
		if f.cur.retry >= 0 {
			wait = min(max(f.cur.retry, resumeLeast), resumeMost)
		}
		if !sleep(ctx, wait) {
			return
		}
		delay = min(2*delay, listenMost)
	}
}

// quiet reports whether no call is under way.
func (c *Conn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) == 0
}

// listenOnce opens the feed once and reads it to its end, which is the error.
func (c *Conn) listenOnce(ctx context.Context, f *feed, failures *int) error {
	q := f.request
	q.wait = c.o.streamWait
	if f.resumable && f.cur.last != "" {
		q.header = http.Header{headerLastEvent: {f.cur.last}}
	}
	r, err := c.send(ctx, &q)
	if f.tried != nil {
		f.tried()
	}
	if err != nil {
		*failures++
		if errors.Is(err, errNoHeaders) && !f.opened {
			// It keeps the request without answering it, which on some servers holds up all others.
			return fmt.Errorf("%w: %w", errNoFeed, err)
		}
		return err
	}
	defer r.Close()
	switch {
	case r.StatusCode == http.StatusOK && r.mediaType() == typeEvents:
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests:
		*failures++
		return fmt.Errorf("HTTP %d", r.StatusCode)
	case f.opened && r.StatusCode >= 400:
		return c.closed(r, f, failures)
	default: // 404 says no more than 405: a session that has just begun is not forgotten
		return fmt.Errorf("%w: HTTP %d with %q", errNoFeed, r.StatusCode, clip(r.mediaType()))
	}
	*failures = 0
	if f.opened && f.cur.last == "" {
		c.missed() // what was said in between is not said again
	}
	f.opened = true
	return c.hear(r, f)
}

// closed explains why a feed that was open is refused: the server may have
// forgotten the session (which ends the connection), or just the event to resume from.
func (c *Conn) closed(r *reply, f *feed, failures *int) error {
	err := c.refusal(r, "")
	if fail, ok := asFailure(err); (!ok || fail.Reason != rpc.SessionExpired) && f.cur.last != "" {
		f.cur.last = ""
		*failures++
		return err
	}
	return fmt.Errorf("%w: %w", errNoFeed, err)
}

// hear reads a feed. One message that cannot be read does not end it.
func (c *Conn) hear(r *reply, f *feed) error {
	events := newEventReader(r.Body, c.limit, &f.cur)
	events.skip = true
	for {
		ev, err := events.next()
		if err != nil {
			return err
		}
		if ev.name != "" && ev.name != "message" || len(bytes.TrimSpace(ev.data)) == 0 && !ev.over {
			continue
		}
		msgs, err := messages(ev.data)
		if ev.over {
			err = errOver
		}
		if err != nil {
			c.unreadable(err)
			continue
		}
		for _, m := range msgs {
			if f.id != "" && m.Response() && matches(m.ID, f.id) {
				if !raw.IsNull(m.Error) {
					return fmt.Errorf("%w: %s", errNoFeed, c.excerpt(m.Error, nil))
				}
				return errors.New("the server ended the subscription")
			}
			c.dispatch(nil, m)
		}
	}
}

// missed tells of a change in every list that the server has, since there may have been one.
func (c *Conn) missed() {
	c.mu.Lock()
	peer := c.peer
	c.mu.Unlock()
	if c.o.ListChanged == nil || peer == nil {
		return
	}
	has := peer.Capabilities
	for list, has := range map[string]bool{"tools": has.Tools, "resources": has.Resources, "prompts": has.Prompts} {
		if has {
			c.o.ListChanged(list)
		}
	}
}
