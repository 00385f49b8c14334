package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// A terminal shows a person how far a call is, and asks what its server asks. Where there is
// no person it writes lines, and declines.
type terminal struct {
	out     io.Writer
	bar     bool          // out is a screen, on which a line can be written over
	in      *bufio.Reader // nil if nobody can be asked
	compile func(schema []byte) (bridge.Checker, error)

	mu    sync.Mutex
	shown string // the bar, if there is one on the screen; guarded by mu
}

// newTerminal returns the terminal of a command, who may be asked only if its input is free.
func newTerminal(s streams, free bool, compile func([]byte) (bridge.Checker, error)) *terminal {
	t := &terminal{out: s.stderr, bar: isTerminal(s.stderr), compile: compile}
	if free && isTerminal(s.stdin) {
		t.in = bufio.NewReader(s.stdin)
	}
	return t
}

// isTerminal reports whether a stream is one that a person sits at.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	is, err := f.Stat()
	if err != nil || is.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(is, null)
}

const (
	barWidth = 30
	erase    = "\r\x1b[K" // to the left margin, and the line away
)

// progress shows the params of a progress notification.
func (t *terminal) progress(params json.RawMessage) {
	var p struct {
		Progress, Total float64
		Message         string
	}
	if json.Unmarshal(params, &p) != nil {
		return // a server may send anything
	}
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message != "" {
		text += " " + line(bridge.FirstChars(p.Message, 200))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.bar {
		fmt.Fprintln(t.out, "progress:", text)
		return
	}
	if p.Total > 0 {
		done := min(max(int(p.Progress/p.Total*barWidth), 0), barWidth)
		text = "[" + strings.Repeat("#", done) + strings.Repeat("-", barWidth-done) + "] " + text
	}
	t.shown = bridge.FirstChars(text, 78) // a longer one could not be written over
	fmt.Fprint(t.out, erase+t.shown)
}

// message shows the params of a log message, above the bar.
func (t *terminal) message(params json.RawMessage) {
	text := string(raw.Get(params, "data"))
	if raw.KindOf([]byte(text)) == raw.String {
		text = raw.Unquote([]byte(text))
	}
	t.say("%s: %s", line(raw.GetString(params, "level")), line(bridge.FirstChars(text, 1000)))
}

// say writes a line.
func (t *terminal) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown != "" {
		fmt.Fprint(t.out, erase)
	}
	fmt.Fprintf(t.out, format+"\n", args...)
	fmt.Fprint(t.out, t.shown)
}

// clear takes the bar away.
func (t *terminal) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown != "" {
		t.shown = ""
		fmt.Fprint(t.out, erase)
	}
}

// ask is a [bridge.Asker].
func (t *terminal) ask(ctx context.Context, questions []bridge.Question) (map[string]bridge.Reply, error) {
	t.clear()
	replies := make(map[string]bridge.Reply, len(questions))
	for _, q := range questions {
		if t.in == nil {
			t.say("The tool asks: %s\nIt is declined, since the standard input is no terminal.", line(q.Message))
			replies[q.ID] = bridge.Reply{Action: bridge.Decline}
			continue
		}
		r, err := t.question(ctx, q)
		if err != nil {
			return nil, err
		}
		replies[q.ID] = r
	}
	return replies, nil
}
