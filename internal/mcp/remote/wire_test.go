package remote

import (
	"encoding/json"
	"net/url"
	"strconv"
	"testing"

	"mcpbridge/internal/mcp/rpc"
)

// What goes along in _meta stands beside what the connection writes there; without it, nothing is different.
func TestMeta(t *testing.T) {
	leakFree(t)
	const mine = `"traceparent":"00-1"`
	c := dial(t, pinned(sessionServer(t, answerJSON(`{}`))))
	c.meta = `"version":1`
	watch := func(json.RawMessage) {}
	for _, tt := range []struct {
		modern   bool
		meta     string
		progress func(json.RawMessage)
		want     string
	}{
		{false, "", nil, `"name":1`},
		{false, mine, nil, `"_meta":{` + mine + `},"name":1`},
		{false, mine, watch, `"_meta":{"progressToken":7,` + mine + `},"name":1`},
		{true, "", nil, `"_meta":{"version":1},"name":1`},
		{true, mine, nil, `"_meta":{"version":1,` + mine + `},"name":1`},
		{true, mine, watch, `"_meta":{"version":1,"progressToken":7,` + mine + `},"name":1`},
	} {
		got := string(c.frame("7", &rpc.Request{Method: "m", Params: []byte(`"name":`), Args: []byte(`1`), Meta: []byte(tt.meta), Progress: tt.progress}, tt.modern))
		if want := `{"jsonrpc":"2.0","id":7,"method":"m","params":{` + tt.want + `}}`; got != want {
			t.Errorf("the frame is %s, want %s", got, want)
		}
	}
}

// Whoever wants to know is told how a request went, as far as that is no secret.
func TestWire(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, answerJSON(`{}`))
	c := dial(t, pinned(s))
	r := request1(`{}`)
	r.Wire = new(rpc.Wire)
	if _, err := c.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	// printf s1 | sha256sum
	if want := (rpc.Wire{ID: r.Wire.ID, Session: "e8bc163c82eee187", Host: "127.0.0.1", Port: port}); *r.Wire != want || r.Wire.ID == "" {
		t.Errorf("the wire is %+v, want %+v", *r.Wire, want)
	}

	o := pinned(s)
	o.Display = "its URL"
	hidden := dial(t, o)
	if w := hidden.wire("7", &era{}); w != (rpc.Wire{ID: "7"}) {
		t.Errorf("of a secret URL the wire is %+v", w)
	}
	for text, want := range map[string]int{"https://h/": 443, "http://h/": 80, "https://h:8443/": 8443} {
		at, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if w := (&Conn{url: at}).wire("7", &era{}); w.Host != "h" || w.Port != want {
			t.Errorf("%s is %+v", text, w)
		}
	}
}
