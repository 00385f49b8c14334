package routes

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

// TestLengthIsKnown calls over a connection: the length of an answer is sent whoever counts it.
func TestLengthIsKnown(t *testing.T) {
	f := newFixture()
	s := newToolServer("demo")
	s.Tools = append(s.Tools, newTool("demo", "text", `{"type":"object"}`))
	f.snap = bridge.NewSnapshot(1, true, []*bridge.Server{s})
	var result string
	f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return newResult(result), nil }
	srv := httptest.NewServer(f.handler())
	defer srv.Close()
	for _, size := range []int{100, countedBody - 1, countedBody, countedBody + 1, 1 << 20} {
		for _, more := range []string{"", `,"_meta":{}`} { // with more, the data is in pieces
			const around = `{"content":[{"type":"text","text":""}]}`
			data := strings.Replace(around, `""`, `"`+strings.Repeat("x", size-len(around))+`"`, 1)
			result = strings.TrimSuffix(data, "}") + more + "}"
			res, err := srv.Client().Post(srv.URL+"/tools/demo/text", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.ContentLength != int64(size) || string(body) != data || res.TransferEncoding != nil {
				t.Errorf("of %d bytes %d are announced and %d come, %v", size, res.ContentLength, len(body), err)
			}
		}
	}
}
