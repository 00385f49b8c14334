package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

const modernVersion = "2026-07-28"

// modern is a server of the stateless protocol: no handshake; every request says
// in its _meta who asks, and every result that it is complete and who answers.
func modern(args []string) (*server, error) {
	s := newServer(kit()...)
	s.first = func(w *wire, m *message) bool {
		if m.ID == nil {
			return false // notifications carry no _meta
		}
		switch m.Method {
		case "initialize":
			w.refuse(m.ID, -32601, `"initialize" is not supported; this server speaks `+modernVersion+` only`)
			if slices.Contains(args, "exit") {
				os.Exit(1)
			}
			return true
		case "ping":
			w.refuse(m.ID, -32601, `"ping" is not supported`)
			return true
		}
		if e := checkMeta(m.Params); e != nil {
			w.refuse(m.ID, e.code, e.msg)
			return true
		}
		switch m.Method {
		case "server/discover":
			w.answer(m.ID, fmt.Sprintf(`{"supportedVersions":[%q],"capabilities":%s,"instructions":%q,"ttlMs":0}`, modernVersion, s.caps(), instructions))
			return true
		case "subscriptions/listen":
			w.subscribe(m)
			return true
		}
		return false
	}
	s.frame = func(frame []byte) []byte { return complete(frame) }
	return s, nil
}

// checkMeta says what a modern request lacks.
func checkMeta(params json.RawMessage) *wireError {
	var p struct {
		Meta struct {
			Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
			ClientInfo   json.RawMessage `json:"io.modelcontextprotocol/clientInfo"`
			Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	switch err := json.Unmarshal(params, &p); {
	case err != nil:
		return &wireError{-32602, err.Error()}
	case p.Meta.Version == "":
		return &wireError{-32602, "_meta lacks io.modelcontextprotocol/protocolVersion"}
	case p.Meta.Version != modernVersion:
		return &wireError{-32022, "unsupported protocol version"}
	case !strings.HasPrefix(string(p.Meta.ClientInfo), "{"):
		return &wireError{-32602, "_meta lacks io.modelcontextprotocol/clientInfo"}
	case !strings.HasPrefix(string(p.Meta.Capabilities), "{"):
		return &wireError{-32602, "_meta lacks io.modelcontextprotocol/clientCapabilities"}
	}
	return nil
}

// subscribe starts a stream of notifications, which lasts until it is cancelled: it has no answer.
func (w *wire) subscribe(m *message) {
	w.s.update(func() { w.s.listen, w.s.listener = m.ID, w })
	w.notify("notifications/subscriptions/acknowledged",
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(m.ID)+`},"notifications":{"toolsListChanged":true}}`)
}

// complete adds to a result what the stateless protocol wants there, behind what the tool said.
func complete(frame []byte) []byte {
	var f struct {
		ID     json.RawMessage            `json:"id"`
		Result map[string]json.RawMessage `json:"result"`
	}
	if json.Unmarshal(frame, &f) != nil || f.Result == nil || f.Result["resultType"] != nil {
		return frame
	}
	meta := ""
	if f.Result["_meta"] == nil {
		meta = `,"_meta":{"io.modelcontextprotocol/serverInfo":` + info + `}`
	}
	more := `"resultType":"complete"` + meta + `}}`
	body := strings.TrimSuffix(string(frame), `}}`)
	if len(f.Result) > 0 {
		more = "," + more
	}
	return []byte(body + more)
}
