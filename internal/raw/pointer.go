package raw

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// A PointerError says how far a JSON pointer resolved.
type PointerError struct {
	Pointer  string
	Resolved string // the longest prefix that leads to a value
	Msg      string
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("pointer %q: %s (resolved up to %q)", e.Pointer, e.Msg, e.Resolved)
}

// AppendToken appends one reference token to a JSON pointer, escaped (RFC 6901 section 3).
func AppendToken(pointer, token string) string { return pointer + "/" + escapeToken.Replace(token) }

// Lookup returns the value at a JSON pointer (RFC 6901) in v. Of equal keys the
// last one counts. The error is a [*PointerError].
func Lookup(v []byte, pointer string) ([]byte, error) {
	fail := func(at int, msg string) ([]byte, error) {
		return nil, &PointerError{Pointer: pointer, Resolved: pointer[:at], Msg: msg}
	}
	if pointer != "" && pointer[0] != '/' {
		return fail(0, "does not start with a slash")
	}
	for at := 0; at < len(pointer); {
		end := len(pointer)
		if i := strings.IndexByte(pointer[at+1:], '/'); i >= 0 {
			end = at + 1 + i
		}
		token := unescapeToken.Replace(pointer[at+1 : end])
		switch KindOf(v) {
		case Object:
			val := Get(v, token)
			if val == nil {
				return fail(at, "no such key")
			}
			v = val
		case Array:
			val := index(v, token)
			if val == nil {
				return fail(at, "no such index")
			}
			v = val
		default:
			return fail(at, "leads into a value that has no members")
		}
		at = end
	}
	return v, nil
}

// index returns the element that an array index of RFC 6901 section 4 names: digits without leading zeros.
func index(v []byte, token string) []byte {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || strconv.Itoa(n) != token {
		return nil
	}
	for i, e := range Elements(v) {
		if i == n {
			return e
		}
	}
	return nil
}
