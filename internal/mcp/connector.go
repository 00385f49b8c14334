package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

const (
	maxReconnectDelay = 5 * time.Minute
	changeDelay       = 100 * time.Millisecond // a burst of list changes is one refresh
)

// A connector keeps one server's entry in the catalogue true.
type connector struct {
	catalogue *Catalogue
	config    ServerConfig
	target    *bridge.Target
	keep      func(tool string) bool
	wake      chan struct{} // a list has changed, or there is a new client
	changed   atomic.Bool   // a list has changed since it was last read

	client   *Client // whose lists are in the entry; owned by run
	failures int     // refreshes that failed in a row; owned by run
}

func newConnector(c *Catalogue, s ServerConfig) *connector {
	id := s.Endpoint.ID()
	k := &connector{
		catalogue: c, config: s, keep: s.keeps(), wake: make(chan struct{}, 1),
		target: &bridge.Target{
			Handle: s.Handle, Endpoint: id, Demand: s.Endpoint.Demand(),
			Timeout: cmp.Or(s.Timeout, 20*time.Second), MaxTimeout: cmp.Or(s.MaxTimeout, 10*time.Minute),
			ParseText: s.ParseText, Strict: s.Strict,
		},
	}
	signal := func() {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
	o := s.RPC
	o.ListChanged = func(string) {
		k.changed.Store(true)
		signal()
	}
	c.opts.Pool.Attach(s.Endpoint, o, func(*Client) { signal() })
	return k
}

// run connects, reads the lists, and then waits for what makes that necessary again.
func (k *connector) run(ctx context.Context) {
	err := k.refresh(ctx)
	for ctx.Err() == nil {
		err = k.wait(ctx, err)
	}
}

// wait waits for the next thing to happen after a refresh that ended with err,
// sees to it, and returns how that ended.
func (k *connector) wait(ctx context.Context, err error) error {
	var retry <-chan time.Time
	var died <-chan struct{}
	switch {
	case err != nil && !k.config.NoReconnect:
		timer := time.NewTimer(k.backoff())
		defer timer.Stop()
		retry = timer.C
	case err == nil && k.client != nil:
		died = k.client.conn.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-retry:
		return k.refresh(ctx)
	case <-died:
		return k.lost()
	case <-k.wake:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(changeDelay):
	}
	select {
	case <-k.wake:
	default:
	}
	switch c := k.catalogue.opts.Pool.current(k.target.Endpoint); {
	case c != nil && c.Connected():
		return k.refresh(ctx)
	case k.client != nil:
		return k.lost()
	default:
		return err
	}
}

// backoff returns how long to wait before the next attempt: twice as long after
// each failure, with jitter, so that servers that went down together do not
// come back together.
func (k *connector) backoff() time.Duration {
	d := cmp.Or(k.config.ReconnectDelay, 5*time.Second)
	for range min(k.failures-1, 10) {
		d = min(2*d, maxReconnectDelay)
	}
	return d + rand.N(d/4+1)
}

// lost notes that the client has died. A process is started again by the next
// call; a remote server is looked for in the background.
func (k *connector) lost() error {
	reason := k.client.conn.Err()
	k.client = nil
	k.catalogue.opts.Log.LogAttrs(context.Background(), slog.LevelInfo, "connection ended",
		slog.String("handle", k.config.Handle), slog.Any("reason", reason))
	k.catalogue.update(k.config.Handle, func(s *bridge.Server) { s.State = bridge.Idle })
	if k.config.Endpoint.Process() {
		return nil
	}
	return cmp.Or(reason, errEnded)
}

var errEnded = errors.New("the connection ended")

// refresh connects if needed and reads the lists if they are not those of this client.
func (k *connector) refresh(ctx context.Context) error {
	client, err := k.catalogue.opts.Pool.client(ctx, k.target.Endpoint)
	if err == nil && client == k.client && !k.changed.Load() {
		return nil // it was woken by its own connecting
	}
	var tools []*bridge.Tool
	var skipped []bridge.Skipped
	if err == nil {
		k.changed.Store(false) // a change from here on is another refresh
		tools, skipped, err = k.tools(ctx, client)
	}
	if ctx.Err() != nil {
		return nil // stopping is no news of the server
	}
	if err != nil {
		k.changed.Store(true)
		k.failed(err)
		k.failures++
		return err
	}
	k.client = client
	k.failures = 0
	k.catalogue.update(k.config.Handle, func(s *bridge.Server) {
		peer := client.conn.Peer()
		s.Name, s.Version, s.Protocol, s.Instructions = peer.Name, peer.Version, peer.Protocol, peer.Instructions
		s.State, s.LastError, s.Listed = bridge.Ready, "", time.Now()
		s.Tools, s.Skipped = tools, skipped
	})
	for _, t := range skipped {
		k.catalogue.opts.Log.LogAttrs(ctx, slog.LevelWarn, "tool left out",
			slog.String("handle", k.config.Handle), slog.String("tool", t.Name), slog.String("reason", t.Reason))
	}
	return nil
}

// tools reads the list of tools. A server that offers none is healthy.
func (k *connector) tools(ctx context.Context, c *Client) ([]*bridge.Tool, []bridge.Skipped, error) {
	if !c.conn.Peer().Capabilities.Tools {
		return nil, nil, nil
	}
	opts := k.catalogue.opts
	entries, err := list(ctx, c.conn, "tools/list", "tools", opts.Lists)
	if err != nil {
		return nil, nil, c.explain(err, nil)
	}
	tools, skipped := decodeTools(entries, k.target, k.keep, opts.Compiler)
	return tools, skipped, nil
}

// failed notes an attempt that failed. The last good lists stay.
func (k *connector) failed(err error) {
	k.catalogue.update(k.config.Handle, func(s *bridge.Server) {
		s.LastError = messageOf(err)
		switch {
		case bridge.KindOf(err) == bridge.UpstreamAuth:
			s.State = bridge.NeedsAuth
		case s.Listed.IsZero():
			s.State = bridge.Failed
		default:
			s.State = bridge.Degraded
		}
	})
}

// messageOf returns the part of err that people may see.
func messageOf(err error) string {
	if e, ok := errors.AsType[*bridge.Error](err); ok {
		return e.Msg
	}
	if f, ok := errors.AsType[*rpc.Failure](err); ok {
		return f.Msg
	}
	return "an internal error; the log has it"
}
