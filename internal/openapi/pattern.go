package openapi

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxPattern  = 16 << 10               // bytes of a regular expression
	patternTime = 100 * time.Millisecond // for one match; the engine looks at its clock ten times a second

	// A pattern may use a tenth of the time, and patternBurst of it at once: many
	// strings that are each just in time must not add up to hours.
	patternShare = 10
	patternBurst = 500 * time.Millisecond
)

// A pattern is a regular expression in the ECMAScript dialect, as JSON Schema has
// it. Its matching backtracks, so a bad expression can take longer than anyone
// lives: when its time is up a string counts as matched.
type pattern struct {
	re    *regexp2.Regexp
	log   *slog.Logger
	owing atomic.Int64 // the time, in nanoseconds since start, at which what it used is paid back
}

var start = time.Now()

var _ jsonschema.Regexp = (*pattern)(nil)

var errLongPattern = errors.New("the pattern is longer than 16 KiB")

func newPattern(expr string, log *slog.Logger) (*pattern, error) {
	if len(expr) > maxPattern {
		return nil, errLongPattern
	}
	re, err := regexp2.Compile(expr, regexp2.ECMAScript, regexp2.Unicode)
	if err != nil {
		// The Unicode mode forbids needless escapes, as of a hyphen, that many write.
		if re, err = regexp2.Compile(expr, regexp2.ECMAScript); err != nil {
			return nil, err
		}
	}
	re.MatchTimeout = patternTime
	return &pattern{re: re, log: log}, nil
}

func (p *pattern) String() string { return p.re.String() }

// MatchString reports whether s matches, or could not be matched in time.
func (p *pattern) MatchString(s string) bool {
	from := time.Since(start)
	owing := max(p.owing.Load(), int64(from))
	if owing-int64(from) > int64(patternBurst)*patternShare {
		return true
	}
	ok, err := p.re.MatchString(s)
	if took := time.Since(start) - from; took > time.Millisecond {
		p.owing.Store(owing + int64(took)*patternShare)
	}
	if err != nil {
		// The error's text holds the string, which is a caller's and stays out of the log.
		p.log.Warn("pattern not matched in time, taken as matched", slog.String("pattern", firstChars(p.re.String(), 200)), slog.Int("length", len(s)))
		return true
	}
	return ok
}

// isPattern reports whether an expression is one. With another, which nobody can
// match, a document would be invalid, and what generators make of it would not start.
func isPattern(expr string) bool {
	_, err := newPattern(expr, nil)
	return err == nil
}
