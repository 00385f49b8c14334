package stdio

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpbridge/internal/mcp/rpc"
)

const (
	lineBytes = 1 << 10 // of a line on standard error; the rest of it is dropped
	tailLines = 20      // kept of standard error
	tailBytes = 4 << 10
	wordBytes = 2 << 10 // of the tail, in a message

	stderrRate = 50 // lines per second to the log
	skipRate   = 5  // skipped lines per second to the log
)

// A tail copies a server's standard error to the log, line by line, and keeps the last of it.
type tail struct {
	log    *slog.Logger
	redact rpc.Redactor

	mu    sync.Mutex
	lines []string
	bytes int
	ended chan struct{} // closed at the end of the stream
}

func newTail(log *slog.Logger, secrets []string) *tail {
	return &tail{log: log, redact: redactor(secrets), ended: make(chan struct{})}
}

// redactor replaces secrets. Short values would blacken half of every line and
// are no secrets; one of several lines is looked for line by line.
func redactor(secrets []string) rpc.Redactor {
	var lines []string
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= 6 {
				lines = append(lines, line)
			}
		}
	}
	return rpc.NewRedactor("[redacted]", lines)
}

// read takes the stream to its end. It ends when the last process that holds it
// does, or when it is closed.
func (t *tail) read(r io.Reader) {
	defer close(t.ended)
	rate := limiter{perSecond: stderrRate}
	in := bufio.NewReaderSize(r, lineBytes)
	for {
		b, more, err := in.ReadLine()
		if err != nil {
			return
		}
		line := t.clean(b)
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		if line == "" {
			continue
		}
		t.keep(line)
		if ok, lost := rate.allow(time.Now()); ok {
			attrs := []slog.Attr{slog.String("line", line)}
			if lost > 0 {
				attrs = append(attrs, slog.Int("suppressed", lost))
			}
			t.log.LogAttrs(context.Background(), slog.LevelInfo, "the server wrote to standard error", attrs...)
		}
	}
}

func (t *tail) clean(b []byte) string { return printable(t.redact.Text(string(b))) }

func (t *tail) keep(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.bytes += len(line)
	for len(t.lines) > tailLines || t.bytes > tailBytes {
		t.bytes -= len(t.lines[0])
		t.lines = t.lines[1:]
	}
}

// Lines returns the last lines.
func (t *tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.lines...)
}

// words returns what the server said last, for a message: "; its last words: …", or nothing.
func (t *tail) words() string {
	s := strings.Join(t.Lines(), " | ")
	if s == "" {
		return ""
	}
	if len(s) > wordBytes {
		from := len(s) - wordBytes
		for !utf8.RuneStart(s[from]) {
			from++
		}
		s = "…" + s[from:]
	}
	return "; its last words: " + s
}

// printable makes a stranger's text fit for a line of a log or a message: colour
// codes go, and what else is no graphic character is escaped.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return strings.TrimRight(s, " ")
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := colourCode(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return strings.TrimRight(b.String(), " ")
}

// colourCode returns the length of the terminal control sequence (ECMA-48, CSI)
// that s starts with, or 0.
func colourCode(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			return 0
		}
	}
	return 0
}

// A limiter lets so many events of each second pass, and counts the others.
type limiter struct {
	perSecond int
	second    int64
	passed    int
	lost      int
}

// allow reports whether the event passes, and then how many did not since the last that did.
func (l *limiter) allow(now time.Time) (ok bool, lost int) {
	if s := now.Unix(); s != l.second {
		l.second, l.passed = s, 0
	}
	if l.passed == l.perSecond {
		l.lost++
		return false, 0
	}
	l.passed++
	lost, l.lost = l.lost, 0
	return true, lost
}
