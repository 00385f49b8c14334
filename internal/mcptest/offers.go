package mcptest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// What mode [Offers] answers where every byte counts.
const (
	// ExactPrompt is the result of the prompt exact.
	ExactPrompt = `{ "messages":[{"role":"user","content":{"z":1.10,"a":9007199254740993,"type":"text","text":"\u0041"}}], "n":1e400 }`
	// ExactContents is the result of reading test:exact.
	ExactContents = `{ "contents":[{"uri":"test:exact","text":"a","n":1.10},{"uri":"test:\u0065xact","blob":"AA=="}], "n":9007199254740993 }`
)

// offers serves, beside the tools of [OK], resources, templates and prompts, of which some are bad.
func offers([]string) (*server, error) {
	s := newServer(kit()...)
	s.capabilities = `{"tools":{},"resources":{"listChanged":true},"prompts":{"listChanged":true},"completions":{}}`
	var changes atomic.Int32
	s.first = func(w *wire, m *message) bool {
		switch m.Method {
		case "resources/list":
			w.answer(m.ID, offeredResources(m.Params, int(changes.Load())))
		case "resources/templates/list":
			w.answer(m.ID, `{"resourceTemplates":[{"uriTemplate":"test:huge/{bytes}","name":"huge","mimeType":"text/plain"},{"uriTemplate":5}]}`)
		case "resources/read":
			if uri := readURI(m.Params); uri == "test:change" {
				changes.Add(1)
				w.notify("notifications/resources/list_changed", `{}`)
				w.answer(m.ID, `{"contents":[]}`)
			} else {
				w.read(m.ID, uri)
			}
		case "prompts/list":
			w.answer(m.ID, `{"prompts":[{"name":"exact"},{"name":"say it/loud","arguments":[{"name":"what","required":true},{"name":"how"}]},{"title":"no name"},7]}`)
		case "prompts/get":
			w.prompt(m.ID, m.Params)
		case "completion/complete":
			w.answer(m.ID, `{"completion":{"values":["one"],"total":1.0},"params":`+string(m.Params)+`}`)
		default:
			return false
		}
		return true
	}
	return s, nil
}

func offeredResources(params json.RawMessage, changes int) string {
	if strings.Contains(string(params), `"cursor":"2"`) {
		var more strings.Builder
		for i := range changes {
			fmt.Fprintf(&more, `,{"uri":"test:new/%d"}`, i)
		}
		return `{"resources":[{"uri":"test:exact"},{"uri":"test:html"},5,{"name":"no uri"}` + more.String() + `]}`
	}
	return `{"resources":[{ "uri":"test:html","name":"a page","size":1e1 },{"uri":"test:png","name":7,"mimeType":[]}],"nextCursor":"2"}`
}

func readURI(params json.RawMessage) string {
	var p struct{ URI string }
	_ = json.Unmarshal(params, &p) // the URI of what is wrong is empty, and unknown
	return p.URI
}

// read answers with what is under the URI.
func (w *wire) read(id json.RawMessage, uri string) {
	switch {
	case uri == "test:html":
		w.answer(id, `{"contents":[{"uri":"test:html","mimeType":"text/html; charset=utf-7","text":"<!doctype html><body><script>fetch('/ran-' + document.domain); new Image().src = '/ran-as-image'</script>"}]}`)
	case uri == "test:png":
		w.answer(id, `{"contents":[{"uri":"test:png","mimeType":"image/png","blob":"`+PNG+`"}]}`)
	case uri == "test:exact":
		w.answer(id, ExactContents)
	case uri == "test:type":
		w.answer(id, `{"contents":[{"uri":"test:type","mimeType":"text/html\r\nSet-Cookie: a=b","blob":"PGI+"}]}`)
	case uri == "test:nonsense":
		w.answer(id, `{"content":"no contents"}`)
	case uri == "test:hang":
	case strings.HasPrefix(uri, "test:huge/"):
		n, _ := strconv.Atoi(strings.TrimPrefix(uri, "test:huge/"))
		w.answer(id, `{"contents":[{"text":"`+strings.Repeat("x", n)+`"}]}`)
	default:
		w.refuse(id, -32002, "Resource not found")
	}
}

// prompt answers with a prompt.
func (w *wire) prompt(id, params json.RawMessage) {
	var p struct {
		Name      string
		Arguments struct{ What string }
	}
	switch err := json.Unmarshal(params, &p); {
	case err != nil:
		w.refuse(id, -32602, err.Error())
	case p.Name == "exact":
		w.answer(id, ExactPrompt)
	case p.Arguments.What == "":
		w.refuse(id, -32602, "there is nothing to say")
	default:
		w.answer(id, `{"messages":[],"params":`+string(params)+`}`)
	}
}
