package routes

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
)

// wait returns the time that "Prefer: wait=N" allows the call; zero is no preference.
func (x *exchange) wait(r *http.Request) (time.Duration, error) {
	d, _, err := x.waits(r, false)
	return d, err
}

// waits returns the time that "Prefer: wait=N" (RFC 7240 section 4.3) allows, at
// most MaxTimeout, and whether there is one. Zero is allowed where it means not to
// wait at all. Other preferences are for others.
func (x *exchange) waits(r *http.Request, zero bool) (time.Duration, bool, error) {
	value, ok := preference(r.Header["Prefer"], "wait")
	if !ok {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if errors.Is(err, strconv.ErrRange) { // a whole number all the same
		n, err = math.MaxInt32, nil
	}
	if err != nil || n == 0 && !zero {
		return 0, false, &bridge.Error{
			Kind: bridge.Malformed, Op: "routes.wait",
			Msg: "In Prefer, wait must be a whole number of seconds from 1.",
		}
	}
	return min(time.Duration(n)*time.Second, x.s.MaxTimeout), true, nil
}

// preference returns the value of the preference called name; of several the first one counts.
func preference(values []string, name string) (string, bool) {
	for _, v := range values {
		for e := range elements(v, ',') {
			token, _, _ := strings.Cut(e, ";")
			key, value, _ := strings.Cut(token, "=")
			if strings.EqualFold(strings.TrimSpace(key), name) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}
