package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The proxy changes names on their way, in both directions, and nothing else.
func TestProxy(t *testing.T) {
	var got *http.Request
	var body string
	answer := "{}"
	bridge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(b)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, answer)
	}))
	defer bridge.Close()
	u, err := url.Parse(bridge.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(newProxy(u))
	defer proxy.Close()
	for _, tt := range []struct{ method, name, sent, want, wantName string }{
		{"tools/call", "add", `{"method":"tools/call","params":{"name":"add"}}`, `{"method":"tools/call","params":{"name":"conformance__add"}}`, "conformance__add"},
		{"prompts/get", "p", `{"method":"prompts/get","params":{"name":"p"}}`, `{"method":"prompts/get","params":{"name":"conformance__p"}}`, "conformance__p"},
		{"completion/complete", "", `{"method":"completion/complete","params":{"ref":{"name":"p"}}}`, `{"method":"completion/complete","params":{"ref":{"name":"conformance__p"}}}`, ""},
		{"completion/complete", "", `{"method":"completion/complete","params":{"ref":1}}`, `{"method":"completion/complete","params":{"ref":1}}`, ""},
		{"resources/read", "x://y", `{"method": "resources/read","params":{"uri":"x://y"}}`, `{"method": "resources/read","params":{"uri":"x://y"}}`, "x://y"},
		{"tools/call", "a", `{"method":"tools/call","params":{"name":5}}`, `{"method":"tools/call","params":{"name":5}}`, "conformance__a"},
		{"", "", `no JSON`, `no JSON`, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", proxy.URL+"/mcp?x=1", strings.NewReader(tt.sent))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "example.com"
		for name, v := range map[string]string{"Mcp-Method": tt.method, "Mcp-Name": tt.name} {
			if v != "" {
				req.Header.Set(name, v)
			}
		}
		answer = fmt.Sprintf("data: {%q:[%q,%q]}\n\ndata: conformance__ stays\n", "names", "conformance__add", "bridge:conformance:x://y")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || body != tt.want || got.Header.Get("Mcp-Name") != tt.wantName || got.Host != "example.com" || got.URL.String() != "/mcp?x=1" {
			t.Errorf("%s became %s for %s with %q at %s, %v", tt.sent, body, got.Host, got.Header.Get("Mcp-Name"), got.URL, err)
		}
		if want := "data: {\"names\":[\"add\",\"x://y\"]}\n\ndata: conformance__ stays\n"; string(b) != want || res.StatusCode != http.StatusTeapot {
			t.Errorf("the answer became %d %q, want %q", res.StatusCode, b, want)
		}
	}
}
