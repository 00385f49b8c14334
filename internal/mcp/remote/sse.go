package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"mcpbridge/internal/mcp/rpc"
)

// An sseStream is the stream of HTTP+SSE (2024-11-05), on which everything from
// the server comes, and whose end is the end of the connection.
type sseStream struct {
	c        *Conn
	endpoint *url.URL // what we send is POSTed to
	reply    *reply
	events   *eventReader
}

// openSSE opens the stream and waits for the event that says where to POST. The
// stream lives as long as the connection; ctx bounds the wait.
func (c *Conn) openSSE(ctx context.Context) (*sseStream, error) {
	opening, cancel := context.WithCancelCause(c.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
	r, err := c.send(opening, &request{method: http.MethodGet, url: c.url, era: &era{}})
	if err != nil {
		cancel(err)
		return nil, c.broken(ctx, err, false)
	}
	s := &sseStream{c: c, reply: r, events: newEventReader(r.Body, c.limit, &cursor{})}
	s.events.skip = true
	err = s.open()
	if !stop() && err == nil { // ctx ended in this very moment, and the stream with it
		err = ctx.Err()
	}
	if err != nil {
		r.Close()
		cancel(err)
		return nil, err
	}
	return s, nil
}

func (s *sseStream) open() error {
	c, r := s.c, s.reply
	if !r.ok() {
		return c.refusal(r, "")
	}
	if t := r.mediaType(); t != typeEvents {
		return c.protocolFailure(r.StatusCode, "answered HTTP %d with %q and not events", r.StatusCode, clip(c.secrets.Text(t)))
	}
	for {
		ev, err := s.events.next()
		if err != nil {
			return c.broken(c.ctx, fmt.Errorf("the stream ended before it said where to send to: %w", err), true)
		}
		if ev.name != "endpoint" {
			continue
		}
		// Whoever can answer here could otherwise have our headers sent anywhere.
		u, err := c.url.Parse(string(bytes.TrimSpace(ev.data)))
		if err != nil || !sameOrigin(u, c.url) {
			return c.protocolFailure(r.StatusCode, "wants its messages at another origin")
		}
		u.User, u.Fragment = nil, ""
		s.endpoint = u
		return nil
	}
}

// run reads the stream until it ends, and with it the connection.
func (s *sseStream) run() {
	c := s.c
	defer s.reply.Close()
	err := s.read()
	if errors.Is(err, io.EOF) {
		err = errors.New("the server ended the stream")
	}
	if c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	f := &rpc.Failure{Reason: rpc.Lost, Msg: fmt.Sprintf("the stream from %s ended: %s", c.where, c.secrets.Text(err.Error()))}
	c.end(f)
	c.mu.Lock()
	var left []*call
	for _, k := range c.calls {
		left = append(left, k)
	}
	c.mu.Unlock()
	for _, k := range left {
		c.finish(k, outcome{err: f})
	}
}

func (s *sseStream) read() error {
	c := s.c
	for {
		ev, err := s.events.next()
		if err != nil {
			return err
		}
		if ev.name != "" && ev.name != "message" {
			continue
		}
		if ev.over {
			if k := c.lookup([]byte(ev.id)); k != nil {
				c.finish(k, outcome{err: c.tooLarge()})
			}
			continue
		}
		msgs, err := messages(ev.data)
		if err != nil {
			// Whose answer it is cannot be known: that call ends by its clock.
			c.unreadable(err)
			continue
		}
		for _, m := range msgs {
			if m.Response() {
				if k := c.lookup(m.ID); k != nil {
					c.finish(k, c.answer(k, m))
					continue
				}
			}
			c.dispatch(nil, m)
		}
	}
}

// exchangeSSE POSTs the call; its answer comes on the stream, perhaps before the POST is answered.
func (c *Conn) exchangeSSE(k *call) outcome {
	r, err := c.post(k)
	if err != nil {
		return outcome{err: err}
	}
	r.drain()
	select {
	case <-k.done:
		return outcome{}
	case <-k.ctx.Done():
		return outcome{err: c.broken(k.ctx, k.ctx.Err(), true)}
	}
}
