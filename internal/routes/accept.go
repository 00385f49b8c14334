package routes

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mcpbridge/internal/bridge"
)

// maxRanges bounds the ranges of an Accept header that count.
const maxRanges = 64

// A mediaRange is one element of Accept (RFC 9110 section 12.5.1), in lower case.
type mediaRange struct {
	typ, sub string // "*" is any
	q        int    // weight in thousandths
}

// ranges are what a request accepts, the most wanted first. None is anything.
type ranges []mediaRange

// parseAccept reads Accept. What cannot be read in it is skipped. Of ranges with
// the same weight the more specific one is wanted more, then the one named first.
func parseAccept(values []string) ranges {
	if len(values) == 1 && (values[0] == "*/*" || values[0] == "application/json") {
		return nil // what nearly all callers send
	}
	var rs ranges
	for _, v := range values {
		for part := range elements(v, ',') {
			if r, ok := parseRange(part); ok && len(rs) < maxRanges {
				rs = append(rs, r)
			}
		}
	}
	slices.SortStableFunc(rs, func(a, b mediaRange) int {
		if a.q != b.q {
			return b.q - a.q
		}
		return b.specificity() - a.specificity()
	})
	return rs
}

// elements yields the elements of a header's list, or with a semicolon the
// parameters of one element. A separator in a quoted string is none.
func elements(v string, separator byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, from := false, 0
		for i := 0; i <= len(v); i++ {
			switch {
			case i == len(v) || v[i] == separator && !quoted:
				if e := strings.TrimSpace(v[from:i]); e != "" && !yield(e) {
					return
				}
				from = i + 1
			case v[i] == '"':
				quoted = !quoted
			case v[i] == '\\' && quoted:
				i++
			}
		}
	}
}

func parseRange(s string) (mediaRange, bool) {
	name, params, _ := strings.Cut(s, ";")
	typ, sub, ok := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "/")
	if !ok || typ == "" || sub == "" || typ == "*" && sub != "*" {
		return mediaRange{}, false
	}
	q, ok := weight(params)
	return mediaRange{typ, sub, q}, ok
}

// weight returns the q among parameters in thousandths; without one it is 1.
func weight(params string) (q int, ok bool) {
	for p := range elements(params, ';') {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return 0, false
		}
		return int(f*1000 + 0.5), true
	}
	return 1000, true
}

func (r mediaRange) specificity() int {
	switch {
	case r.typ == "*":
		return 0
	case r.sub == "*":
		return 1
	default:
		return 2
	}
}

func (r mediaRange) matches(typ, sub string) bool {
	return r.typ == "*" || r.typ == typ && (r.sub == "*" || r.sub == sub)
}

// weight returns how much a type is wanted: the weight of the most specific range that it fits.
func (rs ranges) weight(typ, sub string) int {
	if rs == nil {
		return 1000
	}
	best, q := -1, 0
	for _, r := range rs {
		if s := r.specificity(); s > best && r.matches(typ, sub) {
			best, q = s, r.q
		}
	}
	return q
}

// check refuses what no tool can produce.
func (rs ranges) check() error {
	if rs.weight("application", "json") > 0 || rs.weight("text", "plain") > 0 {
		return nil
	}
	for _, r := range rs {
		if r.q > 0 && (r.typ == "image" || r.typ == "audio" || r.typ == "*") {
			return nil
		}
	}
	return &bridge.Error{
		Kind: NotAcceptable, Op: "routes.accept",
		Msg: "No tool can produce what Accept asks for; accept application/json, text/plain, text/event-stream, or an image or audio type.",
	}
}

// acceptsGzip reports whether the answer may be compressed. A request that does
// not say gets it plain: tools that do not ask often cannot decode.
func acceptsGzip(h http.Header) bool {
	wildcard := 0
	for _, v := range h["Accept-Encoding"] {
		for part := range elements(v, ',') {
			coding, params, _ := strings.Cut(part, ";")
			q, ok := weight(params)
			switch coding = strings.ToLower(strings.TrimSpace(coding)); {
			case coding == "gzip" || coding == "x-gzip":
				return ok && q > 0
			case coding == "*" && ok:
				wildcard = q
			}
		}
	}
	return wildcard > 0
}
