package routes

import (
	"encoding/base64"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
)

// varyCall is shared by all answers, and so never appended to.
var varyCall = []string{"Accept, Prefer"}

// inline are the types of a stranger's bytes that a browser may show: none of
// them can hold a script.
var inline = map[string]bool{
	"text/plain": true,
	"image/png":  true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/avif": true, "image/bmp": true,
	"audio/mpeg": true, "audio/mp4": true, "audio/aac": true, "audio/flac": true, "audio/ogg": true, "audio/wav": true, "audio/x-wav": true, "audio/webm": true,
}

// countedBody is the size up to which net/http itself counts a body and sends its length. A
// ninth header of our own would make the map of them, and net/http's copy, twice as large: an eighth
// of the bytes that a small call allocates (BenchmarkCall).
const countedBody = 2 << 10

// answer writes what the tool returned, in the form that is wanted most among those the result has.
func (x *exchange) answer(r *http.Request, a *bridge.Answer, accept ranges) {
	h := x.Header()
	kept := a.Artifact != nil && x.s.Artifacts != nil
	if kept {
		h.Set("Artifact-Ref", a.Artifact.Ref)
		h.Set("Artifact-Type", a.Artifact.Type)
		if a.Result.More() {
			h.Set("Link", wholeResult(artifactRef(x, r, a.Artifact.Ref)))
		}
	}
	if body, mediaType, ok := other(a.Result, accept); ok {
		x.writeForeign(r, mediaType, body)
		return
	}
	if kept && x.summary(r, a.Artifact.Ref) {
		return
	}
	if kept {
		// Only JSON is what a GET there returns whatever it accepts.
		h.Set("Content-Location", artifactRef(x, r, a.Artifact.Ref))
	}
	h["Content-Type"] = jsonType
	if n := a.Result.Size(); n > countedBody {
		h["Content-Length"] = []string{strconv.Itoa(n)}
	}
	x.WriteHeader(http.StatusOK)
	for _, piece := range a.Result.Data() {
		if _, err := x.Write(piece); err != nil {
			return // the caller went away
		}
	}
}

// summary answers with the summary view of a new artifact if the caller prefers
// that, and reports whether it did. One that cannot be read back is answered whole.
func (x *exchange) summary(r *http.Request, ref string) bool {
	if want, _ := preference(r.Header["Prefer"], "return"); !strings.EqualFold(want, "minimal") {
		return false
	}
	opened, err := x.s.Artifacts.Open(r.Context(), x.caller, ref)
	if err != nil {
		return false
	}
	v, err := opened.Data("")
	if err != nil {
		return false
	}
	h := x.Header()
	before := h.Get("Preference-Applied")
	h.Set("Preference-Applied", strings.TrimPrefix(before+", return=minimal", ", "))
	h.Set("Content-Location", artifactRef(x, r, ref)+"?view=summary")
	if err := x.stream(r, "application/json", -1, v.Summarize); err != nil {
		h.Set("Preference-Applied", before)
		if before == "" {
			h.Del("Preference-Applied")
		}
		return false
	}
	return true
}

var jsonType = []string{"application/json"}

// artifactRef is the reference from the request's URL to an artifact. Of a
// reference's own characters none needs an escape.
func artifactRef(x *exchange, r *http.Request, ref string) string {
	return root(x, r) + "artifacts/" + ref
}

// other returns the result in the most wanted form that is not JSON, or false
// when JSON is wanted more or nothing fits.
func other(res *bridge.Result, accept ranges) (body []byte, mediaType string, ok bool) {
	for _, want := range accept {
		switch {
		case want.q == 0:
			return nil, "", false
		case want.matches("application", "json") && accept.weight("application", "json") > 0:
			return nil, "", false
		}
		if want.matches("text", "plain") && accept.weight("text", "plain") > 0 {
			if text, ok := texts(res); ok {
				return text, "text/plain; charset=utf-8", true
			}
		}
		if body, mediaType, ok = onlyBinary(res, want); ok {
			return body, mediaType, true
		}
	}
	return nil, "", false
}

// texts returns the text blocks, joined by newlines, and whether there are any.
func texts(res *bridge.Result) ([]byte, bool) {
	var all []byte
	n := 0
	for b := range res.Blocks() {
		if t, ok := b.Text(); ok {
			if n++; n > 1 {
				all = append(all, '\n')
			}
			all = append(all, t...)
		}
	}
	return all, n > 0
}

// onlyBinary returns the bytes of the one image or audio block that is in the
// range. Of several none can stand for the result.
func onlyBinary(res *bridge.Result, want mediaRange) (body []byte, mediaType string, ok bool) {
	var found []byte
	n := 0
	for b := range res.Blocks() {
		declared, encoded, ok := b.Binary()
		if !ok {
			continue
		}
		// The parameters go: a charset or a codec list is a stranger's text too.
		t, _, err := mime.ParseMediaType(declared)
		typ, sub, _ := strings.Cut(t, "/")
		if err == nil && (typ == "image" || typ == "audio") && want.matches(typ, sub) {
			found, mediaType = encoded, t
			n++
		}
	}
	if n != 1 {
		return nil, "", false
	}
	body, err := base64.StdEncoding.AppendDecode(nil, found)
	return body, mediaType, err == nil
}

// writeForeign answers with bytes that a browser could take for a page of ours.
func (x *exchange) writeForeign(r *http.Request, mediaType string, body []byte) {
	x.foreign(mediaType)
	x.send(r, http.StatusOK, mediaType, body)
}

// steps yields the steps of a call that happened, and their times.
func steps(t *bridge.Timing) iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		for _, s := range [...]struct {
			name string
			d    time.Duration
		}{
			{"find", t.Find},
			{"check", t.Check},
			{"connect", t.Connect},
			{"queue", t.Queue},
			{"upstream", t.Upstream},
			{"walk", t.Walk},
			{"store", t.Store},
		} {
			if s.d > 0 && !yield(s.name, s.d) {
				return
			}
		}
	}
}

// serverTiming renders the steps as the Server-Timing header has them: milliseconds, to the microsecond.
func serverTiming(t *bridge.Timing) string {
	var buf [256]byte
	b := buf[:0]
	for name, d := range steps(t) {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, name...), ";dur="...)
		us := (d + 500).Microseconds()
		b = strconv.AppendInt(b, us/1000, 10)
		b = append(b, '.', byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
	}
	return string(b)
}
