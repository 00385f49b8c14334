package routes

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

func TestTextOfAString(t *testing.T) {
	k := keep(t, `{"structuredContent":{"html":"<script>\n\"é\"","n":1}}`)
	for _, get := range []response{k.get("/html", "Accept: text/plain"), k.get("/html?format=raw"), k.get("/html?format=raw", "Accept: application/json"), k.get("/html", "Accept: text/*;q=0.9, application/json;q=0.1")} {
		get.wantOK(t, "<script>\n\"é\"")
		if ct, csp := get.header.Get("Content-Type"), get.header.Get("Content-Security-Policy"); ct != "text/plain; charset=utf-8" || !strings.HasPrefix(csp, "sandbox") {
			t.Errorf("Content-Type = %q, Content-Security-Policy = %q", ct, csp)
		}
		if n := get.header.Get("Content-Length"); n != "13" {
			t.Errorf("Content-Length = %q, want 13", n)
		}
	}
	for _, accept := range []string{"", "*/*", "application/json", "application/json, text/plain", "text/plain;q=0, application/json", "text/html", "application/xml", "text/plain;q=0"} {
		k.get("/html", "Accept: "+accept).wantOK(t, `"<script>\n\"é\""`)
	}
	k.get("/n", "Accept: text/plain").wantOK(t, "1")
	k.get("?pointer=/html&offset=1&limit=6", "Accept: text/plain").wantOK(t, "script")
}

// picture is bytes of no picture; what matters is that none of them is lost.
var picture = []byte("\x89PNG\r\n\x1a\n\x00\xff0123456789")

func blocks() string {
	b64 := base64.StdEncoding.EncodeToString(picture)
	return `{"content":[{"type":"text","text":"hi"},{"type":"image","mimeType":"image/png","data":"` + b64 + `"},` +
		`{"type":"resource","resource":{"uri":"x:1","mimeType":"text/html; charset=utf-7","blob":"` + base64.StdEncoding.EncodeToString([]byte("<script>1</script>")) + `"}},` +
		`{"type":"audio","mimeType":"audio/wav","data":"!not base64!"},` +
		`{"type":"resource","resource":{"uri":"x:2","blob":"` + b64 + `"}},` +
		`{"type":"resource","resource":{"uri":"x:3","mimeType":"image/svg+xml\r\nX-Evil: 1","blob":"` + b64 + `"}}]}`
}

