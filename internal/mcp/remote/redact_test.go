package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

// A server that repeats our headers or URL in an error does not get a secret into
// what many see. Results are not touched.
func TestErrorsHoldNoSecrets(t *testing.T) {
	const token, key = `tok/en"1234`, "query5678"
	const in = `tok\/en\"1234`
	answers := map[string]struct {
		member string
		want   error // nil for a result, which is as it is
	}{
		"message": {`"error":{"code":-1,"message":"bad ` + in + ` ` + key + `!"}`, &rpc.Error{Code: -1, Message: "bad [secret] [secret]!"}},
		"data": {
			`"error":{"code":-1,"message":"m","data":{ "n":1.0,"h":["Bearer ` + in + `"],"` + key + `":56}}`,
			&rpc.Error{Code: -1, Message: "m", Data: []byte(`{ "n":1.0,"h":["[secret]"],"[secret]":56}`)},
		},
		"no secret": {`"error":{"code":-1,"message":"m","data":{ "n":1.0}}`, &rpc.Error{Code: -1, Message: "m", Data: []byte(`{ "n":1.0}`)}},
		"result":    {`"result":{"isError":true,"content":[{"type":"text","text":"` + in + ` ` + key + `"}]}`, nil},
		"large": {
			`"error":{"code":-1,"message":"` + strings.Repeat("é", 100_000) + `"}`,
			&rpc.Error{Code: -1, Message: strings.Repeat("é", (rpc.MessageBytes-3)/2) + "…"},
		},
	}
	for name, a := range answers {
		body := `{"jsonrpc":"2.0","id":%ID%,` + a.member + `}`
		sse := newSSEServer(t, "/post", func(m *seen) string { return "data: " + strings.ReplaceAll(body, "%ID%", m.id) + "\n\n" })
		ways := map[string]*server{
			"JSON": sessionServer(t, answerRaw(200, "application/json", body)), "events": sessionServer(t, events("data: "+body+"\n\n")),
			"sse": sse.server,
		}
		if a.want != nil && name != "large" { // of a refusal, that is too much to be read
			ways["refused"] = sessionServer(t, answerRaw(400, "application/json", body))
		}
		for way, s := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				o := pinned(s)
				o.URL += "?key=" + key
				o.Headers = http.Header{"Authorization": {"Bearer " + token}}
				if way == "sse" {
					o.Protocol = SSE
				}
				got, err := call1(t, dial(t, o), `{}`)
				if a.want == nil {
					if want, _ := strings.CutPrefix(a.member, `"result":`); err != nil || got != want {
						t.Errorf("Do = %s, %v, want %s", got, err, want)
					}
					return
				}
				if d := cmp.Diff(a.want, err); d != "" {
					t.Errorf("error (-want +got):\n%s", d)
				}
			})
		}
	}
}

// What fails a handshake is shown to people too.
func TestRefusalsHoldNoSecrets(t *testing.T) {
	const secret = "tok-12345"
	unsupported := func(member string) handler {
		return answerRaw(400, "application/json", `{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32022,"message":"no `+secret+`",`+member+`}}`)
	}
	for name, tt := range map[string]struct {
		on   map[string]handler
		want string
	}{
		SSE:             {map[string]handler{"GET": answerRaw(200, "x/"+secret, "")}, `with "x/[secret]" and not events`},
		"an error":      {map[string]handler{"initialize": answerRaw(200, "application/json", `{"id":%ID%,"error":{"code":-1,"message":"no `+secret+`"}}`)}, "no [secret]"},
		"a version":     {map[string]handler{"initialize": initialize("x"+secret, "")}, `version "x[secret]"`},
		"versions":      {map[string]handler{"server/discover": answerJSON(`{"supportedVersions":["x` + secret + `"]}`)}, "that we do: x[secret]"},
		"more versions": {map[string]handler{"server/discover": unsupported(`"data":{"supported":["x` + secret + `"]}`)}, "that we do: x[secret]"},
		"a type":        {map[string]handler{"initialize": answerRaw(200, "x/"+secret, "")}, "with x/[secret] and not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			var logs logged
			o := Options{URL: newServer(t, tt.on).URL, Headers: http.Header{"X-Key": {secret}}}
			if name == SSE {
				o.Protocol = SSE
			}
			o.Log = logs.logger()
			_, err := Dial(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("Dial = %v, want %q", err, tt.want)
			}
			if strings.Contains(logs.String(), secret) {
				t.Errorf("the log holds the secret: %s", logs.String())
			}
		})
	}
}

// A version that somebody has put in a header is no secret: the server's word on it must be understood.
func TestVersionsAreNoSecrets(t *testing.T) {
	s := sessionServer(t, answerJSON(`{}`))
	s.set("server/discover", answerRaw(400, "application/json", `{"jsonrpc":"2.0","id":%ID%,"error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}}`))
	c := dial(t, Options{URL: s.URL, Headers: http.Header{"X-Version": {v20251125}}})
	if got := c.Peer().Protocol; got != v20251125 {
		t.Errorf("the protocol is %s", got)
	}
}
