package artifacts

import (
	"context"
	"errors"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// ReadText returns the characters from offset on, limit at most, of the text of the value at a
// JSON pointer in the caller's artifact, and the offset of what comes behind them, or -1 at the end.
// The text of a string is what it says, that of any other value its JSON as its server sent it. The errors are those of
// [Keeper.Open] and [Artifact.Data], and of kind Malformed when a number is negative.
func (k *Keeper) ReadText(ctx context.Context, c bridge.Caller, ref, pointer string, offset, limit int) (text string, next int, err error) {
	a, err := k.Open(ctx, c, ref)
	if err != nil {
		return "", 0, err
	}
	v, err := a.Data(pointer)
	if err != nil {
		return "", 0, err
	}
	if v.Kind == raw.String {
		s, err := v.Slice(offset, limit)
		if err != nil {
			return "", 0, err
		}
		var b strings.Builder
		if err := s.Text(&b); err != nil {
			return "", 0, err
		}
		return b.String(), s.Next, nil
	}
	if offset < 0 || limit < 0 {
		return "", 0, errNegative
	}
	// Most of the JSON may lie behind what is asked for, which is not read.
	e := &excerpt{skip: offset, take: limit}
	if _, err := v.WriteTo(e); err != nil && !errors.Is(err, errEnough) {
		return "", 0, err
	}
	if e.more {
		return string(e.text), offset + limit, nil
	}
	return string(e.text), -1, nil
}

// SearchText calls found for the first ten places in the caller's artifact where a text is found, in whatever case, with 200
// characters around it, and reports whether there are more. The errors are those of [Keeper.Open] and [Value.Search].
func (k *Keeper) SearchText(ctx context.Context, c bridge.Caller, ref, text string, found func(pointer string, offset int, excerpt string)) (more bool, err error) {
	a, err := k.Open(ctx, c, ref)
	if err != nil {
		return false, err
	}
	v, err := a.Data("")
	if err != nil {
		return false, err
	}
	matches, more, err := v.Search(Search{Text: text})
	for _, m := range matches {
		found(m.Pointer, m.Offset, m.Excerpt)
	}
	return more, err
}

var errEnough = errors.New("enough was written")

// An excerpt takes some of the characters that are written to it, and stops the writing behind them.
type excerpt struct {
	skip, take int // characters to come
	text       []byte
	more       bool
}

func (e *excerpt) Write(b []byte) (int, error) {
	for i, c := range b {
		if !continues(c) {
			switch {
			case e.skip > 0:
				e.skip--
				continue
			case e.take == 0:
				e.more = true
				return i, errEnough
			}
			e.take--
		} else if len(e.text) == 0 {
			continue // of a character that is skipped
		}
		e.text = append(e.text, c)
	}
	return len(b), nil
}