func TestBytes(t *testing.T) {
	k := keep(t, blocks())
	for _, r := range []response{
		k.get("/content/1?format=raw"), k.get("/content/1", "Accept: image/png"), k.get("/content/1", "Accept: image/*"),
		k.get("/content/1/data?format=raw"), k.get("/content/1", "Accept: image/avif,image/webp,image/*,*/*;q=0.8"), k.get("?view=result&pointer=/content/1&format=raw"),
	} {
		r.wantOK(t, string(picture))
		for name, want := range map[string]string{
			"Content-Type": "image/png", "Content-Disposition": "", "Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff",
			"Accept-Ranges": "bytes", "Content-Length": strconv.Itoa(len(picture)), "Vary": "Accept",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	}
	for _, tt := range []struct{ behind, accept, mediaType, disposition string }{
		{"/content/2?format=raw", "", "text/html", "attachment"},
		{"/content/2", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html", "attachment"},
		{"/content/2/resource?format=raw", "", "text/html", "attachment"},
		{"/content/2/resource/blob?format=raw", "", "text/html", "attachment"},
		{"/content/4?format=raw", "", "application/octet-stream", "attachment"},
		{"/content/5?format=raw", "", "application/octet-stream", "attachment"},
		{"/content/1", "application/json, image/png", "application/json", ""},
		{"/content/1", "image/png;q=0.5, application/json", "application/json", ""},
		{"/content/1", "image/png;q=0, image/*", "application/json", ""},
		{"/content/1", "*/*", "application/json", ""},
		{"/content/1", "image/jpeg", "application/json", ""},
		{"/content/3", "audio/wav", "application/json", ""},
	} {
		r := k.get(tt.behind, "Accept: "+tt.accept)
		if r.status != 200 || r.header.Get("Content-Type") != tt.mediaType || r.header.Get("Content-Disposition") != tt.disposition {
			t.Errorf("%s, Accept %s = %d %s %q", tt.behind, tt.accept, r.status, r.header.Get("Content-Type"), r.header.Get("Content-Disposition"))
		}
		if tt.mediaType != "application/json" && !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: bytes of a stranger's without a sandbox", tt.behind)
		}
		if r.header.Get("X-Evil") != "" {
			t.Errorf("%s: a media type made a header", tt.behind)
		}
	}
	for behind, says := range map[string]string{"/content/3?format=raw": "base64", "/content/0?format=raw": "not a block of bytes", "?format=raw": "not a block of bytes", "/content?format=raw": "not a block of bytes"} {
		p := k.get(behind).wantProblem(t, 400, bridge.Malformed)
		if !strings.Contains(p["detail"].(string), says) {
			t.Errorf("%s: detail = %q, want %q in it", behind, p["detail"], says)
		}
	}
}

func TestRanges(t *testing.T) {
	k := keep(t, blocks())
	n := len(picture)
	all := string(picture)
	etag := k.get("/content/1?format=raw").header.Get("ETag")
	for _, tt := range []struct {
		ranges, body, contentRange string
	}{
		{"bytes=0-3", all[:4], fmt.Sprintf("bytes 0-3/%d", n)},
		{"bytes=10-", all[10:], fmt.Sprintf("bytes 10-%d/%d", n-1, n)},
		{"bytes=-4", all[n-4:], fmt.Sprintf("bytes %d-%d/%d", n-4, n-1, n)},
		{"bytes=-1000", all, fmt.Sprintf("bytes 0-%d/%d", n-1, n)},
		{"bytes=5-1000", all[5:], fmt.Sprintf("bytes 5-%d/%d", n-1, n)},
		{"bytes=5-99999999999999999999", all[5:], fmt.Sprintf("bytes 5-%d/%d", n-1, n)},
		{fmt.Sprintf("bytes=%d-%d", n-1, n-1), all[n-1:], fmt.Sprintf("bytes %d-%d/%d", n-1, n-1, n)},
		{"bytes=0-0", all[:1], fmt.Sprintf("bytes 0-0/%d", n)},
		// What is no one range is no range.
		{"bytes=0-1,3-4", all, ""},
		{"items=0-1", all, ""},
		{"bytes=x-1", all, ""},
		{"bytes=3-1", all, ""},
		{"bytes=-", all, ""},
		{"bytes=5", all, ""},
		{"bytes=", all, ""},
	} {
		r := k.get("/content/1?format=raw", "Range: "+tt.ranges)
		status := 206
		if tt.contentRange == "" {
			status = 200
		}
		if r.status != status || r.body != tt.body || r.header.Get("Content-Range") != tt.contentRange {
			t.Errorf("%s = %d %q %q", tt.ranges, r.status, r.header.Get("Content-Range"), r.body)
		}
	}
	for _, ranges := range []string{fmt.Sprintf("bytes=%d-", n), "bytes=1000-1001", "bytes=99999999999999999999-", "bytes=99999999999999999999-99999999999999999999", "bytes=-0"} {
		r := k.get("/content/1?format=raw", "Range: "+ranges)
		r.wantProblem(t, 416, RangeNotSatisfiable)
		if got, want := r.header.Get("Content-Range"), fmt.Sprintf("bytes */%d", n); got != want {
			t.Errorf("%s: Content-Range = %q, want %q", ranges, got, want)
		}
	}
	if r := k.get("/content/1?format=raw", "Range: bytes=0-0", "If-Range: "+etag); r.status != 206 {
		t.Errorf("with its tag in If-Range: status %d", r.status)
	}
	for _, cond := range []string{`"other"`, "W/" + etag, "Wed, 21 Oct 2015 07:28:00 GMT"} {
		if r := k.get("/content/1?format=raw", "Range: bytes=0-0", "If-Range: "+cond); r.status != 200 || r.body != all {
			t.Errorf("If-Range %s: status %d", cond, r.status)
		}
	}
	if r := k.do("HEAD", "/artifacts/"+k.ref+"/content/1?format=raw", "", "Range: bytes=0-0"); r.status != 200 || r.header.Get("Content-Length") != strconv.Itoa(n) {
		t.Errorf("HEAD with a range = %d, %v", r.status, r.header)
	}
}

// Of a large block only what is asked for is decoded, so that what is broken elsewhere shows late.
func TestLargeBlocks(t *testing.T) {
	all := bytes.Repeat(picture, 1000)
	b64 := base64.StdEncoding.EncodeToString(all)
	broken := b64[:8000] + "%%%%" + b64[8000:]
	k := keep(t, `{"content":[{"type":"image","mimeType":"image/png","data":"`+b64+`"},{"type":"image","mimeType":"image/png","data":"`+broken+`"}]}`)
	k.get("/content/0?format=raw").wantOK(t, string(all))
	for _, ask := range []string{"/content/0?format=raw", "/content/0/data?format=raw"} {
		r := k.get(ask, "Range: bytes=5001-5005")
		if r.status != 206 || r.body != string(all[5001:5006]) || r.header.Get("Content-Range") != fmt.Sprintf("bytes 5001-5005/%d", len(all)) || r.header.Get("Content-Type") != "image/png" {
			t.Errorf("%s: a range is %d %q %v", ask, r.status, r.body, r.header)
		}
	}
	p := k.get("/content/1?format=raw").wantProblem(t, 400, bridge.Malformed)
	if !strings.Contains(p["detail"].(string), "base64") {
		t.Errorf("detail = %q", p["detail"])
	}
	r := k.get("/content/1", "Accept: image/png")
	if r.status != 200 || r.header.Get("Content-Type") != "application/json" || !strings.Contains(r.body, broken) || r.header.Get("Accept-Ranges") != "" || r.header.Get("Content-Disposition") != "" {
		t.Errorf("in a wanted type: %d %v", r.status, r.header)
	}
	if r.header.Get("ETag") != k.get("/content/1").header.Get("ETag") {
		t.Error("the JSON has two tags")
	}
}
