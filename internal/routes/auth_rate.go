package routes

import (
	"net/http"
	"strconv"
	"time"

	"mcpbridge/internal/bridge"
)

// rate tells a caller with a rate what it has left of it, in the fields RateLimit and
// RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-11: the quota is what can
// be called at once after a pause, and the window the time in which that fills up.
func (x *exchange) rate(h http.Header, c bridge.Caller) {
	if x.s.Allowance == nil {
		return
	}
	a, ok := x.s.Allowance(c)
	if !ok {
		return
	}
	h["Ratelimit-Policy"] = []string{`"calls";q=` + strconv.Itoa(a.Burst) + `;w=` + seconds(max(a.Full, 1))}
	h["Ratelimit"] = []string{`"calls";r=` + strconv.Itoa(a.Left) + `;t=` + seconds(a.Reset)}
}

// seconds returns whole seconds, and never too few.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
