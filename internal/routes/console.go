package routes

import (
	"sync"
	"time"

	"mcpbridge/internal/bridge"
)

const (
	// keptCalls is how many calls are kept for the console, and shownCalls how many of them
	// one visitor is shown: a caller who is busy must not push out those of all others.
	keptCalls, shownCalls = 1000, 100

	maxStreams = 100         // visitors at a time
	operators  = 10          // of these, that only administrators can be: who may call must not be able to lock them out
	freshFor   = time.Second // how long one look at the status does for all of them
)

// A Console keeps what the page at the root shows beside the status: the calls that have
// ended lately. It also counts who looks, so that nothing is done while nobody does.
type Console struct {
	ended chan struct{} // closed by Close
	end   func()

	mu      sync.Mutex
	calls   []endedCall // a ring once it is full, guarded by mu
	oldest  int         // index in calls, guarded by mu
	streams int         // guarded by mu
	latest  *look       // the last look while anybody is looking, guarded by mu
}

// NewConsole returns a console that knows of no call.
func NewConsole() *Console {
	c := &Console{ended: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	return c
}

// An Ending is how a call ended.
type Ending struct {
	ID      string // of the request or the job
	Status  int    // of HTTP; zero if the caller speaks something else
	Code    bridge.Kind
	Took    time.Duration
	In, Out int64 // bytes of the arguments and of the answer
}

// An endedCall is a call as it is kept: nothing of its arguments or its result.
type endedCall struct {
	Ending
	at     time.Time
	owner  bridge.Owner
	handle string
	kind   string // "tool", or what else it is a call of
	shown  string // its name
	name   string // what the policy judges
}

// Record keeps a call that has ended. It costs one short lock.
func (c *Console) Record(call *bridge.Call, e Ending) {
	kind, shown := call.Subject()
	rec := endedCall{
		Ending: e, at: time.Now(), owner: call.Caller.Owner(),
		handle: bridge.FirstChars(call.Handle, loggedName), kind: kind, shown: shown, name: bridge.FirstChars(call.Tool, 1000),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) < keptCalls {
		c.calls = append(c.calls, rec)
		return
	}
	c.calls[c.oldest] = rec
	c.oldest = (c.oldest + 1) % keptCalls
}

// Close ends all streams, and lets no other begin.
func (c *Console) Close() { c.end() }

// enter counts a visitor in, until the returned function is called. It is nil if there are too many.
func (c *Console) enter(admin bool) (leave func()) {
	room := maxStreams
	if !admin {
		room -= operators
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams >= room {
		return nil
	}
	c.streams++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams--; c.streams == 0 {
			c.latest = nil // nothing is kept for nobody
		}
	}
}

// A look is what all visitors share of one moment.
type look struct {
	taken time.Time
	take  func()

	status Status
	calls  []endedCall // newest first

	mu   sync.Mutex
	seen map[visitor]*sight // guarded by mu
}

// look returns the latest look, or takes another one if that is no longer fresh.
func (c *Console) look(status func() Status) *look {
	c.mu.Lock()
	l := c.latest
	// The visitors' own clocks run a little apart.
	if l == nil || time.Since(l.taken) > freshFor*9/10 {
		l = &look{taken: time.Now(), seen: map[visitor]*sight{}}
		l.take = sync.OnceFunc(func() { l.status, l.calls = status(), c.newest() })
		if c.streams > 0 {
			c.latest = l
		}
	}
	c.mu.Unlock()
	l.take()
	return l
}

// newest returns the calls that are kept, the newest first.
func (c *Console) newest() []endedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]endedCall, 0, len(c.calls))
	for i := range c.calls {
		all = append(all, c.calls[(c.oldest+len(c.calls)-1-i)%len(c.calls)])
	}
	return all
}
