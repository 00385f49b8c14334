package mcptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// httpRaw serves a stdio mode over Streamable HTTP, its frames unchanged, with
// tools that break the transport instead of the protocol.
func httpRaw(args []string) (http.Handler, error) {
	mode, options := OK, args
	if len(args) > 0 {
		mode, options = args[0], args[1:]
	}
	newServer, ok := servers[mode]
	if !ok {
		return nil, fmt.Errorf("there is no server %q to serve over HTTP", mode)
	}
	s, err := newServer(nil)
	if err != nil {
		return nil, err
	}
	h := &rawHandler{s: s, modern: mode == Modern, sessions: map[string]bool{}}
	for _, o := range options {
		switch o {
		case "json":
			h.json = true
		case "no-get":
			h.noGet = true
		case "no-session":
			h.noSession = true
		default:
			return nil, fmt.Errorf("there is no option %q", o)
		}
	}
	s.tools = append(s.tools,
		brokenHTTP("http_status", "Answers the call with an HTTP status and a page.", `"status":{"type":"integer"}`),
		brokenHTTP("http_type", "Answers the call with 200 and a page of HTML.", ``),
		brokenHTTP("http_drop", "Closes the connection before any answer.", ``),
		brokenHTTP("http_drop_stream", "Closes the connection when its answer has begun.", ``),
		brokenHTTP("http_expire", "Answers, and forgets all sessions then.", ``),
	)
	return h, nil
}

// brokenHTTP is a tool that rawHandler.broken answers.
func brokenHTTP(name, description, props string) *tool {
	return &tool{name, def(name, description, props, ``), func(context.Context, *call) (string, error) {
		return text("this tool works over HTTP only"), nil
	}}
}

type rawHandler struct {
	s      *server
	json   bool // answer as application/json, which drops notifications
	noGet  bool // refuse the GET stream
	modern bool // no sessions; check the headers that repeat the body

	noSession bool // give no session ids

	mu       sync.Mutex
	sessions map[string]bool // :: session id -> known, guarded by mu
}

func (h *rawHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && !h.noGet && !h.modern:
		h.get(w, r)
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method == http.MethodDelete && !h.modern:
		h.mu.Lock()
		delete(h.sessions, r.Header.Get("Mcp-Session-Id"))
		h.mu.Unlock()
	default:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// get opens the stream of notifications that belong to no request.
func (h *rawHandler) get(w http.ResponseWriter, r *http.Request) {
	if !h.known(w, r) {
		return
	}
	out := &wire{s: h.s, w: newEventStream(w)}
	defer out.hangUp()
	out.mu.Lock() // a notification that comes now goes behind the headers
	h.s.update(func() { h.s.listener = out })
	err := http.NewResponseController(w).Flush() // the client waits for them
	out.mu.Unlock()
	if err == nil {
		<-r.Context().Done()
	}
}

// hangUp ends w's way to a client. Nobody writes to that any more when it returns.
func (w *wire) hangUp() {
	w.s.update(func() {
		if w.s.listener == w {
			w.s.listener, w.s.listen = nil, nil
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w = io.Discard
}

func (h *rawHandler) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone away
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.Method == "initialize" && !h.noSession && !h.modern {
		id := rand.Text()
		h.mu.Lock()
		h.sessions[id] = true
		h.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	} else if !h.known(w, r) {
		return
	}
	if h.modern && m.ID != nil && r.Header.Get("Mcp-Method") != m.Method {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"the Mcp-Method header is not the body's method"}}`, m.ID)
		return
	}
	if h.broken(w, &m) {
		return
	}
	// The bytes are one message already; a frame has no line ends.
	line := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	if m.ID == nil {
		h.s.wireTo(io.Discard).handle(r.Context(), line)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	// In the session era a call goes on when its stream breaks; in the modern one that cancels it.
	ctx := r.Context()
	if !h.modern {
		ctx = context.WithoutCancel(ctx)
	}
	var out io.Writer = newEventStream(w)
	if h.json {
		out = &jsonAnswer{w: w}
	}
	answer := h.s.wireTo(out)
	answer.handle(ctx, line)
	select {
	case <-answer.done:
		if m.Method != "subscriptions/listen" {
			return
		}
		<-r.Context().Done()
	case <-r.Context().Done():
	}
	answer.hangUp()
}

func (s *server) wireTo(w io.Writer) *wire { return &wire{s: s, w: w, done: make(chan struct{})} }

// known refuses a request of no session, or of one that is over.
func (h *rawHandler) known(w http.ResponseWriter, r *http.Request) bool {
	if h.noSession || h.modern {
		return true
	}
	id := r.Header.Get("Mcp-Session-Id")
	h.mu.Lock()
	ok := h.sessions[id]
	h.mu.Unlock()
	switch {
	case id == "":
		http.Error(w, "Mcp-Session-Id is missing", http.StatusBadRequest)
	case !ok:
		http.Error(w, "session not found", http.StatusNotFound)
	}
	return ok
}

// broken answers the tools whose fault is in HTTP.
func (h *rawHandler) broken(w http.ResponseWriter, m *message) bool {
	var c struct {
		Name      string
		Arguments struct{ Status int }
	}
	if m.Method != "tools/call" || json.Unmarshal(m.Params, &c) != nil || !strings.HasPrefix(c.Name, "http_") {
		return false
	}
	switch c.Name {
	case "http_status":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(c.Arguments.Status)
		fmt.Fprintf(w, "<h1>%d</h1>", c.Arguments.Status)
	case "http_type":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<h1>Welcome</h1>")
	case "http_drop":
		panic(http.ErrAbortHandler)
	case "http_drop_stream":
		_, _ = newEventStream(w).Write([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n"))
		panic(http.ErrAbortHandler)
	case "http_expire":
		h.mu.Lock()
		clear(h.sessions)
		h.mu.Unlock()
		return false // the tool itself answers
	}
	return true
}

// An eventStream writes each frame as an event.
type eventStream struct {
	w http.ResponseWriter
}

func newEventStream(w http.ResponseWriter) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return &eventStream{w}
}

func (e *eventStream) Write(frame []byte) (int, error) {
	// A frame of two lines is noise and an answer: an event each.
	for line := range bytes.Lines(frame) {
		if _, err := fmt.Fprintf(e.w, "event: message\ndata: %s\n\n", bytes.TrimRight(line, "\n")); err != nil {
			return 0, err
		}
	}
	return len(frame), http.NewResponseController(e.w).Flush()
}

// A jsonAnswer writes the frame that is the answer, and no other.
type jsonAnswer struct {
	w http.ResponseWriter
}

func (j *jsonAnswer) Write(frame []byte) (int, error) {
	var m struct{ Method *string }
	if json.Unmarshal(frame, &m) == nil && m.Method != nil {
		return len(frame), nil
	}
	j.w.Header().Set("Content-Type", "application/json")
	return j.w.Write(slices.Clone(frame))
}
