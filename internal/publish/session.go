package publish

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A session lives between requests: one of the protocol's, or a stream on which a
// client of the later protocol waits for news.
type session struct {
	id      string // by which requests name it; of a stream nobody knows it
	owner   bridge.Owner
	stream  bool
	peer    *peer
	unwatch func()

	open int       // requests under way, streams among them; guarded by the server's mu
	idle time.Time // when open became zero, guarded by the server's mu
}

var (
	errFull   = errors.New("there are too many sessions; end some, or try again later")
	errClosed = errors.New("the bridge is stopping")
)

func newID() string { return rand.Text() + rand.Text() }

// register makes a session of the peer, with one request under way. Without an id
// it is a stream. It ends the idlest session where there are too many.
func (s *Server) register(p *peer, rq request, id string) (*session, error) {
	e := &session{id: id, owner: rq.caller.Owner(), stream: id == "", peer: p, open: 1}
	if e.stream {
		e.id = newID()
	}
	e.unwatch = s.watch(p)
	s.mu.Lock()
	err := s.admitLocked(e)
	s.mu.Unlock()
	if err != nil {
		e.unwatch()
		return nil, err
	}
	return e, nil
}

func (s *Server) admitLocked(e *session) error {
	if s.closed {
		return errClosed
	}
	if s.owners[e.owner] >= s.opts.SessionsPerOwner && !s.evictLocked(func(o *session) bool { return o.owner == e.owner }) {
		return errFull
	}
	if len(s.sessions) >= s.opts.Sessions && !s.evictLocked(func(*session) bool { return true }) {
		return errFull
	}
	s.sessions[e.id] = e
	s.owners[e.owner]++
	return nil
}

// evictLocked ends the idlest of those sessions, and reports whether there was one.
func (s *Server) evictLocked(of func(*session) bool) bool {
	var idlest *session
	for _, e := range s.sessions {
		if e.open == 0 && of(e) && (idlest == nil || e.idle.Before(idlest.idle)) {
			idlest = e
		}
	}
	if idlest == nil {
		return false
	}
	s.endLocked(idlest)
	return true
}

// acquire returns the owner's session of that id for one request, or nil: to anybody else it does not exist.
func (s *Server) acquire(id string, owner bridge.Owner) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sessions[id]
	if e == nil || e.stream || e.owner != owner {
		return nil
	}
	e.open++
	return e
}

// release ends what acquire or register began.
func (s *Server) release(e *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.open--; e.open == 0 {
		e.idle = time.Now()
	}
}

// end ends a session and what runs in it. Doing so twice is harmless.
func (s *Server) end(e *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(e)
}

func (s *Server) endLocked(e *session) {
	if s.sessions[e.id] != e {
		return
	}
	delete(s.sessions, e.id)
	if s.owners[e.owner]--; s.owners[e.owner] == 0 {
		delete(s.owners, e.owner)
	}
	// Elsewhere, since it takes locks of its own and waits for calls; Close waits for it.
	s.closing.Go(func() {
		e.unwatch()
		e.peer.close()
	})
}

// reap ends the sessions that have been idle for too long.
func (s *Server) reap(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.sessions {
		if e.open == 0 && now.Sub(e.idle) >= s.opts.SessionIdle {
			s.endLocked(e)
		}
	}
}

// checkParams makes the SDK compare the headers Mcp-Param-… of a call with its
// arguments, where the tool's schema asks clients to send such, and reports whether it does.
func (s *Server) checkParams(p *peer, rq request, name string) bool {
	t := s.names.find(s.opts.Bridge.Catalogue.Snapshot(rq.caller), name)
	if t == nil || !strings.Contains(string(t.Input), "x-mcp-header") || raw.KindOf(t.Input) != raw.Object {
		return false
	}
	p.srv.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(asObject(t.Input))}, nil)
	return true
}
