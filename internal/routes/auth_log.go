package routes

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// strangersEvery is how often requests of unknown callers are logged at most.
const strangersEvery = time.Second

// strangers logs the requests whose caller could not be found: the first at once,
// those that follow closely together in one line, so that nobody who guesses keys
// writes our log.
type strangers struct {
	log *slog.Logger

	mu      sync.Mutex
	counted int         // requests that wait for the next line, guarded by mu
	last    []slog.Attr // about the latest of these, guarded by mu
	waiting bool        // a timer will write what is counted, guarded by mu
}

func (s *strangers) note(x *exchange, r *http.Request) {
	attrs := []slog.Attr{
		slog.String("request_id", x.id), slog.Int("status", x.status), slog.String("code", string(x.code)), slog.String("error", logged(x.err)),
		slog.String("remote", r.RemoteAddr), slog.String("method", cut(r.Method, loggedName)), slog.String("path", cut(r.URL.EscapedPath(), loggedName)),
	}
	s.mu.Lock()
	if s.waiting {
		s.counted++
		s.last = attrs
		s.mu.Unlock()
		return
	}
	s.waiting = true
	s.mu.Unlock()
	s.write(1, attrs)
	time.AfterFunc(strangersEvery, s.flush) // which ends when a second passes without any
}

// flush writes one line about all that were counted, and waits for more.
func (s *strangers) flush() {
	s.mu.Lock()
	n, attrs := s.counted, s.last
	s.counted, s.last = 0, nil
	s.waiting = n > 0
	s.mu.Unlock()
	if n == 0 {
		return
	}
	s.write(n, attrs)
	time.AfterFunc(strangersEvery, s.flush)
}

func (s *strangers) write(n int, attrs []slog.Attr) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "requests of unknown callers failed; this is the latest", append(attrs, slog.Int("count", n))...)
}
