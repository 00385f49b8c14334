// Package publish is the MCP server side: what was connected, for MCP clients.
// A [Server] publishes each caller's view of the catalogue over Streamable HTTP
// ([Server.ServeHTTP]) and over a pair of pipes ([Server.ServeStdio]).
//
// The SDK speaks the protocol, in all its versions; start with [peer.receive],
// which takes from it the methods that the bridge answers itself. Every call
// goes through [bridge.Bridge.Invoke], and its result goes back in the server's bytes.
//
// Tools and prompts are published as <handle>__<name>, by the rule that documents
// have for operations; resources as bridge:<handle>:<URI>, so that no server's can be taken for another's.
package publish

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// Options say what to publish. Bridge must be set.
type Options struct {
	Bridge  *bridge.Bridge
	Version string       // of the bridge, for clients
	Log     *slog.Logger // nil logs nothing
	// Called, if set, is told of each call that has ended: the id of its request, if that is known, and how it failed.
	Called func(c *bridge.Call, id string, code bridge.Kind, took time.Duration)
	// Trace, if set, begins the span of a call, and returns the trace that the call is to be a part of; end is
	// told how it went, and gets a call whose Handle is empty if there was nothing of that name. Without it the client's own trace is passed on.
	Trace func(m Message) (t bridge.Trace, end func(c *bridge.Call, code bridge.Kind))

	RequestBytes int64         // most bytes in one message or batch; zero is 4 MiB
	BodyTimeout  time.Duration // most time for a request's body to arrive; zero is a minute
	WriteTimeout time.Duration // most time for a client to take the next piece of a stream; zero is 30 s

	Heartbeat        time.Duration // how often a stream shows that it lives; zero is 25 s
	SessionIdle      time.Duration // time without a request or an open stream after which a session ends; zero is 30 minutes
	Sessions         int           // most sessions and streams that live between requests; zero is 1000
	SessionsPerOwner int           // most of them for one owner; zero is 200
	InputWait        time.Duration // most time for a client to reply to what a server asks by making its call again; zero is 10 minutes
	PageTools        int           // most entries on a page of a list; zero is 1000
	PageBytes        int           // bytes that end a page early, since clients bound a message; zero is 4 MiB
}

// A Server publishes what it is given to MCP clients. Run keeps it going; Close ends its sessions.
type Server struct {
	opts  Options
	log   *slog.Logger
	names names
	// states begins the states of calls that wait here. All others are their servers', also of
	// servers that are bridges themselves.
	states string

	stateful, stateless http.Handler

	streams    context.Context    // of what only waits for news
	endStreams context.CancelFunc // see EndStreams

	mu       sync.Mutex
	changed  chan struct{}        // closed and replaced when the catalogue has changed; guarded by mu
	sessions map[string]*session  // :: id -> session, guarded by mu
	owners   map[bridge.Owner]int // :: owner -> sessions, guarded by mu
	watchers map[*peer]struct{}   // those who hear of changed lists, guarded by mu
	parked   map[string]*held     // :: state -> call that waits for its client, guarded by mu
	closed   bool                 // guarded by mu
	closing  sync.WaitGroup       // sessions that are being closed, and calls that may wait for their clients
}

// New returns a server. Nothing runs yet.
func New(o Options) *Server {
	o.RequestBytes = cmp.Or(o.RequestBytes, 4<<20)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 25*time.Second)
	o.SessionIdle = cmp.Or(o.SessionIdle, 30*time.Minute)
	o.Sessions = cmp.Or(o.Sessions, 1000)
	o.SessionsPerOwner = cmp.Or(o.SessionsPerOwner, 200)
	o.InputWait = cmp.Or(o.InputWait, 10*time.Minute)
	o.PageTools = cmp.Or(o.PageTools, 1000)
	o.PageBytes = cmp.Or(o.PageBytes, 4<<20)
	s := &Server{
		opts: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		states:  "bridge:" + rand.Text() + ":",
		changed: make(chan struct{}),
		parked:  map[string]*held{}, sessions: map[string]*session{}, owners: map[bridge.Owner]int{}, watchers: map[*peer]struct{}{},
	}
	s.streams, s.endStreams = context.WithCancel(context.Background())
	s.stateful = carried(mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{
		// Host and Origin were checked before, by rules that the configuration knows.
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}))
	s.stateless = carried(mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
		Stateless: true, PropagateRequestCancellation: true,
	}))
	return s
}

// Changed tells the server that the catalogue may have changed. It does not block.
func (s *Server) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// news returns a channel that is closed by the next change.
func (s *Server) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

const (
	// calm is how long several changes have time to become one notification.
	calm = 100 * time.Millisecond
	// reapEvery is how often idle sessions are looked for.
	reapEvery = 30 * time.Second
)

// Run tells clients of changed lists and ends idle sessions, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	reap := time.NewTicker(min(reapEvery, s.opts.SessionIdle))
	defer reap.Stop()
	news := s.news()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reap.C:
			s.reap(time.Now())
		case <-news:
			select {
			case <-ctx.Done():
				return
			case <-time.After(calm):
			}
			news = s.news() // before looking: a change from here on is another one
			s.tell()
		}
	}
}

// tell lets every client know whose list differs from what it was told last.
func (s *Server) tell() {
	s.mu.Lock()
	watchers := make([]*peer, 0, len(s.watchers))
	for p := range s.watchers {
		watchers = append(watchers, p)
	}
	s.mu.Unlock()
	for _, p := range watchers {
		p.tell()
	}
}

// watch makes the peer hear of changed lists until the returned function is called.
func (s *Server) watch(p *peer) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[p] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, p)
	}
}

// EndStreams ends the streams on which clients wait for news, and opens no more:
// a server that drains its requests would wait for them for ever. Calls go on.
func (s *Server) EndStreams() { s.endStreams() }

// Close ends all sessions and the calls that run in them, and waits for their end.
func (s *Server) Close() {
	s.endStreams()
	s.mu.Lock()
	s.closed = true
	all := make([]*session, 0, len(s.sessions))
	for _, e := range s.sessions {
		all = append(all, e)
	}
	parked := slices.Collect(maps.Values(s.parked))
	clear(s.parked)
	s.mu.Unlock()
	for _, k := range parked {
		k.timer.Stop()
		k.cancel(errEnded)
	}
	for _, e := range all {
		s.end(e)
	}
	s.closing.Wait()
}
